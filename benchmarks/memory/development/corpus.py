"""What pytest and the linter are given: a suite of small tests, and thousands of modules."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.common.errors import MeasurementError

TESTS = 1000
MODULES = 5000
_PER_FILE = 50
# Four tests: a plain one, one with fixtures, an exception that leaves nothing, a class's method.
_HEAD = """\
import pytest


@pytest.fixture
def numbers():
    return list(range(10))
"""
_FOUR = """

def test_plain_{n}():
    assert sorted([3, 1, 2]) == [1, 2, 3]


def test_fixture_{n}(numbers, monkeypatch):
    monkeypatch.setenv("NUMBER", "{n}")
    assert sum(numbers) == 45


def test_raises_{n}():
    with pytest.raises(ValueError):
        int("x{n}")


class Test{n}:
    def test_method(self):
        assert {{str(n): n for n in range(5)}}["3"] == 3
"""


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="cpythonplus-bench-memory-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def suite() -> Path:
    """Write the tests and return their folder, which is there until this process ends."""
    folder = _folder()
    for start in range(0, TESTS, _PER_FILE):
        numbers = range(start, min(start + _PER_FILE, TESTS), 4)
        text = _HEAD + "".join(_FOUR.format(n=n) for n in numbers)
        (folder / f"test_{start:05}.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").touch()
    return folder


@cache
def modules(library: str, installed: str) -> Path:
    """Copy the modules of two folders into a new one, in turn, until there are enough.

    library: of the interpreter, installed: its site-packages; tests are left out, since some of
    them are wrong on purpose. Raises MeasurementError if nothing is found.
    """
    sources = [*_of(Path(installed), nested=True), *_of(Path(library), nested=False)]
    if not sources:
        raise MeasurementError(f"there are no modules in {library} and {installed}")
    folder = _folder()
    for number in range(MODULES):
        place = folder / f"p{number // 100}"
        place.mkdir(exist_ok=True)
        shutil.copyfile(sources[number % len(sources)], place / f"m{number}.py")
    return folder


def _of(folder: Path, *, nested: bool) -> list[Path]:
    inside = (path.relative_to(folder).parts for path in sorted(folder.rglob("*.py")))
    skipped = {"test", "tests", "idlelib", "lib2to3", *(() if nested else ("site-packages",))}
    return [folder.joinpath(*parts) for parts in inside if not skipped.intersection(parts)]
