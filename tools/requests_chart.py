"""Draws the chart of docs/benchmarks/giltest.md, for tools/benchmark_pages.py."""

import math
from collections.abc import Iterator

from cpythonplus.benchmarks.common.results import CaseResult, Report
from tools.stack_pictures import INK, WIDTH, line, picture, text

STOCK, PLUS = "#cf222e", "#0969da"
LEFT, RIGHT, TOP, ROW = 280, WIDTH - 40, 84, 22


def chart(report: Report, version: str) -> str | None:
    """Return the chart of a giltest report's requests as SVG; None where it has none.

    Those over other numbers of connections are left to the table.
    """
    cases = [case for case in report.scenario("requests") if case.alone]
    shown = [
        (case.title, values)
        for case in cases
        if "-over-" not in case.name and (values := p99s(case, report))
    ]
    if not shown:
        return None
    # Whole decades.
    low = math.floor(math.log10(min(min(values) for _, values in shown)))
    high = math.ceil(math.log10(max(max(values) for _, values in shown)))
    bottom = TOP + ROW * len(shown)

    def across(milliseconds: float) -> float:
        return LEFT + (RIGHT - LEFT) * (math.log10(milliseconds) - low) / (high - low)

    def scale() -> Iterator[str]:
        for decade in range(low, high + 1):
            at = across(10**decade)
            yield line(at, TOP - 10, at, bottom)
            yield text(at, bottom + 18, f"{10**decade:g} ms", anchor="middle")

    def rows() -> Iterator[str]:
        for place, (title, (alone, stock, plus)) in enumerate(shown):
            y = TOP + ROW * place + 4
            yield text(20, y + 4, title)
            for value, colour in ((stock, STOCK), (plus, PLUS)):
                yield dot(across(value), y, colour)
            yield ring(across(alone), y)

    heads = [
        text(20, 26, "Requests that compute, beside threads that compute", bold=True),
        text(20, 46, f"99th percentile of the latency, CPython {version}; the shorter the better"),
        *legend(),
    ]
    return picture(bottom + 34, "Requests beside threads that compute", [*heads, *scale(), *rows()])


def legend() -> list[str]:
    """Return what the marks mean, above the scale."""
    marks = (dot(504, 42, STOCK), dot(572, 42, PLUS), ring(680, 42))
    return [
        *marks,
        text(512, 46, "stock"),
        text(580, 46, "cpythonplus"),
        text(690, 46, "alone"),
    ]


def p99s(case: CaseResult, report: Report) -> list[float]:
    """Return p99 in ms of stock without CPU threads, of stock and of plus; none if one lacks."""
    alone = report.case(case.alone)
    outcomes = (alone and alone.shown("stock"), case.shown("stock"), case.shown("plus"))
    found = [o.latency.p99_ms for o in outcomes if o and o.latency]
    return found if len(found) == len(outcomes) else []


def dot(x: float, y: float, colour: str) -> str:
    """Return a side's mark."""
    return f'<circle cx="{x:.1f}" cy="{y:g}" r="5" fill="{colour}"/>'


def ring(x: float, y: float) -> str:
    """Return the mark of what it takes with nothing beside it."""
    return f'<circle cx="{x:.1f}" cy="{y:g}" r="7" fill="none" stroke="{INK}" stroke-width="1.5"/>'
