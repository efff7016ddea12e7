"""Who refers to objects, and the path to one of them."""

import gc
import json
import sys
import threading
import types
from collections.abc import Iterator

import pytest

from cpythonplus import _native, memory
from cpythonplus.memory._census import Census, ReferencePath, Referrers
from cpythonplus.memory._cycles.holders import every_object, find_holders
from tests.memory.rebuilding import rebuilt

pytestmark = pytest.mark.needs_gil


class Target:
    pass


class Slotted:
    __slots__ = ("first", "second")
    second: object


class Holder:
    shared: object = None

    def __init__(self, item: object) -> None:
        self.item = item


@pytest.fixture(scope="module")
def census() -> Census:
    return memory.census()


@pytest.fixture
def app() -> Iterator[types.ModuleType]:
    """A module of the program."""
    module = types.ModuleType("made_up_app")
    sys.modules["made_up_app"] = module
    yield module
    del sys.modules["made_up_app"]
    gc.collect()


def counted(census: Census, kind: object) -> dict[str, int]:
    found = census.referrers(kind, top=50)  # type: ignore[arg-type]
    return {row.name.replace(f"{__name__}.", ""): row.references for row in found.rows}


def test_referrers(census: Census, app: types.ModuleType) -> None:
    def inner() -> dict[str, int]:
        local = Target()
        found = counted(census, Target)
        assert local is not None
        return found

    kept: list[object] = [Target() for _ in range(7)]
    plain = [Holder(Target()) for _ in range(20)]
    for each in plain[:5]:
        vars(each)
    slotted = [Slotted() for _ in range(3)]
    for each_slotted in slotted:
        each_slotted.second = Target()
    app.CACHE = Target()  # type: ignore[attr-defined]
    Holder.shared = Target()
    in_dict = {1: Target(), 2: Target()}
    try:
        assert inner() == {
            "list": 7,
            "Holder (attribute item)": 15,
            "dict of Holder (attribute item)": 5,
            "Slotted (attribute second)": 3,
            "module made_up_app.CACHE": 1,
            "class Holder.shared": 1,
            "dict": 2,
            "variable local of test_referrers.<locals>.inner()": 1,
        }
    finally:
        Holder.shared = None
    assert kept
    assert in_dict


def test_referrers_by_name(census: Census) -> None:
    kept = [Target() for _ in range(3)]
    found = census.referrers(f"{__name__}.Target", top=1)
    assert (found.rows[0].name, found.rows[0].references, found.more) == ("list", 3, 0)
    assert found.text().splitlines() == [
        f"to objects of {__name__}.Target",
        "",
        "  references  from",
        "           3  list",
    ]
    assert rebuilt(Referrers, json.loads(json.dumps(found.as_json()))) == found
    with pytest.raises(LookupError, match=r"there is no class 'no\.Such'"):
        census.referrers("no.Such")
    with pytest.raises(TypeError):
        census.referrers(5)  # type: ignore[arg-type]
    assert kept


def steps(found: ReferencePath) -> list[str]:
    return [str(step).replace(f"{__name__}.", "") for step in found.steps]


def test_path_from_a_module(census: Census, app: types.ModuleType) -> None:
    holder = Holder([None, {"user:7": Holder((0, Target()))}])
    app.CACHE = {5: holder, "x" * 99: None}  # type: ignore[attr-defined]
    vars(holder)
    del holder
    assert steps(census.path(Target)) == [
        "module made_up_app",
        ".CACHE (dict)",
        "[5] (Holder)",
        ".item (list)",
        "[1] (dict)",
        "['use...] (Holder)",
        ".item (tuple)",
        "[1] (Target)",
    ]
    found = census.path(f"{__name__}.Target")
    assert rebuilt(ReferencePath, json.loads(json.dumps(found.as_json()))) == found
    assert str(found).startswith("module made_up_app -> .CACHE (dict) -> [5] (")


def test_path_from_a_variable(census: Census) -> None:
    def inner(what: object) -> list[str]:
        return steps(census.path(what))

    def outer() -> list[str]:
        kept = {Target()}
        return inner(next(iter(kept))) if kept else []

    assert outer() == [
        "variable kept of test_path_from_a_variable.<locals>.outer()",
        "(set)",
        "in the set (Target)",
    ]


def test_path_of_garbage_and_of_nothing(census: Census) -> None:
    gc.disable()
    ring = Holder(None)
    ring.item = [ring]
    del ring
    found = steps(census.path(Holder))
    assert found[0] == "only C code, or garbage"
    gc.enable()
    gc.collect()
    with pytest.raises(LookupError, match="there is no object of this class"):
        census.path(Holder)


def chain(app: types.ModuleType, steps: int) -> Target:
    """Make a target that so many lists lead to, from a module."""
    target = Target()
    held: list[object] = [target]
    for _ in range(steps):
        held = [held]
    app.CHAIN = held  # type: ignore[attr-defined]
    return target


def test_paths_of_several_are_those_of_each(app: types.ModuleType) -> None:
    app.HOLDER = Holder(Holder(Target()))  # type: ignore[attr-defined]
    chain(app, 5)
    # Variables would be shorter ways; this list is one, too, but nothing leads to it.
    found, _pause_ns = _native.memory_root_paths(
        (app.HOLDER, app.HOLDER.item, app.HOLDER.item.item, app.CHAIN[0][0][0][0][0][0], app.CHAIN),
        __file__,
        30,
    )
    assert all(path is not None and path[0] is app for path in found)
    held = [path[2][-1] for path in found if path is not None]
    first = app.HOLDER
    assert held[:3] == [first, first.item, first.item.item]
    assert type(held[3]) is Target
    assert held[4] is app.CHAIN
    lengths = [len(path[2]) for path in found if path is not None]
    assert lengths[1] > lengths[0]
    assert lengths[2] > lengths[1]
    assert lengths[3] - lengths[4] == 6


def test_no_path_of_garbage(app: types.ModuleType) -> None:
    lone: list[object] = []
    lone.append(lone)
    target = chain(app, 1)
    found, pause_ns = _native.memory_root_paths((lone, target), __file__, 30)
    assert found[0] is None
    assert found[1] is not None
    assert pause_ns > 0


def test_other_threads_run_while_it_searches(app: types.ModuleType) -> None:
    target, done = chain(app, 30), threading.Event()
    turns = 0

    def turn() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1

    other = threading.Thread(target=turn)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other.start()
    try:
        before = turns
        [path], _pause_ns = _native.memory_root_paths((target,), __file__, 30)
        meanwhile = turns - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()
    assert path is not None
    assert meanwhile > 0


def test_a_path_that_changes_meanwhile_is_none_or_true(app: types.ModuleType) -> None:
    target, done = Target(), threading.Event()

    def change() -> None:
        while not done.is_set():
            app.CHAIN = [[[[[[target]]]]]]  # type: ignore[attr-defined]

    other = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other.start()
    try:
        for _ in range(4):
            [path], _pause_ns = _native.memory_root_paths((target,), __file__, 30)
            assert path is None or path[2][-1] is target
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()


def test_keys_are_shown_if_they_can_be(census: Census, app: types.ModuleType) -> None:
    class Angry:
        def __repr__(self) -> str:
            raise AssertionError

    shorts, texts = [], []
    for key in ("k" * 99, "user:7", "a-b", "1", "", Angry(), 10**99, -1234, 999, b"secret"):
        app.CACHE = {key: Target()}  # type: ignore[attr-defined]
        shorts.append(census.path(Target).steps[2].step.removesuffix("]"))
        texts.append(census.path(Target, show_keys=True).steps[2].step.removesuffix("]"))
    angry = f"[<{__name__}.{Angry.__qualname__}>"
    # Of a key that may be a secret, the beginning; it is not told either how long it is.
    assert shorts == [
        *("['kkkk...", "['use...", "['a...", "['...", "['..."),
        *(angry, "[<int>", "[<int>", "[999", "[<bytes>"),
    ]
    assert texts == [
        *(f"['{'k' * 36}...", "['user:7'", "['a-b'", "['1'", "['']"[:-1]),
        *(angry, "[<int>", "[-1234", "[999", "[<bytes>"),
    ]


def test_places_in_lists_are_no_keys(census: Census, app: types.ModuleType) -> None:
    app.CACHE = [*[None] * 1500, Target()]  # type: ignore[attr-defined]
    assert census.path(Target).steps[2].step == "[1500]"


def test_keys_in_what_holds_something(app: types.ModuleType) -> None:
    """Of the reports on dicts and exceptions, and of pins."""
    app.CACHE = {"alice@example.org": {12345: {"name": [Target()]}}}  # type: ignore[attr-defined]
    targets = [app.CACHE["alice@example.org"][12345]["name"][0]]
    [found] = find_holders(every_object(), targets, [targets])
    assert found == "made_up_app.CACHE['alic...][<int>].name[]"


def test_wrong_arguments_of_the_native_functions() -> None:
    with pytest.raises(TypeError):
        _native.memory_referrers_of(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _native.memory_root_path(5)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _native.memory_root_paths([5], "", 30)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at most"):
        _native.memory_root_paths((5,) * 17, "", 30)
    with pytest.raises(TypeError):
        _native.memory_reference_label(5)  # type: ignore[call-arg]
