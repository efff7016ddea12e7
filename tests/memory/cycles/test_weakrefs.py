"""Weak references to an object that goes on living, made dead."""

# Callbacks take a reference that they do not need.
# ruff: noqa: ANN401, ARG005

import gc
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from cpythonplus import memory
from cpythonplus.memory import clear_weakrefs
from tests.memory.cycles.left_over import collector_off
from tests.support import run_child


class Pooled:
    """What goes back to a pool."""

    def __init__(self) -> None:
        self.name = "first"

    def method(self) -> str:
        return self.name


class Own(weakref.ref[Pooled]):
    pass


class Slotted:
    __slots__ = ("__weakref__",)


@pytest.fixture(autouse=True, scope="module")
def _collector_off() -> Iterator[None]:
    with collector_off():
        yield


@pytest.fixture(autouse=True)
def _leave_no_garbage() -> Iterator[None]:
    gc.collect()
    yield
    assert gc.collect() == 0


def test_all_kinds_of_references_are_dead() -> None:
    thing = Pooled()

    refs: list[Any] = [weakref.ref(thing), weakref.ref(thing, print), Own(thing)]
    proxy: Any = weakref.proxy(thing)
    method = weakref.WeakMethod(thing.method)
    values = weakref.WeakValueDictionary(a=thing)
    keys = weakref.WeakKeyDictionary({thing: 1})
    both = weakref.WeakSet([thing])
    count = weakref.getweakrefcount(thing)
    assert clear_weakrefs(thing, call_callbacks=False) == count == 8
    assert [ref() for ref in refs] == [None, None, None]
    assert method() is None
    with pytest.raises(ReferenceError):
        assert proxy.name
    assert values.get("a") is None
    assert thing not in keys
    assert thing not in both
    assert list(both) == list(keys) == list(values.values()) == []
    assert weakref.getweakrefcount(thing) == 0
    assert [ref.__callback__ for ref in refs] == [None, None, None]
    assert thing.method() == "first"


def test_callbacks_are_called_when_all_are_dead_the_newest_first() -> None:
    thing = Pooled()
    seen: list[Any] = []
    plain = weakref.ref(thing)
    refs: list[Any] = []

    def note(ref: Any) -> None:
        seen.append((refs.index(ref), ref(), plain(), weakref.getweakrefcount(thing)))

    refs += [weakref.ref(thing, note) for _ in range(3)]
    assert clear_weakrefs(thing) == 4
    assert seen == [(2, None, None, 0), (1, None, None, 0), (0, None, None, 0)]
    assert clear_weakrefs(thing) == 0
    assert len(seen) == 3


def test_weak_dictionaries_and_sets_lose_their_entries() -> None:
    thing, other = Pooled(), Pooled()
    values = weakref.WeakValueDictionary(a=thing, b=other)
    keys = weakref.WeakKeyDictionary({thing: 1, other: 2})
    both = weakref.WeakSet([thing, other])
    clear_weakrefs(thing)
    assert (len(values), len(keys), len(both)) == (1, 1, 1)
    values["a"] = keys[other] = thing  # type: ignore[assignment]
    both.add(thing)
    del keys[other]
    assert len(both) == len(values) == 2


def test_an_object_can_be_referenced_again() -> None:
    thing = Pooled()
    first = weakref.ref(thing)
    clear_weakrefs(thing)
    second = weakref.ref(thing)
    assert second is not first
    assert second() is thing
    assert first() is None
    assert first != second
    del thing
    assert second() is None


def test_a_callback_may_make_new_references() -> None:
    thing = Pooled()
    made: list[Any] = []
    refs = [weakref.ref(thing, lambda ref: made.append(weakref.ref(thing))) for _ in range(2)]
    assert clear_weakrefs(thing) == 2
    assert [ref() for ref in made] == [thing, thing]
    assert [ref() for ref in refs] == [None, None]


def test_a_callback_may_keep_its_reference() -> None:
    thing = Pooled()
    kept: list[Any] = []
    weakref.ref(thing, kept.append)  # died before
    refs = [weakref.ref(thing, kept.append)]
    clear_weakrefs(thing)
    assert kept == refs
    assert kept[0]() is None


def test_what_a_callback_raises_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = Pooled()
    seen: list[Any] = []

    def fail(ref: Any) -> None:
        raise SystemExit("no")

    monkeypatch.setattr(
        sys, "unraisablehook", lambda report: seen.append((report.object, report.exc_type))
    )
    refs = [weakref.ref(thing, call) for call in (seen.append, fail, seen.append)]
    assert clear_weakrefs(thing) == 3
    assert seen == [refs[2], (fail, SystemExit), refs[0]]


def test_callbacks_that_are_not_called_are_dropped() -> None:
    thing = Pooled()
    held = Pooled()
    alive = weakref.ref(held)
    refs = [weakref.ref(thing, lambda ref, held=held: None)]  # type: ignore[misc]
    del held
    assert alive() is not None
    assert clear_weakrefs(thing, call_callbacks=False) == 1
    assert alive() is None
    assert refs[0]() is None


def test_finalizers() -> None:
    child = run_child("""
        import weakref
        from cpythonplus.memory import clear_weakrefs

        class Pooled:
            pass

        things = [Pooled() for _ in range(3)]
        called, dropped, left = [
            weakref.finalize(thing, print, word)
            for thing, word in zip(things, ["called", "dropped", "left to the end"])
        ]
        assert clear_weakrefs(things[0]) == 1
        assert clear_weakrefs(things[1], call_callbacks=False) == 1
        print(called.alive, dropped.alive, left.alive, called.peek(), dropped.detach())
        assert weakref.finalize(things[0], print, "called for the next").alive
        del things[0]
        """)
    assert child.out == "called\nFalse False True None None\ncalled for the next\nleft to the end\n"
    assert child.err == ""


def test_any_object_that_has_weak_references() -> None:
    def function() -> None:
        pass

    def generator() -> Iterator[int]:
        yield 1

    for thing in (function, generator(), Slotted(), frozenset("a"), memory):
        ref: Any = weakref.ref(thing)
        before = weakref.getweakrefcount(thing)
        assert clear_weakrefs(thing, call_callbacks=False) == before
        assert ref() is None


@pytest.mark.parametrize("thing", [5, "text", None, (), [], {}, 1.5])
def test_an_object_that_cannot_have_any_has_none(thing: object) -> None:
    assert clear_weakrefs(thing) == 0


@pytest.mark.parametrize("kind", [int, Pooled])
def test_a_class_is_refused(kind: type) -> None:
    before = weakref.getweakrefcount(kind)
    with pytest.raises(
        TypeError, match=r"^clear_weakrefs\(\) does not accept a class: the interpreter"
    ):
        clear_weakrefs(kind)
    assert weakref.getweakrefcount(kind) == before


@pytest.mark.needs_gil
def test_a_finalizer_s_own_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = Pooled()
    finalizer = weakref.finalize(thing, print)

    def fail(self: object) -> None:
        raise LookupError

    monkeypatch.setattr(weakref.finalize, "detach", fail)
    with pytest.raises(LookupError):
        clear_weakrefs(thing, call_callbacks=False)
    monkeypatch.undo()
    assert finalizer.peek()
    finalizer.detach()


def test_what_the_program_puts_into_weakref_is_looked_at() -> None:
    run_child(
        """
        import weakref
        from cpythonplus.memory import clear_weakrefs

        thing = type("Thing", (), {})()
        reference, own = weakref.ref(thing, print), weakref.getweakrefs

        def said():
            try:
                clear_weakrefs(thing, call_callbacks=False)
            except TypeError as error:
                return str(error)

        for other in (None, [5], (5,)):
            weakref.getweakrefs = lambda _: other
            assert said() == "weakref.getweakrefs() must return weak references"
        weakref.getweakrefs, weakref.finalize = own, 5
        assert said() == "weakref.finalize is no class"
        assert reference() is thing
        """
    )
