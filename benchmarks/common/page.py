"""The HTML report: one file that holds everything it shows, so it can be mailed and kept."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import log
from pathlib import Path

from benchmarks.common import formats, rows
from benchmarks.common.results import CaseResult, Outcome, Report
from benchmarks.common.sides import ALL_SIDES, LOOKS, Side
from benchmarks.scenarios import SUITES, TABLES

_PICTURES = (
    "Bar: the rate, as a part of the highest of its case. Line: from p50 over p99 to the longest "
    "latency, logarithmically, from the least p50 of the table on."
)
_WIDTH = 160
"""Of a row's picture, in pixels."""

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
td svg { display: block; }
@media (max-width: 40rem) { body { padding: .8rem; } h1 { font-size: 1.3rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; } }
"""


def write(report: Report, path: Path) -> None:
    """Write the page to `path`. Raises OSError."""
    path.write_text(render(report), encoding="utf-8")


def render(report: Report) -> str:
    """Return the page."""
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
</head>
<body>
<h1>{escape(title)}</h1>
<p class="lead">{escape(subtitle)}</p>
<p>{_what_sides_are(report)} Measured in alternation, each time in a fresh process.</p>
<p class="note">{_PICTURES}</p>
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
    title = escape(TABLES[scenario].title)
    return f"<section><h2>{title}</h2>{_table(report, scenario)}</section>"


def _table(report: Report, scenario: str) -> str:
    body = []
    last = ""
    found = rows.rows(report, scenario)
    pictures = _pictures(report.scenario(scenario))
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
            f"<td>{pictures.get((row.title, row.side), '')}</td><td>{verdicts}{remark}</td></tr>"
        )
        last = row.title
    targets = "target" if any(row.verdicts or row.remark for row in found) else ""
    heads = "".join(f"<th>{escape(rows.heading(place, found))}</th>" for place in columns)
    return (
        '<div class="scroll"><table><thead><tr><th class="text">case</th>'
        f'{heads}<th></th><th class="target">{targets}</th></tr></thead>'
        f'<tbody>{"".join(body)}</tbody></table></div><p class="note">{escape(rows.FOOTNOTE)}</p>'
    )


def _pictures(cases: list[CaseResult]) -> dict[tuple[str, Side], str]:
    """Return the picture of each side that has been measured, by its case's title and its name."""
    shown = {
        (case.title, side): outcome
        for case in cases
        for side in case.sides()
        if (outcome := case.shown(side))
    }
    known = [outcome.latency for outcome in shown.values() if outcome.latency]
    least = min((latency.p50_ms for latency in known), default=0.0)
    most_ms = max((latency.max_ms for latency in known), default=0.0)
    highest = {
        title: max(outcome.rate for (other, _), outcome in shown.items() if other == title)
        for title, _ in shown
    }

    def place(ms: float) -> float:
        return _WIDTH * log(ms / least) / log(most_ms / least) if 0 < least < ms else 0.0

    def drawn(outcome: Outcome, most: float, colour: str) -> str:
        bar = _WIDTH * outcome.rate / most if most > 0 else 0.0
        line = ""
        if latency := outcome.latency:
            p50, p99, longest = map(place, (latency.p50_ms, latency.p99_ms, latency.max_ms))
            line = (
                f'<path d="M{p50:.1f} 13H{longest:.1f}M{p50:.1f} 10v6M{p99:.1f} 10v6" '
                f'stroke="{colour}" stroke-width="2"/>'
            )
        return (
            f'<svg width="{_WIDTH}" height="17"><rect y="1" width="{bar:.1f}" height="6" '
            f'fill="{colour}"/>{line}</svg>'
        )

    return {
        (title, side): drawn(outcome, highest[title], LOOKS[side].colour)
        for (title, side), outcome in shown.items()
    }


def _sides(cases: list[CaseResult]) -> tuple[Side, ...]:
    """Return the sides of any of `cases`, in the order in which they are shown."""
    found = {side for case in cases for side in case.sides()}
    return tuple(side for side in ALL_SIDES if side in found)
