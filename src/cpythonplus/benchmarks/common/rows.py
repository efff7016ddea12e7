"""The result table as rows of text, the same for the terminal and for the page."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from cpythonplus.benchmarks.common import formats
from cpythonplus.benchmarks.common.results import (
    SIDES,
    CaseResult,
    Report,
    Side,
    geometric_mean_ratio,
)

_NAMED = 3
"""How many cases a warning names."""

SCENARIO_TITLES = {
    "echo": "Echo over a TCP socket, client in another process",
    "pairs": "Producer/consumer pairs",
    "efficiency": "CPU threads",
    "kernels": "Single-threaded work (fastest sample)",
    "startup": "Start-up (median)",
    "http": "Threaded HTTP server of the standard library",
    "flask": "Flask under gunicorn's gthread worker",
}

HEADINGS = ("side", "rate", "p50 ms", "p99 ms", "max ms", "min share", "plus/stock")
"""Of the columns between the case's title and its targets."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target and whether it was reached."""

    text: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One side of one case. Empty cells are empty strings."""

    title: str
    unit: str
    side: Side
    rate: str
    p50: str
    p99: str
    maximum: str
    share: str
    ratio: str
    verdicts: tuple[Verdict, ...] = ()
    remark: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return what stands between the case's title and its targets."""
        return (
            self.side,
            self.rate,
            self.p50,
            self.p99,
            self.maximum,
            self.share,
            self.ratio,
        )


def rows(report: Report, scenario: str) -> list[Row]:
    """Return the rows of one scenario."""
    by_case = _by_case(report.targets)
    cases = report.scenario(scenario)
    found = [_row(case, side, by_case[case.name]) for case in cases for side in SIDES]
    mean = geometric_mean_ratio(cases) if scenario == "kernels" else None
    if mean is not None:
        found.append(
            Row(
                f"geometric mean of {len(cases)}",
                "",
                "plus",
                "",
                "",
                "",
                "",
                "",
                formats.ratio(mean),
                tuple(by_case["kernels"]),
            )
        )
    return found


def used_columns(found: list[Row]) -> list[int]:
    """Return the places in `Row.cells` of the columns that are not empty in all rows."""
    return [place for place in range(len(HEADINGS)) if any(row.cells()[place] for row in found)]


def heading(place: int, found: list[Row]) -> str:
    """Return the heading of a column; the rate's is its unit."""
    return found[0].unit if HEADINGS[place] == "rate" else HEADINGS[place]


def _by_case(targets: list[dict[str, Any]]) -> defaultdict[str, list[Verdict]]:
    found: defaultdict[str, list[Verdict]] = defaultdict(list)
    for target in targets:
        text = str(target["target"])
        # What has no column of its own is given beside the target.
        if target["quantity"] in {"extra_ms", "rate_against"}:
            text += f" ({formats.measured(target['quantity'], target['value'])})"
        found[target["case"]].append(Verdict(text, bool(target["reached"])))
    return found


def _row(case: CaseResult, side: Side, verdicts: list[Verdict]) -> Row:
    shown, ratio, share = case.shown(side), case.ratio(), case.min_share(side)
    latency = shown.latency if shown else None
    remarks = []
    if failed := sum(1 for r in case.failures() if r.side == side):
        remarks.append(f"{failed} failed")
    if errors := case.errors(side):
        remarks.append(f"{errors} errors")
    return Row(
        title=case.title,
        unit=case.unit,
        side=side,
        rate=formats.number(shown.rate) if shown else "-",
        p50=formats.number(latency.p50_ms) if latency else "",
        p99=formats.number(latency.p99_ms) if latency else "",
        maximum=formats.number(latency.max_ms) if latency else "",
        share="" if share is None else formats.number(share),
        ratio=formats.ratio(ratio) if ratio and side == "plus" else "",
        verdicts=tuple(verdicts) if side == "plus" else (),
        remark=", ".join(remarks),
    )


def warnings(report: Report) -> list[str]:
    """Return what a reader must know before believing the numbers."""
    found = []
    if names := report.unscheduled():
        some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        found.append(
            f"not stock against plus in {len(names)} of {len(report.cases)} cases: there a "
            f"child's GIL was not scheduled, or was, against what its side says ({some})"
        )
    return found + [f"no result: {line}" for line in report.failures()]


FOOTNOTE = (
    "Best round of each side (start-up: the median one); p50, p99 and max are those of that round. "
    "min share: least part of the GIL that a CPU thread got, over all rounds."
)
