from collections.abc import Callable

import pytest

from cpythonplus.memory._cycles.naming import causes
from cpythonplus.memory._cycles.places import calls_type
from tests.memory.garbage import garbage_of
from tests.memory.patterns.pattern import Pattern
from tests.memory.patterns.table import PATTERNS

NAMED = pytest.mark.parametrize("pattern", PATTERNS, ids=[each.name for each in PATTERNS])


@NAMED
def test_a_leak_is_named(pattern: Pattern) -> None:
    with garbage_of(pattern.leak) as components:
        found = {cause for each in components for cause in causes(each)}
    told = {
        (each.kind, each.place.file, each.place.function, each.variable, each.place.line)
        for each in found
    }
    expected = (pattern.kind, pattern.file, pattern.function, pattern.variable, pattern.line)
    assert told == {expected}


@NAMED
def test_its_twin_leaves_nothing(pattern: Pattern) -> None:
    with garbage_of(pattern.twin) as components:
        assert components == []


@pytest.mark.any_version
def test_a_variable_called_type_makes_no_class() -> None:
    def pair(family: int, type: int, make: Callable[..., object]) -> object:  # noqa: A002
        if type != family:
            raise ValueError
        return make(family, type, 0)

    def made(name: str) -> type:
        return type(name, (), {})

    assert calls_type(pair.__code__) == 0
    assert calls_type(made.__code__) == made.__code__.co_firstlineno + 1
