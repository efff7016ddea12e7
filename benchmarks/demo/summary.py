"""Three problems in a few lines each, at most 80 columns wide."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from benchmarks.common import formats
from benchmarks.demo.scenario import WORKERS

if TYPE_CHECKING:
    from benchmarks.common.results import CaseResult, Outcome, Report
    from benchmarks.common.sides import Side

_LEAST_GAIN = 1.05
_NEXT = "Next, your own program:  cpythonplus compare -- python your_program.py"


def summary(report: Report) -> RenderableType:
    """Return what `make demo` prints."""
    parts: list[RenderableType] = []
    gained: list[str] = []
    if requests := report.case("flask-10-cpu"):
        parts += _requests(requests, gained)
    if workers := report.case(f"workers-{WORKERS}"):
        plain = report.case(f"plain-{WORKERS}")
        parts += _memory(workers, plain.shown("stock") if plain else None, gained)
    if leak := report.case("leak"):
        parts += _leak(leak, gained)
    failures = [
        Text(f"no result: {case.title}, {each.side}: {each.failure}", style="red")
        for case in report.cases
        for each in case.failures()
    ]
    end = [Text(f"Gained: {'; '.join(gained)}.", style="bold")] if gained else []
    facts = ("python", "cpu", "cores")
    machine = ", ".join(report.machine[fact] for fact in facts if report.machine.get(fact))
    return Group(*parts, *failures, *end, Text(_NEXT), Text(machine, style="dim"))


def _requests(case: CaseResult, gained: list[str]) -> list[RenderableType]:
    p99: dict[Side, list[float]] = {
        side: [each.latency.p99_ms for each in case.outcomes(side) if each.latency]
        for side in case.sides()
    }
    stock, plus = p99.get("stock"), p99.get("plus")
    if not stock or not plus:
        return []
    gain = median(stock) / median(plus)
    told = f"{formats.number(gain)} times shorter" if gain > 1 else "none"
    price = "a job in the same process gets what the requests leave"
    shares = [case.usual_share(side) for side in ("stock", "plus")]
    if None not in shares:
        price = f"the job runs at {shares[1]:.0%} of its speed alone, not at {shares[0]:.0%}"
    if max(plus) >= min(stock):
        told += " (the rounds overlap: busy machine?)"
    if gain > _LEAST_GAIN:
        gained.append(f"p99 {formats.number(median(stock))} -> {formats.number(median(plus))} ms")
    return _block(
        "Requests wait while a thread computes",
        "Flask under gunicorn's gthread worker, 10 connections; cpythonplus run",
        [f"p99 of requests {formats.number(median(each))} ms" for each in (stock, plus)],
        told,
        price,
    )


def _memory(case: CaseResult, plain: Outcome | None, gained: list[str]) -> list[RenderableType]:
    stock, plus = case.shown("stock"), case.shown("plus")
    if stock is None or plus is None or plain is None:
        return []
    gain = "none: before Python 3.12 objects cannot be immortal"
    if stock.rate > _LEAST_GAIN * plus.rate:
        gained.append(f"memory {stock.rate:.0f} -> {plus.rate:.0f} MiB")
        gain = f"{formats.number(stock.rate / plus.rate)} times less than with --preload"
    return _block(
        "Each worker copies the memory that it only reads",
        f"{WORKERS} workers, 150,000 rows; gunicorn, cpythonplus serve",
        [
            f"{plain.rate:.0f} MiB in sum, {stock.rate:.0f} MiB with --preload",
            f"{plus.rate:.0f} MiB",
        ],
        gain,
        "what is loaded before the fork is never freed",
    )


def _leak(case: CaseResult, gained: list[str]) -> list[RenderableType]:
    plus = case.shown("plus")
    if plus is None:
        return []
    grown, sentence, *_ = plus.notes
    pause = formats.number(plus.figures["pause_ms"])
    gained.append("a leak by name")
    return _block(
        "Memory grows, and nobody knows why",
        "a program that remembers each visitor; cpythonplus doctor growth PID",
        [f"resident memory {grown}, and no more", sentence],
        "the owner and the line, without a restart",
        f"the program was paused for {pause} ms",
    )


def _block(
    problem: str, what: str, sides: list[str], gain: str, price: str
) -> list[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=7)
    grid.add_column()
    for name, text in zip(("stock", "plus", "gain", "price"), (*sides, gain, price), strict=True):
        style = "bold" if name == "plus" else ""
        grid.add_row(Text(f"  {name}", style=style), Text(text, style=style))
    return [Text(problem, style="bold"), Text(what, style="dim"), grid, Text("")]
