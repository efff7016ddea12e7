from collections.abc import Callable
from pathlib import Path

import pytest

from cpythonplus.memory._cycles import naming
from cpythonplus.memory._cycles.naming import causes, is_named
from cpythonplus.memory._cycles.places import calls_type
from cpythonplus.memory._cycles.report import Kind
from tests.memory.cycles.garbage import garbage_of
from tests.memory.cycles.patterns.pattern import Pattern
from tests.memory.cycles.patterns.table import PATTERNS
from tests.support import FREE_THREADED, run_child

NAMED = pytest.mark.parametrize("pattern", PATTERNS, ids=[each.name for each in PATTERNS])


def check_leak(pattern: Pattern) -> None:
    with garbage_of(pattern.leak) as components:
        found = {cause for each in components for cause in causes(each)}
    told = {
        (each.kind, each.place.file, each.place.function, each.variable, each.place.line)
        for each in found
    }
    expected = (pattern.kind, pattern.file, pattern.function, pattern.variable, pattern.line)
    assert told == {expected}


@NAMED
def test_a_leak_is_named(pattern: Pattern) -> None:
    if FREE_THREADED and pattern.kind == "class":
        pytest.skip("classes are immortal once there was a second thread: see the next test")
    check_leak(pattern)


def test_a_class_is_named_before_there_is_a_second_thread() -> None:
    folder = Path(__file__).parents[3]
    run_child(
        f"""
        import sys

        sys.path.append({str(folder)!r})
        from tests.memory.cycles.patterns.classes import PATTERNS
        from tests.memory.cycles.test_naming import check_leak

        assert PATTERNS
        for pattern in PATTERNS:
            check_leak(pattern)
        """
    )


@NAMED
def test_its_twin_leaves_nothing(pattern: Pattern) -> None:
    with garbage_of(pattern.twin) as components:
        assert components == []


@NAMED
@pytest.mark.parametrize("kind", Kind)
def test_what_is_left_out_is_of_no_wanted_kind(pattern: Pattern, kind: Kind) -> None:
    found = []
    # Twice, as naming may give objects a dict of attributes that they had not yet.
    for kinds in (naming.ALL_KINDS, {kind}):
        with garbage_of(pattern.leak) as components:
            found.append({x for each in components for x in causes(each, kinds) if x.kind is kind})
    assert found[0] == found[1]


def leave_many() -> None:
    """Leave one component with more than one cause."""
    kept: list[object] = []

    def first() -> object:
        return kept

    def second() -> object:
        return kept, first

    one = [first, second]
    kept.append(one)
    try:
        int("x")
    except ValueError as error:
        kept.append(error)


def test_what_is_left_after_the_last_round_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with garbage_of(leave_many) as components:
        [component] = components
        assert all(map(is_named, causes(component)))
        assert len(causes(component)) > 1
        monkeypatch.setattr(naming, "_ROUNDS", 1)
        named, nameless = causes(component)
    assert is_named(named)
    assert not is_named(nameless)


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
