"""Serving the open connections before a replaced uvicorn or aiohttp worker leaves.

As they stop, both close each connection that has no request right then.  A client that has just
connected, and is about to send, gets a reset.  So a worker that leaves by itself stops accepting
first, answers with `Connection: close`, and waits until no client is connected: for as long as idle
connections may be kept, and a second more.  `workers` does so for gthread.

When the whole server stops, workers do not wait: they stop as these servers do.
"""

# The servers' classes differ from version to version.
# ruff: noqa: ANN401

import asyncio
import functools
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from cpythonplus._base.modules import imported
from cpythonplus.prefork._warming.aiohttp import forget_loop

_CLOSE = (b"connection", b"close")
_TURN_S = 0.05
_QUIET = 3


LINGERING = ("uvicorn", "aiohttp")
"""The packages, by the beginnings of their names, whose workers linger."""


class Lingering:
    """The steps of one worker before its server stops: after `begin`, or after max_requests."""

    def __init__(self) -> None:
        self._worker: Any = None
        self._on_draining: Callable[[], object] = int
        self._begun = False
        self._is_in_place = False
        self._runner: Any = None  # aiohttp's

    def watch(self, worker: Any, on_draining: Callable[[], object]) -> None:
        """Handle the end of `worker`; on_draining: called when it accepts no more."""
        self._worker, self._on_draining, self._begun = worker, on_draining, False
        self._runner = None
        if self._is_in_place:
            return
        self._is_in_place = True
        uvicorn: Any = imported("uvicorn.server")
        if uvicorn is not None:
            uvicorn.Server.shutdown = self._before(uvicorn.Server.shutdown, _close_uvicorn)
        aiohttp: Any = imported("aiohttp.web_runner")
        if aiohttp is not None:
            aiohttp.BaseRunner.setup = self._noted(aiohttp.BaseRunner.setup)
            aiohttp.BaseRunner.cleanup = self._before(aiohttp.BaseRunner.cleanup, _close_aiohttp)

    def begin(self) -> None:
        """Have the worker linger when its server stops, which is about to happen."""
        self._begun = True

    def requests(self) -> int:
        """Return the number of requests that aiohttp has counted; its worker does not count."""
        server = getattr(self._runner, "server", None)
        return getattr(server, "requests_count", 0)

    def end(self) -> None:
        """Make an aiohttp application forget its event loop, which is closed.

        Else it refuses to run in another loop, in the workers that are forked from this one.
        """
        app, self._runner = getattr(self._runner, "app", None), None
        with suppress(AttributeError):
            if app is not None:
                forget_loop(app)

    def _noted(self, setup: Any) -> Any:
        @functools.wraps(setup)
        async def noted(runner: Any) -> Any:
            self._runner = runner
            return await setup(runner)

        return noted

    def _before(self, stop: Any, close: Callable[[Any], Any]) -> Any:
        @functools.wraps(stop)
        async def lingering(server: Any, *args: Any, **kwargs: Any) -> Any:
            if self._begun or self._has_served_all(server):
                self._begun = False
                await self._linger(server, close)
            return await stop(server, *args, **kwargs)

        return lingering

    def _has_served_all(self, server: Any) -> bool:
        """Whether the worker leaves because it has served `max_requests`: the servers count too."""
        served: int = getattr(getattr(server, "server_state", None), "total_requests", 0)
        return bool(max(served, self.requests()) >= self._worker.max_requests)

    async def _linger(self, server: Any, close: Callable[[Any], Any]) -> None:
        cfg = self._worker.cfg
        end, quiet = monotonic() + min(cfg.keepalive + 1.0, cfg.graceful_timeout), 0
        # Do not stop after the first turn: a connection accepted just now is not yet in the list.
        while quiet < _QUIET and monotonic() < end:
            quiet = 0 if await close(server) else quiet + 1
            self._on_draining()
            self._on_draining = int
            self._worker.tmp.notify()
            await asyncio.sleep(_TURN_S)


async def _close_uvicorn(server: Any) -> bool:
    """Accept no more, have each connection's next answer close it; return whether any is left."""
    for each in server.servers:
        each.close()
    headers = server.server_state.default_headers
    if _CLOSE not in headers:
        headers.append(_CLOSE)  # uvicorn reads its own headers, and closes the connection
    return bool(server.server_state.connections)


async def _close_aiohttp(runner: Any) -> bool:
    """Accept no more, have each connection's next answer close it; return whether any is left."""
    for site in list(runner.sites):
        await site.stop()
    connections = runner.server.connections if runner.server is not None else ()
    for connection in list(connections):
        make = connection._request_factory  # noqa: SLF001  # of an object that ends with this worker
        if not isinstance(make, _LastRequest):
            connection._request_factory = _LastRequest(make)  # noqa: SLF001
    return bool(connections)


class _LastRequest:
    """Makes aiohttp's requests as if their client wanted the connection closed after the answer."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, message: Any, *args: Any, **kwargs: Any) -> Any:
        return self._make(message._replace(should_close=True), *args, **kwargs)
