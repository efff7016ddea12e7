"""A dict in the memory of its entries: sizes, and what happens where other code runs in between."""

import contextlib
import copy
import gc
import json
import operator
import pickle
import random
import sys
import threading
import weakref
from collections.abc import ItemsView, KeysView, MutableMapping, ValuesView
from typing import Any

import pytest

from cpythonplus.memory import CompactDict
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

SMALL = 14
"""Entries that need nothing beside them."""


def text_keys(count: int) -> dict[Any, int]:
    return {f"key {number}": number for number in range(count)}


def int_keys(count: int) -> dict[Any, int]:
    return {number * 1000: number for number in range(count)}


def tuple_keys(count: int) -> dict[Any, int]:
    return {(number, "x"): number for number in range(count)}


def mixed_keys(count: int) -> dict[Any, int]:
    kinds = (str, float, int, lambda x: (x,), lambda x: str(x).encode(), lambda x: -x)
    return {kinds[number % len(kinds)](number): number for number in range(1, count + 1)}


KINDS = [text_keys, int_keys, tuple_keys, mixed_keys]
COUNTS = [0, 1, 2, SMALL - 1, SMALL, SMALL + 1, 16, 100, 255, 256, 257, 3000, 70_000]


def same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Whether all that can be asked is answered alike."""
    assert len(one) == len(other)
    assert list(one.items()) == list(other.items())
    assert list(reversed(one)) == list(reversed(other))
    assert list(reversed(one.values())) == list(reversed(other.values()))
    assert all(one[key] == other[key] for key in other)
    return bool(one == other and other == one)


# ---- what it takes ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(SMALL + 1))
def test_small_ones(count: int) -> None:
    head = sys.getsizeof(CompactDict())
    assert head == 40
    for kind in (text_keys, int_keys):
        assert sys.getsizeof(CompactDict(kind(count))) == head + 16 * count
        grown = CompactDict[Any, int]()
        for key, value in kind(count).items():
            grown[key] = value
        assert sys.getsizeof(grown) == head + 16 * count
    assert sys.getsizeof(CompactDict(text_keys(10))) == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [15, 20, 100, 1000, 12_345, 100_000])
def test_large_ones(kind: Any, count: int) -> None:  # noqa: ANN401
    plain = kind(count)
    one_by_one = CompactDict[Any, int]()
    for key, value in plain.items():
        one_by_one[key] = value
    entry = 16 if kind in (text_keys, int_keys) else 24
    for made, slack in ((CompactDict(plain), 1.001), (one_by_one, 1.07)):
        size = sys.getsizeof(made)
        assert size < sys.getsizeof(plain) * (1.1 if count == 20 else 1)
        # A header, and groups of 16 slots of at most 4 bytes at nine tenths.
        assert size - 250 <= (entry + 4 / 0.9) * count * slack


def test_a_million() -> None:
    assert sys.getsizeof(CompactDict.fromkeys(range(1_000_000))) <= 20_500_000


@pytest.mark.parametrize("kind", KINDS)
def test_it_shrinks(kind: Any) -> None:  # noqa: ANN401
    plain = kind(50_000)
    made = CompactDict(plain)
    peak = sys.getsizeof(made)
    for key in list(plain)[: len(plain) * 99 // 100]:
        del made[key], plain[key]
    assert sys.getsizeof(made) <= peak * 0.03
    assert same(made, plain)
    while made:
        assert made.popitem() == plain.popitem()
    assert sys.getsizeof(made) < 400
    made.clear()
    assert sys.getsizeof(made) == 40


def test_what_is_given_as_too_long_is_cut() -> None:
    made = CompactDict([(number % 5, number) for number in range(10_000)])
    assert sys.getsizeof(made) < 1000
    assert same(made, {number: 9995 + number for number in range(5)})


def test_numbers_and_strings_are_not_tracked() -> None:
    made = CompactDict[str, Any](a=1)
    made["b"] = ()
    assert not gc.is_tracked(made)
    assert not gc.is_tracked(made.copy())
    made["c"] = []
    assert gc.is_tracked(made)
    assert gc.is_tracked(made.copy())
    assert gc.is_tracked(CompactDict({("x", KeyError()): 1}))


# ---- the same as dict ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", COUNTS)
def test_all_ways_to_make_one(kind: Any, count: int) -> None:  # noqa: ANN401
    plain = kind(count)
    assert same(CompactDict(plain), plain)
    assert same(CompactDict(list(plain.items())), plain)
    assert same(CompactDict(iter(plain.items())), plain)
    assert same(CompactDict(CompactDict(plain)), plain)
    assert same(CompactDict(plain).copy(), plain)
    assert same(CompactDict() | plain, plain)
    assert same(plain | CompactDict(), plain)
    assert same(CompactDict.fromkeys(plain, 7), dict.fromkeys(plain, 7))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("count", [0, 3, 100])
def test_it_can_be_pickled(protocol: int, count: int) -> None:
    made = CompactDict[Any, Any](mixed_keys(count))
    made["me"] = made
    back = pickle.loads(pickle.dumps(made, protocol))
    assert type(back) is CompactDict
    assert back["me"] is back
    del back["me"], made["me"]
    assert same(back, made)


class Derived(CompactDict[Any, Any]):
    note: list[int]

    def __missing__(self, key: object) -> object:
        return ("missing", key)


def test_classes_derived_from_it() -> None:
    made = Derived({"a": 1})
    made.note = [5]
    assert made["b"] == ("missing", "b")
    assert made.get("b") is None
    assert "b" not in made
    assert repr(made) == "Derived({'a': 1})"
    for back in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert isinstance(back, Derived)
        assert (back, back.note) == (made, [5])
    assert type(Derived.fromkeys("ab")) is Derived
    assert type(made | {"c": 1}) is CompactDict
    seen = weakref.ref(made)
    del made
    assert seen() is None


def test_it_is_a_mapping() -> None:
    made = CompactDict(a=1)
    assert isinstance(made, MutableMapping)
    assert isinstance(made.keys(), KeysView)
    assert isinstance(made.values(), ValuesView)
    assert isinstance(made.items(), ItemsView)
    match made:
        case {"a": found, **rest}:
            assert (found, rest) == (1, {})
        case _:
            pytest.fail("not a mapping")
    assert {**made} == dict(made) == made
    assert json.dumps(dict(made)) == '{"a": 1}'
    assert CompactDict[str, int].__args__ == (str, int)  # type: ignore[attr-defined]


def test_views_are_sets() -> None:
    plain: dict[Any, Any] = {"a": 1, "b": 2}
    made = CompactDict(plain)
    others: tuple[Any, ...] = (
        {"a"},
        ["a", "z"],
        plain.keys(),
        made.keys(),
        {}.keys(),
        {("a", 1)},
        [],
    )
    compare: Any
    for other in others:
        for view, model in ((made.keys(), plain.keys()), (made.items(), plain.items())):
            assert view & other == model & other
            assert view | other == model | other
            assert view - other == model - other
            assert view ^ other == model ^ other
            assert view.isdisjoint(other) == model.isdisjoint(other)
            assert other - view == other - model if isinstance(other, set) else True
            for compare in (operator.eq, operator.ne):
                model_of_other = other if isinstance(other, list) else set(other)
                assert compare(view, other) == compare(model, model_of_other)
                assert compare(other, view) == compare(model_of_other, model)
            if not isinstance(other, list):
                for compare in (operator.lt, operator.le, operator.gt, operator.ge):
                    assert compare(view, other) == compare(model, set(other))
    assert made.keys() == plain.keys() == made.keys()
    assert ("a", 1) in made.items()
    assert ("a", 2) not in made.items()
    assert made.keys().mapping == plain


def test_an_items_hash_is_its_own() -> None:
    """The tuple is used again; from 3.14 on it keeps its hash."""
    made = CompactDict({number: str(number) for number in range(50)})
    assert [hash(item) for item in made.items()] == [hash(item) for item in dict(made).items()]
    assert list(made.items()) == list(dict(made).items())


@pytest.mark.parametrize("make", [dict, CompactDict])
def test_errors_are_those_of_dict(make: Any) -> None:  # noqa: ANN401
    made = make(a=1)
    odd: Any = {1: 2}
    with pytest.raises(KeyError, match="'b'"):
        made["b"]
    with pytest.raises(KeyError) as caught:
        made[("x", 1)]
    assert caught.value.args == (("x", 1),)
    with pytest.raises(KeyError):
        del made["b"]
    with pytest.raises(KeyError):
        made.pop("b")
    with pytest.raises(KeyError, match="empty"):
        make().popitem()
    for call in (
        lambda: made[[]],
        lambda: made.update({1: 2}.items(), 3),
        lambda: make(1),
        lambda: make([1]),
        lambda: make({}, {}),
        lambda: hash(made),
        lambda: made < made,  # noqa: PLR0124
        made.get,
        made.setdefault,
        make.fromkeys,
        lambda: make.fromkeys(5),
        lambda: made | 5,
        lambda: make(**odd),
        lambda: made.update(**odd),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="length 3; 2 is required"):
        make([(1, 2), (1, 2, 3)])
    assert made == {"a": 1}


@pytest.mark.parametrize("make", [dict, CompactDict])
@pytest.mark.parametrize("count", [1, 5, 100])
def test_changes_while_it_is_iterated(make: Any, count: int) -> None:  # noqa: ANN401
    changes: list[Any] = [lambda d: d.update(new=1), lambda d: d.popitem(), lambda d: d.clear()]
    for change in changes:
        for view in ("keys", "values", "items", "__reversed__"):
            made = make(int_keys(count))
            iterator = iter(getattr(made, view)())
            next(iterator)
            change(made)
            with pytest.raises(RuntimeError, match="changed"):
                next(iterator)
            with pytest.raises(RuntimeError, match="changed"):
                next(iterator)
    # Another value is no change.
    made = make(int_keys(count))
    for key in made:
        made[key] = 0
    assert set(made.values()) == {0}


def test_equal_keys_of_other_types() -> None:
    made = CompactDict[Any, str]({1: "a"})
    made[True] = "b"
    made[1.0] = "c"
    assert list(made.items()) == [(1, "c")]
    nan = float("nan")
    made[nan] = "d"
    made[float("nan")] = "e"
    assert made[nan] == "d"
    assert len(made) == 3
    made[2**70] = "f"
    assert made[float(2**70)] == "f"
    assert made.get(b"a") is None


class Text(str):
    __slots__ = ()


def test_strings_of_another_class() -> None:
    for count in (1, 30):
        made = CompactDict[Any, int](text_keys(count))
        assert made[Text("key 0")] == 0
        made[Text("new")] = 5
        assert made["new"] == 5
        assert same(made, {**text_keys(count), "new": 5})


# ---- other code in between ----------------------------------------------------------------------


class Key:
    """Its comparison and its hash do something."""

    act: Any = None

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 3

    def __eq__(self, other: object) -> bool:
        if Key.act is not None:
            act, Key.act = Key.act, None
            act()
        return isinstance(other, Key) and self.number == other.number


@pytest.mark.parametrize("seed", range(60))
def test_a_comparison_that_changes_it(seed: int) -> None:
    """Whatever it does, nothing crashes, and what is found is what is there."""
    choose = random.Random(seed)
    made = CompactDict[Any, int](
        (Key(number), number) for number in range(choose.choice([3, 20, 60]))
    )
    acts: list[Any] = [
        made.clear,
        lambda: made.update((Key(number), number) for number in range(80)),
        lambda: [made.pop(key, None) for key in list(made)],
        lambda: made.popitem() if made else None,
        lambda: made.update(text_keys(50)),
    ]
    for _ in range(300):
        Key.act = choose.choice(acts)
        key = Key(choose.randrange(90))
        match choose.randrange(6):
            case 0:
                made[key] = key.number
            case 1:
                made.pop(key, None)
            case 2:
                assert made.get(key) in (None, key.number)
            case 3:
                made.setdefault(key, key.number)
            case 4:
                assert (key in made) in (True, False)
            case _:
                assert made in (made, dict(text_keys(3)))
        Key.act = None
        assert len(made) == len(list(made.items())) == len(set(map(id, made)))
        assert all(made[key] == value for key, value in list(made.items()))


class Failing:
    def __init__(self, *, fails: bool = True) -> None:
        self.fails = fails

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        if self.fails:
            raise ZeroDivisionError
        return self is other


@pytest.mark.parametrize("count", [0, 30])
def test_a_comparison_that_raises(count: int) -> None:
    made = CompactDict[Any, int](text_keys(count))
    first = Failing()
    made[first] = 1
    before = list(made.items())
    for call in (
        lambda: made[Failing()],
        lambda: made.__setitem__(Failing(), 2),
        lambda: made.pop(Failing(), None),
        lambda: made.setdefault(Failing(), 2),
        lambda: made.get(Failing()),
        lambda: Failing() in made,
        lambda: made.update({Failing(): 2}),
        lambda: 7 in made,
    ):
        with pytest.raises(ZeroDivisionError):
            call()
    assert list(made.items()) == before
    assert made[first] == 1


def test_a_value_that_comes_back_when_it_goes() -> None:
    made = CompactDict[Any, Any]()

    class Goes:
        def __del__(self) -> None:
            made.clear()
            made.update(text_keys(40))

    for key in ("a", ("a",)):
        for call in (
            lambda key=key: made.__setitem__(key, 1),
            lambda key=key: made.pop(key),
            lambda key=key: made.__delitem__(key),
            made.popitem,
            made.clear,
        ):
            made.clear()
            made[key] = Goes()
            call()
            assert len(made) >= 40
            assert all(made[each] == value for each, value in list(made.items()))


def test_cycles_are_collected() -> None:
    class Node:
        def __init__(self) -> None:
            self.made = CompactDict[str, Any](me=self)

    seen = weakref.ref(Node())
    made = CompactDict[Any, Any]()
    made["me"] = made
    made[("me", Node())] = made
    inner = weakref.ref(next(key for key in made if isinstance(key, tuple))[1])
    del made
    gc.collect()
    assert seen() is None
    assert inner() is None


def test_deep_nesting_needs_no_stack() -> None:
    run_child(
        """
        from cpythonplus.memory import CompactDict

        for Kind in (CompactDict, type("Derived", (CompactDict,), {})):
            made = Kind()
            for _ in range(300_000):
                made = Kind({"inner": made})
            del made
        me = CompactDict()
        me["me"] = me
        assert repr(me) == "CompactDict({'me': CompactDict({...})})", repr(me)
        """
    )


def test_as_a_queue() -> None:
    """Ten thousand entries, and a hundred thousand that go through: no step looks at all."""
    made = CompactDict.fromkeys(range(10_000))
    for number in range(10_000, 110_000):
        del made[next(iter(made))]
        made[number] = None
    assert list(made) == list(range(100_000, 110_000))
    assert sys.getsizeof(made) < 10_000 * 25


def test_threads_at_once() -> None:
    made = CompactDict[Any, int]()

    def work(seed: int) -> None:
        choose = random.Random(seed)
        for _ in range(20_000):
            key = choose.choice([choose.randrange(300), str(choose.randrange(300)), (1, seed)])
            if choose.random() < 0.5:
                made[key] = hash(key)
            else:
                made.pop(key, None)
            if choose.random() < 0.001:
                with contextlib.suppress(RuntimeError):  # changed while it was iterated
                    assert all(hash(each) == value for each, value in made.items())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(made[key] == value == hash(key) for key, value in dict(made).items())


def test_without_memory() -> None:
    """Each allocation fails once: an error, and the same entries as before."""
    run_child(
        """
        import sys
        try:
            import _testcapi
        except ImportError:
            sys.exit()
        from cpythonplus.memory import CompactDict

        def attempt(count, kind):
            keys = [kind(number) for number in range(count)]
            for nth in range(1, 40):
                made = CompactDict((key, 1) for key in keys)
                new, failed = kind(count), False
                _testcapi.set_nomemory(nth, nth + 1)
                try:
                    made[new] = 1
                    for key in keys[: count * 4 // 5]:
                        del made[key]
                except MemoryError:
                    failed = True
                finally:
                    _testcapi.remove_mem_hooks()
                assert len(made) == len(list(made)), (len(made), count)
                assert all(made[key] == 1 for key in list(made))
                assert failed or new in made

        for kind in (str, int, lambda x: (x,)):
            for count in (0, 3, 14, 15, 16, 100, 256):
                attempt(count, kind)
        """
    )
