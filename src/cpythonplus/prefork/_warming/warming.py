"""Using an application before the fork, so that its caches are filled once for all workers.

A path is requested through the application's own interface, WSGI, ASGI or aiohttp's: no server is
started.  So the code that answers a request has run, its bytecode is specialised and its caches are
filled when the memory becomes shared.

    here         the order of the steps, and their failures
    requests     requests, and the files that list them
    wsgi         one request of a WSGI application
    asgi         the session of an ASGI application, and a worker's rehearsal
    aiohttp      the session of an application of aiohttp
    loop, kept   the event loop of a session, and the connections that it leaves open
    limit        the time limit

A warm-up does not follow redirects, and keeps no cookies.  Connections that a request opened must
not be used by two processes: see `pools` and `connections`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pkgutil import resolve_name
from time import monotonic
from typing import Any, Protocol, cast

from cpythonplus._base import requests
from cpythonplus._base.requests import Request
from cpythonplus.prefork._applications import is_aiohttp, is_asgi
from cpythonplus.prefork._guarding import in_one_line, passes_through
from cpythonplus.prefork._options import is_path
from cpythonplus.prefork._warming import wsgi
from cpythonplus.prefork._warming.kept import Kept
from cpythonplus.prefork._warming.limit import TooLong, limit

REPEATS = 8
"""Requests for each path: from the eighth run on the bytecode of 3.11 to 3.15 is specialised."""

ENOUGH_S = 1.0
"""The time after which a path is not requested again: a slow start is worse than cold bytecode."""

_CLOSE_S = 30.0
_NOT_AN_ANSWER = 400


class Failed(Exception):  # noqa: N818  # it names what happened
    """A warm-up that cannot be carried out; the text is the one line to show."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The application's answer to a request.

    target: the path requested. status: the HTTP status; 0 when there was none. length: bytes of the
    body.
    """

    target: str
    status: int
    length: int

    @property
    def good(self) -> bool:
        """Whether the request was answered as a client would expect."""
        return 0 < self.status < _NOT_AN_ANSWER

    def __str__(self) -> str:
        return f"warm-up of {self.target}: the application answered {self.status or 'nothing'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """The plan of a warm-up.

    targets: paths, names and callables. file: of requests, which come after them. repeats: the
    number of times that each request is sent; 0: up to `REPEATS` times within `ENOUGH_S`, and once
    if its method may change something. limit_s: for each request in seconds; 0: none. lifespan:
    whether an ASGI application is started and shut down.
    """

    targets: Sequence[str | Callable[[], object]] = ()
    file: str | None = None
    repeats: int = 0
    limit_s: float = 0.0
    lifespan: bool = True


class _Session(Protocol):
    """An application to which requests are sent."""

    def ask(self, request: Request, limit_s: float) -> tuple[int, int]:
        """Return the status and the length of the answer; raises the application's exceptions."""

    def close(self, limit_s: float) -> None:
        """End the session; errors are logged."""


class _WsgiSession:
    def __init__(self, application: Callable[..., Any]) -> None:
        self._application = application

    def ask(self, request: Request, limit_s: float) -> tuple[int, int]:
        with limit(limit_s):
            return wsgi.ask(self._application, request)

    def close(self, limit_s: float) -> None:
        pass


def warm_up(
    plan: WarmUp,
    application: Callable[..., Any] | None = None,
    *,
    after: Callable[[str], object] = lambda _: None,
    tell: Callable[[str], object] = lambda _: None,
    failed: Callable[[Failed], object] | None = None,
    renew: Callable[[], object] = lambda: None,
    kept: Kept | None = None,
) -> list[Answer]:
    """Carry out `plan`; returns the application's answers.

    application: it answers the paths. after: called after each target, with its name, even if it
    has failed. tell: called with remarks that are no failures, in one line. failed: called with a
    failure, and the rest is done; without it Failed is raised. renew: called between the event loop
    of the warm-up and the second one, as before a fork. kept: connections that an event loop has
    left open are noted there.

    Raises Failed if a callable cannot be found, or if it or the application raises any exception,
    even SystemExit, which commands of Django raise.
    """
    warming = _Warming(plan, application, after, tell, Kept() if kept is None else kept)
    try:
        steps = warming.of_targets()
        steps += [warming.of_file, partial(warming.prove, renew)]
        for step in steps:
            try:
                step()
            except Failed as error:
                if failed is None:
                    raise
                failed(error)
    finally:
        warming.close()
    return warming.answers


class _Warming:
    """A warm-up: its steps, each of which may raise Failed."""

    def __init__(
        self,
        plan: WarmUp,
        application: Callable[..., Any] | None,
        after: Callable[[str], object],
        tell: Callable[[str], object],
        kept: Kept,
    ) -> None:
        self.answers: list[Answer] = []
        self._plan = plan
        self._application = application
        self._after = after
        self._tell = tell
        self._kept = kept
        self._session: _Session | None = None
        self._good: dict[Request, None] = {}
        """Requests that were answered well, and may be sent again."""

    def of_targets(self) -> list[Callable[[], None]]:
        return [partial(self._of, target) for target in self._plan.targets]

    def of_file(self) -> None:
        path = self._plan.file
        if path is None:
            return
        try:
            found = requests.read(path)
        except OSError as error:
            raise Failed(f"the warm-up's requests {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise Failed(f"the warm-up's requests {path}: {error}") from error
        if found.elsewhere:
            self._tell(
                f"the warm-up's requests {path}: {found.elsewhere} of other hosts are left out"
            )
        for each in found.requests:
            self._ask(each)

    def prove(self, renew: Callable[[], object]) -> None:
        """Send the requests once more as a worker will: in another loop, after another start-up."""
        if self._session is None or isinstance(self._session, _WsgiSession):
            return
        self.close()
        renew()
        for request in self._good:
            why = self._why_not_again(request)
            if why:
                raise Failed(
                    f"the warm-up of {request} spoils it for the workers: in another event loop,"
                    f" which each of them has, it {why}. Make in the start-up (lifespan) what"
                    " belongs to an event loop, and what the shut-down closes"
                )

    def _why_not_again(self, request: Request) -> str:
        why, pid = "", os.getpid()
        session = self._opened(request)
        # Repeat: each try may meet one more lost connection of the first loop.
        for _ in range(self._kept.counts().get(request, 0) + 1):
            try:
                answer = Answer("", *session.ask(request, self._plan.limit_s))
            except BaseException as error:
                if passes_through(error, pid):
                    raise
                why = f"raised {_told(error)}"
            else:
                if answer.good:
                    return ""
                why = f"was answered {answer.status}"
        return why

    def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close(self._plan.limit_s or _CLOSE_S)

    def _of(self, target: str | Callable[[], object]) -> None:
        if is_path(target):
            self._ask(Request(str(target)))
            return
        try:
            _call(target)
        finally:
            self._after(f"the warm-up {_named(target)}")

    def _ask(self, request: Request) -> None:
        try:
            answer = self._answer(request)
            self.answers.append(answer)
            if answer.good and request.is_safe:
                self._good[request] = None
        finally:
            self._after(f"the warm-up {request}")

    def _answer(self, request: Request) -> Answer:
        session = self._opened(request)
        left = self._plan.repeats or (REPEATS if request.is_safe else 1)
        end, pid = monotonic() + ENOUGH_S, os.getpid()
        try:
            while True:
                answer = Answer(str(request), *session.ask(request, self._plan.limit_s))
                left -= 1
                is_enough = not self._plan.repeats and monotonic() > end
                if not left or is_enough or not answer.good:
                    return answer
        except TooLong as error:
            raise Failed(f"the warm-up of {request} was ended: {error}") from error
        except BaseException as error:
            if passes_through(error, pid):
                raise
            raise Failed(f"the warm-up of {request} raised {_told(error)}") from error

    def _opened(self, request: Request) -> _Session:
        if self._session is None:
            self._session = self._made(request)
        return self._session

    def _made(self, request: Request) -> _Session:
        application = self._application
        if application is None:
            raise Failed(f"the warm-up of {request}: no application was found")
        if is_aiohttp(application):
            from cpythonplus.prefork._warming.aiohttp import AiohttpSession  # asyncio is large

            return AiohttpSession(application, self._kept, self._tell)
        if is_asgi(application):
            from cpythonplus.prefork._warming.asgi import AsgiSession

            return AsgiSession(application, self._kept, self._tell, lifespan=self._plan.lifespan)
        return _WsgiSession(application)


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
    """Import the named object; return the callable, or None for a module."""
    if ":" not in target:
        import_module(target)
        return None
    found = resolve_name(target)
    if not callable(found):
        raise Failed(f"the warm-up {target} is not callable")
    return cast("Callable[[], object]", found)


def _told(error: BaseException) -> str:
    return in_one_line(error, __file__.rpartition("/")[0])
