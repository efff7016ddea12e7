"""What a report consists of, whatever it is shown with: sections of tables."""

from dataclasses import dataclass
from enum import StrEnum

from cpythonplus.base.sizes import format_size

__all__ = [
    "Cell",
    "Column",
    "Kind",
    "Section",
    "Table",
    "duration",
    "number",
    "objects",
    "part_label",
    "shown",
]

Cell = str | int | float
"""A text, whose characters are all visible; or a number in the unit of its column."""


class Kind(StrEnum):
    """What is in a column."""

    NAME = "name"
    """A short text."""
    PROSE = "prose"
    """A sentence: what to do, or why."""
    NOTE = "note"
    """The same, of which a narrow screen shows the beginning."""
    CODE = "code"
    """A command to be copied."""
    COUNT = "count"
    SIZE = "size"
    """Bytes."""
    SHARE = "share"
    """A part of 1."""
    TIME = "time"
    """Nanoseconds."""

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers."""
        return self not in (Kind.NAME, Kind.PROSE, Kind.NOTE, Kind.CODE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    heading: str
    kind: Kind = Kind.NAME


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, the most important first.

    title: "" where the section's title says it.  left_out: so many rows more were found.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the report.  key: of the examination; lines: in front of the tables."""

    key: str
    title: str
    lines: tuple[str, ...]
    tables: tuple[Table, ...] = ()


def shown(cell: Cell, kind: Kind) -> str:
    """Return a cell for people."""
    if isinstance(cell, str):
        return cell
    if kind is Kind.SIZE:
        return format_size(int(cell))
    if kind is Kind.SHARE:
        return f"{100 * cell:.1f} %"
    return duration(cell) if kind is Kind.TIME else number(cell)


def number(value: float) -> str:
    """Return a number for people: thousands are set apart, three figures of a fraction."""
    return f"{int(value):,}" if value == int(value) else f"{value:,.3g}"


_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))


def duration(nanoseconds: float) -> str:
    """Return a time for people, three figures of it: '12.5 ms'."""
    for scale, unit in _STEPS:
        if abs(nanoseconds) >= scale:
            value = nanoseconds / scale
            return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004
    return f"{nanoseconds:.0f} ns"


def objects(count: int) -> str:
    """Return a number of objects in words."""
    return "1 object" if count == 1 else f"{count:,} objects"


_PART_LABELS = {
    "live_objects": "live Python objects",
    "arena_free": "free in Python's arenas",
    "arena_overhead": "overhead of the arenas",
    "c_heap_used": "C heap in use",
    "c_heap_free": "free inside the C heap",
    "c_heap_top": "free at the C heap's top",
    "thread_caches": "C heap's thread caches",
    "thread_heaps_used": "threads' heaps in use",
    "thread_heaps_free": "free inside threads' heaps",
    "large_blocks": "large blocks of the C heap",
    "stacks": "thread stacks",
    "data": "data of libraries",
    "files": "mapped files",
    "mappings": "anonymous mappings",
    "other_allocator": "another allocator, in use",
    "other_allocator_free": "another allocator, free",
    "shared": "shared memory",
}


def part_label(name: str) -> str:
    """Return what a part of resident memory is, in words."""
    return _PART_LABELS.get(name, name.replace("_", " "))
