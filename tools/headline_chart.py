"""Draws the two bar charts at the top of README.md, for tools/benchmark_pages.py."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from cpythonplus.benchmarks.common import formats
from cpythonplus.benchmarks.common.results import Report

WIDTH, HEIGHT = 760, 160
LEFT, LONGEST, TOP, ROW = 96, 190, 54, 34


@dataclass(frozen=True, slots=True)
class Colours:
    """What a chart is drawn with."""

    paper: str
    ink: str
    stock: str
    plus: str


LIGHT = Colours("#ffffff", "#24292f", "#8c959f", "#0969da")
DARK = Colours("#0d1117", "#e6edf3", "#6e7681", "#2f81f7")


@dataclass(frozen=True, slots=True)
class Bars:
    """One chart: a value for each side, the shorter the better."""

    title: str
    below: str
    unit: str
    values: dict[str, float]


def latency(report: Report, version: str) -> Bars | None:
    """Return p99 of giltest's requests of 5 ms beside one thread; None if it lacks."""
    case = report.case("requests-5ms-beside-1")
    alone = report.case(case.alone) if case else None
    if case is None or alone is None:
        return None
    shown = {
        "stock": case.shown("stock"),
        "cpythonplus": case.shown("plus"),
        "no thread": alone.shown("stock"),
    }
    values = {name: o.latency.p99_ms for name, o in shown.items() if o and o.latency}
    title = "p99 beside a thread that computes"
    below = f"requests of 5 ms, CPython {version}"
    return Bars(title, below, "ms", values) if len(values) == len(shown) else None


def memory(report: Report, version: str) -> Bars | None:
    """Return the memory of prefork's eight workers; None if it lacks."""
    case = report.case("memory-8")
    if case is None:
        return None
    shown = {
        "stock": case.shown("stock"),
        "cpythonplus": case.shown("plus"),
        "gc.freeze": case.shown("gc.freeze"),
    }
    values = {name: o.rate for name, o in shown.items() if o}
    below = f"Django, 110,000 items, CPython {version}"
    title = "Memory of 8 gunicorn workers"
    return Bars(title, below, "MiB", values) if len(values) == len(shown) else None


def chart(charts: Sequence[Bars], colours: Colours) -> str:
    """Return the charts beside each other as SVG."""
    parts = [part for place, bars in enumerate(charts) for part in _drawn(place, bars, colours)]
    titles = " and ".join(bars.title for bars in charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="13" fill="{colours.ink}">\n'
        f"<title>{escape(titles)}</title>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colours.paper}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _drawn(place: int, bars: Bars, colours: Colours) -> Iterator[str]:
    left = place * WIDTH / 2 + 10
    start = left + LEFT
    yield f'<text x="{left:g}" y="22" font-weight="bold">{escape(bars.title)}</text>'
    yield f'<text x="{left:g}" y="40">{escape(bars.below)}</text>'
    for row, (name, value) in enumerate(bars.values.items()):
        y = TOP + ROW * row
        long = LONGEST * value / max(bars.values.values())
        fill = colours.plus if name == "cpythonplus" else colours.stock
        yield f'<text x="{start - 8:g}" y="{y + 17}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect x="{start:g}" y="{y}" width="{long:.1f}" height="24" fill="{fill}"/>'
        label = f"{formats.number(value)} {bars.unit}"
        yield f'<text x="{start + long + 6:.1f}" y="{y + 17}">{escape(label)}</text>'
