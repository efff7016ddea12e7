"""Tables as plain text, 100 columns wide, or as a terminal: the one layout of the package."""

import re
from collections.abc import Collection, Sequence
from textwrap import wrap
from typing import Final
from unicodedata import combining, east_asian_width

from cpythonplus._base.text.tables import Cell, Column, Kind, Table, shown

WIDTH: Final = 100
_GAP: Final = "  "
_UNIT: Final = re.compile(r"\d (?:%|B|[KMGT]iB|s|ms|us|ns)(?!\w)")
_GLUE: Final = "\0"
_WIDE: Final = (Kind.PROSE, Kind.NOTE, Kind.CODE)
"""The kinds that have no column of their own."""
_NARROWEST: Final = 14
"""The least width of a name's column when a table is made to fit."""


def wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    """Return the lines of a paragraph; a number and its unit stay on one.

    first, later: the beginning of the first line and of the others.
    """
    joined = _UNIT.sub(lambda found: found[0].replace(" ", _GLUE), text)
    lines = wrap(
        joined, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return [line.replace(_GLUE, " ") for line in lines]


def layout_lines(
    paragraphs: Sequence[str], tables: Sequence[Table], width: int = WIDTH
) -> list[str]:
    """Return an examination's text as lines; width: of tables, if names need it."""
    lines = [line for paragraph in paragraphs for line in wrapped(paragraph)]
    for table in tables:
        lines += [""] if lines else []
        lines += [f"{table.title}:"] if table.title else []
        lines += _table(table, width)
    return [line.rstrip() for line in lines]


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of the same length as lines, their cells below each other."""
    return [line.rstrip() for line in _aligned(rows, _widths(rows))]


def _aligned(
    rows: Sequence[Sequence[str]], widths: Sequence[int], right: Collection[int] = ()
) -> list[str]:
    """Return rows as lines; right: the columns that are aligned to the right."""
    return [
        _GAP.join(
            _padded(_cut(cell, width), width, to_the_right=place in right)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _padded(text: str, width: int, *, to_the_right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if to_the_right else text + space


def _table(table: Table, width: int) -> list[str]:
    """Return the lines of a table: sentences and commands are below the other cells.

    A note is beside them, as much of it as fits.
    """
    narrow = [place for place, column in enumerate(table.columns) if column.kind not in _WIDE]
    heads = [table.columns[place] for place in narrow]
    cells = [[shown(row[p], table.columns[p].kind) for p in narrow] for row in table.rows]
    cells.insert(0, [column.heading for column in heads])
    right = [place for place, column in enumerate(heads) if column.kind.is_number]
    widths = _fitted(cells, right, width)
    head, *drawn = [f"{_GAP}{line}" for line in _aligned(cells, widths, right)]
    indent = _GAP + " " * _indent(widths, heads)
    said = [_said(row, table.columns, Kind.PROSE, Kind.CODE) for row in table.rows]
    beside = _is_short(drawn, said)
    lines = [head]
    for line, texts, row in zip(drawn, said, table.rows, strict=True):
        whole = _GAP.join([line, *(text for text, _ in texts if beside)])
        lines.append(_noted(whole, _said(row, table.columns, Kind.NOTE)))
        for text, kind in () if beside else texts:
            lines += [f"{indent}{text}"] if kind is Kind.CODE else wrapped(text, indent, indent)
    if table.left_out:
        lines.append(f"{_GAP}and {table.left_out:,} more")
    return lines


def _said(
    row: tuple[Cell, ...], columns: tuple[Column, ...], *kinds: Kind
) -> list[tuple[str, Kind]]:
    """Return the cells of a row that are of one of the kinds and not empty."""
    found = zip(row, (column.kind for column in columns), strict=True)
    return [(str(cell), kind) for cell, kind in found if kind in kinds and cell]


def _noted(line: str, notes: list[tuple[str, Kind]]) -> str:
    room = WIDTH - _width(line) - len(_GAP)
    note = notes[0][0] if notes else ""
    if not note or room < _NARROWEST:
        return line
    if _width(note) <= room:
        return f"{line}{_GAP}{note}"
    kept = room - 3
    begin = note[: kept if note.isascii() else kept // 2]
    # The note is cut at the end of a word, if there is one.
    return f"{line}{_GAP}{begin.rpartition(' ')[0].rstrip() or begin}..."


def _is_short(drawn: list[str], said: list[list[tuple[str, Kind]]]) -> bool:
    """Whether every row has room for its sentences."""
    return all(
        len(texts) <= 1 and _width(line) + sum(len(_GAP) + _width(t) for t, _ in texts) <= WIDTH
        for line, texts in zip(drawn, said, strict=True)
    )


def _indent(widths: list[int], columns: list[Column]) -> int:
    """Return the column at which the first name begins."""
    numbers = 0
    for width, column in zip(widths, columns, strict=True):
        if not column.kind.is_number:
            break
        numbers += width + len(_GAP)
    return min(numbers, WIDTH // 2)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_width, cells)) for cells in zip(*rows, strict=True)]


def _fitted(rows: Sequence[Sequence[str]], numbers: Collection[int], width: int) -> list[int]:
    """Return the columns' widths, the widest names cut until a line fits."""
    widths = _widths(rows)
    names = [place for place in range(len(widths)) if place not in numbers]
    room = width - len(_GAP) * len(widths)
    while names and (over := sum(widths) - room) > 0:
        widest, *others = sorted(names, key=lambda place: -widths[place])
        if widths[widest] <= _NARROWEST:
            break
        # Down to the next widest name at most, so that they share the reduction.
        step = max(widths[widest] - max((widths[place] for place in others[:1]), default=0), 1)
        widths[widest] = max(widths[widest] - min(over, step), _NARROWEST)
    return widths


def _width(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    """Return a text that fits, shortened in its middle: both ends tell most."""
    if _width(text) <= width:
        return text
    kept = width - 3
    if not text.isascii():
        kept //= 2
    head = kept // 3
    return f"{text[:head]}...{text[len(text) - (kept - head) :]}"
