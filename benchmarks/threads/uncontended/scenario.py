"""What a primitive costs when nobody else wants it."""

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

# Title, and what the peer is found in.
_OPERATIONS = {
    "lock": ("with lock:", "aiologic"),
    "condition": ("with condition:", "aiologic"),
    "rlock": ("with rlock:", "fastrlock"),
    "semaphore": ("with semaphore:", "aiologic"),
    "event": ("event.is_set()", "aiologic"),
}


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"uncontended-{kind}",
            "uncontended",
            title,
            "operations/s",
            partial(_measure, kind),
            sides=WITH_PEER,
            peer=peer,
        )
        for kind, (title, peer) in _OPERATIONS.items()
    ]


def _measure(kind: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    return measure(_WORKER, {"kind": kind}, commands, side, settings)


SCENARIO = Scenario(
    cases={"threads": cases},
    tables={"uncontended": Table("Nobody else wants it (fastest sample)", cost_of_one=True)},
    targets=(
        Target("uncontended-lock", "ratio", 1.0),
        Target("uncontended-condition", "ratio", 3),
    ),
    place=3,
)
