"""A hundred to ten thousand threads that wait and are woken all at once."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import MEASURABLE, Target

_WORKER = Path(__file__).with_name("worker.py")

SIZES = (100, 1000, 1500, 10_000)
QUICK_SIZE = 1500
"""The largest that a quick run has."""

_TITLES = {
    "sleep": "sleep until one instant",
    "event": "Event.set()",
    "semaphore": "Semaphore.release(n)",
    "barrier": "Barrier",
    "condition": "Condition.notify_all()",
}

EACH_S = 0.02
"""How long one thread may take, in a measurement's time limit."""


def cases() -> list[Case]:
    """Return the cases of this scenario; the rate is CPU time, less of it is better."""
    return [
        Case(
            f"crowds-{kind}-{size}",
            "crowds",
            f"{size:,} threads, {title}",
            "CPU ms",
            partial(_measure, kind, size),
            statistic="median",
            better="lower",
            in_quick=size <= QUICK_SIZE,
        )
        for kind, title in _TITLES.items()
        for size in SIZES
    ]


def _measure(kind: str, size: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix(side),
            _WORKER,
            {"kind": kind, "threads": size},
            limit_s=settings.limit_s + EACH_S * size,
        ).result()
    return Outcome(
        rate=result["cpu_ms"],
        scheduled=result["scheduled"],
        patched=result["patched"],
        figures={"joined_ms": result["joined_ms"]},
    )


def _targets() -> Iterator[Target]:
    for kind in _TITLES:
        for size in SIZES:
            case = f"crowds-{kind}-{size}"
            yield Target(case, "ratio", 1.5, at_least=False)
            # As fast as stock, as far as one can tell.
            yield Target(case, "figure_ratio", 1 + MEASURABLE, at_least=False, figure="joined_ms")


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"crowds": Table("Threads that are woken all at once (median round)")},
    figures={"joined_ms": "wall ms"},
    targets=tuple(_targets()),
    place=5,
)
