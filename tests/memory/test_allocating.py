"""The line that allocates what has grown, where tracemalloc traces."""

import functools
import tracemalloc
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpythonplus import memory
from cpythonplus.memory._owners.allocating import allocated_at
from cpythonplus.memory.report import report_text
from tests.support import SANITIZED

pytestmark = pytest.mark.needs_gil

MARK = f"{'#'} LINE "


class Pool:
    limits: dict[int, object] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.lent: dict[int, object] = {}
        self.queue: deque[object] = deque()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"asked for {name}")


class Slotted:
    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[object] = []


POOL, SLOTTED = Pool(), Slotted()
LISTED: list[object] = []
NESTED: dict[str, dict[str, list[object]]] = {"a": {"b": []}}
FIXED: dict[int, list[object]] = {number: [] for number in range(10)}


@functools.cache
def cached(number: int) -> list[int]:
    return [number] * 100  # LINE cached


def grow() -> None:
    for number in range(1000, 4000):
        LISTED.append({"number": number})  # LINE LISTED
        POOL.lent[number] = [number] * 10  # LINE POOL.lent
        POOL.queue.append([number] * 7)  # LINE POOL.queue
        Pool.limits[number] = [number] * 8  # LINE Pool.limits
        SLOTTED.rows.append([number] * 9)  # LINE SLOTTED.rows
        NESTED["a"]["b"].append([number] * 8)  # LINE NESTED['a']['b']
        FIXED[number % 10].append([number] * 8)  # LINE FIXED
        cached(number)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start(8)
    yield
    tracemalloc.stop()


@pytest.mark.skipif(
    SANITIZED, reason="a row is a share of RSS, and the sanitizer's memory grows more"
)
def test_each_owner_has_the_line(traced: None) -> None:
    with memory.growth() as found:
        grow()
    assert found.result is not None
    lines = Path(__file__).read_text().splitlines()
    expected = {
        line.partition(MARK)[2]: number for number, line in enumerate(lines, 1) if MARK in line
    }
    told = {
        row.name.removeprefix(f"{__name__}."): row.allocated
        for row in found.result.owners
        if row.name.startswith(f"{__name__}.")
    }
    assert {name: told[name].line for name in expected} == expected
    assert all(place.file == __file__ for place in told.values() if place.line)
    text = report_text({"growth": found.result.as_json()}, 20, 300)
    assert "new ones allocated at" in text
    assert f"{Path(__file__).name}:{expected['POOL.queue']}" in text


def test_without_tracing_there_is_no_line() -> None:
    assert not tracemalloc.is_tracing()
    steps = [("module", __name__, "module"), ("dict", None, "dict"), ("key", "LISTED", "list")]
    assert not allocated_at(steps, 3000, 0).file
    with memory.growth() as found:
        LISTED.extend([number] for number in range(3000))
    assert found.result is not None
    assert "allocated at" not in report_text({"growth": found.result.as_json()}, 20, 300)


def test_what_leads_nowhere_has_no_line(traced: None) -> None:
    for steps in (
        [],
        [("root", None, "dict")],
        [("module", "no.such", "module"), ("dict", None, "dict")],
        [("module", __name__, "module"), ("dict", None, "dict"), ("key", "gone", "x.Gone")],
        [("module", __name__, "module"), ("...", None, "list")],
        [
            ("module", __name__, "module"),
            ("dict", None, "dict"),
            ("key", "POOL", "x.Pool"),
            ("attribute", "computed", "x.Gone"),
        ],
    ):
        assert not allocated_at(steps, 10, 0).file


@pytest.mark.slow
def test_what_tracemalloc_keeps_is_not_the_c_codes() -> None:
    kept = []
    with memory.growth() as found:
        tracemalloc.start(25)
        kept += [bytes(40) for _ in range(200_000)]
    noted = tracemalloc.get_tracemalloc_memory()
    tracemalloc.stop()
    assert found.result is not None
    assert noted > 1 << 20
    assert found.result.c_heap_bytes - found.result.c_heap_before_bytes < noted / 2
    assert kept
