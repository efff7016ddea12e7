"""The cases about CompactDict: bytes, look-ups, iteration, changes, shrinking, beside dict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")

SIDES: tuple[Side, ...] = ("dict", "CompactDict")
MILLION = 1_000_000
SIZES = (*range(21), 50, 100, 1000, 10_000, 100_000, MILLION)
LOOKED_UP = (5, 10, 100, 10_000, MILLION)
GONE_THROUGH = (10, 1000, MILLION)
SHRUNK = (10_000, MILLION)
KEYS: Mapping[str, str] = {"str": "str keys", "int": "int keys", "dense": "keys 0, 1, 2, ..."}

KINDS: Mapping[str, tuple[str, str, str]] = {
    "bytes": ("dict-bytes", "Built at once", "bytes"),
    "look_up": ("look-up", "Random hits", "ns"),
    "iterate": ("iteration", "Keys", "ns"),
    "change": ("insertion", "Inserted one by one", "ns"),
    "shrink": ("shrinking", "After deleting 99 %", "% of the peak"),
}
"""Of each kind of measurement: the scenario, what its rate is of, and its unit."""

_EXTRA_S = 120.0
"""For the making of a million keys, and of twice as many, on a machine that is slow today."""


def cases() -> list[Case]:
    """Return the cases."""
    found = [_case("bytes", keys, size) for keys in ("str", "int") for size in SIZES]
    found += [_case("look_up", keys, size) for keys in KEYS for size in LOOKED_UP]
    for keys in ("str", "int"):
        found += [_case("iterate", keys, size) for size in GONE_THROUGH]
        found += [_case("change", keys, size) for size in GONE_THROUGH]
        found += [_case("shrink", keys, size) for size in SHRUNK]
    return found


def _case(kind: str, keys: str, entries: int) -> Case:
    scenario, title, unit = KINDS[kind]
    parameters = {"kind": kind, "keys": keys, "entries": entries}
    return Case(
        f"{scenario}-{keys}-{entries}",
        scenario,
        f"{title}, {entries:,} {KEYS[keys]}",
        unit,
        partial(_measure, parameters),
        better="lower",
        sides=SIDES,
        base="dict",
        own="CompactDict",
        # Nothing but the memory of one and the same thing: a second round would say the same.
        once=kind in {"bytes", "shrink"},
        in_quick=entries < MILLION,
    )


def _measure(
    parameters: Mapping[str, object], commands: Commands, side: Side, settings: Settings
) -> Outcome:
    most = min(MILLION, settings.rows)
    with Children() as children:
        result = children.worker(
            [commands.python],
            _WORKER,
            {**parameters, "side": side, "most": most, "seconds": settings.seconds},
            limit_s=settings.limit_s + _EXTRA_S,
        ).result()
    return Outcome(
        rate=result["rate"],
        scheduled=result["scheduled"],
        patched=result["patched"],
        figures=result["figures"],
    )


def _targets() -> Iterator[Target]:
    for keys in ("str", "int"):
        yield Target(f"dict-bytes-{keys}-10", "cost", 200, at_least=False, unit="bytes")
    million = f"dict-bytes-int-{MILLION}"
    # 20.5 an entry.
    yield Target(million, "cost", 20.5 * MILLION, at_least=False, unit="bytes")
    yield Target(million, "figure", 20.5, at_least=False, figure="grown_worst")
    for keys in KEYS:
        for size in LOOKED_UP:
            case = f"look-up-{keys}-{size}"
            yield Target(case, "cost_to", 1.5, at_least=False, side="dict")
            yield Target(case, "figure_to", 1.5, at_least=False, figure="miss_ns", side="dict")
    for keys in ("str", "int"):
        for size in GONE_THROUGH:
            case = f"iteration-{keys}-{size}"
            yield Target(case, "cost_to", 1, at_least=False, side="dict")
            yield Target(case, "figure_to", 1, at_least=False, figure="items_ns", side="dict")
        for size in SHRUNK:
            case = f"shrinking-{keys}-{size}"
            yield Target(case, "cost", 3, at_least=False, unit="% of the peak")
    yield Target(f"shrinking-int-{MILLION}", "figure", 3, at_least=False, figure="rss_percent")


SCENARIO = Scenario(
    cases={"records": cases},
    tables={
        "dict-bytes": Table("Bytes of a mapping"),
        "look-up": Table("Look-ups, without the loop (fastest loop)"),
        "iteration": Table("Going through a mapping (fastest loop)"),
        "insertion": Table("Insertion and deletion (fastest loop)"),
        "shrinking": Table("After deleting 99 %"),
    },
    figures={
        "grown_bytes": "grown, bytes",
        "grown_worst": "grown, worst bytes an entry",
        "rss_bytes": "bytes of the process",
        "hit_sequential_ns": "sequential hits, ns",
        "equal_ns": "random hits by equal keys, ns",
        "miss_ns": "random misses, ns",
        "miss_sequential_ns": "sequential misses, ns",
        "values_ns": "values, ns",
        "items_ns": "items, ns",
        "built_ns": "built at once, ns",
        "deleted_ns": "deleted, ns",
        "rss_percent": "% of the process's growth",
    },
    targets=tuple(_targets()),
    place=2,
)
