"""Tables for counters of any shape: the end of a number's name is its unit."""

from collections.abc import Iterator, Mapping
from typing import Final

from cpythonplus._base.reading import Part, amount, entries, known, visible, words
from cpythonplus._base.text.tables import Cell, Column, Kind, Table, shown

_UNITS: Final = {"_bytes": Kind.SIZE, "_ns": Kind.TIME}
_IDENTITIES: Final = frozenset({"id", "ident", "line", "pid", "ppid", "version"})
"""Ends of names of numbers that are no amounts."""
_DEEPEST: Final = 4
_MOST: Final = 200


def figures(found: Part, top: int) -> tuple[Table, ...]:
    """Return a table of the numbers and texts in a mapping, and one of each list of mappings.

    Zeros are left out.
    """
    lines = tuple(_lines(found, "", 0))[:_MOST]
    tables = []
    if lines:
        tables.append(Table("", (Column("figure"), Column("value")), lines))
    for name, value in found.items():
        rows = entries(found, name)
        if isinstance(value, list) and rows:
            tables.append(_table(_title(name), rows, top))
    return tuple(tables)


def _lines(found: Part, prefix: str, depth: int) -> Iterator[tuple[Cell, ...]]:
    for name in found:
        value, title = found[name], f"{prefix}{_title(name)}"
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from _lines(value, f"{title}: ", depth + 1)
        elif isinstance(value, bool):
            yield title, "yes" if value else "no"
        elif amount(found, name):
            yield title, _number(found, name)
        elif isinstance(value, str):
            yield title, words(found, name)


def _table(title: str, rows: list[Part], top: int) -> Table:
    names = [name for name in rows[0] if isinstance(rows[0][name], str | int | float)]
    kinds = [_kind(name) if known(rows[0], name) else Kind.NAME for name in names]
    columns = tuple(Column(_title(n), k) for n, k in zip(names, kinds, strict=True))
    cells = tuple(
        tuple(
            amount(row, n) if k.is_number else _text(row, n)
            for n, k in zip(names, kinds, strict=True)
        )
        for row in rows[:top]
    )
    return Table(title, columns, cells, max(len(rows) - top, 0))


def _text(row: Part, name: str) -> str:
    if isinstance(row.get(name), bool):
        return "yes" if row[name] else "no"
    return _number(row, name) if known(row, name) else words(row, name)


def _number(row: Part, name: str) -> str:
    kind = _kind(name)
    return f"{amount(row, name):.0f}" if kind is Kind.NAME else shown(amount(row, name), kind)


def _kind(name: str) -> Kind:
    if name.rpartition("_")[2] in _IDENTITIES:
        return Kind.NAME
    return next((kind for end, kind in _UNITS.items() if name.endswith(end)), Kind.COUNT)


def _title(name: object) -> str:
    title = visible(str(name))
    for end in _UNITS:
        title = title.removesuffix(end)
    return title.replace("_", " ")
