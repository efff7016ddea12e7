"""asyncio's tasks and queues, on the standard library's event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import repeat
from typing import Any

from benchmarks.tasklets.sides.protocol import BATCH, Depth

_Body = Callable[[], Coroutine[Any, Any, None]]


async def _both_ns(one: _Body, two: _Body) -> int:
    start = time.perf_counter_ns()
    await asyncio.gather(one(), two())
    return time.perf_counter_ns() - start


def channel_ns(trips: int) -> int:
    """Put into a queue of one place and answer over another."""

    async def pair() -> int:
        ping: asyncio.Queue[None] = asyncio.Queue(1)
        pong: asyncio.Queue[None] = asyncio.Queue(1)

        async def asking() -> None:
            for _ in repeat(None, trips):
                await ping.put(None)
                await pong.get()

        async def answering() -> None:
            for _ in repeat(None, trips):
                await ping.get()
                await pong.put(None)

        return await _both_ns(asking, answering)

    return asyncio.run(pair())


async def _sleeping(frames: int, times: int) -> None:
    """Sleep beneath so many coroutines that await each other."""
    if frames:
        await _sleeping(frames - 1, times)
    else:
        for _ in repeat(None, times):
            await asyncio.sleep(0)


def schedule_ns(switches: int, depth: Depth) -> int:
    """Await sleep(0) in two tasks."""
    # A task cannot wait beneath ordinary calls: its frames are coroutines.
    body = partial(_sleeping, depth.python, switches // 2)
    return asyncio.run(_both_ns(body, body))


async def _nothing() -> None:
    pass


def spawn_ns(count: int) -> int:
    """Create a batch of tasks and await each, over and over."""

    async def spawning() -> int:
        create = asyncio.create_task
        start = time.perf_counter_ns()
        for _ in repeat(None, count // BATCH):
            for task in [create(_nothing()) for _ in repeat(None, BATCH)]:
                await task
        return time.perf_counter_ns() - start

    return asyncio.run(spawning())


class Parked:
    """Tasks that wait for an item of a queue."""

    def __init__(self) -> None:
        """Make the loop and the queue."""
        self.woken = 0
        self._runner = asyncio.Runner()
        self._gate: asyncio.Queue[None] = asyncio.Queue()
        self._all: list[asyncio.Task[None]] = []

    async def _wait(self) -> None:
        await self._gate.get()
        self.woken += 1

    async def _park(self, count: int) -> None:
        create, wait, keep = asyncio.create_task, self._wait, self._all.append
        for _ in repeat(None, count):
            keep(create(wait()))
        await asyncio.sleep(0)  # each has had its turn when this one has

    async def _wake(self) -> None:
        put = self._gate.put_nowait
        for _ in repeat(None, len(self._all)):
            put(None)
        for task in self._all:
            await task

    def park(self, count: int) -> None:
        """Create `count` more and let them run until they wait."""
        self._runner.run(self._park(count))

    def wake(self) -> None:
        """Put an item for each."""
        self._runner.run(self._wake())


def parked() -> Parked:
    """Return what parks."""
    return Parked()
