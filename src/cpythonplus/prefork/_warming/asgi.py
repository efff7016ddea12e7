"""Sending requests to an ASGI application, without a server: its lifespan is around all of them.

The lifespan is handled like uvicorn's `auto`: if the application raises when its lifespan begins,
it is served without one.

A worker's first request would find lost connections that the warm-up has left in a pool of the
application.  So if some are left, each worker sends the requests that opened them (`rehearsed`), in
its own event loop, after its start-up and before it serves: the pool drops the lost connections,
and connects.  Only requests are sent that change nothing, by their method.

Rejected: removing lost connections from lists that `gc.get_referrers` finds, which may be any
lists; connecting the transports anew, for a login would be missing; using the loop itself in the
workers, since neither uvicorn nor uvloop lets a loop survive a fork.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit

from cpythonplus.prefork._guarding import in_one_line
from cpythonplus.prefork._warming.limit import TooLong
from cpythonplus.prefork._warming.loop import WarmLoop, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Protocol

    from cpythonplus._base.requests import Request
    from cpythonplus.prefork._warming.kept import Kept

    class Log(Protocol):
        """The methods used of gunicorn's Logger and those of `logging`."""

        def warning(self, msg: str, *args: object) -> None:
            """Write one line."""

    _Send = Callable[[dict[str, Any]], Awaitable[None]]

_WORKER_LIMIT_S = 10.0
"""The limit for all requests that a worker sends itself: the server waits meanwhile."""

_FAILURES = 500


class AsgiSession:
    """The application between its start-up and its shut-down, in one event loop.

    kept: connections that the requests leave open are noted there. tell: called with an error of
    the shut-down, in one line. lifespan: whether there are start-up and shut-down at all.
    """

    def __init__(
        self,
        application: Callable[..., Any],
        kept: Kept,
        tell: Callable[[str], object],
        *,
        lifespan: bool = True,
    ) -> None:
        self._application = application
        self._tell = tell
        self._has_lifespan = lifespan
        self._loop = WarmLoop(kept)
        self._lifespan: _Lifespan | None = None

    def ask(self, request: Request, limit_s: float) -> tuple[int, int]:
        """Return the status and the length of the answer; raises the application's exceptions."""
        if self._lifespan is None:
            self._lifespan = _Lifespan(self._application)
            if self._has_lifespan:
                self._loop.run(self._lifespan.start(), limit_s)
        state = self._lifespan.state
        return self._loop.run(_ask(self._application, request, state), limit_s, request)

    def close(self, limit_s: float) -> None:
        """Shut the application down, and end the loop."""
        try:
            if self._lifespan is not None and self._lifespan.is_there:
                self._loop.run(self._lifespan.stop(), limit_s)
        except (Exception, TooLong) as error:  # noqa: BLE001  # any error of the application
            self._tell(f"the warm-up's shut-down of the application: {in_one_line(error)}")
        finally:
            self._loop.close()


class _Lifespan:
    """The lifespan of an application, in a task of its own."""

    def __init__(self, application: Callable[..., Any]) -> None:
        self.state: dict[str, Any] = {}
        self.is_there = False
        """Whether the application has a lifespan, which has started."""
        self._application = application
        self._task: asyncio.Task[None] | None = None
        self._asked: asyncio.Queue[str] = asyncio.Queue()
        self._answered: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def start(self) -> None:
        """Start the application; RuntimeError with its message if it reports a failure."""
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        call = self._application(scope, self._receive, self._answered.put)
        self._task = asyncio.ensure_future(call)
        # An exception that is not fetched would be logged.
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
        self.is_there = await self._ask("startup", self._task)

    async def stop(self) -> None:
        """Shut the application down; raises its exceptions and reported failures."""
        if self._task is not None:
            await self._ask("shutdown", self._task)
            await self._task

    async def _receive(self) -> dict[str, str]:
        return {"type": f"lifespan.{await self._asked.get()}"}

    async def _ask(self, what: str, task: asyncio.Task[None]) -> bool:
        """Return whether the application answered, and did not end without a message."""
        self._asked.put_nowait(what)
        answered = asyncio.ensure_future(self._answered.get())
        try:
            await asyncio.wait({answered, task}, return_when=asyncio.FIRST_COMPLETED)
            if not answered.done():
                return False
        finally:
            answered.cancel()
        message = answered.result()
        if message["type"] == f"lifespan.{what}.failed":
            # Starlette's message is a traceback.
            lines = str(message.get("message", "")).strip().splitlines()
            raise RuntimeError(lines[-1] if lines else message["type"])
        return True


async def _ask(
    application: Callable[..., Any], request: Request, state: dict[str, Any]
) -> tuple[int, int]:
    ended = asyncio.Event()
    asked = status = length = 0

    async def receive() -> dict[str, object]:
        nonlocal asked
        asked += 1
        if asked == 1:
            return {"type": "http.request", "body": request.body, "more_body": False}
        # An application that asks again waits for the client to disconnect: not before the answer.
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, length
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            length += len(message.get("body", b""))
            if not message.get("more_body", False):
                ended.set()

    await application(_scope(request, state), receive, send)
    return status, length


def _scope(request: Request, state: dict[str, Any]) -> dict[str, Any]:
    url = urlsplit(request.target)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme or "http",
        "path": unquote_to_bytes(url.path or "/").decode("utf-8", "replace"),
        "raw_path": (url.path or "/").encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.all_headers()
        ],
        "client": ("127.0.0.1", 0),
        "server": request.server,
        "state": state.copy(),
    }


# ---- in a worker --------------------------------------------------------------------------------


def rehearsed(application: Callable[..., Any], kept: Kept, log: Log) -> Callable[..., Any]:
    """Return the application with a step that uses the `kept` connections before it serves."""
    if not kept.counts():
        return application

    async def with_rehearsal(scope: dict[str, Any], receive: object, send: _Send) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        is_due = True

        async def rehearse() -> None:
            nonlocal is_due
            if is_due:
                is_due = False
                await _rehearse(application, scope.get("state", {}), kept, log)

        async def after_start(message: dict[str, Any]) -> None:
            nonlocal is_due
            if message["type"] == "lifespan.startup.complete":
                await rehearse()
            is_due = False
            await send(message)

        try:
            await application(scope, receive, after_start)
        finally:
            await rehearse()  # if there is no lifespan

    return with_rehearsal


async def _rehearse(
    application: Callable[..., Any], state: dict[str, Any], kept: Kept, log: Log
) -> None:
    """Send each request until it is answered well; raises nothing, lasting failures are logged.

    It is sent at most once more than there are connections that it may find lost.
    """
    try:
        await until(_send_all(application, state, kept, log), _WORKER_LIMIT_S)
    except TooLong:
        log.warning(
            "what this worker asks itself after the warm-up took longer than %g s; it serves",
            _WORKER_LIMIT_S,
        )


async def _send_all(
    application: Callable[..., Any], state: dict[str, Any], kept: Kept, log: Log
) -> None:
    for request, count in kept.counts().items():
        if not request.is_safe:
            continue
        why = ""
        for _ in range(count + 1):
            try:
                status, _length = await _ask(application, request, state)
            except Exception as error:  # noqa: BLE001  # the application's
                why = f"raised {in_one_line(error)}"
            else:
                if status < _FAILURES:
                    break
                why = f"was answered {status}"
        else:
            log.warning(
                "the warm-up of %s is repeated in this worker, and %s. If that is about an event"
                " loop, the application keeps something of the warm-up's: make it in the"
                " lifespan's start-up",
                request,
                why,
            )
