"""tools/search.py finds what is planted, and each of its kinds runs."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.lines import MORE_ROOMS, ROOMS
from tests.support import SANITIZED
from tools import search

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_gil,
    pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this"),
]

PLANTED = {
    "crashes": "ctypes.string_at(0)",
    "leaks": "ctypes.pythonapi.Py_IncRef(ctypes.py_object([]))",
    "skipped finallys": "skip(tasklet(list)())",
    "others": "os.write(2, b'said')",
}


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield search.build(Path(folder))


def searched(
    kind: str, lines: Mapping[str, str], library: Path, more: str = "", seconds: int = 5
) -> search.Searching:
    names, _ = ROOMS["tasklets"]
    searching = search.Searching(kind, {"tasklets": (names + more, lines)})
    searching.visit("tasklets", 1, seconds, library)
    return searching


# A tasklet that ends without its `finally`, as the search sees it.
SKIP = """

def skip(task):
    import gc
    for each in gc.get_objects():
        if type(each).__name__ == "Guard" and each.owner() is task:
            each.inside += 1
    task.kill()
"""


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what: str, library: Path) -> None:
    searching = searched("tracing", {what: PLANTED[what]}, library, SKIP)
    for seconds in (20, 80):  # a loaded machine does not get as far in the same time
        if not searching.counts[what]:
            searching = searched("tracing", {what: PLANTED[what]}, library, SKIP, seconds)
    assert searching.counts[what] > 0, searching.summary()
    assert all(repr(what) in each for each in searching.found)


@pytest.mark.parametrize("kind", search.KINDS)
def test_nothing_is_found_where_nothing_is(kind: str, library: Path) -> None:
    lines = {
        "a list": "[[1]].copy()",
        "a tasklet": "tasklet(list)(); run()",
        "a log": "import logging; logging.error('a handler raised')",
        "tracing off, a tasklet's on": (
            "t = parked(); t.trace_function = bool\n"
            "sys.settrace(bool); sys.settrace(None); [[1]].copy(); t.kill()"
        ),
    }
    searching = searched(kind, lines, library)
    assert searching.found == []
    assert searching.counts["runs"] > 10, searching.summary()
    assert searching.counts["points"] > 10, searching.summary()


def test_what_the_interpreter_notes_in_traced_code_is_no_leak(library: Path) -> None:
    lines = {f"lists {number}": "[[1]].copy(); " * 10 for number in range(200)}
    lines["a loop"] = "for _ in range(20): pass"
    searching = search.Searching("signals", {"tasklets": (ROOMS["tasklets"][0], lines)})
    searching.visit("tasklets", 1, 5, library, "a loop")
    assert searching.found == []


@pytest.mark.parametrize("kind", ["signals", "tracing"])
def test_what_a_traced_tasklet_waits_in_is_no_leak(kind: str, library: Path) -> None:
    searching = search.Searching(kind, {"pickles": MORE_ROOMS["pickles"]})
    searching.visit("pickles", 0, 5, library, "blocked one 2")
    assert searching.found == []
