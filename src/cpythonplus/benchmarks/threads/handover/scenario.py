"""A turn handed to and fro over each primitive, on all cores and on one."""

from functools import partial
from pathlib import Path

from cpythonplus.benchmarks.common.children import Commands
from cpythonplus.benchmarks.common.engine import Case, Settings
from cpythonplus.benchmarks.common.results import Outcome, Side
from cpythonplus.benchmarks.threads.measure import WITH_PEER, measure

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


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"handover-{name.lower()}" + ("-pinned" if pinned else ""),
            "handover",
            f"{name} hand-over" + (", one core" if pinned else ""),
            "round trips/s",
            partial(_measure, name.lower(), "one" if pinned else "all"),
            sides=WITH_PEER,
            peer=peer,
        )
        for name, peer in _PEERS.items()
        for pinned in (False, True)
    ]


def _measure(kind: str, cores: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    return measure(_WORKER, {"kind": kind}, commands, side, settings, pinned=cores == "one")
