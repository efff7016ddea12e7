"""Worker: one operation on a primitive that no other thread uses, over and over.

Parameters: kind (lock, condition, rlock, semaphore, event), peer, seconds.
"""

import threading
import time
from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any

from benchmarks.common import worker

UNROLLED = 10
"""Operations in one pass of a loop, so that the loop itself is a small part of each."""

SAMPLE_NS = 2_000_000
"""How long one sample takes at least: reading the clock does not count."""


def hold(guard: Any, passes: int) -> int:  # noqa: ANN401 - a lock of one package or another
    """Enter and leave `guard` UNROLLED times in each of `passes`; return the ns that it took."""
    start = time.perf_counter_ns()
    for _ in repeat(None, passes):
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
        with guard:
            pass
    return time.perf_counter_ns() - start


def look(event: Any, passes: int) -> int:  # noqa: ANN401 - an Event of one package or another
    """Ask whether `event` is set, UNROLLED times in each of `passes`; return the ns."""
    start = time.perf_counter_ns()
    for _ in repeat(None, passes):
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
        event.is_set()
    return time.perf_counter_ns() - start


Loop = Callable[[Any, int], int]
Maker = Callable[[], object]

STANDARD: dict[str, tuple[Loop, Maker]] = {
    "lock": (hold, threading.Lock),
    "condition": (hold, threading.Condition),
    "rlock": (hold, threading.RLock),
    "semaphore": (hold, threading.Semaphore),
    "event": (look, threading.Event),
}
PEERS: dict[str, tuple[Loop, Maker]] = {
    "lock": (hold, lambda: import_module("aiologic").Lock()),
    "condition": (hold, lambda: import_module("aiologic").Condition()),
    "rlock": (hold, lambda: import_module("fastrlock.rlock").FastRLock()),
    "semaphore": (hold, lambda: import_module("aiologic").Semaphore()),
    "event": (look, lambda: import_module("aiologic").REvent()),
}


def fastest_ns(loop: Loop, primitive: object, seconds: float) -> float:
    """Return the time of one operation in the fastest of the samples taken in `seconds`."""
    passes = 100
    # Also warms up: the interpreter specialises the loop's code while it is called.
    while loop(primitive, passes) < SAMPLE_NS:
        passes *= 2
    deadline = time.perf_counter_ns() + int(seconds * 1e9)
    fastest = loop(primitive, passes)
    while time.perf_counter_ns() < deadline:
        fastest = min(fastest, loop(primitive, passes))
    return fastest / (passes * UNROLLED)


def main() -> None:
    """Measure one operation; its rate is that of its fastest sample."""
    parameters = worker.begin()
    loop, make = (PEERS if parameters["peer"] else STANDARD)[parameters["kind"]]
    taken_ns = fastest_ns(loop, make(), parameters["seconds"])
    worker.finish(parameters, {"rate": 1e9 / taken_ns})


if __name__ == "__main__":
    main()
