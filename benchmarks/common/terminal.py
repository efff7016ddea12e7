"""What is shown on the terminal: progress on standard error, tables on standard output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from benchmarks.common import formats, rows
from benchmarks.common.errors import UsageError
from benchmarks.scenarios import TABLES

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from rich.console import RenderableType

    from benchmarks.common.results import Report

_PLAIN_WIDTH = 132
"""Width of tables where there is no terminal that says how wide it is."""
_ANY_WIDTH = 1000
_SUMMARY_WIDTH = 80


class PlainProgress:
    """One line for each measurement, for logs."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self._stream = stream
        self._total = 0
        self._done = 0

    def begin(self, total: int) -> None:
        """Remember how many measurements follow."""
        self._total = total

    def step(self, text: str) -> None:
        """Write the line of the measurement that begins."""
        self._done += 1
        print(f"[{self._done}/{self._total}] {text}", file=self._stream, flush=True)

    def end(self) -> None:
        """Do nothing: the last line stands already."""


class BarProgress:
    """A bar that stays on one line of a terminal."""

    def __init__(self, console: Console) -> None:
        """Draw on `console`."""
        self._bar = RichProgress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            # Drawn when something changes and by no thread of its own: a timer would wake up in
            # the middle of measurements.
            auto_refresh=False,
        )
        self._task = self._bar.add_task("", total=None)
        self._begun = False

    def begin(self, total: int) -> None:
        """Show the empty bar."""
        self._bar.update(self._task, total=total)
        self._bar.start()

    def step(self, text: str) -> None:
        """Show the measurement that begins; the one before is done."""
        self._bar.update(self._task, description=text, advance=1 if self._begun else 0)
        self._begun = True
        self._bar.refresh()

    def end(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def progress() -> BarProgress | PlainProgress:
    """Return what suits standard error: a bar on a terminal, lines elsewhere."""
    console = Console(stderr=True)
    return BarProgress(console) if console.is_terminal else PlainProgress(sys.stderr)


def console(stream: TextIO | None = None) -> Console:
    """Return the console for tables on `stream` (standard output by default)."""
    found = Console(file=stream, highlight=False)
    if not found.is_terminal:
        found.width = _PLAIN_WIDTH
    return found


def show_summary(summary: RenderableType, picture: Path | None) -> None:
    """Print a summary, at most as wide as the terminal, and draw it where that is wanted."""
    out = Console(highlight=False, record=picture is not None)
    out.width = min(out.width, _SUMMARY_WIDTH) if out.is_terminal else _SUMMARY_WIDTH
    out.print(summary)
    if picture is not None:
        out.save_svg(str(picture), title="cpythonplus")


def show_report(report: Report, out: Console) -> None:
    """Print all results, what must be known of them, and the machine."""
    for scenario in report.scenarios():
        table = _table(report, scenario)
        needed = Measurement.get(out, out.options.update(width=_ANY_WIDTH), table).minimum
        if needed <= out.width:
            out.print(table)
        else:
            out.print(_narrow(report, scenario))
    out.print(Text(rows.FOOTNOTE, style="dim"))
    for line in rows.warnings(report):
        out.print(Text(f"warning: {line}", style="yellow"))
    machine = report.machine
    facts = ("python", "libpython", "cpu", "cores", "kernel", "cpythonplus", "date")
    out.print(Text(", ".join(machine[fact] for fact in facts if machine.get(fact)), style="dim"))


def _table(report: Report, scenario: str) -> Table:
    found = rows.rows(report, scenario)
    columns = rows.used_columns(found)
    table = Table(
        title=TABLES[scenario].title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
    )
    table.add_column("case", min_width=16)
    for place in columns:
        heading = rows.heading(place, found)
        table.add_column(heading, justify="left" if heading == "side" else "right", no_wrap=True)
    targets = any(row.verdicts or row.remark for row in found)
    if targets:
        table.add_column("target", min_width=16)
    last = ""
    for row in found:
        title = row.title if row.title != last else ""
        style = "bold" if row.own else ""
        cells = [Text(row.cells()[place], style=style) for place in columns]
        table.add_row(title, *cells, *([_verdicts(row)] if targets else []))
        last = row.title
    return table


def _narrow(report: Report, scenario: str) -> Group:
    """Return the table for a terminal that it does not fit in: a paragraph for each side."""
    found = rows.rows(report, scenario)
    columns = [place for place in rows.used_columns(found) if rows.heading(place, found) != "side"]
    width = max(len(row.label) for row in found)
    parts: list[RenderableType] = [Text(TABLES[scenario].title, style="bold")]
    last = ""
    for row in found:
        if row.title != last:
            parts.append(Text(f"\n{row.title}"))
            last = row.title
        cells = [(rows.heading(place, found), row.cells()[place]) for place in columns]
        told = [f"{heading} {cell}" for heading, cell in cells if cell]
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=width + 2)
        grid.add_column()
        style = "bold" if row.own else ""
        grid.add_row(Text(f"  {row.label}", style=style), Text(", ".join(told), style=style))
        if row.verdicts or row.remark:
            grid.add_row("", _verdicts(row))
        parts.append(grid)
    return Group(*parts, "")


def _verdicts(row: rows.Row) -> Text:
    lines = [
        Text(
            f"{v.text}: {formats.verdict(reached=v.reached)}", style="green" if v.reached else "red"
        )
        for v in row.verdicts
    ]
    if row.remark:
        lines.append(Text(row.remark, style="red"))
    return Text("\n").join(lines)


def check_writable(path: Path | None) -> None:
    """Raise UsageError when `path` cannot become a file, without making one."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} for {path.name}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written")
