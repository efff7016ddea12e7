"""Threads of the operating system, with the standard library's locks and queues."""

from __future__ import annotations

import threading
import time
from itertools import repeat
from queue import SimpleQueue

from benchmarks.tasklets.sides.protocol import (
    BATCH,
    Action,
    Depth,
    answer,
    ask,
    nothing,
)


def _both_ns(one: Action, two: Action) -> int:
    threads = [threading.Thread(target=body) for body in (one, two)]
    start = time.perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter_ns() - start


def channel_ns(trips: int) -> int:
    """Put into one queue and answer over another."""
    ping: SimpleQueue[None] = SimpleQueue()
    pong: SimpleQueue[None] = SimpleQueue()
    return _both_ns(
        lambda: ask(ping.put, pong.get, trips), lambda: answer(ping.get, pong.put, trips)
    )


def schedule_ns(switches: int, depth: Depth) -> int:
    """Hand a turn over by two locks."""
    first, second = threading.Lock(), threading.Lock()
    first.acquire()
    second.acquire()

    def body(mine: threading.Lock, others: threading.Lock) -> None:
        def turns() -> None:
            take, give = mine.acquire, others.release
            for _ in repeat(None, switches // 2):
                take()
                give()

        depth.call(turns)

    first.release()
    return _both_ns(lambda: body(first, second), lambda: body(second, first))


def spawn_ns(count: int) -> int:
    """Start a batch of threads and join it, over and over."""
    start = time.perf_counter_ns()
    for _ in repeat(None, count // BATCH):
        threads = [threading.Thread(target=nothing) for _ in repeat(None, BATCH)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return time.perf_counter_ns() - start
