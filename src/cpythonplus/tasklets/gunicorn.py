"""A worker class for gunicorn: each connection in a tasklet.

    gunicorn --worker-class cpythonplus.tasklets.gunicorn.Worker --worker-connections 1000 app:app

It patches the process as `io.patch()` and `locks.patch()` do: locks when gunicorn begins, before a
preloaded application is imported, and the rest in the worker. `worker_connections`, `keepalive`,
`graceful_timeout` and `max_requests` mean what they mean for gunicorn's own asynchronous workers
(https://docs.gunicorn.org/en/stable/design.html); HTTP and WSGI are gunicorn's.
"""

# gunicorn's classes differ from version to version, so none of it can be typed.
# ruff: noqa: ANN401
# mypy: disable-error-code="misc,no-untyped-call,no-any-return"

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any

from gunicorn.sock import ssl_context
from gunicorn.workers.base_async import AsyncWorker

from cpythonplus._native import TaskletExit, set_error_handler, tasklet
from cpythonplus.tasklets import io, locks
from cpythonplus.tasklets.io import socket

__all__ = ["Worker"]

_NOTIFY_EVERY_S = 1.0  # gunicorn kills a worker that is silent for `timeout` seconds
_LOOK_EVERY_S = 0.1  # interval of the checks whether the last request has ended


class Worker(AsyncWorker):
    """Serves each connection in its own tasklet.

    An error of the application ends that request: the client gets status 500, gunicorn's error log
    the traceback. An error of a tasklet that the application has started goes to that log too, and
    ends nothing else, unless the application calls `set_error_handler()`. A request is killed
    (TaskletExit) if it is not done `graceful_timeout` seconds after the worker was told to end.
    """

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:  # noqa: ARG003
        """Check the configuration; called in the master at its start."""
        if cfg.worker_connections < 1:
            raise RuntimeError("worker_connections must be at least 1")

    @classmethod
    def setup(cls) -> None:
        """Patch locks; called in the master before an application is preloaded with its locks."""
        locks.patch()

    def init_process(self) -> None:
        """Patch the worker before the application is loaded."""
        locks.patch()
        io.patch()
        set_error_handler(self._tell)
        super().init_process()

    def notify(self) -> None:
        """Tell the master that all is well; exit if the master is gone."""
        super().notify()
        if self.ppid != os.getppid():
            self.log.info("Parent changed, shutting down: %s", self)
            sys.exit(0)

    def timeout_ctx(self) -> Any:
        """Return the limit of a connection's idle time."""
        return _at_most(self.cfg.keepalive)

    def run(self) -> None:
        """Serve until told to end."""
        listeners: list[Any] = [_taken_over(listener) for listener in self.sockets]
        self.sockets = listeners
        servers = [self._serve(listener) for listener in listeners]
        while self.alive and all(listener.fileno() >= 0 for listener in listeners):
            self.notify()
            io.sleep(_NOTIFY_EVERY_S)
        if self.alive:
            self.log.critical("A listener no longer listens, shutting down: %s", self)
        self._end(servers)

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        """Serve a connection."""
        client.settimeout(None)  # whatever socket.setdefaulttimeout() says
        super().handle(listener, client, addr)

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> Any:
        """Serve a request; the connection ends if the application exits, or is killed."""
        try:
            return super().handle_request(listener_name, req, sock, addr)
        except (SystemExit, TaskletExit):
            raise StopIteration from None

    def handle_quit(self, sig: Any, frame: Any) -> None:
        """End at once; in a tasklet, because a signal handler must not wait."""
        tasklet(super().handle_quit)(sig, frame)

    def handle_usr1(self, sig: Any, frame: Any) -> None:
        """Reopen the log files; in a tasklet too."""
        tasklet(super().handle_usr1)(sig, frame)

    def _tell(
        self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        try:
            if not issubclass(kind, Exception):
                raise error  # ends the worker
            self.log.error("Error in a tasklet", exc_info=(kind, error, traceback))
        finally:
            del error, traceback

    def _serve(self, listener: socket.socket) -> io.StreamServer:
        server = io.StreamServer(
            listener,
            partial(self.handle, _Named(listener)),
            ssl_context=ssl_context(self.cfg) if self.cfg.is_ssl else None,
            limit=self.worker_connections,
            on_error=self._failed,
        )
        server.start()
        return server

    def _failed(self, error: BaseException, addr: Any) -> None:
        if addr is None:
            self.log.error("Cannot accept connections: %s", error)
        elif isinstance(error, OSError):  # for example, a failed handshake
            self.log.debug("Ignored %r of a connection from %s", error, addr)
        else:
            self.log.error("Error at a connection from %s", addr, exc_info=error)

    def _end(self, servers: list[io.StreamServer]) -> None:
        deadline = monotonic() + self.cfg.graceful_timeout
        for server in servers:
            server.close()
        notified = 0.0
        while any(server.connections for server in servers) and monotonic() < deadline:
            if monotonic() - notified > _NOTIFY_EVERY_S:
                self.notify()
                notified = monotonic()
            io.sleep(_LOOK_EVERY_S)
        if any(server.connections for server in servers):
            self.log.warning("Worker graceful timeout (pid:%s)", self.pid)
        for server in servers:
            server.stop(timeout=0)


class _Named:
    """A listener whose name the last requests can still read after it was closed."""

    def __init__(self, listener: socket.socket) -> None:
        self._name = listener.getsockname()

    def getsockname(self) -> Any:
        """Return the address that it listens at, or listened at."""
        return self._name


def _taken_over(listener: Any) -> socket.socket:
    """Return gunicorn's listener as a socket of ours, which stops listening when it is closed."""
    return socket.socket(fileno=listener.sock.detach())


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Limit the time without an error."""
    limit = io.timeout(seconds)
    try:
        with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
