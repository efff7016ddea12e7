"""Uses records with their types: `make check` has mypy read it, nobody runs it.

What is wrong has a comment that mypy would call unused if it were not.
"""

from typing import Any, Generic, TypeVar, assert_type

from cpythonplus.memory import Record

T = TypeVar("T")


class Row(Record):
    id: int
    name: str = ""


class Wide(Row):
    size: float = 0.0


class Frozen(Record, frozen=True):
    id: int


class Boxed(Record, Generic[T]):
    value: T


def right() -> None:
    Row(1)
    Row(1, "x")
    Row(name="x", id=1)
    Wide(1, "x", 2.5)
    assert_type(Row(1).id, int)
    assert_type(Boxed(5).value, int)
    assert_type(Row.from_rows([(1, "x"), {"id": 1}]), list[Row])
    assert_type(Wide.from_row([1, "x", 2.5], ignore_extra=True), Wide)
    assert_type(Row(1).asdict(), dict[str, Any])
    Row(1).name = "y"
    hash(Frozen(1))


def wrong() -> None:
    Row()  # type: ignore[call-arg]
    Row("1")  # type: ignore[arg-type]
    Row(1, "x", 2)  # type: ignore[call-arg]
    Row(1, other=2)  # type: ignore[call-arg]
    Row(1).id = "1"  # type: ignore[assignment]
    Row(1).other = 2  # type: ignore[attr-defined]
    Row.from_rows(5)  # type: ignore[arg-type]
    Frozen(1).id = 2  # type: ignore[misc]
