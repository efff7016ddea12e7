"""What a run must show, as data, and whether it did.

Targets are stated in the scenarios, for a machine with two cores. One that is not reached is said
so and fails nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from benchmarks.common.percentiles import Latency
from benchmarks.common.results import CaseResult, Report, geometric_mean_ratio
from benchmarks.common.sides import SIDES, Side

MEASURABLE = 0.1
"""Part of a cost by which two equal sides may differ without anybody being able to tell."""

Quantity = Literal[
    "ratio",
    "rate_against",
    "p99_ms",
    "min_share",
    "geometric_mean",
    "extra_ms",
    "extra_cpu_s",
    "rate_s",
    "private_mib",
    "rise_mib",
    "figure_ratio",
    "cost",
    "cost_to",
    "times_faster",
    "times_case",
    "p50_to_alone",
    "p99_to_alone",
    "figure",
    "figure_of",
    "figure_to",
]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing that a run must show."""

    case: str
    """Name of the case; for `geometric_mean`, of the scenario."""
    quantity: Quantity
    limit: float
    at_least: bool = True
    """Whether the limit is a lower bound (reached at the limit) or an upper one."""
    other: str = ""
    """For `rate_against`: the case whose rate (the better of its two sides) is the yardstick; for
    `times_case`: the case whose own side is."""
    figure: str = ""
    """For `figure_ratio`, `figure`, `figure_of` and `figure_to`: which of the outcome's figures."""
    heading: str = ""
    """Of that figure's column; scenarios.py fills it in."""
    side: Side = "stock"
    """For `cost_to`, `times_faster` and `figure_to`: the yardstick; for `figure_of`: its own."""
    own: Side = ""
    """For `cost_to`: the side it is stated for, where that is another one than the case's own."""
    unit: str = ""
    """For `cost`: of the case's rate, which is what something costs."""
    since: tuple[int, int] = (0, 0)
    """First version of Python that it is stated for."""
    before: tuple[int, int] | None = None
    """First version that it is no longer stated for."""

    def text(self) -> str:
        """Return the target in words, short enough for a table's cell."""
        sign = ">=" if self.at_least else "<="
        words = _WORDS[self.quantity].format(
            sign=sign,
            limit=f"{self.limit:.3g}",
            part=f"{MEASURABLE:.0%}",
            figure=self.heading,
            side=self.side,
            unit=self.unit,
            other=self.other,
        )
        if self.own:
            words = f"{self.own} {words}"
        if self.since != (0, 0):
            words += f" from {_dotted(self.since)} on"
        return words + (f" before {_dotted(self.before)}" if self.before else "")

    def limit_in(self, report: Report) -> float:
        """Return the limit that holds for `report`.

        For `extra_cpu_s` that is `limit`, or `MEASURABLE` of what stock took where that is more.
        """
        case = report.case(self.case)
        stock = case.shown("stock") if case else None
        if self.quantity == "extra_cpu_s" and stock:
            return max(self.limit, MEASURABLE * stock.rate / 1e3)
        return self.limit

    def verdict(self, report: Report) -> Verdict | None:
        """Return what `report` says about this; None if it did not measure it."""
        value = self.value(report)
        if value is None:
            return None
        limit = self.limit_in(report)
        reached = value >= limit if self.at_least else value <= limit
        return Verdict(self.case, self.quantity, self.text(), limit, value, reached)

    def value(self, report: Report) -> float | None:
        """Return what `report` measured for this; None if it did not, or on another version."""
        version = report.python_version()
        if version < self.since or (self.before and version >= self.before):
            return None
        if self.quantity == "geometric_mean":
            return geometric_mean_ratio(report.scenario(self.case))
        case = report.case(self.case)
        if case is None:
            return None
        if self.quantity in _OF_TWO:
            return _OF_TWO[self.quantity](case, report.case(self.other or case.alone))
        if self.quantity in _OF_TARGET:
            return _OF_TARGET[self.quantity](case, self)
        return _OF_CASE[self.quantity](case)


_WORDS: dict[Quantity, str] = {
    "ratio": "{sign} {limit} x stock",
    "geometric_mean": "{sign} {limit} x stock",
    "rate_against": "{sign} rate beside none",
    "p99_ms": "p99 {sign} {limit} ms",
    "min_share": "share {sign} {limit}",
    "extra_ms": "{sign} {limit} ms more",
    "extra_cpu_s": "{sign} {limit} s more in 10 s, or {part}",
    "rate_s": "{sign} {limit} s",
    "private_mib": "private {sign} {limit} MiB",
    "rise_mib": "rises by {sign} {limit} MiB",
    "figure_ratio": "{figure} {sign} {limit} x stock",
    "cost": "{sign} {limit} {unit}",
    "cost_to": "{sign} {limit} x {side}",
    "times_faster": "{sign} {limit} x faster than {side}",
    "times_case": "{sign} {limit} x {other}",
    "p50_to_alone": "p50 {sign} {limit} x alone",
    "p99_to_alone": "p99 {sign} {limit} x alone",
    "figure": "{figure} {sign} {limit}",
    "figure_of": "{side} {figure} {sign} {limit}",
    "figure_to": "{figure} {sign} {limit} x {side}",
}


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _p99_ms(case: CaseResult) -> float | None:
    plus = case.shown("plus")
    return plus.latency.p99_ms if plus and plus.latency else None


def _extra_ms(case: CaseResult) -> float | None:
    stock, plus = case.shown("stock"), case.shown("plus")
    if stock and stock.latency and plus and plus.latency:
        return plus.latency.p50_ms - stock.latency.p50_ms
    return None


def _extra_cpu_s(case: CaseResult) -> float | None:
    stock, plus = case.shown("stock"), case.shown("plus")
    # Its rate is in CPU milliseconds.
    return (plus.rate - stock.rate) / 1e3 if stock and plus else None


def _rate_against(case: CaseResult, other: CaseResult | None) -> float | None:
    plus = case.shown("plus")
    rates = [o.rate for side in SIDES if other and (o := other.shown(side))]
    return plus.rate / max(rates) if plus and rates and max(rates) else None


def _times_case(case: CaseResult, other: CaseResult | None) -> float | None:
    own, its = case.shown(case.own), other.shown(other.own) if other else None
    return own.rate / its.rate if own and its and its.rate else None


def _p50_to_alone(case: CaseResult, alone: CaseResult | None) -> float | None:
    return _latency_to_alone(case, alone, lambda latency: latency.p50_ms)


def _p99_to_alone(case: CaseResult, alone: CaseResult | None) -> float | None:
    return _latency_to_alone(case, alone, lambda latency: latency.p99_ms)


def _latency_to_alone(
    case: CaseResult, alone: CaseResult | None, which: Callable[[Latency], float]
) -> float | None:
    """Return plus's latency as a part of that of `alone`, of whichever of its sides is better.

    Not of plus alone: a side that is slow when undisturbed would excuse itself.
    """
    plus = case.shown("plus")
    yardsticks = [
        which(shown.latency)
        for side in SIDES
        if alone and (shown := alone.shown(side)) and shown.latency
    ]
    if plus is None or plus.latency is None or not yardsticks or not min(yardsticks):
        return None
    return which(plus.latency) / min(yardsticks)


def _figure_ratio(case: CaseResult, target: Target) -> float | None:
    stock, plus = case.figure(target.figure, "stock"), case.figure(target.figure)
    return plus / stock if stock and plus is not None else None


def _figure_to(case: CaseResult, target: Target) -> float | None:
    own, other = case.figure(target.figure, case.own), case.figure(target.figure, target.side)
    return own / other if own is not None and other else None


def _cost(case: CaseResult) -> float | None:
    own = case.shown(case.own)
    return own.rate if own else None


def _cost_to(case: CaseResult, target: Target) -> float | None:
    """Return what the side it is stated for costs as a part of what the target's side does."""
    own, other = case.shown(target.own or case.own), case.shown(target.side)
    return own.rate / other.rate if own and other and other.rate else None


def _times_faster(case: CaseResult, target: Target) -> float | None:
    part = _cost_to(case, target)
    return 1 / part if part else None


def _rate_s(case: CaseResult) -> float | None:
    # Its rate is in seconds.
    plus = case.shown("plus")
    return plus.rate if plus else None


def _rise_mib(case: CaseResult) -> float | None:
    before, peak = case.figure("before_mib"), case.figure("peak_mib")
    return max(0.0, peak - before) if before is not None and peak is not None else None


_OF_CASE: dict[Quantity, Callable[[CaseResult], float | None]] = {
    "ratio": CaseResult.ratio,
    "min_share": lambda case: case.min_share("plus"),
    "p99_ms": _p99_ms,
    "extra_ms": _extra_ms,
    "extra_cpu_s": _extra_cpu_s,
    "rate_s": _rate_s,
    "private_mib": lambda case: case.figure("private_mib"),
    "rise_mib": _rise_mib,
    "cost": _cost,
}


_OF_TWO: dict[Quantity, Callable[[CaseResult, CaseResult | None], float | None]] = {
    "rate_against": _rate_against,
    "times_case": _times_case,
    "p50_to_alone": _p50_to_alone,
    "p99_to_alone": _p99_to_alone,
}


_OF_TARGET: dict[Quantity, Callable[[CaseResult, Target], float | None]] = {
    "figure_ratio": _figure_ratio,
    "figure": lambda case, target: case.figure(target.figure, case.own),
    "figure_of": lambda case, target: case.figure(target.figure, target.side),
    "figure_to": _figure_to,
    "cost_to": _cost_to,
    "times_faster": _times_faster,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what a run says about it."""

    case: str
    quantity: Quantity
    target: str
    limit: float
    value: float
    reached: bool

    def as_dict(self) -> dict[str, object]:
        """Return the verdict, JSON-ready."""
        return asdict(self)
