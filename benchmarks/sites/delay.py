"""A helper process that holds every forwarded packet of its network namespace for a while.

It stands in for netem, which many kernels are built without. The packets stay in the kernel's
queue; here are only their numbers, and each round lets all go that have waited long enough with
one message. Rejected: a relay that reads and writes the packets themselves, through tun devices or
raw sockets, because copying 64 KiB at a time through Python would be what is measured.

As a worker: parameters are `queue`, `delay_s`, `limit_s` and `ready`, a file that appears when
packets may come. It runs until it is ended.
"""

from __future__ import annotations

import select
import time
from collections import deque
from pathlib import Path

from benchmarks.common import worker
from benchmarks.sites.nfqueue import Queue

MAX_PACKETS = 1_000_000
"""In the queue at most: more than the fastest stream sends in 40 ms."""

WAITS_S = 0.0001
"""Packets that are due within this time go together; that is 0.1 % of a long way."""


class Holding:
    """What waits, in the order in which it came; times in seconds of one clock."""

    def __init__(self, delay_s: float) -> None:
        """Hold everything for `delay_s`."""
        self.delay_s = delay_s
        self._groups: deque[tuple[float, int]] = deque()

    def add(self, last_id: int, now: float) -> None:
        """Note that the packets up to number `last_id` came `now`."""
        self._groups.append((now + self.delay_s, last_id))

    def due(self, now: float) -> int | None:
        """Return the greatest number of those that may go, and forget them; None if none may."""
        found = None
        while self._groups and self._groups[0][0] <= now + WAITS_S:
            found = self._groups.popleft()[1]
        return found

    def wait_s(self, now: float) -> float | None:
        """Return how long nothing becomes due; None where nothing waits."""
        return max(0.0, self._groups[0][0] - now) if self._groups else None


def serve(queue: Queue, delay_s: float) -> None:
    """Hold packets for ever."""
    holding = Holding(delay_s)
    readable = [queue.socket]
    while True:
        select.select(readable, (), (), holding.wait_s(time.monotonic()))
        now = time.monotonic()
        if arrived := queue.arrived():
            holding.add(arrived[-1], now)
        last_id = holding.due(now)
        if last_id is not None:
            queue.accept_up_to(last_id)


def main() -> None:
    """Be the helper."""
    parameters = worker.begin()
    queue = Queue(parameters["queue"], MAX_PACKETS)
    Path(parameters["ready"]).touch()
    serve(queue, parameters["delay_s"])


if __name__ == "__main__":
    main()
