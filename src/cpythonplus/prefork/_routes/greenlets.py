"""Requests that greenlets serve, which take turns in one thread: those of gevent and eventlet.

greenlet calls a function after each switch. The use of the thread between two switches belongs to
the request of the greenlet that ran, so a request gets what it used in each of its turns.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import perf_counter_ns
from typing import Any

from cpythonplus._base.web.wsgi import around_wsgi
from cpythonplus.prefork._routes.counting import Request, Routes


class Greenlets:
    """The requests of the greenlets of one thread."""

    def __init__(self, routes: Routes) -> None:
        """Count them in `routes`, once the thread has called `watch`."""
        self._routes = routes
        self._requests: dict[Any, Request] = {}
        self._before, self._began_ns = routes.use(), 0
        self._inner: Callable[[str, Any], object] | None = None
        self._main: Any = None
        self.current: Callable[[], Any] = lambda: None

    def around(self, application: Any) -> Any:  # noqa: ANN401  # any application
        """Return a WSGI application whose requests are counted."""
        return around_wsgi(application, partial(_GreenletRequest, self, self._routes))

    def watch(self) -> None:
        """Look at the switches of the calling thread, whose greenlets serve the requests."""
        greenlet: Any = import_module("greenlet")
        self.current = greenlet.getcurrent
        self._main = self._main_of_thread()
        self._inner = greenlet.gettrace()
        greenlet.settrace(self._switched)

    def is_own_thread(self) -> bool:
        """Whether the calling thread is the one whose switches are seen."""
        return self._main_of_thread() is self._main

    def begin(self, request: Request) -> None:
        """Let the turns of the running greenlet be those of a request."""
        self._requests[self.current()] = request
        self._before, self._began_ns = self._routes.use(), perf_counter_ns()

    def end(self, greenlet: object) -> None:
        """End that; the use of a turn that is not over yet is added."""
        request = self._requests.pop(greenlet, None)
        if request is not None and self.current() is greenlet:
            self._add(request)

    def _add(self, request: Request) -> None:
        request.add(self._before, perf_counter_ns() - self._began_ns)

    def _main_of_thread(self) -> object:
        found = self.current()
        while found is not None and found.parent is not None:
            found = found.parent
        return found

    def _switched(self, event: str, greenlets: Any) -> None:  # noqa: ANN401  # greenlet's
        origin, target = greenlets
        request = self._requests.get(origin)
        if request is not None:
            self._add(request)
        if target in self._requests:
            self._before, self._began_ns = self._routes.use(), perf_counter_ns()
        if self._inner is not None:
            self._inner(event, greenlets)


class _GreenletRequest(Request):
    """One request, which the greenlet that begins it serves from begin to end."""

    __slots__ = ("_greenlet", "_greenlets")

    def __init__(self, greenlets: Greenlets, routes: Routes, name: str) -> None:
        super().__init__(routes, name)
        self._greenlets, self._greenlet = greenlets, greenlets.current()
        greenlets.begin(self)

    def end(self, name: str = "") -> None:
        """End it. name: if it is only known now."""
        self._greenlets.end(self._greenlet)
        super().end(name)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call a function in a pool; its threads are greenlets of the same thread, or real ones."""
        if not self._greenlets.is_own_thread():
            return super().call(function, *args, **kwargs)
        self._greenlets.begin(self)
        try:
            return function(*args, **kwargs)
        finally:
            self._greenlets.end(self._greenlets.current())
