"""The event loop that sleeps for all tasklets of a thread: asyncio's, in a tasklet of its own.

The loop watches one descriptor, which is ready when any descriptor is that tasklets wait for; then
it calls `turn`, in which they run.  It is made when a tasklet of the thread first waits for a
descriptor or for asyncio, and rests while none does.  While the program runs a loop of its own,
that loop takes its place.
"""

# asyncio._set_running_loop() is documented for implementations of event loops.
# ruff: noqa: SLF001

import asyncio
import contextvars
import math
import os
import selectors
import sys
from _thread import get_ident
from asyncio.log import logger
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cpythonplus import _native
from cpythonplus._native import TaskletExit, getmain, tasklet, tasklet_atomic
from cpythonplus.tasklets.io import _running as running

# Our loop makes up to this many passes for newly added callbacks before the tasklets run.
_PASSES = 8

running.switch()

# The standard selector, stored before a patch replaces it by one that blocks only a tasklet.
_Selector = selectors.EpollSelector


def _own_loop() -> asyncio.AbstractEventLoop:
    # asyncio logs a new loop; a handler that sends the record somewhere would wait for the loop.
    me = get_ident()

    def is_of_another_thread(_: object) -> bool:
        return get_ident() != me

    logger.addFilter(is_of_another_thread)
    try:
        return asyncio.SelectorEventLoop(_Selector())
    finally:
        logger.removeFilter(is_of_another_thread)


_factory: Callable[[], asyncio.AbstractEventLoop] = _own_loop

# Hubs left behind by a fork: closing them would remove the parent's descriptors from its epoll.
_left_behind: list[object] = []


@dataclass(slots=True)
class Loops:
    """The loops of one thread, kept by the C half: a threading.local is gone when tasklets end."""

    hub: "Hub | None" = None
    turns: "Turns | None" = None  # those in the program's loop


def _loops() -> Loops:
    return _native.io_loops() or _native.io_loops(Loops())


def set_loop_factory(factory: Callable[[], asyncio.AbstractEventLoop] | None) -> None:
    """Make threads whose tasklets begin to wait from now on use another event loop.

    factory: makes a loop with add_reader(), such as `uvloop.new_event_loop`; None: asyncio's own
    selector loop, the default.  TypeError if it cannot be called.
    """
    global _factory  # noqa: PLW0603
    if factory is not None and not callable(factory):
        raise TypeError("the factory must be a callable or None")
    _factory = factory if factory is not None else _own_loop


def _tell_main(error: BaseException) -> None:
    """Raise it in the main tasklet, as it would be raised in a thread without tasklets."""
    main = getmain()
    if not _native.io_interrupt(main, error):
        main.throw(error, pending=True)


class Turns:
    """Gives the tasklets of this thread their turns in an event loop that runs in it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, ours: bool) -> None:
        self.loop = loop
        self.ours = ours
        self.ended = False
        # The running loop and the hooks as the tasklets see them.
        self.outside: list[Any] = [None, sys.get_asyncgen_hooks()]
        self.passes = 0
        ready = getattr(loop, "_ready", ())  # used only if it is asyncio's own deque
        self.queued: Callable[[], int] = ready.__len__ if isinstance(ready, deque) else int
        self.descriptor = _native.io_poller()
        loop.add_reader(self.descriptor, _native.io_guard_turns, self.turn)
        self.soon()

    def soon(self) -> None:
        """Make the loop call `turn` in its next pass."""
        self.loop.call_soon(_native.io_guard_turns, self.turn)

    def turn(self) -> None:
        """Run the other tasklets, for which the thread looks as if the loop did not run."""
        if self.ended:
            return  # this call was scheduled before the end
        if self.ours and self.passes < _PASSES and self.queued():
            self.passes += 1
            self.soon()
            return
        self.passes = 0
        again = True
        try:
            again = _native.io_turn(self.ours, self.outside)
        except TaskletExit:
            raise
        except BaseException as error:  # noqa: BLE001  # from a deadlock, or a signal handler
            _tell_main(error)
        if again:
            self.soon()

    def end(self) -> None:
        """Give no more turns."""
        self.ended = True
        self.loop.remove_reader(self.descriptor)


class Hub:
    """A thread's own loop, and the tasklet that it runs in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = os.getpid()
        self.loop = loop
        # Not a method: then the tasklet would keep the hub, which closes a loop that has not begun.
        self.tasklet = tasklet(_run).set_context(contextvars.Context())
        self.begun = False

    def __del__(self) -> None:
        if self.pid == os.getpid() and not self.loop.is_running():
            self.loop.close()


def _run(turns: Turns) -> None:
    """Run the hub's loop until the thread ends; exceptions of signal handlers go to main."""
    pid, loop = os.getpid(), turns.loop
    turns.outside = [asyncio._get_running_loop(), sys.get_asyncgen_hooks()]
    asyncio._set_running_loop(None)
    try:
        with tasklet_atomic():  # a watchdog must not interrupt the hub
            while True:
                try:
                    _native.io_guard_turns(loop.run_forever)
                except TaskletExit:
                    raise
                except BaseException as error:  # noqa: BLE001
                    _tell_main(error)
    finally:
        if pid == os.getpid():
            turns.end()
            _native.io_own_hub(None)
            _finish(loop)
        asyncio._set_running_loop(turns.outside[0])


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    """End a loop as asyncio.run() does: its tasks are cancelled, and end."""
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


def _hub_of_thread() -> Hub:
    loops = _loops()
    while True:
        hub = loops.hub
        if hub is not None and hub.pid == os.getpid() and hub.tasklet.alive:
            _native.io_own_hub(hub.tasklet)
            if not hub.begun:
                hub.begun = True
                hub.tasklet.insert()
            return hub
        if hub is not None and hub.pid != os.getpid():
            _left_behind.append(hub)
        made = _make_hub()
        # If a signal handler or a trace function that waited has made a hub meanwhile, that one
        # stays: two loops would take the poller's events from each other.
        if loops.hub is hub:
            loops.hub = made


def _make_hub() -> Hub:
    """Make a hub that is ready to run; no other code knows it yet."""
    hub = Hub(_factory())
    hub.loop.slow_callback_duration = math.inf  # a turn of the tasklets takes as long as they do
    # Bound before it runs: the kernel refuses the loop's watch if a hundred tasklets wait by
    # epolls of their own already; if the loop watches first, it refuses later tasklets (EINVAL).
    hub.tasklet.bind(args=(Turns(hub.loop, ours=True),))
    hub.tasklet.trace_function = hub.tasklet.profile_function = None  # not the program's code
    return hub


def start() -> None:
    """Make this thread's hub, unless a live one exists, or let it go on; it runs at its turn."""
    hub = _hub_of_thread().tasklet
    if hub.paused:
        hub.insert()


def attach(loop: asyncio.AbstractEventLoop) -> None:
    """Give this thread's tasklets their turns in a loop of the program, while that runs."""
    loops = _loops()
    turns, hub = loops.turns, loops.hub
    known = (turns and turns.loop, hub and hub.loop)
    if loop not in known:
        # With patched selectors the loop may have waited as a tasklet: its epoll is in the poller,
        # and the poller cannot be in it too (ELOOP).  The loop runs, so no tasklet waits for it.
        selector = getattr(loop, "_selector", None)
        if selector is not None and hasattr(selector, "fileno"):
            _native.io_forget(selector.fileno())
        loops.turns = Turns(loop, ours=False)


def loop_of_thread() -> asyncio.AbstractEventLoop:
    """Return the event loop that gives this thread's tasklets their turns, started if need be."""
    turns = _loops().turns
    if turns is not None and turns.loop.is_running():
        return turns.loop
    return _hub_of_thread().loop
