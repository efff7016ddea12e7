"""Tables of data with units, for text, a page or a live screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cpythonplus._base.reading import Part, amount, words
from cpythonplus._base.text.sizes import duration, format_size

Cell = str | int | float
"""A text, whose characters are all visible; or a number in the unit of its column."""


class Kind(StrEnum):
    """The kind of a column's cells."""

    NAME = "name"
    """A short text."""
    PROSE = "prose"
    """A sentence: a remedy or a reason."""
    NOTE = "note"
    """A sentence like PROSE; a narrow screen shows only its beginning."""
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

    title: "" if the section's title is enough. left_out: the number of further rows.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0


Layout = tuple[tuple[str, ...], tuple[Table, ...]]
"""The text of an examination: lines, and tables below them."""


def table(title: str, columns: str, rows: Sequence[Part], top: int) -> list[Table]:
    """Return a table of the first rows, none if there is no row.

    columns: "heading:kind=field", without a kind a name, without a field the one of the heading:
    "size:size=size_bytes|times:count=count|type".
    """
    if not rows:
        return []
    made, fields = [], []
    for column in columns.split("|"):
        heading, _, field = column.partition("=")
        heading, _, kind = heading.partition(":")
        made.append(Column(heading, Kind(kind or "name")))
        fields.append(field or heading)
    cells = tuple(
        tuple(
            amount(row, field) if column.kind.is_number else words(row, field)
            for column, field in zip(made, fields, strict=True)
        )
        for row in rows[:top]
    )
    return [Table(title, tuple(made), cells, max(len(rows) - top, 0))]


def shown(cell: Cell, kind: Kind) -> str:
    """Return a cell as text for people."""
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


def objects(count: int) -> str:
    """Return a number of objects in words."""
    return "1 object" if count == 1 else f"{count:,} objects"
