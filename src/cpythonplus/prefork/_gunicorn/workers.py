"""A gthread worker that can be replaced without dropping a request.

A worker that leaves must not close a connection whose last answer promised to keep it alive.  The
client may be sending its next request at that moment, and would see a reset.  So a leaving worker

    1. stops accepting: connections in the listen queue belong to the other workers;
    2. answers requests in flight, and later ones on kept-alive connections, each with
       `Connection: close`, after which the client opens a new connection, to another worker;
    3. closes idle connections when their keepalive has run out, as it would have done anyway;
    4. ends when none is left, at the latest after graceful_timeout.

gunicorn 20 to 23 close every connection at once, 24 to 26 those that were idle when the last answer
was sent, 27 all after two seconds.  The sync worker needs none of this: it answers one request for
each connection, and says so.

When the whole server stops (SIGTERM), idle connections are kept for STOP_LINGER_S at most.
"""

# gunicorn's classes differ from version to version, so they cannot be typed.
# ruff: noqa: ANN401, FBT003

import selectors
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.workers import gthread

STOP_LINGER_S = 2.0
_TURN_S = 1.0
_DRAIN_TURN_S = 0.1


_GunicornWorker: Any = gthread.ThreadWorker


class _Leaving(_GunicornWorker):  # type: ignore[misc]
    """The common part of the workers for all versions of gunicorn."""

    told_to_stop = False
    """Whether the server wants this worker to end without a replacement."""
    on_draining: Callable[[], object] | None = None
    """Called when the worker no longer accepts and still has connections."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: stop serving soon.  It may come while the worker is leaving by itself."""
        self.told_to_stop = True
        super().handle_exit(sig, frame)

    def _drain(self, waiting: Callable[[], bool], turn: Callable[[float], object]) -> None:
        """Do steps 2 and 3; `waiting` tells whether connections are left, `turn` serves them."""
        if waiting() and not self.told_to_stop and self.on_draining is not None:
            self.on_draining()
        end = time.monotonic() + self.cfg.graceful_timeout
        stop_at: float | None = None
        while waiting():
            now = time.monotonic()
            if self.told_to_stop and stop_at is None:
                stop_at = now + STOP_LINGER_S
                # Have all idle connections closed at `stop_at` at the latest.
                latest = stop_at - time.monotonic() + self._now()
                for conn in list(self._idle()):
                    conn.timeout = min(conn.timeout, latest)
            if now > end:
                break
            self.notify()
            turn(_DRAIN_TURN_S)

    def _set_timeout(self, conn: Any) -> None:
        """Let a leaving worker's connection be idle for as long as was promised to its client."""
        conn.set_timeout()
        if self.told_to_stop:
            conn.timeout = min(conn.timeout, self._now() + STOP_LINGER_S)

    def _now(self) -> float:
        """Return the time on the clock of the connections' timeouts."""
        return time.monotonic()

    def _idle(self) -> Any:
        """Return the connections that are kept alive, the first to be closed first."""
        return self.keepalived_conns  # gunicorn 24 on


class ThreadWorker24(_Leaving):
    """For gunicorn 24 on: one thread has all the connections, the pool's threads report to it."""

    def run(self) -> None:
        """Serve until told to leave, then leave as described above."""
        self.poller.register(
            self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks
        )
        self.set_accept_enabled(True)
        while self.alive:
            self.notify()
            self.set_accept_enabled(self.nr_conns < self.worker_connections)
            self._turn(_TURN_S)
            if not self.is_parent_alive():
                break
        self.set_accept_enabled(False)
        self._drain(lambda: self.nr_conns > 0, self._turn)
        self._close()

    def _turn(self, timeout: float) -> None:
        self.wait_for_and_dispatch_events(timeout=timeout)
        self.murder_keepalived()
        if hasattr(self, "murder_pending"):  # gunicorn 25.2 on
            self.murder_pending()

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Take a connection back from the pool.  A promise to keep it alive is kept."""
        kept = (
            not self.alive and not fs.cancelled() and fs.exception() is None and fs.result() is True
        )
        if not kept:
            super().finish_request(conn, fs)
        elif not hasattr(gthread, "STOP_KEEPALIVE_LINGER"):
            self._keep_alive(conn)
        else:
            super().finish_request(conn, fs)  # from 27 on the same, for two seconds only
            if conn in self.keepalived_conns:
                self._set_timeout(conn)

    def _keep_alive(self, conn: Any) -> None:
        try:
            conn.sock.setblocking(False)
            self._set_timeout(conn)
            self.keepalived_conns.append(conn)
            readable = partial(self.on_client_socket_readable, conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, readable)
        except (OSError, ValueError):  # the application has closed it
            if conn in self.keepalived_conns:
                self.keepalived_conns.remove(conn)
            self.nr_conns -= 1
            conn.close()

    def _close(self) -> None:
        for conn in [*self.keepalived_conns, *getattr(self, "pending_conns", ())]:
            conn.close()
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()


class ThreadWorker22(_Leaving):
    """For gunicorn 21 to 23: the pool's threads put connections back themselves, under a lock."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Written under the GIL only: the set's own methods.
        self._busy: set[Future[Any]] = set()
        self._listening = False

    def run(self) -> None:
        """Serve until told to leave, then leave as described above."""
        while self.alive:
            self.notify()
            self._listen(wanted=self.nr_conns < self.worker_connections)
            self._turn(_TURN_S if self._listening else _DRAIN_TURN_S)
            if not self.is_parent_alive():
                break
        self._listen(wanted=False)
        self._drain(self._has_connections, self._turn)
        self.tpool.shutdown(False)
        self.poller.close()
        for listener in self.sockets:
            listener.close()

    def _listen(self, *, wanted: bool) -> None:
        if wanted == self._listening:
            return
        for listener in self.sockets:
            if wanted:
                listener.setblocking(False)
                accept = partial(self.accept, listener.getsockname())
                self.poller.register(listener, selectors.EVENT_READ, accept)
            else:
                self.poller.unregister(listener)
        self._listening = wanted

    def _turn(self, timeout: float) -> None:
        for key, _ in self.poller.select(timeout):
            key.data(key.fileobj)
        self.murder_keepalived()

    def _has_connections(self) -> bool:
        # Not `nr_conns`: several threads count it down, and it may be wrong.
        return bool(self._busy or self.poller.get_map())

    def _wrap_future(self, fs: Any, conn: Any) -> None:
        fs.conn = conn
        self._busy.add(fs)
        fs.add_done_callback(self.finish_request)

    def finish_request(self, fs: Any) -> None:
        """Take a connection back, in a thread of the pool.  A promise to keep it alive is kept."""
        try:
            if self.alive or fs.cancelled() or fs.exception() is not None or not fs.result()[0]:
                super().finish_request(fs)
                return
            self._keep_alive(fs.conn)
        finally:
            self._busy.discard(fs)

    def _keep_alive(self, conn: Any) -> None:
        with suppress(OSError, ValueError):  # the client has gone
            conn.sock.setblocking(False)
            self._set_timeout(conn)
            with self._lock:
                self._keep.append(conn)
                readable = partial(self.on_client_socket_readable, conn)
                self.poller.register(conn.sock, selectors.EVENT_READ, readable)

    def _now(self) -> float:
        return time.time()

    def _idle(self) -> Any:
        return self._keep


class ThreadWorker20(ThreadWorker22):
    """For gunicorn 20.1: a new connection goes to the pool before any data has come in."""

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        """Serve the next request of a connection: the name that it has from 21 on."""
        self.reuse_connection(conn, client)
