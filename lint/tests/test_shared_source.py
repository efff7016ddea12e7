"""Files that this distribution shares with cpythonplus are copies; tests/base tests them."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.any_version

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["contents.py", "files.py", "visible.py"])
def test_it_is_the_same_in_both(name: str) -> None:
    ours = ROOT / "lint" / "src" / "cpythonplus_lint" / name
    (theirs,) = (ROOT / "src" / "cpythonplus" / "_base").rglob(name)
    assert ours.read_text() == theirs.read_text()
