"""One and two CPU-bound threads: how much of the work the switching between them costs."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    titles = {1: "one CPU thread", 2: "two CPU threads, nothing else"}
    return [
        Case(
            f"efficiency-{n}",
            "efficiency",
            title,
            "units/s",
            partial(_measure, n),
            statistic="median",
        )
        for n, title in titles.items()
    ]


def _measure(threads: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix(side),
            _WORKER,
            {"threads": threads, "seconds": settings.seconds, "warmup_s": settings.warmup_s},
            limit_s=settings.limit_s,
        ).result()
    return Outcome(rate=result["rate"], scheduled=result["scheduled"])


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"efficiency": Table("CPU threads")},
    targets=(Target("efficiency-2", "ratio", 0.99),),
    place=2,
)
