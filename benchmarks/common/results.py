"""What a run of a benchmark leaves behind, and its JSON form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import exp, log
from pathlib import Path
from statistics import median, median_low
from typing import Literal

from benchmarks.common.percentiles import Latency
from benchmarks.common.sides import ALL_SIDES, SIDES, Side
from benchmarks.common.storing import stored

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the GIL one CPU-bound thread got."""

    work: float
    """Its work per second, relative to the same thread alone in the same process before."""
    cpu: float
    """Its CPU time divided by the wall time; polling for the GIL counts as well, work does not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one measurement, in one child process, gave."""

    rate: float
    """In the unit of its case."""
    latency: Latency | None = None
    shares: tuple[Share, ...] = ()
    """One for each CPU-bound thread beside the measured work."""
    errors: int = 0
    scheduled: bool | None = None
    """Whether cpythonplus scheduled the GIL in the child; None where the child cannot tell."""
    patched: bool | None = None
    """Whether the child's `threading` and `queue` were replaced; None where it does not tell."""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """Whatever else was measured, by name; those that a scenario has a heading for are columns."""


@dataclass(frozen=True, slots=True)
class Round:
    """One measurement and when it took place."""

    side: Side
    number: int
    position: int
    """Place in the run: 0 is the first measurement of all."""
    outcome: Outcome | None
    failure: str | None = None
    """Why there is no outcome."""


@dataclass(slots=True)
class CaseResult:
    """All rounds of one case, on all its sides."""

    name: str
    scenario: str
    title: str
    unit: str
    statistic: Literal["best", "median"] = "best"
    """Which round speaks for a side: the one with the best rate, or the median one."""
    better: Literal["higher", "lower"] = "higher"
    """Which rate is the better one; lower where it is a cost."""
    peer: str = ""
    """Name of the package on the `peer` side."""
    base: Side = "stock"
    """The side that the ratios of the others refer to."""
    own: Side = "plus"
    """The side that targets are stated for."""
    absent: tuple[Side, ...] = ()
    """Sides that were not measured because what they need is not installed."""
    alone: str = ""
    """Name of the case whose latencies its own are compared with: the same, undisturbed."""
    rounds: list[Round] = field(default_factory=list)

    def sides(self) -> tuple[Side, ...]:
        """Return the sides that were measured, in the order in which they are shown."""
        found = {r.side for r in self.rounds}.union(self.absent)
        return tuple(side for side in ALL_SIDES if side in found) or SIDES

    def label(self, side: Side) -> str:
        """Return how `side` is called in tables."""
        return self.peer if side == "peer" and self.peer else side

    def outcomes(self, side: Side) -> list[Outcome]:
        """Return what the rounds of `side` gave, worst first."""
        found = [r.outcome for r in self.rounds if r.side == side and r.outcome is not None]
        return sorted(found, key=lambda outcome: outcome.rate, reverse=self.better == "lower")

    def failures(self) -> list[Round]:
        """Return the rounds that gave nothing."""
        return [r for r in self.rounds if r.outcome is None]

    def best(self, side: Side) -> Outcome | None:
        """Return the round of `side` with the best rate; None when none succeeded."""
        found = self.outcomes(side)
        return found[-1] if found else None

    def median(self, side: Side) -> Outcome | None:
        """Return the round of `side` with the (worse) median rate; None when none succeeded."""
        found = self.outcomes(side)
        return found[(len(found) - 1) // 2] if found else None

    def shown(self, side: Side) -> Outcome | None:
        """Return the round that the tables and charts show for `side`."""
        return self.best(side) if self.statistic == "best" else self.median(side)

    def ratio(self, side: Side = "plus") -> float | None:
        """Return the rate of `side` divided by that of `base`, each one's shown round."""
        stock, other = self.shown(self.base), self.shown(side)
        if stock is None or other is None or not stock.rate:
            return None
        return other.rate / stock.rate

    def figure(self, name: str, side: Side = "plus") -> float | None:
        """Return a further figure of the shown round of `side`; None where it has none."""
        shown = self.shown(side)
        return shown.figures.get(name) if shown else None

    def round_ratios(self) -> list[float]:
        """Return the ratio of each round for itself, plus against the stock next to it."""
        rates: dict[tuple[int, Side], float] = {
            (r.number, r.side): r.outcome.rate for r in self.rounds if r.outcome
        }
        return [
            rates[number, "plus"] / rate
            for (number, side), rate in sorted(rates.items())
            if side == "stock" and rate and (number, "plus") in rates
        ]

    def median_ratio(self) -> float | None:
        """Return the median rate of plus divided by the median rate of stock."""
        stock, plus = self.outcomes("stock"), self.outcomes("plus")
        if not stock or not plus:
            return None
        divisor = median_low([o.rate for o in stock])
        return median_low([o.rate for o in plus]) / divisor if divisor else None

    def min_share(self, side: Side) -> float | None:
        """Return the least share of the GIL that any CPU thread got in any round of `side`.

        Over all rounds, not over the shown one: a promise of 'never under' is broken by one
        round.
        """
        shares = [share.work for o in self.outcomes(side) for share in o.shares]
        return min(shares) if shares else None

    def usual_share(self, side: Side) -> float | None:
        """Return the median of what the CPU threads did in the rounds of `side`, to alone."""
        shares = [share.work for o in self.outcomes(side) for share in o.shares]
        return median(shares) if shares else None

    def errors(self, side: Side) -> int:
        """Return the number of failed requests in all rounds of `side`."""
        return sum(o.errors for o in self.outcomes(side))

    def as_dict(self) -> dict[str, object]:
        """Return the case with all its rounds and what is derived from them, JSON-ready."""
        raw = asdict(self)
        raw["ratio"] = self.ratio(self.own) if self.own != self.base else None
        raw["ratios"] = {side: self.ratio(side) for side in self.sides() if side != self.base}
        raw["median_ratio"] = self.median_ratio()
        raw["round_ratios"] = self.round_ratios()
        raw["min_share"] = {side: self.min_share(side) for side in self.sides()}
        return raw


def geometric_mean_ratio(cases: Iterable[CaseResult]) -> float | None:
    """Return the geometric mean of the cases' ratios; None if there is none or one is missing.

    A case that works on neither side (an interpreter built without sqlite3) does not count.
    """
    ratios = [case.ratio() for case in cases if case.outcomes("stock") or case.outcomes("plus")]
    known = [ratio for ratio in ratios if ratio]
    if not known or len(known) != len(ratios):
        return None
    return exp(sum(log(ratio) for ratio in known) / len(known))


def _is_mislabelled(measured: Round) -> bool:
    outcome = measured.outcome
    return outcome is not None and (
        outcome.scheduled not in {None, measured.side in {"plus", "scheduled"}}
        or outcome.patched not in {None, measured.side in {"plus", "scheduled", "threads-only"}}
    )


@dataclass(slots=True)
class Report:
    """A whole run: where, how, and what came out."""

    benchmark: str
    machine: dict[str, str]
    settings: dict[str, object]
    cases: list[CaseResult]
    targets: list[dict[str, object]] = field(default_factory=list)
    """The verdicts of `targets.verdicts`, JSON-ready."""

    def case(self, name: str) -> CaseResult | None:
        """Return the case called `name`; None if it was not measured."""
        return next((case for case in self.cases if case.name == name), None)

    def scenario(self, name: str) -> list[CaseResult]:
        """Return the measured cases of one scenario, in order."""
        return [case for case in self.cases if case.scenario == name]

    def scenarios(self) -> list[str]:
        """Return the names of the measured scenarios, in order."""
        return list(dict.fromkeys(case.scenario for case in self.cases))

    def python_version(self) -> tuple[int, int]:
        """Return the measured interpreter's version, `(3, 13)`; `(0, 0)` if it is not known."""
        found = re.search(r"(\d+)\.(\d+)", self.machine.get("python", ""))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def failures(self) -> list[str]:
        """Return one line for each reason for which measurements gave nothing."""
        counted = Counter(
            (case.title, case.label(r.side), r.failure)
            for case in self.cases
            for r in case.failures()
        )
        return [
            f"{title}, {side}, {count} round{'s' * (count > 1)}: {failure}"
            for (title, side, failure), count in counted.items()
        ]

    def mislabelled(self) -> list[str]:
        """Return the names of the cases whose sides were not what they say.

        That is a plus round in a child that says its GIL was not scheduled, a stock round in one
        that says that its locks were replaced, and the like. Such a ratio compares something else
        than it claims.
        """
        return [case.name for case in self.cases if any(map(_is_mislabelled, case.rounds))]

    def as_dict(self) -> dict[str, object]:
        """Return everything, JSON-ready."""
        return {
            "schema": SCHEMA_VERSION,
            "benchmark": self.benchmark,
            "machine": self.machine,
            "settings": self.settings,
            "cases": [case.as_dict() for case in self.cases],
            "targets": self.targets,
        }

    def write_json(self, path: Path) -> None:
        """Write the raw results to `path`. Raises OSError."""
        path.write_text(stored(self.as_dict()), encoding="utf-8")
