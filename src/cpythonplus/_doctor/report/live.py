"""The live screen of a watched process, and its line if there is no terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from cpythonplus._base.reading import amount, entries, known, size, words
from cpythonplus._base.text import tables
from cpythonplus._base.text.sizes import duration, format_size
from cpythonplus._base.text.tables import Kind, shown, signed, table
from cpythonplus._doctor.report.labels import label
from cpythonplus._doctor.report.sections import (
    losses,
    resident_parts,
    section,
    target_line,
    titles,
    waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from cpythonplus._base.reading import Examination, Part
    from cpythonplus._doctor.report.sections import Section

_COLOURS: Final = ("green", "cyan", "blue", "magenta", "yellow", "red", "white", "bright_black")
_BLOCK: Final = "█"
_GAP: Final = "   "
_LEAST_WIDTH: Final = 20
_IN_SAMPLES: Final = ("resident", "census", "gil", "samples")
"""Examinations whose numbers are in each sample, and drawn from there."""
_GROWTH: Final = "bytes:change=size_bytes|objects:more|type=name"
_WORKERS: Final = "pid|RSS:size=rss_bytes|command"


def line(samples: Sequence[Part]) -> str:
    """Return the last look as one line."""
    last = samples[-1]
    told = [time.strftime("%H:%M:%S"), _resident(samples)]
    if known(last, "objects"):
        told.append(f"objects {size(last, 'objects'):,} {format_size(size(last, 'size_bytes'))}")
    owners = next((s for s in reversed(samples) if "owners" in s), {})
    growth = [
        f"{words(row, 'name')} {signed(size(row, 'amount_bytes'))}"
        for row in entries(owners, "owners")[:3]
    ] or [
        f"{words(row, 'name')} {signed(size(row, 'size_bytes'))}"
        for row in entries(last, "growth")[:3]
    ]
    told += [f"grown: {', '.join(growth)}"] if growth else []
    waits = _waited(samples)
    told += [f"GIL waits {waits}"] if waits else []
    workers = entries(last, "workers")
    told += [f"children {len(workers)}"] if workers else []
    return "  ".join(told)


def screen(examination: Examination, top: int, width: int) -> RenderableType:
    """Return the screen for the last look, of so many columns; top: rows of each table."""
    samples = entries(examination, "samples")
    last = samples[-1]
    facts = f"{_resident(samples)[:-1]} in {amount(last, 't_s'):g} s)"
    if known(last, "objects"):
        facts += (
            f"   {tables.objects(size(last, 'objects'))}, {format_size(size(last, 'size_bytes'))}"
        )
    if known(last, "pause_ns"):
        facts += f"   paused for {duration(amount(last, 'pause_ns'))}"
    drawn: list[RenderableType] = [Text(target_line(examination), style="bold")]
    drawn += [Text(f"! {each}", style="bold") for each in losses(examination)]
    drawn.append(Text(facts))
    drawn += _map(last, width)
    grown = table("", _GROWTH, entries(last, "growth"), top)
    drawn += [
        Text("grown since the start:"),
        *(map(_drawn, grown) if grown else [Text("nothing")]),
    ]
    unknown = "unknown, the GIL is not scheduled"
    waits = (_waited(samples) or "-") if last.get("gil") else unknown
    drawn.append(Text(f"waiting for the GIL: {waits}"))
    workers = entries(last, "workers")
    if workers:
        rows = [{**row, "pid": str(size(row, "pid"))} for row in workers]
        drawn += [Text(f"{len(workers)} children:"), *map(_drawn, table("", _WORKERS, rows, top))]
    for name, title in titles(examination).items():
        if name not in _IN_SAMPLES:
            drawn += _section(section(examination, name, title, top))
    return Group(*drawn, Text("press q or Ctrl-C to stop", style="dim"))


def _resident(samples: Sequence[Part]) -> str:
    first, last = (size(samples[n], "rss_bytes") for n in (0, -1))
    return f"RSS {format_size(last)} ({signed(last - first)})"


def _waited(samples: Sequence[Part]) -> str:
    """Return the share of a second that threads waited for the GIL since the look before."""
    found = waiting(*samples[-2:]) if len(samples) > 1 else None
    return f"{duration(found[0])}/s in {found[1]:,.0f} waits/s" if found else ""


def _map(sample: Part, width: int) -> list[RenderableType]:
    """Return the map of resident memory: a bar, and a legend of its colours."""
    found = resident_parts(sample)
    whole = sum(size(row, "resident_bytes") for row in found)
    if not whole:
        return []
    bar, legend = Text(), list[Text]()
    for row, colour in zip(found, _COLOURS, strict=False):
        cells = round(size(row, "resident_bytes") / whole * max(width - 1, _LEAST_WIDTH))
        bar.append(_BLOCK * cells, style=colour)
        name = label(words(row, "name")).title
        text = f" {name} {format_size(size(row, 'resident_bytes'))}"
        legend.append(Text.assemble((_BLOCK, colour), text))
    return [bar, *_lines(legend, width)]


def _lines(legend: Iterable[Text], width: int) -> list[RenderableType]:
    """Return the entries in lines of so many columns; only entries that are longer are broken."""
    lines: list[Text] = []
    for entry in legend:
        if lines and lines[-1].cell_len + len(_GAP) + entry.cell_len <= width:
            lines[-1].append(_GAP).append_text(entry)
        else:
            lines.append(entry)
    return [*lines]


def _section(found: Section) -> list[RenderableType]:
    drawn: list[RenderableType] = [Text(f"{found.title}:"), *map(Text, found.lines)]
    for each in found.tables:
        drawn += [Text(each.title)] if each.title else []
        drawn.append(_drawn(each))
    return drawn


def _drawn(table: tables.Table) -> Table:
    drawn = Table(box=None, pad_edge=False)
    for column in table.columns:
        drawn.add_column(
            Text(column.heading),
            justify="right" if column.kind.is_number else "left",
            no_wrap=column.kind is not Kind.PROSE,
        )
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        drawn.add_row(*(Text(shown(cell, column.kind)) for cell, column in cells))
    return drawn
