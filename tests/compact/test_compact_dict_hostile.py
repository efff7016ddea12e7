"""A CompactDict in bad company: finalizers, odd classes, comparisons without an end."""

import contextlib
import copy
import pickle
from collections import OrderedDict
from typing import Any, Self

import pytest

from cpythonplus.memory import CompactDict
from tests.support import run_child

pytestmark = pytest.mark.needs_gil


# ---- the collector in between (3.11: whenever a container is made) ------------------------------


def test_an_entry_that_goes_while_its_item_is_made() -> None:
    run_child(
        """
        import gc
        from cpythonplus.memory import CompactDict

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                made.clear()

        # No tuple is left to be used again.
        held = [(tuple([i]), tuple([i, i])) for i in range(5000)]
        for turn in range(100):
            gc.set_threshold(0)
            made = CompactDict((f"key {turn} {i}", f"value {turn} {i}") for i in range(3))
            items = iter(made.items())
            held.append(next(items))
            gc.collect()
            held += [(tuple([i]), tuple([i, i])) for i in range(50)]
            Cycle()
            gc.set_threshold(1)
            item = next(items)
            gc.set_threshold(0)
            held.append(item)
            assert item == (f"key {turn} 1", f"value {turn} 1"), item
        """
    )


def test_an_iterator_that_ends_while_it_is_copied() -> None:
    run_child(
        """
        import gc
        from cpythonplus.memory import CompactDict

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                for _ in own:
                    pass

        for turn in range(200):
            gc.set_threshold(0)
            own = iter(CompactDict({"a": 1, ("x",): [1]}).items())
            gc.collect()
            Cycle()
            gc.set_threshold(1)
            function, (rest,) = own.__reduce__()
            assert rest in ([], [("a", 1), (("x",), [1])])
        """
    )


# ---- comparisons --------------------------------------------------------------------------------


@pytest.mark.parametrize("filled", [0, 100])
def test_a_comparison_that_adds_and_deletes_comes_to_an_end(filled: int) -> None:
    asked = 0

    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            nonlocal asked
            asked += 1
            assert asked < 100
            made["other"] = 0
            del made["other"]
            return False

    made = CompactDict[Any, int]({str(number): number for number in range(filled)} | {1: 1})
    assert made.get(Key()) is None
    assert asked > 0


@pytest.mark.parametrize("others", [{2: 2}, {("x",): 2}, dict.fromkeys(range(2, 60))])
def test_one_without_an_end_needs_no_stack(others: dict[Any, Any]) -> None:
    """As a dict it goes on until something is raised, or the entry comes to lie where it was."""
    asked = 0

    class Key:
        def __hash__(self) -> int:
            return 1

        def __eq__(self, other: object) -> bool:
            nonlocal asked
            asked += 1
            if asked == 200_000:
                raise ZeroDivisionError
            made[1] = made.pop(1)
            return False

    made = CompactDict[Any, Any]({1: 1} | others)
    with contextlib.suppress(ZeroDivisionError):
        made.get(Key())
    assert asked > 1
    assert made == {1: 1} | others


@pytest.mark.parametrize("count", [3, 20, 200])
def test_a_comparison_that_builds_the_table_anew(count: int) -> None:
    """At the same addresses, as likely as not, and with other entries."""

    left = 0
    made: CompactDict[Any, Any]

    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return 5

        def __eq__(self, other: object) -> bool:
            nonlocal left
            if left > 0:
                now, left = left, 0
                keys = list(made)
                made.clear()
                made.update(dict.fromkeys(keys[::-1] if now % 2 else keys))
                for _ in range(len(keys) // 10):
                    made.popitem()
                left = now - 1
            return isinstance(other, Key) and self.number == other.number

    made = CompactDict.fromkeys([Key(number) for number in range(count)])
    while made:
        before = len(made)
        left = 8
        assert made.get(Key(-1)) is None
        left = 3
        made.pop(Key(before - 1), None)
        left = 0
        made.popitem() if made else None
        assert len(made) == len(set(made)) == len(list(reversed(made))) < before


# ---- classes ------------------------------------------------------------------------------------


def test_missing_is_found_as_the_interpreter_finds_it() -> None:
    class Called:
        def __call__(self, key: object) -> object:
            return ("called", key)

    class Meta(type):
        def __missing__(cls, *args: object) -> object:
            raise AssertionError

    def bodies() -> list[dict[str, Any]]:
        return [
            {"__missing__": lambda _, key: ("function", key)},
            {"__missing__": staticmethod(lambda key: ("static", key))},
            {"__missing__": classmethod(lambda cls, key: (cls.__name__, key))},
            {"__missing__": Called()},
            {"__missing__": property(lambda _: lambda key: ("property", key))},
            {},  # neither the class of the class nor the object is asked
        ]

    for own, model in zip(bodies(), bodies(), strict=True):
        answers = []
        for base, body in ((CompactDict, own), (dict, model)):
            kind: Any = Meta("Kind", (base,), body)
            made = kind()
            if not body:
                made.__missing__ = Called()
            try:
                answers.append(made[5])
            except KeyError as error:
                answers.append(error.args)
        assert answers[0] == answers[1]


def test_a_missing_that_raises() -> None:
    class Raises(CompactDict[Any, Any]):
        __missing__ = property(lambda _: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        Raises()[1]


def test_a_class_whose_name_is_no_string() -> None:
    class Meta(type):
        __name__ = property(lambda _: 5)

    class Odd(CompactDict[str, Any], metaclass=Meta):
        pass

    made = Odd(a=1)
    assert repr(made) == "5({'a': 1})"
    made["a"] = made
    assert repr(made) == "5({'a': 5({...})})"


class Arguments(CompactDict[str, Any]):
    """Has to be told something when it is made."""

    note: object

    def __new__(cls, note: object) -> Self:
        made = super().__new__(cls)
        made.note = note
        return made

    def __init__(self, note: object) -> None:
        """Take no items."""

    def __getnewargs__(self) -> tuple[object]:
        return (self.note,)


class Keywords(Arguments):
    def __new__(cls, *, note: object) -> Self:
        made = super().__new__(cls, note)
        assert isinstance(made, Keywords)
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]:
        return (), {"note": self.note}


class Slotted(CompactDict[str, Any]):
    __slots__ = ("note",)

    note: object


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_is_pickled_of_classes(protocol: int) -> None:
    slotted = Slotted(a=1)
    slotted.note = 7
    keywords = Keywords.__new__(Keywords, note=7)
    for made in (Arguments(7), keywords, slotted):
        made["a"] = made
        for back in (pickle.loads(pickle.dumps(made, protocol)), copy.deepcopy(made)):
            assert type(back) is type(made)
            assert back["a"] is back
            assert back.note == 7


@pytest.mark.parametrize("arguments", [5, ((),), ((), {}, {}), ([], {}), ((), [])])
def test_wrong_arguments_of_new(arguments: object) -> None:
    class Wrong(CompactDict[str, Any]):
        def __getnewargs_ex__(self) -> Any:  # noqa: ANN401
            return arguments

    class Wrong2(CompactDict[str, Any]):
        def __getnewargs__(self) -> Any:  # noqa: ANN401
            return [arguments]

    for kind in (Wrong, Wrong2):
        with pytest.raises(TypeError):
            kind().__reduce__()


def test_it_is_made_in_odd_ways() -> None:
    wrong: Any = CompactDict
    made = wrong.__new__(CompactDict, 1, 2, x=3)
    assert made == {}
    made.__init__(a=1)
    made.__init__({"b": 2})
    assert made == {"a": 1, "b": 2}
    assert type.__call__(CompactDict, made, c=3) == {"a": 1, "b": 2, "c": 3}
    for call in (
        lambda: wrong.__init__(5),
        lambda: wrong.__new__(dict),
        wrong.__new__,
        lambda: object.__new__(wrong),
        lambda: wrong.update({}, a=1),
        lambda: wrong.__class__(made, dict),
        lambda: type("Both", (wrong, dict), {}),
        lambda: setattr(made, "__class__", Arguments),
        lambda: setattr(wrong, "extra", 1),
        type(made.keys()),
        type(iter(made)),
        lambda: pickle.dumps(made.keys()),
        made.__or__,
    ):
        with pytest.raises(TypeError):
            call()


# ---- sources ------------------------------------------------------------------------------------


def test_a_mapping_that_changes_its_order_when_it_is_read() -> None:
    class Recent(OrderedDict[str, int]):
        def __getitem__(self, key: str) -> int:
            value = super().__getitem__(key)
            self.move_to_end(key)
            return value

    assert CompactDict(Recent(a=1, b=2, c=3)) == dict(Recent(a=1, b=2, c=3))


def test_classes_are_read_as_dict_reads_them() -> None:
    for base in (dict, CompactDict):
        items = {"__getitem__": lambda *_: "own", "__len__": lambda _: 10**14}
        kind: Any = type("Kind", (base,), items)
        assert list(CompactDict(kind(a=1)).items()) == [("a", 1)]
        items["__iter__"] = lambda _: iter("b")
        items["keys"] = lambda _: ["b"]
        kind = type("Kind", (base,), items)
        assert list(CompactDict(kind(a=1)).items()) == [("b", "own")]
        made: Any = type("Kind", (CompactDict,), {"__len__": lambda _: 10**14})()
        made.update(made)
        assert made == {}


@pytest.mark.parametrize("make", [dict, CompactDict])
def test_a_source_that_says_it_has_more_than_there_can_be(make: Any) -> None:  # noqa: ANN401
    for size in (10**14, 2**70):
        with pytest.raises(TypeError, match="element #0"):
            make(range(size))


@pytest.mark.parametrize("make", [dict, CompactDict])
def test_an_empty_one_asks_for_no_hash(make: Any) -> None:  # noqa: ANN401
    made = make(a=1)
    del made["a"]
    assert made.pop([], 5) == 5
    with pytest.raises(KeyError):
        made.pop([])


def test_frozen_dicts() -> None:
    frozendict = getattr(__import__("builtins"), "frozendict", None)
    if frozendict is None:  # 3.15
        frozendict = dict
    made = CompactDict(frozendict(a=1))
    assert made == frozendict(a=1)
    assert frozendict(a=1) == made
    assert made != frozendict(a=2)
    assert frozendict(a=2) != made
    assert type(made | frozendict(b=2)) is type(frozendict(b=2) | made) is CompactDict
    assert (made | frozendict(b=2)) == (frozendict(b=2) | made) == {"a": 1, "b": 2}
    made |= frozendict(b=3)
    assert made == {"a": 1, "b": 3}


# ---- what fails half-way -------------------------------------------------------------------------


def test_look_up_after_an_update_that_failed_at_once() -> None:
    """The room for 15 and more is given back; an index keeps one vacant slot at least."""
    run_child(
        """
        from cpythonplus.memory import CompactDict

        kept = []
        for count in range(15, 200):
            compact = CompactDict()
            try:
                compact.update([1] * count)
            except TypeError:
                pass
            else:
                raise AssertionError("1 is no pair")
            kept.append(compact)
            assert [compact.get(key) for key in ("x", 1, b"z", None, 2.5, (1, 2))] == [None] * 6
            compact["x"] = count
            assert compact == {"x": count}, compact
        """,
        env={"PYTHONMALLOC": "debug"},  # what lies behind a block is filled
    )
