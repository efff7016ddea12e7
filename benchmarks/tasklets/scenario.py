"""The cases: channel, schedule, spawn, deep switches, memory of parked ones, a million, pickles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.engine import Case
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.tasklets.measure import measure, measure_many, measure_parked, measure_pickles

SIDES: tuple[Side, ...] = ("tasklets", "greenlet", "gevent", "asyncio", "go", "threads")
PICKLES: tuple[Side, ...] = ("tasklets", "cloudpickle")
"""No other one can write what is running; it has a state that was written by hand."""
WITHOUT_THREADS = SIDES[:-1]
"""So many threads a process may not have."""
UNDER_C: tuple[Side, ...] = ("tasklets", "greenlet", "gevent", "threads")
"""A coroutine cannot wait beneath a C function, and Go has no interpreter."""

PACKAGES: Mapping[Side, str] = {
    "greenlet": "greenlet",
    "gevent": "gevent",
    "cloudpickle": "cloudpickle",
}
PROGRAMS: Mapping[Side, str] = {"go": "go"}

PYTHON_FRAMES, C_FRAMES = 200, 50


def cases() -> list[Case]:
    """Return the cases; the first side of each is what the others are compared with."""
    return [
        _nanoseconds("channel", "Channel round trip, 2 transfers", "channel"),
        _nanoseconds("schedule", "schedule() between two, 1 switch", "schedule"),
        _nanoseconds("spawn", "Spawn and finish", "spawn"),
        _nanoseconds(
            f"depth-python-{PYTHON_FRAMES}",
            f"Switch, both {PYTHON_FRAMES} Python frames deep",
            "depth",
            python=PYTHON_FRAMES,
        ),
        _nanoseconds(
            f"depth-c-{C_FRAMES}",
            f"Switch, both {C_FRAMES} C frames deep",
            "depth",
            sides=UNDER_C,
            c=C_FRAMES,
        ),
        _case("parked", "A parked one", "parked", "KB", measure_parked, sides=WITHOUT_THREADS),
        _case(
            "million",
            "Very many parked, each woken once",
            "million",
            "s",
            measure_many,
            sides=WITHOUT_THREADS,
            once=True,
        ),
        _case(
            "million-collected",
            "Very many parked, each woken once, with the collector",
            "collected",
            "s",
            partial(measure_many, collector=True),
            sides=WITHOUT_THREADS,
            once=True,
        ),
        _case(
            "pickle",
            "Write and read one that has stopped",
            "pickle",
            "us",
            measure_pickles,
            sides=PICKLES,
        ),
    ]


def _nanoseconds(
    name: str, title: str, scenario: str, *, sides: tuple[Side, ...] = SIDES, **depth: int
) -> Case:
    parameters = {"kind": scenario, "python": 0, "c": 0, **depth}
    return _case(name, title, scenario, "ns", partial(measure, parameters), sides=sides)


def _case(
    name: str,
    title: str,
    scenario: str,
    unit: str,
    measuring: Any,  # noqa: ANN401 - a partial function has no narrower type
    *,
    sides: tuple[Side, ...],
    once: bool = False,
) -> Case:
    return Case(
        name,
        scenario,
        title,
        unit,
        measuring,
        better="lower",
        sides=sides,
        base="tasklets",
        own="tasklets",
        packages=PACKAGES,
        programs=PROGRAMS,
        once=once,
    )


SCENARIO = Scenario(
    cases={"tasklets": cases},
    tables={
        "channel": Table("Channel round trip between two (fastest sample)"),
        "schedule": Table("Switch between two that call schedule() (fastest sample)"),
        "spawn": Table("Spawn and finish, 100 at a time (fastest sample)"),
        "depth": Table(
            "Switch between two deep ones, and between two shallow ones (fastest samples)"
        ),
        "parked": Table("Memory of a parked one"),
        "million": Table("Very many parked in one process, each then woken once"),
        "collected": Table("The same with the garbage collector on"),
        "pickle": Table("Pickles of one that is three functions deep (fastest samples)"),
    },
    figures={
        "shallow_ns": "shallow ns",
        "to_shallow": "to shallow",
        "cold_kb": "cold KB",
        "small_kb": "small-stack KB",
        "wake_s": "waking s",
        "peak_gb": "GB at most",
        "dumps_us": "dumps us",
        "loads_us": "loads us",
        "bytes": "bytes",
        "many_dumps_per_s": "many: dumps/s",
        "many_loads_per_s": "many: loads/s",
    },
    targets=(
        Target("channel", "cost_to", 0.5, at_least=False, side="go"),
        Target("channel", "times_faster", 20, side="gevent"),
        Target("channel", "cost", 130, at_least=False, unit="ns"),
        Target("schedule", "cost_to", 1.0, at_least=False, side="go"),
        Target("spawn", "cost_to", 0.6, at_least=False, side="go"),
        Target("spawn", "times_faster", 50, side="greenlet"),
        Target("depth-python-200", "figure", 1.2, at_least=False, figure="to_shallow"),
        Target("depth-c-50", "figure", 1.2, at_least=False, figure="to_shallow"),
        Target("parked", "cost", 8.8, at_least=False, unit="KB"),  # 8.6 KiB
        Target("parked", "figure", 4.6, at_least=False, figure="small_kb"),  # 4.5 KiB
        Target("parked", "figure", 2.7, at_least=False, figure="cold_kb"),
        Target("million", "cost", 5, at_least=False, unit="s"),
        Target("million", "figure", 1.5, at_least=False, figure="peak_gb"),
        Target("pickle", "cost", 25, at_least=False, unit="us"),
        Target("pickle", "figure", 2000, at_least=False, figure="bytes"),
        Target("pickle", "figure", 50_000, figure="many_dumps_per_s"),
        Target("pickle", "figure", 50_000, figure="many_loads_per_s"),
    ),
)
