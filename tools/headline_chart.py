"""Draws the two bar charts at the top of README.md, for tools/benchmark_pages.py."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

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
    """One chart: a value for each side, the shorter the better; `cpythonplus` is ours."""

    title: str
    below: str
    values: dict[str, float]
    labels: dict[str, str]


def bar_charts(charts: Sequence[Bars], colours: Colours) -> str:
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
        yield f'<text x="{start + long + 6:.1f}" y="{y + 17}">{escape(bars.labels[name])}</text>'
