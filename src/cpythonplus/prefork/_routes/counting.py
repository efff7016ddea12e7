"""The use of a process by the requests of each route.

A request of WSGI runs in one thread, so its use is what the thread has used between its begin and
its end. Requests of ASGI take turns in a thread: the use of each *step*, from one point where its
coroutine goes on to the point where it waits again, is the request's. So are the functions that it
gives to a pool of threads (`pools.py`). Other tasks and threads belong to no route. Requests that
greenlets serve: `greenlets.py`. The tasks of celery take the place of routes, by their names.

Threads: numbers change between two points where the interpreter may switch, which is atomic with a
GIL.
"""

from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from functools import partial
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from cpythonplus._base.web.asgi import around_asgi
from cpythonplus._base.web.routes import NO_ROUTE
from cpythonplus._base.web.wsgi import around_wsgi
from cpythonplus.prefork._board.board import RouteRow
from cpythonplus.prefork._board.counts import MOST_LABELS, OTHER, TASK

Use = tuple[int, int, int, int, int]
"""A thread's use so far: ns with the GIL, waiting for it, of the processor; stalls; new bytes."""
_OTHERS = f"{OTHER} {OTHER}"


class Routes:
    """The use by each route so far; a name is a method and a route, as in `GET /users/{id}`."""

    current: ContextVar["Request | None"] = ContextVar("cpythonplus.prefork.route", default=None)
    """The request that the running code belongs to."""

    def __init__(self, use: Callable[[], Use], limit_ns: int, *, tasks: bool = False) -> None:
        """Count the use of routes, or of tasks.

        use: of the calling thread. limit_ns: of a step that blocks its event loop; 0: none.
        """
        self.use, self.limit_ns, self.tasks = use, limit_ns, tasks
        self.rows: dict[str, list[int]] = {}
        """By name: the number of requests, and the sums as in Use."""
        self._taken: dict[str, list[int]] = {}

    def around(self, application: Any, *, asgi: bool) -> Any:  # noqa: ANN401  # any application
        """Return an application whose requests are counted."""
        if asgi:
            return around_asgi(application, partial(Request, self), Request.run)
        return around_wsgi(application, partial(ThreadRequest, self))

    def begin_task(self, name: str) -> "Request":
        """Begin a task that this thread runs from begin to end; call its `end()`."""
        return ThreadRequest(self, f"{TASK} {name}")

    def count(self, name: str, requests: int, used: list[int]) -> None:
        """Add requests and their use."""
        row = self.rows.get(name)
        if row is None:
            name = name if len(self.rows) < MOST_LABELS else _OTHERS
            row = self.rows.setdefault(name, [0] * 6)
        held, waited, cpu, stalls, new_bytes = used
        # Each is atomic; a loop would be none.
        row[0] += requests
        row[1] += held
        row[2] += waited
        row[3] += cpu
        row[4] += stalls
        row[5] += new_bytes

    async def aiohttp(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Await an aiohttp handler, and count the request."""
        resource = request.match_info.route.resource
        route = getattr(resource, "canonical", None)
        span = Request(self, f"{request.method} {route}" if route else NO_ROUTE)
        try:
            return await span.run(handler(request))
        finally:
            span.end()

    def give(self, receive: Callable[[list[RouteRow]], object]) -> None:
        """Give `receive` the rows that have changed, with what was added since the last call."""
        now = {name: list(row) for name, row in list(self.rows.items())}
        rows = [
            RouteRow(*labels(name), *[a - b for a, b in zip(row, before, strict=True)])
            for name, row in now.items()
            if row != (before := self._taken.get(name, [0] * 6))
        ]
        if rows:
            receive(rows)  # it may fail, and get all of it the next time
            self._taken = now


def labels(name: str) -> tuple[str, str]:
    """Return the method and the route of a name, as OpenTelemetry's conventions have them."""
    method, _, route = ("_OTHER", "", name) if name == NO_ROUTE else name.partition(" ")
    return "_OTHER" if method == "?" else method, route


class Request:
    """One request; a span of `_base/web`, whose use is added step by step."""

    __slots__ = ("_ended", "_name", "_routes", "_used")

    def __init__(self, routes: Routes, name: str) -> None:
        """Begin it, with a preliminary name."""
        self._routes, self._name = routes, name
        self._used = [0, 0, 0, 0, 0]
        self._ended = False
        routes.current.set(self)

    def end(self, name: str = "") -> None:
        """End it. name: if it is only known now."""
        self._routes.current.set(None)
        self._name, self._ended = name or self._name, True
        self._routes.count(self._name, 1, self._used)

    def add(self, before: Use, step_ns: int = 0) -> None:
        """Add what the calling thread has used since `before`.

        step_ns: for how long it has kept its event loop. A step that was long because other threads
        had the GIL is no stall of its own.
        """
        used = [b - a for a, b in zip(before, self._routes.use(), strict=True)]
        if 0 < self._routes.limit_ns <= step_ns - used[1]:
            used[3] = max(used[3], 1)
        if self._ended:
            self._routes.count(self._name, 0, used)
            return
        for place, each in enumerate(used):
            self._used[place] += each

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call a function in this thread, as a part of the request."""
        before = self._routes.use()
        try:
            return function(*args, **kwargs)
        finally:
            self.add(before)

    def run(self, application: Awaitable[None]) -> Awaitable[None]:
        """Return what is awaited in place of the application's coroutine."""
        return _Stepped(self, self._routes, application)


class ThreadRequest(Request):
    """One request that its thread serves from begin to end, and no other one meanwhile."""

    __slots__ = ("_before", "_ident")

    def __init__(self, routes: Routes, name: str) -> None:
        """Begin it, with a preliminary name."""
        super().__init__(routes, name)
        self._ident, self._before = get_ident(), routes.use()

    def end(self, name: str = "") -> None:
        """End it. name: if it is only known now."""
        if get_ident() == self._ident:
            self.add(self._before)
        super().end(name)


class _Stepped:
    """An awaitable that does what another one does, and adds the use of each step to a request."""

    __slots__ = ("_inner", "_request", "_routes")

    def __init__(self, request: Request, routes: Routes, inner: Awaitable[None]) -> None:
        self._request, self._routes, self._inner = request, routes, inner

    def __await__(self) -> Generator[Any, Any, None]:
        inner = self._inner.__await__()
        go_on: Callable[[], Any] | None = partial(next, inner)
        routes, request = self._routes, self._request
        while go_on is not None:
            before, began_ns = routes.use(), perf_counter_ns()
            try:
                awaited = go_on()
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            finally:
                go_on = None  # it may hold an exception, whose traceback holds this frame
                request.add(before, perf_counter_ns() - began_ns)
            try:
                sent = yield awaited
            except GeneratorExit:
                inner.close()
                raise
            except BaseException as error:  # noqa: BLE001  # the coroutine's to handle
                go_on = partial(inner.throw, error)
            else:
                go_on = partial(inner.send, sent)
            awaited = None
        return None
