"""The CPU time that 32 waiting threads cost: without time-outs, and with short ones."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.threads.measure import measure

_WORKER = Path(__file__).with_name("worker.py")

_TITLES = {
    "waiting": "32 threads wait",
    "polling": "32 threads wait 0.1 s each time",
}


def cases() -> list[Case]:
    """Return the cases of this scenario; a side's median round speaks for it, less is better."""
    return [
        Case(
            f"idle-{kind}",
            "idle",
            title,
            "CPU ms in 10 s",
            partial(_measure, kind),
            statistic="median",
            better="lower",
        )
        for kind, title in _TITLES.items()
    ]


def _measure(kind: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    return measure(
        _WORKER,
        {"kind": kind, "idle_s": settings.idle_s},
        commands,
        side,
        settings,
        extra_s=settings.idle_s,
    )


SCENARIO = Scenario(
    cases={"threads": cases},
    tables={"idle": Table("CPU time of 32 threads that wait (median round)")},
    targets=(
        Target("idle-waiting", "extra_cpu_s", 0.05, at_least=False),
        Target("idle-polling", "extra_cpu_s", 0.05, at_least=False),
    ),
    place=5,
)
