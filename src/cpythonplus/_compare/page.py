"""A comparison as one HTML file with pictures: no script, nothing to be loaded."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from html import escape

from cpythonplus._compare.comparison import Comparison, Row
from cpythonplus._compare.report import cells, conditions, legend, machine, verdict, warnings
from cpythonplus._compare.samples import CURVE
from cpythonplus._compare.sides import SIDES

_STYLE = """
:root { color-scheme: light dark; --stock: #b45309; --plus: #1d4ed8; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --stock: #fbbf24; --plus: #93c5fd; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.35rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
.verdict { font-size: 1.1rem; font-weight: 600; } code { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th.group { padding-top: .9rem; } .noise-row { opacity: .6; }
.better { color: #15803d; } .worse { color: #dc2626; } svg { display: block; }
svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
.stock { color: var(--stock); } .plus { color: var(--plus); }
.grid { stroke: var(--line); } .round { opacity: .25; }
"""
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 300, 70, 20, 10, 45
_STRIP_WIDTH, _STRIP_HEIGHT, _RADIUS = 170, 26, 3


def page(comparison: Comparison) -> str:
    """Return the file."""
    commands = "".join(
        f'<br><b class="{side}">{side}</b> <code>{escape(shlex.join(comparison.commands[side]))}'
        "</code>"
        for side in SIDES
    )
    notes = "".join(f"<li>{escape(line)}</li>" for line in warnings(comparison))
    plots = "".join(
        f"<h2>Latency, {loop} loop</h2>{_latencies(comparison, loop)}"
        for loop in comparison.loops()
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>cpythonplus compare</title><style>{_STYLE}</style></head><body>\n"
        f'<h1>Stock and cpythonplus</h1>\n<p class="verdict">{escape(verdict(comparison))}</p>\n'
        f"<p>{escape(machine())}; {escape(conditions(comparison))}{commands}</p>\n"
        f"<ul>{notes}</ul>\n{_table(comparison)}\n"
        f"<p>{escape(legend(comparison)).replace(chr(10), '<br>')}</p>\n{plots}\n</body></html>\n"
    )


def _table(comparison: Comparison) -> str:
    parts = [
        '<table><tr><th></th><th class="stock">stock</th><th class="plus">plus</th>',
        "<th>plus/stock</th><th></th><th>rounds</th></tr>",
    ]
    group = ""
    for row in comparison.rows():
        if row.metric.group != group:
            group = row.metric.group
            parts.append(f'<tr><th class="group" colspan="6">{escape(group)}</th></tr>')
        texts = "".join(f"<td>{escape(text)}</td>" for text in cells(row))
        word = row.judgement
        parts.append(
            f'<tr class="{word}-row">{texts}<td class="{word}">{word}</td>'
            f"<td>{_strip(row)}</td></tr>"
        )
    return "\n".join([*parts, "</table>"])


def _strip(row: Row) -> str:
    """Return a point for each round, stock above plus, and a stroke at each median."""
    values = [value for side in SIDES for value in row.values[side]]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    usable = _STRIP_WIDTH - 4 * _RADIUS

    def x(value: float) -> str:
        return f"{2 * _RADIUS + usable * (value - low) / span:.1f}"

    parts = []
    for index, side in enumerate(SIDES):
        y = _STRIP_HEIGHT * (1 + 2 * index) // 4
        parts += [
            f'<circle class="{side}" cx="{x(value)}" cy="{y}" r="{_RADIUS}" fill="currentColor"'
            ' fill-opacity=".5"/>'
            for value in row.values[side]
        ]
        middle = row.median(side)
        if middle is not None:
            parts.append(
                f'<path class="{side}" d="M{x(middle)} {y - 6}v12" stroke="currentColor"'
                ' stroke-width="2"/>'
            )
    return f'<svg width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}">{"".join(parts)}</svg>'


def _latencies(comparison: Comparison, loop: str) -> str:
    """Return the percentiles of both sides: thick the medians, thin each round."""
    medians = {side: comparison.curve(side, loop) for side in SIDES}
    rounds = [(each.side, each.curves[loop]) for each in comparison.samples if loop in each.curves]
    every = [value for _, curve in rounds for value in curve if value > 0]
    low, high = math.log10(min(every)), math.log10(max(every))
    span = (high - low) or 1.0
    step = (_WIDTH - _LEFT - _RIGHT) / (len(CURVE) - 1)

    def y(value: float) -> float:
        share = (math.log10(max(value, 10**low)) - low) / span
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    def line(curve: Sequence[float]) -> str:
        return " ".join(f"{_LEFT + i * step:.1f},{y(value):.1f}" for i, value in enumerate(curve))

    parts = [
        f'<path class="grid" d="M{_LEFT} {y(tick):.1f}H{_WIDTH - _RIGHT}"/>'
        f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick * 1e3:g} ms'
        "</text>"
        for tick in ticks(10**low, 10**high)
    ]
    names = ["min", *(f"p{percent:g}" for percent in CURVE[1:-1]), "max"]
    parts += [
        f'<text x="{_LEFT + i * step:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">'
        f"{name}</text>"
        for i, name in enumerate(names)
    ]
    parts += [
        f'<polyline class="{side} round" points="{line(curve)}" fill="none" stroke="currentColor"/>'
        for side, curve in rounds
    ]
    for index, side in enumerate(SIDES):
        parts.append(
            f'<polyline class="{side}" points="{line(medians[side])}" fill="none"'
            ' stroke="currentColor" stroke-width="2.5"/>'
            f'<text x="{_LEFT + 60 * index}" y="{_HEIGHT - 6}"><tspan class="{side}"'
            f' fill="currentColor">&#9632;</tspan> {side}</text>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="latency by percentile">'
        f"{''.join(parts)}</svg>"
    )


def ticks(low: float, high: float) -> list[float]:
    """Return the values 1, 2 and 5 times a power of ten from `low` to `high`; at most ten."""
    found = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in (1, 2, 5)
        if low <= factor * 10.0**power <= high
    ]
    return found if len(found) <= 10 else found[::3]  # noqa: PLR2004
