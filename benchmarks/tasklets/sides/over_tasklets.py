"""Tasklets, their channels and their scheduler."""

from __future__ import annotations

import pickle
import time
from itertools import repeat

from benchmarks.tasklets.sides import jobs
from benchmarks.tasklets.sides.protocol import (
    BATCH,
    Depth,
    Pickling,
    again,
    answer,
    ask,
    nothing,
)
from cpythonplus import tasklets


def _run_ns() -> int:
    start = time.perf_counter_ns()
    tasklets.run()
    return time.perf_counter_ns() - start


def channel_ns(trips: int) -> int:
    """Send over one channel and answer over another."""
    ping, pong = tasklets.channel(), tasklets.channel()
    tasklets.tasklet(ask)(ping.send, pong.receive, trips)
    tasklets.tasklet(answer)(ping.receive, pong.send, trips)
    return _run_ns()


def schedule_ns(switches: int, depth: Depth) -> int:
    """Call schedule() in two tasklets."""
    for _ in range(2):
        tasklets.tasklet(depth.call)(lambda: again(tasklets.schedule, switches // 2))
    return _run_ns()


def spawn_ns(count: int) -> int:
    """Make a batch of tasklets and run them, over and over."""
    make, run = tasklets.tasklet, tasklets.run
    start = time.perf_counter_ns()
    for _ in repeat(None, count // BATCH):
        for _ in repeat(None, BATCH):
            make(nothing)()
        run()
    return time.perf_counter_ns() - start


def pickling(count: int) -> Pickling:
    """Return tasklets that have stopped, and plain pickle."""
    one, *many = (tasklets.tasklet(jobs.outer)(1) for _ in range(count + 1))
    tasklets.run()
    return Pickling(pickle.dumps, pickle.loads, one, [*many])


class Parked:
    """Tasklets that wait on a channel, which is all that refers to them."""

    def __init__(self) -> None:
        """Make the channel."""
        self.woken = 0
        self._gate = tasklets.channel()

    def _wait(self) -> None:
        self._gate.receive()
        self.woken += 1

    def park(self, count: int) -> None:
        """Start `count` more and let them run until they wait."""
        make, wait = tasklets.tasklet, self._wait
        for _ in repeat(None, count):
            make(wait)()
        tasklets.run()

    def trim(self) -> None:
        """Let those that wait keep only what they use of their stacks."""
        tasklets.trim_stacks()

    def small(self) -> None:
        """Let those that start from now on have the smallest stacks."""
        tasklets.stack_size(64 << 10)

    def wake(self) -> None:
        """Send to each."""
        send = self._gate.send
        for _ in repeat(None, -self._gate.balance):
            send(None)
        tasklets.run()


def parked() -> Parked:
    """Return what parks."""
    return Parked()
