"""Dicts that store equal keys once are dicts like all others."""

import collections
import contextlib
import csv
import gc
import io
import json
import pickle
import random
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus import _native, memory
from tests.support import run_child

needs_gil = pytest.mark.needs_gil

MOST = 29
"""Keys that CPython shares."""


def names(count: int) -> list[str]:
    return [f"name {number}" for number in range(count)]


def shared(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row behind two of its kind, which are what is shared."""
    return list(memory.share_keys([dict.fromkeys(row), dict.fromkeys(row), dict(row)]))[-1]


@needs_gil
@pytest.mark.parametrize("count", [1, 2, 5, 8, 10, MOST])
def test_it_takes_the_memory_of_its_values(count: int) -> None:
    row = shared(dict.fromkeys(names(count), 5))
    assert row == dict.fromkeys(names(count), 5)
    assert list(row) == names(count)
    # What an empty dict takes, and a word a key; some bytes more are not counted.
    assert sys.getsizeof(row) == sys.getsizeof({}) + 8 * count < sys.getsizeof(dict(row))


@needs_gil
def test_memory_itself_tells_the_same() -> None:
    child = run_child(
        """
        import os
        from cpythonplus import memory

        def resident_bytes():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def block_bytes(make):
            rows = [None] * 300_000
            before = resident_bytes()
            for i in range(len(rows)):
                rows[i] = make()
            return (resident_bytes() - before) / len(rows)

        pairs = [(f"name {i}", i) for i in range(8)]
        shares = block_bytes(lambda: memory.shared_dict(pairs))
        print(block_bytes(lambda: dict(pairs)), shares)
        """
    )
    plain, shares = map(float, child.out.split())
    # 272 and 144 bytes; a debug build adds the same to each block of both.
    assert plain - shares > 100


@pytest.mark.parametrize("count", [0, MOST + 1, 1000])
def test_no_keys_and_too_many_are_an_ordinary_dict(count: int) -> None:
    row = dict.fromkeys(names(count), 5)
    for _ in range(3):
        assert memory.shared_dict(list(row.items())) == row
        assert list(memory.share_keys([row])) == [row]


@needs_gil
def test_another_key_makes_it_an_ordinary_dict() -> None:
    one, two = shared({"a": 1, "b": 2}), shared({"a": 1, "b": 2})
    one["c"] = 3
    assert one == {"a": 1, "b": 2, "c": 3}
    assert two == {"a": 1, "b": 2}
    del two["a"]
    two["a"] = 5
    assert list(two.items()) == [("b", 2), ("a", 5)]
    assert shared({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert sys.getsizeof(one) > sys.getsizeof(two)


def test_the_order_is_that_of_the_row() -> None:
    rows = [{"a": 1, "b": 2}, {"b": 1, "a": 2}] * 4
    assert [list(row.items()) for row in memory.share_keys(rows)] == [
        list(row.items()) for row in rows
    ]


def test_the_last_one_of_equal_keys_counts() -> None:
    pairs = [("a", 1), ("b", 2), ("a", 3)]
    for _ in range(4):
        assert list(memory.shared_dict(pairs).items()) == [("a", 3), ("b", 2)]


class Text(str):
    __slots__ = ()


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


class Angry:
    def __hash__(self) -> int:
        return hash("a")

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 2), ("a", 3)],
        [(Text("a"), 2), ("b", 3)],
        [["a", 1], ("b", 2)],
        (("a", 1), ("b", 2)),
        {"a": 1, "b": 2},
        MappingProxyType({"a": 1}),
        ["ab", "cd"],
        [],
        "",
        [("a", 1), 5],
        [("a", 1), ("b",)],
        [("a", 1), ("b", 2, 3)],
        [(Unhashable(), 1)],
        [("a", 1), (Angry(), 1)],
        5,
        None,
    ],
)
def test_whatever_it_is_given_it_answers_as_dict_does(
    pairs: Iterable[tuple[Any, Any]],
) -> None:
    def outcome(call: Callable[[Any], dict[Any, Any]]) -> object:
        try:
            return list(call(pairs).items())
        except (ArithmeticError, TypeError, ValueError) as error:
            return type(error), str(error)

    for _ in range(3):
        assert outcome(memory.shared_dict) == outcome(dict)
        assert outcome(lambda row: next(memory.share_keys([row]))) == outcome(dict)
    generator: Iterator[Any] = iter([("x", 1), ("y", 2)])
    assert memory.shared_dict(generator) == {"x": 1, "y": 2}


def test_a_class_derived_from_dict_is_handed_on() -> None:
    rows = [
        collections.OrderedDict(a=1),
        collections.defaultdict(int, a=2),
        collections.Counter("a"),
    ]
    for row, got in zip(rows, memory.share_keys(rows), strict=True):
        assert got is row


def test_a_row_may_be_a_generator_too() -> None:
    (row,) = memory.share_keys([((key, key) for key in "ab")])
    assert row == {"a": "a", "b": "b"}


@needs_gil
def test_json_csv_and_databases() -> None:
    text = json.dumps([{"id": i, "name": str(i), "tags": {"a": [i]}} for i in range(50)])
    rows = json.loads(text, object_pairs_hook=memory.shared_dict)
    assert rows == json.loads(text)
    assert sys.getsizeof(rows[-1]) < sys.getsizeof(json.loads(text)[-1])
    assert sys.getsizeof(rows[-1]["tags"]) < sys.getsizeof({"a": 1})

    table = "x,y\n1,2\n3,4\n5,6\n"
    assert list(memory.share_keys(csv.DictReader(io.StringIO(table)))) == list(
        csv.DictReader(io.StringIO(table))
    )

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        found = list(memory.share_keys(connection.execute("values (1, 2), (3, 4), (5, 6)")))
    assert found == [{"column1": i, "column2": i + 1} for i in (1, 3, 5)]
    assert sys.getsizeof(found[2]) < sys.getsizeof(dict(found[2]))


@needs_gil
def test_another_parse_shares_with_the_first() -> None:
    """Its keys are equal strings, and not the same ones."""
    text = json.dumps([{"some name": 1, "another name": 2}] * 3)
    first, second = (json.loads(text, object_pairs_hook=memory.shared_dict) for _ in range(2))
    assert all(one is other for one, other in zip(first[2], second[0], strict=True))


def test_it_can_be_pickled_and_copied() -> None:
    row = shared({"a": [1], "b": 2})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(row, protocol)) == row
    assert pickle.loads(pickle.dumps(memory.shared_dict)) is memory.shared_dict
    assert row.copy() == dict(row) == row | {} == {**row} == row


def test_what_it_holds_is_collected() -> None:
    class Node:
        def __init__(self) -> None:
            self.row = shared({"a": self, "b": 2})

    seen = weakref.ref(Node())
    gc.collect()
    assert seen() is None


@needs_gil
def test_more_key_sets_than_are_remembered() -> None:
    """All are right, memory is bounded, and the one that is met all the time keeps its place."""
    often = {"often": 1, "met": 2}
    for number in range(20_000):
        row = {f"{number}": number, "x": 1}
        assert list(memory.share_keys([row, row, row])) == [row] * 3
        assert next(memory.share_keys([often])) == often
    assert sys.getsizeof(next(memory.share_keys([often]))) < sys.getsizeof(often)


@needs_gil
def test_a_finalizer_that_comes_back() -> None:
    """On 3.11 the collector runs whenever a container is made, and whatever it finds."""
    run_child(
        """
        import gc
        from cpythonplus import memory

        def use(start):
            for i in range(start, start + 40):
                row = {str(j): j for j in range(i % 29 + 1)} | {"first": i}
                assert memory.shared_dict(list(row.items())) == row

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                global ran
                ran += 1
                gc.disable()
                use(ran)
                gc.enable()

        ran = 0
        gc.set_threshold(1)
        for start in range(300):
            Cycle()
            use(start)
        assert ran > 10
        """
    )


def test_threads_at_once() -> None:
    rows = [{f"{i % 300}": i, "b": [i]} for i in range(5_000)]
    wrong: list[int] = []

    def work(seed: int) -> None:
        own = rows[:]
        random.Random(seed).shuffle(own)
        if list(memory.share_keys(own)) != own:
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_another_interpreter_has_its_own() -> None:
    run_child(
        """
        import textwrap
        try:
            import _interpreters
        except ImportError:
            import _xxsubinterpreters as _interpreters
        from cpythonplus import memory
        code = '''
        from cpythonplus import memory
        for i in range(9):
            assert memory.shared_dict([("a", i), ("b", [i])]) == {"a": i, "b": [i]}
        '''
        for _ in range(3):
            memory.shared_dict([("a", 1), ("b", 2)])
            try:
                each = _interpreters.create("legacy")
            except TypeError:
                each = _interpreters.create(isolated=False)
            _interpreters.run_string(each, textwrap.dedent(code))
            _interpreters.destroy(each)
            assert memory.shared_dict([("a", 1), ("b", [2])]) == {"a": 1, "b": [2]}
        """
    )


KEYS = st.one_of(st.sampled_from("abcdefgh"), st.text(max_size=3), st.integers(0, 3))


@given(st.lists(st.lists(st.tuples(KEYS, st.integers()), max_size=6), max_size=20))
def test_rows_of_any_kind(rows: list[list[tuple[Any, int]]]) -> None:
    for pairs in rows + rows:
        expected = dict(pairs)
        for got in (memory.shared_dict(pairs), next(memory.share_keys([expected]))):
            assert type(got) is dict
            assert list(got.items()) == list(expected.items())


@needs_gil
def test_this_interpreter_shares() -> None:
    assert _native.memory_sharing_refusal() is None
