"""What each side can do, and the loops that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

Action = Callable[[], object]

BATCH = 100
"""How many are spawned before the first of them is waited for."""


@dataclass(frozen=True, slots=True)
class Depth:
    """What stands between the bottom of a microthread and its loop."""

    python: int = 0
    """Python frames."""
    c: int = 0
    """Calls of `sorted`, a C function, each with two Python frames above it."""

    def call(self, action: Action) -> None:
        """Call `action` from this depth."""
        under_c(self.c, lambda: under_python(self.python, action))


class Parked(Protocol):
    """Microthreads that each wait for an item on one channel that all share."""

    woken: int
    """How many have got their item."""

    def park(self, count: int) -> None:
        """Start `count` more; returns when each of them waits."""

    def wake(self) -> None:
        """Give each an item; returns when all have ended."""


@dataclass(frozen=True, slots=True)
class Pickling:
    """How a side pickles a job that has stopped, and very many of them."""

    dumps: Callable[[object], bytes]
    loads: Callable[[bytes], object]
    one: object
    many: list[object]


class Peer(Protocol):
    """A module of this folder; one whose side has no case of a kind lacks the function for it."""

    def channel_ns(self, trips: int) -> int:
        """Return the time of `trips` values that go to another one and back."""

    def schedule_ns(self, switches: int, depth: Depth) -> int:
        """Return the time of `switches` between two that both stand at `depth`."""

    def spawn_ns(self, count: int) -> int:
        """Return the time of starting `count` that do nothing, until all have ended."""

    def parked(self) -> Parked:
        """Return what parks."""

    def pickling(self, count: int) -> Pickling:
        """Return what pickles, with so many jobs."""


# ---- loops --------------------------------------------------------------------------------------


def ask(send: Callable[[None], object], receive: Action, trips: int) -> None:
    """Send `trips` times and wait for the answer each time."""
    for _ in repeat(None, trips):
        send(None)
        receive()


def answer(receive: Action, send: Callable[[None], object], trips: int) -> None:
    """Wait for `trips` values and answer each."""
    for _ in repeat(None, trips):
        receive()
        send(None)


def again(action: Action, times: int) -> None:
    """Call `action` that many times."""
    for _ in repeat(None, times):
        action()


def nothing() -> None:
    """Do what a spawned one does."""


# ---- depths -------------------------------------------------------------------------------------


def under_python(frames: int, action: Action) -> None:
    """Call `action` beneath so many further Python frames."""
    if frames:
        under_python(frames - 1, action)
    else:
        action()


def under_c(frames: int, action: Action) -> int:
    """Call `action` beneath so many calls of `sorted`; returns what can be a key of it."""
    if frames:
        sorted((frames - 1,), key=lambda left: under_c(left, action))
    else:
        action()
    return frames
