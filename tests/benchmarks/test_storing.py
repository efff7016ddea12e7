"""Results in the repository: small, a line for each row, and the same when they are read again."""

import json
from pathlib import Path

import pytest

from benchmarks.common.storing import stored

ROOT = Path(__file__).resolve().parents[2]
FOUND = {"machine": {"cpus": 2, "notes": []}, "cases": [{"name": "a", "rates": [1.5, None]}, {}]}


def test_each_row_has_a_line() -> None:
    lines = stored(FOUND).splitlines()
    assert '{"name":"a","rates":[1.5,null]},' in lines
    assert '"cpus":2,' in lines


@pytest.mark.parametrize("found", [FOUND, {}, {"cases": []}, {"a": "b", "c": {}}])
def test_it_is_read_again(found: dict[str, object]) -> None:
    assert json.loads(stored(found)) == found


def test_what_is_kept_is_small() -> None:
    files = [*ROOT.glob("benchmarks/results/*-3.*.json")]
    assert len(files) > 50
    assert [
        path.name for path in files if path.read_text() != stored(json.loads(path.read_text()))
    ] == []
