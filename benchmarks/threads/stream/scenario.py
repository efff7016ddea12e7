"""Items one way through a queue: one producer and one consumer, four of each, sixteen of each."""

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

# Class, producers and as many consumers, where its peer is found.
_STREAMS = (
    ("Queue", 1, "culsans"),
    ("Queue", 4, "culsans"),
    ("Queue", 16, "culsans"),
    ("SimpleQueue", 1, "aiologic"),
    ("SimpleQueue", 16, "aiologic"),
)


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            f"stream-{name.lower()}-{threads}",
            "stream",
            f"{name} stream, {threads} to {threads}",
            "items/s",
            partial(_measure, name.lower(), threads),
            sides=WITH_PEER,
            peer=peer,
        )
        for name, threads, peer in _STREAMS
    ]


def _measure(
    kind: str, threads: int, commands: Commands, side: Side, settings: Settings
) -> Outcome:
    parameters = {"kind": kind, "threads": threads}
    return measure(_WORKER, parameters, commands, side, settings)


SCENARIO = Scenario(
    cases={"threads": cases},
    tables={"stream": Table("One-way streams through a queue")},
    targets=(
        # From 3.14 on stock's own queue is four times as fast as before.
        Target("stream-queue-1", "ratio", 10, before=(3, 14)),
        Target("stream-queue-1", "ratio", 4, since=(3, 14)),
        Target("stream-queue-4", "ratio", 10, before=(3, 14)),
        Target("stream-queue-4", "ratio", 4, since=(3, 14)),
        Target("stream-simplequeue-1", "ratio", 1.0),
    ),
    place=2,
)
