"""Each fact made false, one at a time, in a child that then uses every feature: all must refuse.

In builds with -Dlies=true only (`make test-lies`).  `--record-lies` writes down what was found.
"""

import json
import sys
from collections.abc import Callable
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

Told = dict[str, str]


def told_after(line: str) -> Told | None:
    """Return what each feature says after a line; None: the child did not come to its end."""
    program = f"from cpythonplus import _native\n{line}\n{PROGRAM}"
    child = run_child(program, env=PYMALLOC, timeout=120, status=None)
    if child.status != 0:
        print(child)
        return None
    result: Told = json.loads(child.out.splitlines()[-1])
    return result


def is_refusal(said: str) -> bool:
    return said.startswith("refused")


@pytest.fixture(scope="module")
def truth() -> Told:
    told = told_after("")
    assert told is not None
    refused = [name for name, said in told.items() if is_refusal(said)]
    assert refused == (["prefork"] if HERE < (3, 12) else [])  # nothing is immortal there
    return told


def judge(fact: str, lie: str, told: Told | None, truth: Told) -> dict[str, object]:
    """Return the row of a lie: whether the fact was refused, and what the features did then."""
    outcome: dict[str, object] = {"fact": fact, "lie": lie, "crash": told is None}
    if told is not None:
        outcome["state"] = json.loads(told.pop("facts")).get(fact)
        changed = {name for name, said in told.items() if said != truth[name]}
        changed -= {name for name in changed if is_refusal(truth[name])}
        refused = {name for name in changed if is_refusal(told[name])}
        outcome["refused"] = sorted(refused)
        outcome["wrong"] = sorted(changed - refused)
    return outcome


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_lie(
    name: str, offset: int, truth: Told, record_property: Callable[[str, object], None]
) -> None:
    told = told_after(f"_native.interp_lie({name!r}, {offset})")
    outcome = judge(name, f"{offset:+}", told, truth)
    record_property("lie", outcome)
    assert not outcome["crash"]
    assert outcome["state"] == "refused"
    assert outcome["wrong"] == []


def test_a_version_that_nobody_knows(truth: Told) -> None:
    told = told_after("_native.interp_pretend(3, 16)")
    assert told is not None
    assert set(json.loads(told["facts"]).values()) == {"refused"}
    for feature in ("gil", "threads", "patched_threads"):
        assert told[feature] == truth[feature]
    why = "nobody has tested this with the structures of Python 3.16"
    for feature in ("tasklets", "census", "prefork"):
        assert is_refusal(told[feature])
        assert why in told[feature]
