"""The result table as rows of text, the same for the terminal and for the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from benchmarks.common import formats
from benchmarks.common.results import CaseResult, Report, geometric_mean_ratio
from benchmarks.common.sides import Side
from benchmarks.scenarios import FIGURES, TABLES

_NAMED = 3
"""How many cases a warning names."""

_LATE_MS = 1.0
"""How late the client of an open loop may send one request in a hundred, without a warning."""

HEADINGS = (
    *("side", "rate", "ns each", "p50", "p99", "max", "p50 to alone", "p99 to alone", "min share"),
    *FIGURES.values(),
    "to stock",
)
"""Of the columns between the case's title and its targets."""

COSTS_OF_ONE = frozenset(name for name, table in TABLES.items() if table.cost_of_one)
"""Scenarios where what one operation takes says more than how many of them fit into a second."""


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
    label: str
    """How tables call the side."""
    rate: str
    each: str
    p50: str
    p99: str
    maximum: str
    share: str
    ratio: str
    figures: tuple[str, ...] = ("",) * len(FIGURES)
    """In the order of FIGURES."""
    to_alone: tuple[str, str] = ("", "")
    """p50 and p99 against the undisturbed case, of the same side and of `base`."""
    latency_unit: str = "ms"
    base: Side = "stock"
    """What `ratio` refers to."""
    own: bool = False
    """Whether it is the side that the benchmark is about."""
    verdicts: tuple[Verdict, ...] = ()
    remark: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return what stands between the case's title and its targets."""
        return (
            self.label,
            self.rate,
            self.each,
            self.p50,
            self.p99,
            self.maximum,
            *self.to_alone,
            self.share,
            *self.figures,
            self.ratio,
        )


def rows(report: Report, scenario: str) -> list[Row]:
    """Return the rows of one scenario."""
    by_case = _by_case(report.targets)
    cases = report.scenario(scenario)
    found = [
        _row(case, side, by_case[case.name], report.case(case.alone) if case.alone else None)
        for case in cases
        for side in case.sides()
    ]
    mean = geometric_mean_ratio(cases) if TABLES[scenario].mean else None
    if mean is not None:
        found.append(
            Row(
                title=f"geometric mean of {len(cases)}",
                unit="",
                side="plus",
                label="plus",
                own=True,
                rate="",
                each="",
                p50="",
                p99="",
                maximum="",
                share="",
                ratio=formats.ratio(mean),
                verdicts=tuple(by_case[scenario]),
            )
        )
    return found


def used_columns(found: list[Row]) -> list[int]:
    """Return the places in `Row.cells` of the columns that are not empty in all rows."""
    return [place for place in range(len(HEADINGS)) if any(row.cells()[place] for row in found)]


def heading(place: int, found: list[Row]) -> str:
    """Return the heading of a column; the rate's is its unit."""
    match HEADINGS[place]:
        case "rate":
            return found[0].unit
        case "p50" | "p99" | "max" as name:
            return f"{name} {found[0].latency_unit}"
        case "to stock":
            return f"to {found[0].base}"
        case name:
            return name


_WITHOUT_COLUMN = {
    "extra_ms",
    "extra_cpu_s",
    "rate_against",
    "figure_ratio",
    "figure_to",
    "rise_mib",
    "cost_to",
    "times_faster",
    "times_case",
}


def _by_case(targets: list[dict[str, Any]]) -> defaultdict[str, list[Verdict]]:
    found: defaultdict[str, list[Verdict]] = defaultdict(list)
    for target in targets:
        text = str(target["target"])
        # What has no column of its own is given beside the target.
        if target["quantity"] in _WITHOUT_COLUMN:
            text += f" ({formats.measured(target['quantity'], target['value'])})"
        found[target["case"]].append(Verdict(text, bool(target["reached"])))
    return found


def _row(
    case: CaseResult, side: Side, verdicts: list[Verdict], alone: CaseResult | None = None
) -> Row:
    shown, ratio, share = case.shown(side), case.ratio(side), case.min_share(side)
    latency = shown.latency if shown else None
    table = TABLES[case.scenario]
    unit, factor = table.latency_unit, 1e3 if table.latency_unit == "us" else 1.0
    rate, p99 = formats.number(shown.rate) if shown else "-", ""
    if table.rated_by_p99:
        rate, p99 = "", "-"  # where there is none; else it is written below
    priced = shown is not None and shown.rate > 0 and table.cost_of_one
    remarks = ["not installed"] if side in case.absent else []
    if failed := sum(1 for r in case.failures() if r.side == side):
        remarks.append(f"{failed} failed")
    if errors := case.errors(side):
        remarks.append(f"{errors} errors")
    return Row(
        title=case.title,
        unit=case.unit,
        side=side,
        label=case.label(side),
        rate=rate,
        each=formats.number(1e9 / shown.rate) if shown and priced else "",
        p50=formats.number(latency.p50_ms * factor) if latency else "",
        p99=formats.number(latency.p99_ms * factor) if latency else p99,
        maximum=formats.number(latency.max_ms * factor) if latency else "",
        share="" if share is None else formats.number(share),
        figures=_figures(case, side),
        to_alone=_to_alone(case, side, alone),
        ratio=formats.ratio(ratio) if ratio and side != case.base else "",
        latency_unit=unit,
        base=case.base,
        own=side == case.own,
        verdicts=tuple(verdicts) if side == case.own else (),
        remark=", ".join(remarks),
    )


def _to_alone(case: CaseResult, side: Side, alone: CaseResult | None) -> tuple[str, str]:
    """Return p50 and p99 of `side` against those of `alone`: its own, and those of the base."""
    shown = case.shown(side)
    own, base = (alone.shown(side), alone.shown(alone.base)) if alone else (None, None)
    if shown is None or shown.latency is None:
        return "", ""
    yardsticks = (own,) if side == case.base else (own, base)
    known = [outcome.latency for outcome in yardsticks if outcome and outcome.latency]
    p50 = [formats.number(shown.latency.p50_ms / x.p50_ms) for x in known]
    p99 = [formats.number(shown.latency.p99_ms / x.p99_ms) for x in known]
    return " / ".join(p50), " / ".join(p99)


def _figures(case: CaseResult, side: Side) -> tuple[str, ...]:
    values = (case.figure(name, side) for name in FIGURES)
    return tuple("" if value is None else formats.number(value) for value in values)


def warnings(report: Report) -> list[str]:
    """Return what a reader must know before believing the numbers."""
    found = []
    if names := report.mislabelled():
        some = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        found.append(
            f"not stock against plus in {len(names)} of {len(report.cases)} cases: there a "
            f"child's GIL was scheduled or its locks were replaced, or not, against what its "
            f"side says ({some})"
        )
    if late := _sent_late(report):
        some = ", ".join(list(late)[:_NAMED]) + (", ..." if len(late) > _NAMED else "")
        found.append(
            f"the client sent late, p99 above {_LATE_MS:g} ms, in {late.total()} measurements "
            f"({some}): others used its core, and their latencies are too long"
        )
    return found + [f"no result: {line}" for line in report.failures()]


def _sent_late(report: Report) -> Counter[str]:
    """Return the cases whose client was late, and how often."""
    return Counter(
        case.name
        for case in report.cases
        for entry in case.rounds
        if entry.outcome and entry.outcome.figures.get("sent_late_p99_ms", 0) > _LATE_MS
    )


FOOTNOTE = (
    "Median round of each side (locks, queues, executors, tasklets, threaded servers and "
    "single-threaded work: the best one); p50, p99 and max are those of that round. min share: "
    "least part of the GIL that a CPU thread got, over all rounds. to alone: against the same "
    "without CPU threads, of the same side / of stock."
)
