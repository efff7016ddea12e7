"""Worker: a stream of items through a queue.

Parameters: kind (queue, simplequeue), threads (that put, and as many that get), peer, seconds.
"""

import queue
import threading
import time
from collections.abc import Callable
from importlib import import_module
from itertools import repeat

from benchmarks.common import worker

Ends = tuple[Callable[[None], object], Callable[[], object]]
"""How an item gets into the queue, and how it gets out."""

FIRST_ITEMS = 20_000
MOST_ITEMS = 8_000_000
"""Of one run; should the consumers see none until all are there, that is 64 MB of references."""

LEAST_S = 0.1
"""Length of a run from which on it counts: twenty of stock's turns with the GIL."""


def standard_queue() -> Ends:
    """Return the ends of the standard library's queue."""
    items: queue.Queue[None] = queue.Queue()
    return items.put, items.get


def simplequeue() -> Ends:
    """Return the ends of the standard library's simple queue."""
    items: queue.SimpleQueue[None] = queue.SimpleQueue()
    return items.put, items.get


def culsans_queue() -> Ends:
    """Return the ends that culsans's queue has for threads."""
    items = import_module("culsans").Queue().sync_q
    return items.put, items.get


def aiologic_simplequeue() -> Ends:
    """Return the ends that aiologic's simple queue has for threads."""
    items = import_module("aiologic").SimpleQueue()
    return items.put, items.green_get


STANDARD = {"queue": standard_queue, "simplequeue": simplequeue}
PEERS = {"queue": culsans_queue, "simplequeue": aiologic_simplequeue}


class Stream:
    """Threads at both ends of one queue."""

    def __init__(self, ends: Ends, threads: int, items: int) -> None:
        """Prepare `threads` producers and consumers; each passes its part of `items`."""
        self._put, self._get = ends
        self._each = items // threads
        self._starts_ns: list[int] = []
        self._ends_ns: list[int] = []
        # Consumers first: items that nobody waits for yet would be another measurement.
        self._threads = [
            threading.Thread(target=target)
            for target in (self._consume, self._produce)
            for _ in range(threads)
        ]

    def _produce(self) -> None:
        self._starts_ns.append(time.perf_counter_ns())
        put = self._put
        for item in repeat(None, self._each):
            put(item)

    def _consume(self) -> None:
        get = self._get
        for _ in repeat(None, self._each):
            get()
        self._ends_ns.append(time.perf_counter_ns())

    def run_ns(self) -> int:
        """Return the time from before the first item was put until the last one was got."""
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        return max(self._ends_ns) - min(self._starts_ns)


def calibrate(ends: Ends, threads: int, seconds: float) -> int:
    """Return how many items keep a stream going for LEAST_S, or a quarter of `seconds`."""
    items = FIRST_ITEMS
    wanted_ns = min(LEAST_S, seconds / 4) * 1e9
    while Stream(ends, threads, items).run_ns() < wanted_ns and items < MOST_ITEMS:
        items *= 2
    return items


def main() -> None:
    """Run streams until the given time is over and report the items per second of all of them."""
    parameters = worker.begin()
    threads, seconds = parameters["threads"], parameters["seconds"]
    ends = (PEERS if parameters["peer"] else STANDARD)[parameters["kind"]]()
    items = calibrate(ends, threads, seconds)
    passed, elapsed_ns = 0, 0
    while elapsed_ns < seconds * 1e9:
        elapsed_ns += Stream(ends, threads, items).run_ns()
        passed += items // threads * threads
    worker.finish(parameters, {"rate": passed * 1e9 / elapsed_ns})


if __name__ == "__main__":
    main()
