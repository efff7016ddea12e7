"""The one event loop of a warm-up, and the end of the connections opened in it.

An application keeps connections: in a pool, in a session.  All requests of a warm-up
therefore run in one loop, or the second one would find a connection of a loop that has ended.

At the end the loop aborts its open connections, and lets each transport tell its protocol.  So a
pool finds a lost connection in the worker, and nothing writes to the loop that has ended.  A
connection that is still referred to then is *kept*: it will be used, and found lost.  `asgi` has
each worker use it before a client does.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from cpythonplus.prefork._warming.limit import TooLong, limit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from cpythonplus._base.requests import Request
    from cpythonplus.prefork._warming.kept import Kept

_T = TypeVar("_T")

_OPENING = (
    "connect_accepted_socket",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "start_tls",
    "subprocess_exec",
    "subprocess_shell",
)
_TURNS = 10
"""The turns of the loop until the end of a connection has reached all its layers (TLS in TLS)."""
_CANCEL_S = 5.0
_GRACE_S = 1.0
_THREADS_S = 1.0


class WarmLoop:
    """An event loop that runs now and then."""

    def __init__(self, kept: Kept) -> None:
        """kept: connections that are still open at its end are noted there."""
        self._kept = kept
        self._opened: weakref.WeakKeyDictionary[Any, Request | None] = weakref.WeakKeyDictionary()
        self._runner = asyncio.Runner(loop_factory=self._made)
        self._asking: Request | None = None
        self._threads = set(threading.enumerate())

    def _made(self) -> asyncio.AbstractEventLoop:
        # The loop is not made the thread's: the program would have none at all afterwards.
        loop = asyncio.new_event_loop()
        for name in _OPENING:
            with suppress(AttributeError):  # another package's loop, without attributes
                setattr(loop, name, self._noting(getattr(loop, name)))
        return loop

    def _noting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def noting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # the loop's own
            opened = await method(*args, **kwargs)
            transport = opened[0] if isinstance(opened, tuple) else opened
            with suppress(TypeError):  # it may not support weak references
                self._opened[transport] = self._asking
            return opened

        return noting

    def run(
        self, coroutine: Coroutine[Any, Any, _T], limit_s: float, request: Request | None = None
    ) -> _T:
        """Run it to its end, for a request or not; TooLong after `limit_s` seconds, 0: never."""
        self._asking = request
        try:
            # `until` notices the end of the time, unless the coroutine blocks the loop.
            with limit(limit_s and limit_s + _GRACE_S):
                return self._runner.run(until(coroutine, limit_s))
        finally:
            self._asking = None

    def close(self) -> None:
        """Cancel its tasks, abort its connections, end it, and wait for its threads to end."""
        try:
            self._runner.run(self._end())
        finally:
            self._runner.close()
        # Wait for anyio's threads, which have been asked to end: a fork must not come before their
        # end.
        end = monotonic() + _THREADS_S
        for thread in set(threading.enumerate()) - self._threads:
            thread.join(max(end - monotonic(), 0))

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_S)
        for transport, request in list(self._opened.items()):
            if getattr(transport, "is_closing", bool)():
                continue
            if request is not None:
                self._kept.add(transport, request)
            with suppress(Exception):  # closed, or an error of the loop's own class
                getattr(transport, "abort", transport.close)()
        for _ in range(_TURNS):
            await asyncio.sleep(0)


async def until(coroutine: Coroutine[Any, Any, _T], limit_s: float) -> _T:
    """Await it; TooLong after `limit_s` seconds, 0: never."""
    if not limit_s:
        return await coroutine
    timeout = asyncio.timeout(limit_s)
    try:
        async with timeout:
            return await coroutine
    except TimeoutError:
        if not timeout.expired():
            raise
        raise TooLong(f"it took longer than {limit_s:g} s") from None
