"""Greenlets, which have neither channels nor a scheduler: they switch to each other by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any

from benchmarks.tasklets.sides.protocol import Depth, again, nothing

greenlet: Any = import_module("greenlet").greenlet
getcurrent: Any = import_module("greenlet").getcurrent


def _both_ns(body: Callable[[Any], None], depth: Depth) -> int:
    """Return the time of two that each run `body` with the other one."""
    # Each runs only when there is the other one; the first value passed becomes its arguments.
    one = greenlet(lambda *_: depth.call(lambda: body(two)))
    two = greenlet(lambda *_: depth.call(lambda: body(one)))
    start = time.perf_counter_ns()
    one.switch()
    taken_ns = time.perf_counter_ns() - start
    two.switch()  # stands in its last switch
    return taken_ns


def _pass_values(switch: Callable[[None], object], times: int) -> None:
    for _ in repeat(None, times):
        switch(None)


def channel_ns(trips: int) -> int:
    """Switch to the other one with a value and back with another."""
    return _both_ns(lambda other: _pass_values(other.switch, trips), Depth())


def schedule_ns(switches: int, depth: Depth) -> int:
    """Switch between two."""
    return _both_ns(lambda other: again(other.switch, switches // 2), depth)


def spawn_ns(count: int) -> int:
    """Make one and switch to it, which returns when it has ended."""
    make = greenlet
    start = time.perf_counter_ns()
    for _ in repeat(None, count):
        make(nothing).switch()
    return time.perf_counter_ns() - start


class Parked:
    """Greenlets that have switched back to the one that started them."""

    def __init__(self) -> None:
        """Begin with none."""
        self.woken = 0
        self._all: list[Any] = []

    def _wait(self) -> None:
        getcurrent().parent.switch()
        self.woken += 1

    def park(self, count: int) -> None:
        """Start `count` more."""
        make, wait, keep = greenlet, self._wait, self._all.append
        for _ in repeat(None, count):
            started = make(wait)
            keep(started)
            started.switch()

    def wake(self) -> None:
        """Switch to each."""
        for one in self._all:
            one.switch()


def parked() -> Parked:
    """Return what parks."""
    return Parked()
