"""WSGI: a request is a span from its call until its response is closed."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from cpythonplus._base.web.routes import NO_ROUTE, NOT_FOUND, django_route, guess, werkzeug_route

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Span(Protocol):
    """One request; it begins when it is made, with a preliminary name."""

    def end(self, name: str = "", /) -> object:
        """End it; name: the one that is known now, or ""."""


class _Request:
    """One request; status: of its answer, 0 before; route: "" while unknown."""

    __slots__ = ("environ", "route", "span", "status")

    def __init__(self, environ: Environ, begin: Callable[[str], Span]) -> None:
        self.environ: Environ | None = environ
        self.route = ""
        self.status = 0
        self.span = begin(guess(environ.get("REQUEST_METHOD"), environ.get("PATH_INFO")))

    def end(self) -> None:
        environ, self.environ = self.environ, None
        if environ is not None:
            self.span.end(self.route or (NO_ROUTE if self.status == NOT_FOUND else ""))


class _Response:
    """A response whose end is the end of its request."""

    __slots__ = ("_body", "_parts", "_request")

    def __init__(self, body: Iterable[bytes], request: _Request) -> None:
        self._body, self._request = body, request
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        if self._parts is None:
            self._parts = iter(self._body)
        return self

    def __next__(self) -> bytes:
        if self._parts is None:
            self._parts = iter(self._body)
        return next(self._parts)

    def __del__(self) -> None:
        self._request.end()  # for a server that does not close it

    def close(self) -> None:
        """Close the response, and end the request."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._parts = None
            self._body = ()
            self._request.end()


def around_wsgi(application: Application, begin: Callable[[str], Span]) -> Application:
    """Return a WSGI application each of whose requests is a span; `begin` makes it.

    A request lasts until its response is closed. It is named by its method and the route that Flask
    or Django found, as in `GET /users/<int:id>`; without them by the path, with `*` for numbers and
    keys. A file that the server sends by itself lasts until it is handed over.
    """

    def spanned(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = _Request(environ, begin)

        def start(status: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as it is
            request.status = int(status[:3]) if status[:3].isdigit() else 0
            request.route = werkzeug_route(environ)
            return start_response(status, *args, **kwargs)

        try:
            body = application(environ, start)
        except BaseException:
            request.end()
            raise
        request.route = request.route or django_route(environ, body)
        sent_by_server = environ.get("wsgi.file_wrapper")
        whole = isinstance(body, (list, tuple)) or (
            isinstance(sent_by_server, type) and isinstance(body, sent_by_server)
        )
        if whole:
            request.end()
            return body
        return _Response(body, request)

    return spanned
