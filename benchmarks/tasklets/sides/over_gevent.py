"""Gevent's greenlets and queues, over its event loop."""

from __future__ import annotations

import time
from importlib import import_module
from itertools import repeat
from typing import Any

from benchmarks.tasklets.sides.protocol import (
    BATCH,
    Action,
    Depth,
    again,
    answer,
    ask,
    nothing,
)

gevent: Any = import_module("gevent")
queue: Any = import_module("gevent.queue")


def _both_ns(one: Action, two: Action) -> int:
    started = [gevent.spawn(one), gevent.spawn(two)]
    start = time.perf_counter_ns()
    gevent.joinall(started, raise_error=True)
    return time.perf_counter_ns() - start


def channel_ns(trips: int) -> int:
    """Put into one queue without places (`Channel`) and answer over another."""
    ping, pong = queue.Channel(), queue.Channel()
    return _both_ns(
        lambda: ask(ping.put, pong.get, trips), lambda: answer(ping.get, pong.put, trips)
    )


def schedule_ns(switches: int, depth: Depth) -> int:
    """Call sleep(0) in two greenlets."""

    def body() -> None:
        depth.call(lambda: again(gevent.sleep, switches // 2))  # 0 is what it sleeps by default

    return _both_ns(body, body)


def spawn_ns(count: int) -> int:
    """Spawn a batch and join it, over and over."""
    spawn, joinall = gevent.spawn, gevent.joinall
    start = time.perf_counter_ns()
    for _ in repeat(None, count // BATCH):
        joinall([spawn(nothing) for _ in repeat(None, BATCH)])
    return time.perf_counter_ns() - start


class Parked:
    """Greenlets that wait for an item of a queue without places.

    Of many that wait at a `Queue` each item looks at all: a million would take hours.
    """

    def __init__(self) -> None:
        """Make the queue."""
        self.woken = 0
        self._gate = queue.Channel()
        self._waiting = 0
        self._all: list[Any] = []

    def _wait(self) -> None:
        self._waiting += 1
        self._gate.get()
        self.woken += 1

    def park(self, count: int) -> None:
        """Spawn `count` more and let them run until they wait."""
        spawn, wait, keep = gevent.spawn, self._wait, self._all.append
        for _ in repeat(None, count):
            keep(spawn(wait))
        while self._waiting < len(self._all):
            gevent.sleep(0)

    def wake(self) -> None:
        """Put an item for each."""
        put = self._gate.put
        for _ in repeat(None, len(self._all)):
            put(None)
        gevent.joinall(self._all)


def parked() -> Parked:
    """Return what parks."""
    return Parked()
