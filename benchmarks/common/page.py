"""The HTML report: one file that holds everything it shows, so it can be mailed and kept."""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.util import find_spec
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import formats, rows
from benchmarks.common.errors import UsageError
from benchmarks.common.percentiles import Latency
from benchmarks.common.results import CaseResult, Report
from benchmarks.common.sides import ALL_SIDES, LOOKS, SIDES, Side
from benchmarks.scenarios import SUITES, TABLES

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SPREAD = 0.64
"""Part of a category's height over which the lines of its sides are spread."""
_INK = "#24292f"
_GRID = "#e4e7eb"
_ROOM = 1.2
"""How much longer than the longest bar an axis is, for the number at its end."""
_LOG_FROM = 12
"""Charts whose largest value is this many times the smallest get a logarithmic axis."""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  color: #24292f; background: #fff; margin: 0 auto; padding: 1.5rem; max-width: 62rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; border-top: 1px solid #e4e7eb;
  padding-top: 1.5rem; }
p.lead { color: #57606a; margin: 0 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums;
  width: 100%; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; vertical-align: top; }
th { font-weight: 600; color: #57606a; border-bottom: 1px solid #d0d7de; }
td.text, th.text { text-align: left; white-space: normal; min-width: 9rem; }
tr.first td { border-top: 1px solid #eaeef2; }
tr.plus td { font-weight: 600; }
tr.plus td.text { font-weight: 400; }
.reached { color: #1a7f37; } .missed { color: #b42318; }
.target { font-weight: 400; display: block; text-align: left; white-space: normal; }
th.target { display: table-cell; font-weight: 600; min-width: 13rem; }
.warning { background: #fff8e1; border-left: 4px solid #d29922; padding: .5rem .8rem;
  margin: .5rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .85rem; }
dt { color: #57606a; } dd { margin: 0; overflow-wrap: anywhere; }
.note { color: #57606a; font-size: .85rem; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
.chart { margin: .75rem 0; }
@media (max-width: 40rem) { body { padding: .8rem; } h1 { font-size: 1.3rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
"""


def require() -> None:
    """Raise UsageError when the plotting library is not installed."""
    if find_spec("plotly") is None:
        raise UsageError("--html needs plotly; it is in the dependency group bench")


def write(report: Report, path: Path) -> None:
    """Write the page to `path`. Raises OSError."""
    path.write_text(render(report), encoding="utf-8")


def render(report: Report) -> str:
    """Return the page."""
    from plotly.offline import get_plotlyjs

    title = f"cpythonplus, benchmark {report.benchmark}"
    machine = report.machine
    subtitle = f"{machine.get('python', '')}, {machine.get('cpu', '')}, {machine.get('date', '')}"
    warnings = "".join(f'<p class="warning">{escape(w)}</p>' for w in rows.warnings(report))
    sections = "".join(_section(report, scenario) for scenario in report.scenarios())
    facts = {**machine, **{k: str(v) for k, v in report.settings.items()}}
    listed = "".join(
        f"<dt>{escape(k.replace('_', ' '))}</dt><dd>{escape(v or '-')}</dd>"
        for k, v in facts.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="lead">{escape(subtitle)}</p>
<p>{_what_sides_are(report)} Measured in alternation, each time in a fresh process.</p>
{warnings}
{sections}
<h2>Machine and settings</h2>
<dl>{listed}</dl>
</body>
</html>
"""


def _what_sides_are(report: Report) -> str:
    """Return the legend of the charts: the sides, and what they are."""
    command = SUITES[report.benchmark].plus
    return " ".join(
        f'<span class="swatch" style="background:{LOOKS[side].colour}"></span> {side}: '
        f"{LOOKS[side].words.format(command=command)}."
        for side in _sides(report.cases)
    )


def _section(report: Report, scenario: str) -> str:
    cases = [case for case in report.scenario(scenario) if case.rounds]
    table = TABLES[scenario]
    if table.mean:
        figures = [_ratios(cases)]
    elif table.starts:
        figures = [_startup(cases)]
    else:
        figures = [_rates(cases), _latencies(cases)]
    charts = "".join(
        f'<div class="chart">{_html(figure)}</div>' for figure in figures if figure is not None
    )
    return f"<section><h2>{escape(table.title)}</h2>{charts}{_table(report, scenario)}</section>"


def _html(figure: Figure) -> str:
    html: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        config={"responsive": True, "displayModeBar": False},
    )
    return html


def _table(report: Report, scenario: str) -> str:
    body = []
    last = ""
    found = rows.rows(report, scenario)
    columns = rows.used_columns(found)
    heights = Counter(row.title for row in found)
    for row in found:
        first = row.title != last
        cells = "".join(f"<td>{escape(row.cells()[place])}</td>" for place in columns)
        verdicts = "".join(
            f'<span class="target {"reached" if v.reached else "missed"}">'
            f"{escape(v.text)}: {formats.verdict(reached=v.reached)}</span>"
            for v in row.verdicts
        )
        remark = f'<span class="target missed">{escape(row.remark)}</span>' if row.remark else ""
        head = f'<td class="text" rowspan="{heights[row.title]}">{escape(row.title)}</td>'
        body.append(
            f'<tr class="{"plus" if row.own else "other"}{" first" if first else ""}">'
            f"{head if first else ''}{cells}"
            f"<td>{verdicts}{remark}</td></tr>"
        )
        last = row.title
    targets = "target" if any(row.verdicts or row.remark for row in found) else ""
    heads = "".join(f"<th>{escape(rows.heading(place, found))}</th>" for place in columns)
    return (
        '<div class="scroll"><table><thead><tr><th class="text">case</th>'
        f'{heads}<th class="target">{targets}</th></tr></thead>'
        f'<tbody>{"".join(body)}</tbody></table></div><p class="note">{escape(rows.FOOTNOTE)}</p>'
    )


def _labels(cases: list[CaseResult]) -> list[str]:
    """Return the cases' titles without the words that all of them begin with."""
    words = [case.title.split() for case in cases]
    same = 0
    while len(words) > 1 and all(len(w) > same + 1 and w[same] == words[0][same] for w in words):
        same += 1
    return [_wrapped(" ".join(w[same:])) for w in words]


def _wrapped(text: str, width: int = 22) -> str:
    """Return `text` broken into lines of about `width` characters, for narrow screens."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "<br>".join(lines)


def _sides(cases: list[CaseResult]) -> tuple[Side, ...]:
    """Return the sides of any of `cases`, in the order in which they are shown."""
    found = {side for case in cases for side in case.sides()}
    return tuple(side for side in ALL_SIDES if side in found)


def _figure(
    title: str,
    unit: str,
    count: int,
    *,
    logarithmic: bool,
    values: list[float],
    sides: int = len(SIDES),
) -> Figure:
    """Return an empty figure with horizontal categories, `count` of them, of `sides` marks each."""
    from plotly.graph_objects import Figure

    figure = Figure()
    figure.update_layout(
        title={"text": title, "x": 0, "xanchor": "left", "font": {"size": 16}, "pad": {"l": 4}},
        font={"family": "system-ui, DejaVu Sans, sans-serif", "size": 13, "color": _INK},
        template="none",
        height=130 + 31 * sides * count,
        margin={"l": 8, "r": 24, "t": 78, "b": 52},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "xanchor": "left"},
        bargap=0.28,
        bargroupgap=0.06,
        hovermode="closest",
        paper_bgcolor="#fff",
        plot_bgcolor="#fff",
    )
    axis: dict[str, Any] = {"title": {"text": unit}, "gridcolor": _GRID, "automargin": True}
    if logarithmic:
        axis |= _log_axis(values)
    else:
        axis |= {"zerolinecolor": _GRID, "separatethousands": True}
        axis["range"] = [0, max(values) * _ROOM]
    figure.update_xaxes(**axis)
    figure.update_yaxes(autorange="reversed", automargin=True, ticks="", showgrid=False)
    return figure


def _log_axis(values: list[float]) -> dict[str, Any]:
    """Return a logarithmic axis with a plain number at each power of ten."""
    low = floor(log10(min(values)) - 0.2)  # the shortest bar is seen as well
    high = log10(max(values)) + 0.45  # room for the text at the longest bar
    powers = range(low, floor(high) + 1)
    return {
        "type": "log",
        "range": [low, high],
        "tickvals": [10.0**p for p in powers],
        "ticktext": [f"{10**p:,}" if p >= 0 else f"{10.0**p:g}" for p in powers],
    }


def _rates(cases: list[CaseResult]) -> Figure | None:
    """Return bars of the rates, the sides beside each other."""
    from plotly.graph_objects import Bar

    sides = _sides(cases)
    shown = {side: [case.shown(side) for case in cases] for side in sides}
    values = [o.rate for outcomes in shown.values() for o in outcomes if o and o.rate > 0]
    if not values:
        return None
    logarithmic = max(values) / min(values) >= _LOG_FROM
    unit = cases[0].unit + (", logarithmic" if logarithmic else "")
    title = "Rate (longer is better)" if cases[0].better == "higher" else "Cost (shorter is better)"
    figure = _figure(
        title, unit, len(cases), logarithmic=logarithmic, values=values, sides=len(sides)
    )
    labels = _labels(cases)
    for side in sides:
        rates = [o.rate if o else None for o in shown[side]]
        figure.add_trace(
            Bar(
                name=side,
                y=labels,
                x=rates,
                orientation="h",
                marker={"color": LOOKS[side].colour},
                text=[formats.number(rate) if rate else "" for rate in rates],
                textposition="outside",
                cliponaxis=False,
                hovertemplate="%{y}<br>%{text} " + cases[0].unit + f"<extra>{side}</extra>",
            )
        )
    return figure


def _latencies(cases: list[CaseResult]) -> Figure | None:
    """Return p50, p99 and max of each case as a line with three marks, the sides in order."""
    from plotly.graph_objects import Scatter

    sides = _sides(cases)
    found: dict[Side, list[tuple[int, Latency]]] = {side: [] for side in sides}
    for place, case in enumerate(cases):
        for side in sides:
            outcome = case.shown(side)
            if outcome and outcome.latency:
                found[side].append((place, outcome.latency))
    values = [
        ms
        for side in sides
        for _, x in found[side]
        for ms in (x.p50_ms, x.p99_ms, x.max_ms)
        if ms > 0
    ]
    if not values:
        return None
    figure = _figure(
        "Latency: ● p50, ◆ p99, ┃ max",
        "milliseconds, logarithmic",
        len(cases),
        logarithmic=True,
        values=values,
        sides=len(sides),
    )
    for order, side in enumerate(sides):
        shift = _SPREAD * ((order + 0.5) / len(sides) - 0.5)
        for place, latency in found[side]:
            first = latency is found[side][0][1]
            marks = (latency.p50_ms, latency.p99_ms, latency.max_ms)
            figure.add_trace(
                Scatter(
                    name=side,
                    legendgroup=side,
                    showlegend=first,
                    x=marks,
                    y=[place + shift] * len(marks),
                    mode="lines+markers",
                    line={"color": LOOKS[side].colour, "width": 3},
                    marker={
                        "color": LOOKS[side].colour,
                        "opacity": 1,
                        "size": [11, 12, 16],
                        "symbol": ["circle", "diamond", "line-ns"],
                        "line": {"color": LOOKS[side].colour, "width": [0, 0, 3]},
                    },
                    text=[
                        f"{name} {_duration(ms)}"
                        for name, ms in zip(("p50", "p99", "max"), marks, strict=True)
                    ],
                    hovertemplate="%{text}" + f"<extra>{side}</extra>",
                )
            )
    figure.update_yaxes(
        tickvals=list(range(len(cases))),
        ticktext=_labels(cases),
        range=[len(cases) - 0.5, -0.5],
        autorange=False,
        zeroline=False,
    )
    return figure


def _duration(ms: float) -> str:
    """Return a time in the unit that shows three figures of it."""
    return f"{formats.number(ms)} ms" if ms >= 1 else f"{formats.number(ms * 1e3)} us"


def _ratios(cases: list[CaseResult]) -> Figure | None:
    """Return the ratios plus/stock as distances from 1."""
    from plotly.graph_objects import Bar

    known = [(case, ratio) for case in cases if (ratio := case.ratio())]
    if not known:
        return None
    labels = _labels([case for case, _ in known])
    off = [(ratio - 1) * 100 for _, ratio in known]
    figure = _figure(
        "Speed of plus against stock (right is faster)",
        "per cent",
        len(known),
        logarithmic=False,
        values=off,
    )
    figure.update_layout(height=130 + 38 * len(known), showlegend=False)
    figure.add_trace(
        Bar(
            name="plus",
            y=labels,
            x=off,
            orientation="h",
            marker={"color": LOOKS["plus"].colour},
            text=[formats.ratio(ratio) for _, ratio in known],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}<br>%{text}<extra>plus</extra>",
        )
    )
    reach = max(5.0, *(abs(x) * 1.4 for x in off))
    figure.update_xaxes(range=[-reach, reach], ticksuffix=" %", zerolinecolor=_INK, zeroline=True)
    return figure


def _startup(cases: list[CaseResult]) -> Figure | None:
    """Return the median start-up times."""
    from plotly.graph_objects import Bar

    labels = _labels(cases)
    times = {
        side: [
            o.latency.p50_ms if (o := case.shown(side)) and o.latency else None for case in cases
        ]
        for side in SIDES
    }
    values = [ms for side in SIDES for ms in times[side] if ms]
    if not values:
        return None
    figure = _figure(
        "Median time of a start and an end (shorter is better)",
        "milliseconds",
        len(cases),
        logarithmic=False,
        values=values,
    )
    for side in SIDES:
        figure.add_trace(
            Bar(
                name=side,
                y=labels,
                x=times[side],
                orientation="h",
                marker={"color": LOOKS[side].colour},
                text=[f"{ms:.1f}" if ms else "" for ms in times[side]],
                textposition="outside",
                cliponaxis=False,
                hovertemplate="%{y}<br>%{text} ms" + f"<extra>{side}</extra>",
            )
        )
    return figure
