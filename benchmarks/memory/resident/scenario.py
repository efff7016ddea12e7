"""The cases about `memory.resident()`: does it add up, and does it name the cause."""

import os
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_FULL_MIB = 500
_QUICK_MIB = 60

HEAPS = {
    "fresh": "a fresh process",
    "fragmented": "half of all objects freed, here and there",
    "threads": "8 threads that freed most of theirs",
    "mmap": "private, shared and file mappings",
    "c-heap": "blocks of C code, every second one freed",
    "jemalloc": "under jemalloc",
}
PINS = {
    "classic": "strings freed under one small block",
    "survivors": "1 survivor in 20,000 small objects",
}


def cases() -> list[Case]:
    """Return the cases; stock is what pymalloc and the C library say of themselves."""
    found = [
        _case(f"resident-{name}", f"resident(): error of the sum, {title}", "%", "lower")
        for name, title in HEAPS.items()
    ]
    found += [
        _case(f"resident-{name}", f"resident(): named of what keeps memory, {title}", "%", "higher")
        for name, title in PINS.items()
    ]
    return found


def _case(name: str, title: str, unit: str, better: str) -> Case:
    return Case(
        name,
        "resident",
        title,
        unit,
        partial(_measure, name.removeprefix("resident-")),
        statistic="median",
        better="lower" if better == "lower" else "higher",
        once=True,
    )


def _measure(heap: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    from cpythonplus.memory import allocators

    size_mib = _FULL_MIB if settings.seconds >= 1 else _QUICK_MIB
    added: list[str] = []
    if heap == "jemalloc":
        try:
            added = allocators.apply("jemalloc", os.environ)
        except allocators.AllocatorError as error:
            raise MeasurementError(str(error)) from error
    try:
        with Children() as children:
            result = children.worker(
                [commands.python],
                _WORKER,
                {"side": side, "heap": heap, "mib": size_mib, "limit_s": settings.limit_s},
                limit_s=settings.limit_s,
            ).result()
    finally:
        allocators.remove(added, os.environ)
    return Outcome(rate=result["rate"], notes=tuple(result["notes"]))


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={"resident": Table("What resident() tells of heaps of known content")},
    targets=(
        *(Target(f"resident-{heap}", "cost", 3, at_least=False, unit="%") for heap in HEAPS),
        *(Target(f"resident-{heap}", "cost", 90, unit="%") for heap in PINS),
    ),
    place=6,
)
