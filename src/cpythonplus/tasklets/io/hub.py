"""The event loop that sleeps for all tasklets of a thread: asyncio's, in a tasklet of its own.

It watches one descriptor, which is ready when any of those is that tasklets wait for; then it calls
`turn`, where they run.  It is made when a tasklet of the thread first waits for a descriptor or for
asyncio, and rests while none does.
"""

# The documented way for whoever implements an event loop to say which one runs in the thread.
# ruff: noqa: SLF001

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable

from cpythonplus import _native
from cpythonplus.tasklets.native import atomic, getmain, tasklet

__all__ = ["loop_of_thread", "set_loop_factory", "start"]

_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop

# Those that a fork left behind: to close them would take the parent's descriptors out of its epoll.
_left_behind: list[object] = []


class _Own(threading.local):
    hub: "Hub | None" = None


_own = _Own()


def set_loop_factory(factory: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    """Have threads whose tasklets begin to wait from now on use another event loop.

    factory: makes a loop with add_reader(), such as `uvloop.new_event_loop`; None: asyncio's own
    selector loop, the default.  TypeError if it cannot be called.
    """
    global _factory  # noqa: PLW0603
    if factory is not None and not callable(factory):
        raise TypeError("the factory must be a callable or None")
    _factory = factory if factory is not None else asyncio.SelectorEventLoop


class Turns:
    """Gives the tasklets of this thread their turns in an event loop that runs in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, ours: bool) -> None:
        self.loop = loop
        self.ours = ours
        self.outside: asyncio.AbstractEventLoop | None = None  # that runs where the tasklets are
        self.descriptor = _native.io_poller()
        loop.add_reader(self.descriptor, self.turn)
        loop.call_soon(self.turn)

    def turn(self) -> None:
        """Run the other tasklets; they are not in the loop, so it does not look as if it ran."""
        asyncio._set_running_loop(self.outside)
        again = True
        try:
            again = _native.io_turn(self.ours)
        except RuntimeError as error:  # a deadlock: the hub was the last that could run
            getmain().throw(error, pending=True)
        finally:
            self.outside = asyncio._get_running_loop()
            asyncio._set_running_loop(self.loop)
        if again:
            self.loop.call_soon(self.turn)


class Hub:
    """A thread's own loop, and the tasklet that it runs in."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = _factory()
        self.tasklet = tasklet(self.run)

    def run(self) -> None:
        """Run the loop until the thread ends; what a signal handler raised there is for main."""
        outside = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        turns = Turns(self.loop, ours=True)
        turns.outside = outside
        try:
            with atomic():  # a watchdog is about the others
                while True:
                    try:
                        self.loop.run_forever()
                    except KeyboardInterrupt as error:
                        getmain().throw(error, pending=True)
        finally:
            asyncio._set_running_loop(turns.outside)
            if self.pid == os.getpid():
                self.loop.close()


def _hub_of_thread() -> Hub:
    hub = _own.hub
    if hub is not None:
        if hub.pid == os.getpid() and hub.tasklet.alive:
            return hub
        _left_behind.append(hub)
    hub = _own.hub = Hub()
    hub.tasklet.set_context(contextvars.Context())
    hub.tasklet.setup()
    return hub


def start() -> None:
    """Make this thread's hub, if it has none that lives; it runs at its next turn."""
    _hub_of_thread()


def loop_of_thread() -> asyncio.AbstractEventLoop:
    """Return the event loop of this thread's hub, which is started if need be."""
    return _hub_of_thread().loop
