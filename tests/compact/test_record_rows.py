"""Records from rows: databases, csv, JSON, and rows that are wrong."""

import csv
import gc
import json
import sqlite3
import weakref
from collections import ChainMap, OrderedDict, UserDict, deque, namedtuple
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from cpythonplus.memory import Record

pytestmark = pytest.mark.needs_gil


class Row(Record):
    id: Any
    name: Any = "none"


EXPECTED = [Row(1, "a"), Row(2, "b")]
NAMED = [{"id": 1, "name": "a"}, {"name": "b", "id": 2}]
PLACED = [(1, "a"), (2, "b")]
Pair = namedtuple("Pair", "first second")  # noqa: PYI024


@pytest.mark.parametrize("kind", [dict, OrderedDict, UserDict, ChainMap, MappingProxyType])
def test_mappings_are_read_by_name(kind: Any) -> None:  # noqa: ANN401
    assert Row.from_rows(map(kind, NAMED)) == EXPECTED


@pytest.mark.parametrize("kind", [tuple, list, deque, lambda row: Pair(*row)])
def test_sequences_are_read_by_place(kind: Any) -> None:  # noqa: ANN401
    assert Row.from_rows(map(kind, PLACED)) == EXPECTED


def test_rows_may_be_mixed() -> None:
    assert Row.from_rows([NAMED[0], PLACED[1]]) == EXPECTED
    assert Row.from_rows([]) == []
    assert Row.from_rows([{"id": 1}]) == [Row(1)]


def test_databases() -> None:
    connection = sqlite3.connect(":memory:")
    values = "select 1 as id, 'a' as name union all select 2, 'b'"
    assert Row.from_rows(connection.execute(values)) == EXPECTED
    connection.row_factory = sqlite3.Row
    turned = f"select name, id from ({values})"
    assert Row.from_rows(connection.execute(turned)) == EXPECTED
    connection.close()


def test_csv() -> None:
    text = ["id,name", "1,a", "2,b"]
    expected = [Row("1", "a"), Row("2", "b")]
    assert Row.from_rows(csv.DictReader(text)) == expected
    assert Row.from_rows(csv.reader(text[1:])) == expected


def test_json() -> None:
    text = json.dumps(NAMED)
    assert Row.from_rows(json.loads(text)) == EXPECTED
    assert json.loads(text, object_hook=Row.from_row) == EXPECTED


WRONG: dict[str, tuple[Any, str]] = {
    "missing": ({"name": 1}, "row 1 has no 'id'"),
    "key": ({"id": 1, "size": 2}, "row 1 has 'size', which is not a field"),
    "number": ({"id": 1, 5: 2}, "row 1 has 5, which is not a field"),
    "short": ((1,), "row 1 has 1 value for 2 fields"),
    "long": ([1, 2, 3], "row 1 has 3 values for 2 fields"),
    "str": ("ab", "row 1 is neither a mapping nor a sequence of values: <class 'str'>"),
    "bytes": (b"ab", "row 1 is neither"),
    "set": ({1, 2}, "row 1 is neither"),
    "None": (None, "row 1 is neither"),
    "record": (Row(1), "row 1 is neither"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_named(name: str) -> None:
    row, text = WRONG[name]
    with pytest.raises(TypeError) as caught:
        Row.from_rows([PLACED[0], row, PLACED[1]])
    assert str(caught.value).startswith(f"Row.from_rows(): {text}")
    with pytest.raises(TypeError) as caught:
        Row.from_row(row)
    assert str(caught.value).startswith(f"Row.from_row(): {text.replace('row 1', 'row')}")


def test_extra_keys_may_be_ignored() -> None:
    row: Any = {"id": 1, "size": 2, 5: 6}
    assert Row.from_rows([row], ignore_extra=True) == [Row(1)]
    assert Row.from_row(row, ignore_extra=True) == Row(1)
    with pytest.raises(TypeError, match="3 values for 2 fields"):
        Row.from_row((1, 2, 3), ignore_extra=True)


def test_wrong_arguments() -> None:
    for call in (
        lambda: Row.from_rows(5),  # type: ignore[arg-type]
        lambda: Row.from_rows(rows=[]),  # type: ignore[call-arg]
        lambda: Row.from_rows([], True),  # type: ignore[call-arg]
        lambda: Record.from_rows([]),
        lambda: Record.from_row({}),
    ):
        with pytest.raises(TypeError):
            call()


def test_errors_of_the_source_are_passed_on() -> None:
    def rows() -> Iterator[Any]:
        yield PLACED[0]
        raise KeyError("source")

    class Keys(UserDict[str, int]):
        def __getitem__(self, key: str) -> int:
            raise LookupError(key)

    with pytest.raises(KeyError, match="source"):
        Row.from_rows(rows())
    with pytest.raises(LookupError, match="id"):
        Row.from_row(Keys(id=1))


def test_one_row_is_there_at_a_time() -> None:
    class Mapping(UserDict[str, int]):
        pass

    def rows() -> Iterator[Mapping]:
        for i in range(5):
            row = Mapping(id=i)
            seen = weakref.ref(row)
            yield row
            del row
            gc.collect()
            assert seen() is None

    assert [each.id for each in Row.from_rows(rows())] == [*range(5)]


def test_keys_with_an_eq_of_their_own() -> None:
    class Key(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            row.clear()
            return False

        def __hash__(self) -> int:
            return hash("name")

    row: dict[str, Any] = {"id": [1], Key("other"): [2]}
    assert Row.from_row(row) == Row([1])
    assert row == {}


def test_own_constructors_are_called() -> None:
    class Text(Record):
        number: int

        def __init__(self, text: str) -> None:
            super().__init__(int(text))

    assert [each.number for each in Text.from_rows([("5",), {"text": "6"}])] == [5, 6]
    with pytest.raises(TypeError):
        Text.from_rows([{"text": "6", "more": 1}])
