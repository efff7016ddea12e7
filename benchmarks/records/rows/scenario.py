"""The cases about rows: bytes of one, what is done with one, twenty million of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.common.worker import field

_WORKER = Path(__file__).with_name("worker.py")

PACKAGES: Mapping[Side, str] = {
    "msgspec": "msgspec",
    "recordclass": "recordclass",
    "polars": "polars",
}
MAPPINGS: tuple[Side, ...] = ("dict", "shared dict", "CompactDict")
NAMED: tuple[Side, ...] = ("Record", "msgspec", "recordclass", "slots", "namedtuple", "tuple")
MANY: tuple[Side, ...] = ("dict", "shared dict", "Record", "msgspec", "recordclass", "tuple")

KEYS = (1, 2, 5, 8, 10, 15, 20, 29, 30)
"""Up to the most that CPython shares."""
USUAL = 8
"""How many a row has where that is not what is compared."""
MOST_FOR_BYTES = 500_000
"""So many rows outweigh the pages that a process takes by the way."""

SPEEDS: Mapping[str, tuple[str, tuple[Side, ...]]] = {
    "build": ("Making a row of 8, ns", (*MAPPINGS, *NAMED, "polars")),
    "field": ("Reading a field of 8, ns", (*MAPPINGS, *NAMED)),
    "miss": ("Asking for a key that is not there, ns", MAPPINGS),
    "items": ("Going through names and values, ns for each", (*MAPPINGS, *NAMED, "polars")),
}

_NEEDED_BYTES: Mapping[Side, int] = {"dict": 300, "shared dict": 300}
"""Of a row, with something to spare; shared keys may be refused, and are then ordinary dicts."""
_NEEDED_OTHERWISE = 140
_ROWS_PER_S = 200_000
"""Made on a machine that is slow today."""


def cases() -> list[Case]:
    """Return the cases; all are compared with a dict."""
    return [
        *(_bytes(keys) for keys in KEYS),
        *(_speed(what, title, sides) for what, (title, sides) in SPEEDS.items()),
        _case(
            "very-many",
            "many",
            "Very many rows of 8",
            "GiB",
            {"kind": "many"},
            sides=MANY,
            once=True,
        ),
    ]


def _bytes(keys: int) -> Case:
    return _case(
        f"row-bytes-{keys}",
        "row-bytes",
        f"Row of {keys} {'key' if keys == 1 else 'keys'}",
        "bytes",
        {"kind": "bytes", "fields": keys},
        sides=(*MAPPINGS, *NAMED, "polars"),
        once=True,
    )


def _speed(what: str, title: str, sides: tuple[Side, ...]) -> Case:
    parameters: dict[str, object] = {"kind": "speed", "what": what}
    title, _, unit = title.rpartition(", ")
    return _case(f"row-{what}", "row-speed", title, unit, parameters, sides=sides)


def _case(
    name: str,
    scenario: str,
    title: str,
    unit: str,
    parameters: dict[str, object],
    *,
    sides: tuple[Side, ...],
    once: bool = False,
) -> Case:
    return Case(
        name,
        scenario,
        title,
        unit,
        partial(_measure, {"fields": USUAL, **parameters}),
        better="lower",
        sides=sides,
        base="dict",
        own="Record",
        packages=PACKAGES,
        once=once,
    )


def _measure(
    parameters: Mapping[str, object], commands: Commands, side: Side, settings: Settings
) -> Outcome:
    rows = settings.rows
    if parameters["kind"] == "bytes":
        rows = min(rows, MOST_FOR_BYTES)
    elif parameters["kind"] == "many":
        check_memory(side, rows)
    with Children() as children:
        result = children.worker(
            [commands.python],
            _WORKER,
            {**parameters, "side": side, "rows": rows, "seconds": settings.seconds},
            limit_s=settings.limit_s + rows / _ROWS_PER_S,
        ).result()
    return Outcome(
        rate=result["rate"],
        scheduled=result["scheduled"],
        patched=result["patched"],
        figures=result.get("figures", {}),
    )


def check_memory(side: Side, rows: int) -> None:
    """Raise MeasurementError when the machine has no room for `rows` rows of `side`."""
    needed = rows * _NEEDED_BYTES.get(side, _NEEDED_OTHERWISE)
    free = field("/proc/meminfo", "MemAvailable:")
    if needed > free:
        raise MeasurementError(
            f"{rows:,} rows may need {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free:"
            " --rows makes fewer"
        )


def _targets() -> Iterator[Target]:
    for side, limit in (("shared dict", 0.6), ("Record", 0.35)):
        yield Target("very-many", "cost_to", limit, at_least=False, side="dict", own=side)


SCENARIO = Scenario(
    cases={"records": cases},
    tables={
        "row-bytes": Table("Growth of the process for each row"),
        "row-speed": Table("What is done with rows of 8 (fastest loop)"),
        "many": Table("Very many rows in one process"),
    },
    figures={
        "sizeof_bytes": "by getsizeof",
        "zip_ns": "of zip(), ns",
        "build_s": "s to make them",
        "full_collection_ms": "full collection ms",
    },
    targets=tuple(_targets()),
)
