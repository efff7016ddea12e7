"""Using an application before the fork, so that its caches are filled once for all workers.

A path is asked for through the application's own interface, WSGI or ASGI: no socket, no server. So
the code that answers a request has run, its bytecode is specialised and its caches are filled when
the memory becomes shared.

A warm-up does not run an ASGI application's lifespan (what that opens, connections and tasks,
belongs to a worker), follow redirects, or send a body.  Connections that a request opened must not
be used by two processes: see `_pools` and `_connections`.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from importlib import import_module
from pkgutil import resolve_name
from time import monotonic
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote_to_bytes, urlsplit
from wsgiref.util import setup_testing_defaults

from cpythonplus.prefork._guarding import in_one_line, passes_through
from cpythonplus.prefork._options import is_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = ["Answer", "Failed", "is_asgi", "request", "warm_up"]

REPEATS = 8
"""Requests for each path: from the eighth run on the bytecode of 3.11 to 3.15 is specialised."""

ENOUGH_S = 1.0
"""After so many seconds a path is not asked for again: a slow start is worse than cold bytecode."""

_NOT_AN_ANSWER = 400


class Failed(Exception):  # noqa: N818  # it names what happened
    """A warm-up that cannot be carried out; the text is the one line to show."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the application answered to a GET of `target`.

    status: the HTTP status; 0 when there was none.  length: bytes of the body.
    """

    target: str
    status: int
    length: int

    @property
    def good(self) -> bool:
        """Whether the request did what it would do for a client."""
        return 0 < self.status < _NOT_AN_ANSWER

    def __str__(self) -> str:
        return f"warm-up of {self.target}: the application answered {self.status or 'nothing'}"


def warm_up(
    targets: Sequence[str | Callable[[], object]],
    application: Callable[..., Any] | None = None,
    after: Callable[[str], object] = lambda _: None,
) -> list[Answer]:
    """Carry out `targets` in their order; returns what the paths among them were answered.

    application: what paths are asked of.  after: called after each, with its name, also where it
    has failed.

    Raises Failed where a callable cannot be found, or where it or the application raises: whatever
    that is, SystemExit too, which commands of Django raise.
    """
    answers = []
    for target in targets:
        try:
            if is_path(target):
                if application is None:
                    raise Failed(f"the warm-up of {target}: no application was found")
                answers.append(_ask(application, str(target)))
            else:
                _call(target)
        finally:
            after(f"the warm-up {_named(target)}")
    return answers


def _ask(application: Callable[..., Any], target: str) -> Answer:
    end, pid = monotonic() + ENOUGH_S, os.getpid()
    try:
        answer = request(application, target)
        for _ in range(REPEATS - 1):
            if monotonic() > end or not answer.good:
                break
            answer = request(application, target)
    except BaseException as error:
        if passes_through(error, pid):
            raise
        raise Failed(f"the warm-up of {target} raised {_told(error)}") from error
    return answer


def _call(target: str | Callable[[], object]) -> None:
    name = _named(target)
    pid, step = os.getpid(), "cannot be imported:"
    try:
        function = _found(target) if isinstance(target, str) else target
        step = "raised"
        if function is not None:
            function()
    except Failed:
        raise
    except BaseException as error:
        if passes_through(error, pid):
            raise
        raise Failed(f"the warm-up {name} {step} {_told(error)}") from error


def _named(target: str | Callable[[], object]) -> str:
    return target if isinstance(target, str) else getattr(target, "__qualname__", repr(target))


def _found(target: str) -> Callable[[], object] | None:
    """Import what is named; return what is to be called, None for a module."""
    if ":" not in target:
        import_module(target)
        return None
    found = resolve_name(target)
    if not callable(found):
        raise Failed(f"the warm-up {target} is not callable")
    return cast("Callable[[], object]", found)


def _told(error: BaseException) -> str:
    return in_one_line(error, __file__)


# ---- one request --------------------------------------------------------------------------------


def is_asgi(application: object) -> bool:
    """Whether `application` is called the ASGI way: a coroutine function of three arguments."""
    call = getattr(application, "__call__", None)  # noqa: B004  # the method, not whether it is there
    return inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(call)


def request(application: Callable[..., Any], target: str) -> Answer:
    """GET `target` from the application; whatever it raises is raised here."""
    if is_asgi(application):
        import asyncio  # large, and mostly not needed

        return asyncio.run(_asgi(application, target))
    return _wsgi(application, target)


def _wsgi(application: Callable[..., Any], target: str) -> Answer:
    url = urlsplit(target)
    status = 0

    def start_response(
        line: str, headers: Iterable[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        del headers, exc_info
        nonlocal status
        status = int(line.split(maxsplit=1)[0])
        return written.append

    written: list[bytes] = []
    environ = {
        # Undecoded bytes, in latin-1: PEP 3333.
        "PATH_INFO": unquote_to_bytes(url.path or "/").decode("latin-1"),
        "QUERY_STRING": url.query,
        "RAW_URI": target,
        "SERVER_NAME": url.hostname or "localhost",
        "SERVER_PORT": str(_port(target)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": url.netloc or "localhost",
        "HTTP_ACCEPT": "*/*",
        "HTTP_USER_AGENT": "cpythonplus-warm-up",
        "wsgi.url_scheme": url.scheme or "http",
        "wsgi.multiprocess": True,
    }
    setup_testing_defaults(environ)
    body = application(environ, start_response)
    try:
        length = sum(len(piece) for piece in body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return Answer(target, status, length + sum(map(len, written)))


async def _asgi(application: Callable[..., Any], target: str) -> Answer:
    url = urlsplit(target)
    host = url.netloc or "localhost"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": url.scheme or "http",
        "path": unquote_to_bytes(url.path or "/").decode("utf-8", "replace"),
        "raw_path": (url.path or "/").encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": [
            (b"host", host.encode()),
            (b"accept", b"*/*"),
            (b"user-agent", b"cpythonplus-warm-up"),
        ],
        "client": ("127.0.0.1", 0),
        "server": (url.hostname or "localhost", _port(target)),
        "state": {},
    }
    import asyncio

    ended = asyncio.Event()
    asked = status = length = 0

    async def receive() -> dict[str, object]:
        nonlocal asked
        asked += 1
        if asked == 1:
            return {"type": "http.request", "body": b"", "more_body": False}
        # Asked again, an application waits for the client to go: not before it has its answer.
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

    await application(scope, receive, send)
    return Answer(target, status, length)


def _port(target: str) -> int:
    url = urlsplit(target)
    return url.port or (443 if url.scheme == "https" else 80)
