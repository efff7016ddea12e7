"""The rounds of a comparison: both sides in turn, in alternating order."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import partial
from statistics import median

from cpythonplus._compare import job, service
from cpythonplus._compare.load import Settings
from cpythonplus._compare.samples import CURVE, Sample
from cpythonplus._compare.sides import SIDES, Side
from cpythonplus._compare.statistics import Ratio, ratio


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity. The unit is that of the values: s, bytes, or 1/s."""

    name: str
    group: str
    title: str
    unit: str
    more_is_better: bool = False
    in_verdict: bool = False


METRICS = (
    Metric("wall_s", "", "wall time", "s", in_verdict=True),
    Metric("cpu_s", "", "CPU time", "s", in_verdict=True),
    Metric("peak_bytes", "", "peak memory", "bytes", in_verdict=True),
    Metric("open_p50_s", "open loop", "p50", "s"),
    Metric("open_p99_s", "open loop", "p99", "s", in_verdict=True),
    Metric("open_p999_s", "open loop", "p99.9", "s"),
    Metric("open_max_s", "open loop", "max", "s"),
    Metric("open_rate", "open loop", "answers", "1/s", more_is_better=True),
    Metric("open_cpu_s", "open loop", "CPU/request", "s"),
    Metric("closed_rate", "closed loop", "answers", "1/s", more_is_better=True, in_verdict=True),
    Metric("closed_p50_s", "closed loop", "p50", "s"),
    Metric("closed_p99_s", "closed loop", "p99", "s"),
    Metric("closed_p999_s", "closed loop", "p99.9", "s"),
    Metric("closed_max_s", "closed loop", "max", "s"),
    Metric("closed_cpu_s", "closed loop", "CPU/request", "s"),
    Metric("pss_bytes", "process tree", "memory", "bytes", in_verdict=True),
    Metric("start_s", "process tree", "start", "s"),
    Metric("stop_s", "process tree", "stop", "s"),
)

SMALLEST_DIFFERENCE = 0.01
"""Less than this is called noise, however often it is seen: another path, another order of linking
or a longer environment makes more (Mytkowicz and others: Producing Wrong Data Without Doing
Anything Obviously Wrong!, ASPLOS 2009)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric over all rounds: the samples of each side, and the ratio of plus to stock."""

    metric: Metric
    values: Mapping[Side, tuple[float, ...]]
    ratio: Ratio | None
    """None: too few rounds, or values of 0."""

    def median(self, side: Side) -> float | None:
        """Return the median of a side, None without samples."""
        return median(self.values[side]) if self.values[side] else None

    @property
    def is_noise(self) -> bool:
        """Whether the sides differ by no more than two equal ones would."""
        found = self.ratio
        if found is None:
            return True
        return found.contains(1) or abs(found.estimate - 1) < SMALLEST_DIFFERENCE

    @property
    def judgement(self) -> str:
        """One word: better, worse, noise, or "" without a ratio."""
        if self.ratio is None:
            return ""
        if self.is_noise:
            return "noise"
        return "better" if (self.ratio.estimate > 1) == self.metric.more_is_better else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The samples of all rounds."""

    commands: Mapping[Side, Sequence[str]]
    rounds: int
    """The requested number."""
    samples: tuple[Sample, ...]
    service: Settings | None = None

    def of(self, side: Side) -> list[Sample]:
        """Return the samples of one side."""
        return [sample for sample in self.samples if sample.side == side]

    @property
    def complete_rounds(self) -> int:
        """The number of rounds with both sides."""
        stock, plus = ({sample.round for sample in self.of(side)} for side in SIDES)
        return len(stock & plus)

    def rows(self) -> list[Row]:
        """Return the samples, by metric."""
        found = []
        for metric in self._metrics():
            values = {
                side: {
                    s.round: s.values[metric.name] for s in self.of(side) if metric.name in s.values
                }
                for side in SIDES
            }
            stock, plus = values["stock"], values["plus"]
            if stock or plus:
                pairs = [(stock[n], plus[n]) for n in sorted(stock.keys() & plus.keys())]
                flat = {side: tuple(values[side].values()) for side in SIDES}
                found.append(Row(metric, flat, ratio(pairs)))
        return found

    def _metrics(self) -> Iterator[Metric]:
        """Yield METRICS, and behind the open loop's the ones of each kind of requests."""
        names = dict.fromkeys(name for sample in self.samples for name in sample.values)
        for metric in METRICS:
            yield metric
            if metric.name == "open_cpu_s":
                for name in names:
                    quantity, _, title = name.partition(" ")
                    if title:
                        percent = quantity.split("_")[1]
                        is_tail = percent == "p99"
                        yield Metric(name, f"open loop, {title}", percent, "s", in_verdict=is_tail)

    def errors(self, side: Side) -> dict[str, Counter[str]]:
        """Return the numbers of failed requests of a side, by loop and kind."""
        total: dict[str, Counter[str]] = {}
        for sample in self.of(side):
            for loop, kinds in sample.errors.items():
                if kinds:
                    total.setdefault(loop, Counter()).update(kinds)
        return total

    def statuses(self, side: Side) -> list[int]:
        """Return the different exit statuses of a side."""
        return sorted({sample.status for sample in self.of(side)})

    def curve(self, side: Side, loop: str) -> list[float]:
        """Return the seconds at each of CURVE, medians over the rounds; empty without requests."""
        curves = [sample.curves[loop] for sample in self.of(side) if loop in sample.curves]
        return [median(each) for each in zip(*curves, strict=True)] if curves else []

    def loops(self) -> list[str]:
        """Return the loops that have curves."""
        return sorted({loop for sample in self.samples for loop in sample.curves}, reverse=True)

    @property
    def late_s(self) -> float:
        """The lateness of the load generator itself: the rounds' largest 99th percentile."""
        return max((sample.late_s for sample in self.samples), default=0.0)

    def as_json(self) -> dict[str, object]:
        """Return all of it, ready for JSON; seconds and bytes."""
        return {
            "rounds": self.rounds,
            "complete_rounds": self.complete_rounds,
            "commands": {side: list(self.commands[side]) for side in SIDES},
            "percentiles": list(CURVE),
            "metrics": [
                {
                    "name": row.metric.name,
                    "unit": row.metric.unit,
                    "median": {side: row.median(side) for side in SIDES},
                    "values": {side: list(row.values[side]) for side in SIDES},
                    "ratio": None if row.ratio is None else astuple(row.ratio),
                    "judgement": row.judgement,
                }
                for row in self.rows()
            ],
            "samples": [asdict(each) for each in self.samples],
        }


def measure(
    commands: Mapping[Side, Sequence[str]],
    rounds: int,
    settings: Settings | None,
    *,
    any_status: bool = False,
    begins: Callable[[int, Side], None] = lambda _round, _side: None,
) -> Iterator[Sample]:
    """Run both sides `rounds` times, and yield each sample as it is there.

    Stock is first in one round and plus in the next, so that the effects of the first run on the
    second (caches, the processor's heat) are the same for both sides. settings: None for a program
    that ends by itself. begins: called before each run. Raises ComparisonError.
    """
    run: Callable[[Side, int, Sequence[str]], Sample]
    if settings is None:
        run = partial(job.measure, any_status=any_status)
    else:
        run = partial(service.measure, settings=settings)
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            begins(number, side)
            yield run(side, number, commands[side])
