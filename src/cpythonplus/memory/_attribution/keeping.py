"""Keeps measurements in arrays that are allocated once and do not grow.

Lists of Python's numbers would grow with each measurement, and so disturb it. A full table merges
each two neighbouring rows: sums stay right, and the newest rows are the finest.
"""

from array import array
from typing import Final, NamedTuple

_ENTRIES: Final = 128
_FIELDS: Final = 5
FIRST: Final = 8
"""The number of first calls that are measured as soon as possible; they are the warm-up."""


class Entry(NamedTuple):
    """Several calls together, up to the call with the number `last`."""

    last: int
    calls: int
    used_bytes: int
    blocks: int
    time_ns: int


class Series:
    """Entries in the order of time."""

    __slots__ = ("_numbers", "_used")

    def __init__(self) -> None:
        """Allocate all entries."""
        self._numbers = array("q", bytes(8 * _FIELDS * _ENTRIES))
        self._used = 0

    def add(self, last: int, used_bytes: int, blocks: int, time_ns: int) -> None:
        """Add one call."""
        if self._used == _ENTRIES:
            self._merge()
        at = self._used * _FIELDS
        numbers = self._numbers
        numbers[at] = last
        numbers[at + 1] = 1
        numbers[at + 2] = used_bytes
        numbers[at + 3] = blocks
        numbers[at + 4] = time_ns
        self._used += 1

    def _merge(self) -> None:
        numbers = self._numbers
        for row in range(_ENTRIES // 2):
            to, one, other = row * _FIELDS, 2 * row * _FIELDS, (2 * row + 1) * _FIELDS
            numbers[to] = numbers[other]
            for field in range(1, _FIELDS):
                numbers[to + field] = numbers[one + field] + numbers[other + field]
        self._used = _ENTRIES // 2

    def clear(self) -> None:
        """Forget all entries."""
        self._used = 0

    def entries(self) -> list[Entry]:
        """Return all entries."""
        numbers = self._numbers
        return [Entry(*numbers[i * _FIELDS : (i + 1) * _FIELDS]) for i in range(self._used)]


class Name:
    """The record of a task or a route.

    index: its column in `Rows`. open: its open calls. measured: calls that were measured alone.
    is_wanted: whether it is measured although it is not due. Each call changes `calls` and `open`,
    without a lock.
    """

    __slots__ = (
        "busy_ns",
        "calls",
        "first_blocks",
        "first_bytes",
        "index",
        "is_wanted",
        "measured",
        "open",
        "series",
    )

    def __init__(self, index: int) -> None:
        """Start with zeros."""
        self.index = index
        self.is_wanted = True
        self.calls = self.open = self.busy_ns = self.measured = 0
        self.first_bytes = self.first_blocks = 0
        self.series = Series()

    def add(self, last: int, used_bytes: int, blocks: int, time_ns: int) -> None:
        """Note the growth by one call that was alone; last: its number."""
        self.measured += 1
        self.is_wanted = self.measured < FIRST
        if self.measured <= FIRST:
            self.first_bytes += used_bytes
            self.first_blocks += blocks
        self.series.add(last, used_bytes, blocks, time_ns)


class Point(NamedTuple):
    """A row of numbers, and one number for each name."""

    used_bytes: int
    blocks: int
    calls: int
    counts: tuple[int, ...]


class Rows:
    """A table: each row has a number for each name, and bytes, blocks and calls.

    adds: when there are too many rows, two become their sum; else the later one stays.
    """

    __slots__ = ("_adds", "_most", "_names", "_numbers", "_used", "_width")

    def __init__(self, most: int, names: int, *, adds: bool) -> None:
        """Allocate `most` rows."""
        self._most, self._names, self._adds = most, names, adds
        self._width = names + 3
        self._numbers = array("q", bytes(8 * most * self._width))
        self._used = 0

    def add(self, used_bytes: int, blocks: int, calls: int, counts: "array[int]") -> None:
        """Add a row."""
        if self._used == self._most:
            self._merge()
        at = self._used * self._width
        self._numbers[at] = used_bytes
        self._numbers[at + 1] = blocks
        self._numbers[at + 2] = calls
        self._numbers[at + 3 : at + self._width] = counts
        self._used += 1

    def _merge(self) -> None:
        numbers, width = self._numbers, self._width
        for row in range(self._most // 2):
            to, one, other = row * width, 2 * row * width, (2 * row + 1) * width
            for field in range(width):
                value = numbers[other + field]
                numbers[to + field] = value + numbers[one + field] if self._adds else value
        self._used = self._most // 2

    def clear(self) -> None:
        """Forget all rows."""
        self._used = 0

    def points(self) -> list[Point]:
        """Return all rows."""
        found = []
        for row in range(self._used):
            at = row * self._width
            used_bytes, blocks, calls = self._numbers[at : at + 3]
            counts = tuple(self._numbers[at + 3 : at + self._width])
            found.append(Point(used_bytes, blocks, calls, counts))
        return found
