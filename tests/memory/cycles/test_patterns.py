"""Through the watch: each leaking pattern is one line of the report, its clean twin is none."""

import gc
from collections.abc import Iterator

import pytest

from cpythonplus.memory import cycles
from tests.memory.cycles.patterns import classes
from tests.memory.cycles.patterns.pattern import Pattern
from tests.memory.cycles.patterns.table import PATTERNS


@pytest.fixture(scope="module")
def watch() -> Iterator[cycles.Watch]:
    gc.collect()
    gc.freeze()
    with cycles.watch(hoards=False) as w:
        yield w
    gc.unfreeze()


# Without a GIL, classes are not collected once a second thread was started.
OF_CLASSES = {each.name for each in classes.PATTERNS}


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(
            each, id=each.name, marks=[pytest.mark.needs_gil] if each.name in OF_CLASSES else []
        )
        for each in PATTERNS
    ],
)
def test_a_pattern_and_its_twin(watch: cycles.Watch, pattern: Pattern) -> None:
    gc.collect()  # a test that failed leaves its traceback
    watch.take()
    for _ in range(3):
        pattern.twin()
    gc.collect()
    assert watch.take() == ()
    for _ in range(3):
        pattern.leak()
    gc.collect()
    found = watch.take()
    causes = {
        (cause.kind, cause.place.file, cause.place.function, cause.variable, cause.place.line)
        for cause in (cycle.cause for cycle in found)
    }
    assert causes == {
        (pattern.kind, pattern.file, pattern.function, pattern.variable, pattern.line)
    }
    # The dict of a class may make a component of its own since 3.14.
    assert {cycle.count for cycle in found} <= ({3, 6} if pattern.kind == "class" else {3})
    gc.collect()
    assert watch.take() == (), "it was not cleared"
