"""What a report consists of, whatever it is shown with: sections of tables."""

from dataclasses import dataclass
from enum import StrEnum

from cpythonplus._base.sizes import format_size

__all__ = [
    "Cell",
    "Column",
    "Kind",
    "Section",
    "Table",
    "duration",
    "number",
    "objects",
    "shown",
    "signed",
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
    CHANGE = "change"
    """Bytes more or less than before."""
    MORE = "more"
    """A count more or less than before."""
    SHARE = "share"
    """A part of 1."""
    TIME = "time"
    """Nanoseconds."""

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers."""
        return self not in (Kind.NAME, Kind.PROSE, Kind.NOTE, Kind.CODE)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    heading: str
    kind: Kind = Kind.NAME


@dataclass(frozen=True)
class Table:
    """Rows, the most important first.

    title: "" where the section's title says it.  left_out: so many rows more were found.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0


@dataclass(frozen=True)
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
    if kind is Kind.CHANGE:
        return signed(int(cell))
    if kind is Kind.MORE:
        return f"{int(cell):+,}"
    if kind is Kind.SHARE:
        return f"{100 * cell:.1f} %"
    return duration(cell) if kind is Kind.TIME else number(cell)


def signed(size_bytes: int) -> str:
    """Return a change of size, with its sign."""
    return ("+" if size_bytes >= 0 else "") + format_size(size_bytes)


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
