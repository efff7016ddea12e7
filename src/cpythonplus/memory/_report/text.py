"""The report for a terminal: the verdict in plain words, then tables; at most 100 columns wide."""

import re
from textwrap import wrap
from typing import Final
from unicodedata import combining, east_asian_width

from cpythonplus.memory._report.reading import Examination, Part
from cpythonplus.memory._report.sections import section, sections, target_line
from cpythonplus.memory._report.tables import Cell, Column, Kind, Section, Table, shown
from cpythonplus.memory._report.verdict import Statement, statements

__all__ = ["part_text", "report_text"]

WIDTH: Final = 100
_GAP: Final = "  "
_UNIT: Final = re.compile(r"\d (?:%|B|[KMGT]iB|s|ms|us|ns)(?!\w)")
_GLUE: Final = "\0"
_WIDE: Final = (Kind.PROSE, Kind.NOTE, Kind.CODE)
"""What is in no column of its own."""
_NARROWEST: Final = 14
"""Columns that a name keeps when a table is made to fit."""


def report_text(examination: Examination, top: int = 10) -> str:
    """Return what an examination found as text.

    examination: `as_json()` of each part by its name, parts may be missing.  top: rows of each
    table.  First comes the verdict: what is resident, what is held, what to do, the largest first.
    Every character of the names in it is visible, no line is wider than 100 columns but for
    commands, which are for copying.
    """
    lines: list[str] = []
    target = target_line(examination)
    if target:
        lines += [*wrap(target, WIDTH, break_on_hyphens=False), ""]
    lines += _verdict(examination)
    for found in sections(examination, top):
        lines += ["", found.title, "-" * len(found.title), *_body(found)]
    return _joined(lines) or "nothing was examined\n"


def part_text(name: str, found: Part, top: int = 10) -> str:
    """Return the verdict and tables of one examination, without a heading."""
    examination = {name: found}
    verdict = _verdict(examination)
    return _joined([*verdict, *([""] if verdict else []), *_body(section(examination, name, top))])


def _joined(lines: list[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _verdict(examination: Examination) -> list[str]:
    return [line for statement in statements(examination) for line in _statement(statement)]


def _statement(statement: Statement) -> list[str]:
    lines = _wrapped(statement.sentence, "- ", "  ")
    if statement.remedy:
        lines += _wrapped(statement.remedy, "  -> ", "     ")
    if statement.command:
        lines.append(f"     {statement.command}")
    return lines


def _wrapped(text: str, first: str, later: str) -> list[str]:
    # A number and its unit stay on one line.
    joined = _UNIT.sub(lambda found: found[0].replace(" ", _GLUE), text)
    lines = wrap(
        joined, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )
    return [line.replace(_GLUE, " ") for line in lines]


def _body(found: Section) -> list[str]:
    lines: list[str] = []
    for line in found.lines:
        lines += _wrapped(line, "", "")
    for table in found.tables:
        lines += [""] if lines else []
        lines += [f"{table.title}:"] if table.title else []
        lines += _table(table)
    return lines


# ---- tables -------------------------------------------------------------------------------------


def _table(table: Table) -> list[str]:
    """Return the lines of a table: sentences and commands stand below the other cells.

    A note stands beside them, as much of it as fits.
    """
    narrow = [place for place, column in enumerate(table.columns) if column.kind not in _WIDE]
    columns = [table.columns[place] for place in narrow]
    rows = [[shown(row[p], table.columns[p].kind) for p in narrow] for row in table.rows]
    widths = _fitted([[column.heading for column in columns], *rows], columns)
    lines = [_line([column.heading for column in columns], widths, columns)]
    indent = _GAP + " " * _indent(widths, columns)
    drawn = [_line(cells, widths, columns) for cells in rows]
    said = [_said(row, table.columns, Kind.PROSE, Kind.CODE) for row in table.rows]
    beside = _is_short(drawn, said)
    for line, texts, row in zip(drawn, said, table.rows, strict=True):
        whole = _GAP.join([line, *(text for text, _ in texts if beside)])
        lines.append(_noted(whole, _said(row, table.columns, Kind.NOTE)))
        for text, kind in () if beside else texts:
            lines += _below(text, kind, indent)
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
    # At the end of a word, if there is one.
    return f"{line}{_GAP}{begin.rpartition(' ')[0].rstrip() or begin}..."


def _is_short(drawn: list[str], said: list[list[tuple[str, Kind]]]) -> bool:
    """Whether every row has room for what is said of it."""
    return all(
        len(texts) <= 1 and _width(line) + sum(len(_GAP) + _width(t) for t, _ in texts) <= WIDTH
        for line, texts in zip(drawn, said, strict=True)
    )


def _indent(widths: list[int], columns: list[Column]) -> int:
    """Return where the first name begins."""
    numbers = 0
    for width, column in zip(widths, columns, strict=True):
        if not column.kind.is_number:
            break
        numbers += width + len(_GAP)
    return min(numbers, WIDTH // 2)


def _below(text: str, kind: Kind, indent: str) -> list[str]:
    return [f"{indent}{text}"] if kind is Kind.CODE else _wrapped(text, indent, indent)


def _fitted(rows: list[list[str]], columns: list[Column]) -> list[int]:
    """Return the columns' widths, the widest names cut until a line fits."""
    widths = [max(map(_width, cells)) for cells in zip(*rows, strict=True)]
    names = [place for place, column in enumerate(columns) if not column.kind.is_number]
    room = WIDTH - len(_GAP) * len(columns)
    while names and sum(widths) > room:
        widest = max(names, key=lambda place: widths[place])
        others = [widths[place] for place in names if place != widest]
        over = sum(widths) - room
        # Down to the next widest name at most, so that they share what is to be cut.
        step = max(widths[widest] - max(others, default=0), 1)
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] = max(widths[widest] - min(over, step), _NARROWEST)
    return widths


def _line(cells: list[str], widths: list[int], columns: list[Column]) -> str:
    line = ""
    for cell, width, column in zip(cells, widths, columns, strict=True):
        text = _cut(cell, width)
        space = " " * (width - _width(text))
        line += _GAP + (space + text if column.kind.is_number else text + space)
    return line


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    """Return a text that fits, what is too much taken out of its middle: both ends tell most."""
    if _width(text) <= width:
        return text
    kept = width - 3
    if not text.isascii():
        kept //= 2
    head = kept // 3
    return f"{text[:head]}...{text[len(text) - (kept - head) :]}"
