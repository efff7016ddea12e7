"""Small tasks for a ThreadPoolExecutor, one by one and a thousand at once."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.threads.measure import WITHOUT_PEER, measure

_WORKER = Path(__file__).with_name("worker.py")

_TITLES = {
    "single": "submit().result(), one by one",
    "thousand": "1000 submitted at once, then all results",
}


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"executor-{kind}",
            "executor",
            title,
            "tasks/s",
            partial(_measure, kind),
            sides=WITHOUT_PEER,
        )
        for kind, title in _TITLES.items()
    ]


def _measure(kind: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    return measure(_WORKER, {"kind": kind}, commands, side, settings)


SCENARIO = Scenario(
    cases={"threads": cases},
    tables={"executor": Table("ThreadPoolExecutor", latency_unit="us")},
    targets=(Target("executor-single", "ratio", 3), Target("executor-thousand", "ratio", 2)),
    place=4,
)
