"""Producer/consumer pairs over Lock, Condition and Queue, alone and beside CPU threads."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings, shares_of
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True)
class _Place:
    name: str
    words: str
    cpu_threads: int = 0
    pinned: bool = False


_PLACES = (
    _Place("alone", "alone"),
    _Place("pinned", "alone, one core", pinned=True),
    _Place("beside-1", "beside 1 CPU thread", 1),
    _Place("beside-2", "beside 2 CPU threads", 2),
    _Place("beside-8", "beside 8 CPU threads", 8),
)


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"{kind}-{place.name}",
            "pairs",
            f"{kind.capitalize()} pair {place.words}",
            "round trips/s",
            partial(_measure, kind, place),
            statistic="median",
        )
        for kind in ("lock", "condition", "queue")
        for place in _PLACES
    ]


def _measure(
    kind: str, place: _Place, commands: Commands, side: Side, settings: Settings
) -> Outcome:
    with Children() as children:
        result = children.worker(
            commands.prefix(side),
            _WORKER,
            {
                "kind": kind,
                "cpu_threads": place.cpu_threads,
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=settings.limit_s,
            cpu=max(os.sched_getaffinity(0)) if place.pinned else None,
        ).result()
    return Outcome(
        rate=result["rate"],
        latency=summarise(result["latencies_ns"]),
        shares=shares_of(result["shares"]),
        scheduled=result["scheduled"],
    )


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={"pairs": Table("Producer/consumer pairs")},
    targets=tuple(
        Target(f"{kind}-{place}", "ratio", 0.97)
        for kind in ("lock", "condition", "queue")
        for place in ("alone", "pinned")
    ),
    place=3,
)
