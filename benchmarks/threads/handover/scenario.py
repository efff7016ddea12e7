"""A turn handed to and fro over each primitive: on all cores, on one, beside a process."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.threads.measure import WITH_PEER, measure

_WORKER = Path(__file__).with_name("worker.py")

# What the peer of the standard library's class is found in.
_PEERS = {
    "Lock": "aiologic",
    "Condition": "aiologic",
    "Event": "aiologic",
    "Semaphore": "aiologic",
    "SimpleQueue": "aiologic",
    "Queue": "culsans",
}


_BESIDE_A_PROCESS = ("Lock", "Condition")

_ONE_CORE, _BUSY = ", one core", ", another process computes"


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"handover-{name.lower()}{suffix}",
            "handover",
            f"{name} hand-over{words}",
            "round trips/s",
            partial(_measure, name.lower(), words),
            sides=WITH_PEER,
            peer=peer,
        )
        for name, peer in _PEERS.items()
        for suffix, words in (("", ""), ("-pinned", _ONE_CORE), ("-busy", _BUSY))
        if words != _BUSY or name in _BESIDE_A_PROCESS
    ]


def _measure(kind: str, where: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    return measure(
        _WORKER,
        {"kind": kind},
        commands,
        side,
        settings,
        pinned=where == _ONE_CORE,
        beside_process=where == _BUSY,
    )


def _targets() -> Iterator[Target]:
    for kind in ("lock", "condition", "event", "semaphore", "simplequeue", "queue"):
        yield Target(f"handover-{kind}", "ratio", 10)
        yield Target(f"handover-{kind}-pinned", "ratio", 2.0 if kind == "condition" else 1.0)
    for kind in ("lock", "condition"):
        yield Target(f"handover-{kind}-busy", "ratio", 5)


SCENARIO = Scenario(
    cases={"threads": cases},
    tables={"handover": Table("Hand-over between two threads", latency_unit="us")},
    targets=tuple(_targets()),
    place=1,
)
