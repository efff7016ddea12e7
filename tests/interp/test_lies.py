"""Each fact made false, one at a time, in a child that then uses every feature: all must refuse.

In builds with -Dlies=true only (`make test-lies`).
"""

import json
import sys
from pathlib import Path

import pytest

from cpythonplus import _interp, _native
from tests.support import PYMALLOC, run_child

LIES = getattr(_native, "interp_lie", None)
pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.skipif(LIES is None, reason="this build cannot lie (make test-lies)"),
]

HERE = sys.version_info[:2]
NAMES = [fact.name for fact in _interp.facts(ask=False) if fact.since <= HERE <= fact.until]
OFFSETS = (8, -8, 16, 4)

# Each feature must give what it gives with the truth, or refuse.
PROGRAM = Path(__file__).with_name("every_feature.py").read_text()


def features(*lines: str) -> dict[str, str]:
    child = run_child("\n".join(lines) + "\n" + PROGRAM, env=PYMALLOC, timeout=120)
    assert child.status == 0, child
    result: dict[str, str] = json.loads(child.out.splitlines()[-1])
    return result


@pytest.fixture(scope="module")
def truth() -> dict[str, str]:
    told = features()
    refused = [name for name, said in told.items() if said.startswith("refused")]
    assert refused == (["prefork"] if HERE < (3, 12) else [])  # nothing is immortal there
    return told


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_lie(name: str, offset: int, truth: dict[str, str]) -> None:
    told = features("from cpythonplus import _native", f"_native.interp_lie({name!r}, {offset})")
    states = json.loads(told["facts"])
    assert states[name] == "refused"
    wrong = {
        feature: said
        for feature, said in told.items()
        if feature != "facts" and said != truth[feature] and not said.startswith("refused")
    }
    assert wrong == {}


def test_a_version_that_nobody_knows(truth: dict[str, str]) -> None:
    told = features("from cpythonplus import _native", "_native.interp_pretend(3, 16)")
    assert set(json.loads(told["facts"]).values()) == {"refused"}
    for feature in ("gil", "threads"):
        assert told[feature] == truth[feature]
    why = "nobody has tested this with the structures of Python 3.16"
    for feature in ("tasklets", "census", "prefork"):
        assert told[feature].startswith("refused")
        assert why in told[feature]
