"""A server with one tasklet for each connection."""

import errno
import os
import socket as _stock
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any

from cpythonplus._native import (
    TaskletExit,
    getcurrent,
    io_delivery,
    io_sleep,
    io_unraisable,
    schedule,
    tasklet,
)
from cpythonplus.tasklets.io import socket
from cpythonplus.tasklets.io._descriptors import Limit

if TYPE_CHECKING:
    import ssl

# No descriptors or memory are left: accepting fails until a connection is closed.
_SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# The socket no longer listens: it was shut down, or closed by its number.
_OVER = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSOCK})
_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5
_IN_A_ROW = 16  # connections accepted before the tasklets of the accepted ones run
_KILLED_S = 1.0  # for the `finally` clauses of connections that stop() kills


class StreamServer:
    """Accepts connections; each is handled in its own tasklet, in the thread that starts it.

    listener: an address, ``(host, port)`` or a Unix socket's path, or a socket that listens, also a
    standard one, which the server takes over.  handle: called with the connection's socket and the
    peer's address; when it has returned the connection is closed. An exception, SystemExit too,
    ends only its own connection.  on_error: called with that exception and the peer's address, and
    with one that keeps the server from accepting and None; by default they are logged with their
    tracebacks, by the logger "cpythonplus.tasklets.io".  backlog: how many connections the system
    keeps until they are accepted.  ssl_context: for TLS; the handshake is made in the connection's
    tasklet.  limit: most connections at once, others wait to be accepted; None: as many as come.

    Raises OSError when it cannot listen, ValueError for a limit below 1 and for a socket that does
    not listen, TypeError for a `handle` that cannot be called and for an invalid listener or limit.
    """

    def __init__(
        self,
        listener: Any,  # noqa: ANN401  # an address of any family, or a socket
        handle: Callable[[Any, Any], object],
        *,
        backlog: int = 1024,
        ssl_context: "ssl.SSLContext | None" = None,
        limit: int | None = None,
        on_error: Callable[[BaseException, Any], object] | None = None,
    ) -> None:
        if not callable(handle):
            raise TypeError("handle must be callable")
        if on_error is not None and not callable(on_error):
            raise TypeError("on_error must be callable or None")
        if limit is not None and index(limit) < 1:
            raise ValueError("the limit must be at least 1")
        if ssl_context is not None:
            import ssl

            if not isinstance(ssl_context, ssl.SSLContext):
                raise TypeError(
                    f"ssl_context must be an SSLContext, not {type(ssl_context).__name__}"
                )
        self._handle = handle
        self._limit = limit
        self._on_error = on_error  # `or self._log` would make a cycle with the server
        self._ssl_context = ssl_context
        self._connections: set[tasklet] = set()
        self._begun: set[tasklet] = set()  # the connections that have begun
        self._killing = False
        self._acceptor: tasklet | None = None
        self._room: io_delivery | None = None  # set while the acceptor waits for a connection's end
        self._idle: list[io_delivery] = []  # one for each stop() that waits for all to end
        self._end = io_delivery()
        self._listener = _listening(listener, backlog)

    @property
    def address(self) -> Any:  # noqa: ANN401
        """The address that it listens at. OSError when it has been stopped."""
        return self._listener.getsockname()

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def start(self) -> None:
        """Begin to accept; returns at once. RuntimeError when it has been stopped."""
        if self._is_closed():
            raise RuntimeError("the server has been stopped")
        if self._acceptor is None:
            self._acceptor = tasklet(self._accept_all)()

    def serve_forever(self) -> None:
        """Accept until stop() is called, by any tasklet or thread."""
        self.start()
        self._end.wait()

    def close(self) -> None:
        """Accept no more; open connections continue."""
        self._listener.close()  # this ends the acceptor
        if self._room is not None:
            self._room.deliver()
        self._end.deliver()

    def stop(self, timeout: float | None = 1.0) -> None:
        """Accept no more, and wait for the connections to end.

        timeout: seconds; the connections that are left then are killed. None: as long as it takes.
        """
        self.close()
        if not self._wait_idle(timeout):
            # Do not kill a tasklet that has not begun: its `finally` would not run. It ends by
            # itself.
            self._killing = True
            for each in self._others() & self._begun:
                each.kill(pending=True)
            self._wait_idle(_KILLED_S)

    def _others(self) -> set[tasklet]:
        return self._connections - {getcurrent()}

    def _wait_idle(self, timeout: float | None) -> bool:
        """Return whether all connections but the caller's have ended."""
        limit = Limit(timeout)
        while self._others():
            ended = io_delivery()
            self._idle.append(ended)
            try:
                if not ended.wait(limit.left()):
                    return False
            finally:
                self._idle.remove(ended)
        return True

    # ---- accepting ---------------------------------------------------------------------------

    def _is_closed(self) -> bool:
        # close() wakes the acceptor before it gives up the number that fileno() returns, and the
        # collector may switch tasklets in between.
        return self._listener._fd < 0  # noqa: SLF001

    def _accept_all(self) -> None:
        pause, in_a_row = _PAUSE_S, 0
        while self._wait_for_room():
            try:
                connection, address = self._listener.accept()
            except OSError as error:
                if self._is_closed():
                    return
                if error.errno in _OVER:
                    self._report(error, None)
                    self._listener.close()
                    self._end.deliver()
                    return
                if error.errno in _SHORT_OF:
                    if pause == _PAUSE_S:
                        self._report(error, None)
                    io_sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE_S)
                else:  # an error of that connection, which has gone already
                    schedule()
                continue
            pause = _PAUSE_S
            self._connections.add(tasklet(self._serve)(connection, address))
            in_a_row += 1
            if in_a_row == _IN_A_ROW:
                in_a_row = 0
                schedule()

    def _wait_for_room(self) -> bool:
        """Wait below the limit of connections; return whether the listener still listens."""
        while self._limit is not None and len(self._connections) >= self._limit:
            self._room = io_delivery()
            try:
                self._room.wait()
            finally:
                self._room = None
            if self._is_closed():
                return False
        return True

    def _serve(self, connection: Any, address: Any) -> None:  # noqa: ANN401
        try:
            self._begun.add(getcurrent())
            if self._killing:
                return
            if self._ssl_context is not None:
                from cpythonplus.tasklets.io.ssl import SSLSocket

                # A standard context's own method would make a socket that blocks the thread.
                made: socket.socket = SSLSocket._create(  # noqa: SLF001
                    sock=connection, server_side=True, context=self._ssl_context
                )
                connection = made
            self._handle(connection, address)
        except (TaskletExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # from the program's handler
            self._report(error, address)
        finally:
            self._connections.discard(getcurrent())
            self._begun.discard(getcurrent())
            connection.close()
            if self._room is not None:
                self._room.deliver()
            for each in self._idle:
                each.deliver()

    def _report(self, error: BaseException, address: Any) -> None:  # noqa: ANN401
        on_error = self._on_error or self._log
        try:
            on_error(error, address)
        except Exception as second:  # noqa: BLE001  # from the program's function
            io_unraisable(second, on_error)

    def _log(self, error: BaseException, address: Any) -> None:  # noqa: ANN401
        import logging  # most servers have loaded it

        logger = logging.getLogger("cpythonplus.tasklets.io")
        if address is None:
            logger.error("%r cannot accept", self._handle, exc_info=error)
        else:
            logger.error("%r failed for %s", self._handle, address, exc_info=error)


def _listening(listener: Any, backlog: int) -> socket.socket:  # noqa: ANN401
    """Return a listening socket of ours."""
    if isinstance(listener, _stock.socket):
        return _taken_over(listener)
    if isinstance(listener, str | bytes | os.PathLike):
        return _listening_at_path(os.fspath(listener), backlog)
    try:
        host, port = listener[:2]
        six = ":" in host
        index(port)
    except (TypeError, ValueError):
        raise TypeError(
            f"the listener must be (host, port), a path or a socket that listens, not {listener!r}"
        ) from None
    made: socket.socket = socket.create_server(
        listener, family=_stock.AF_INET6 if six else _stock.AF_INET, backlog=backlog
    )
    made.settimeout(None)
    return made


def _taken_over(listener: _stock.socket) -> socket.socket:
    if listener.fileno() < 0:
        raise ValueError("the listener is closed")
    if not listener.getsockopt(_stock.SOL_SOCKET, _stock.SO_ACCEPTCONN):
        raise ValueError("the socket does not listen")
    if not isinstance(listener, socket.socket):
        listener = socket.socket(fileno=listener.detach())
    listener.settimeout(None)  # with 0, each failed accept() would be tried again at once
    return listener


def _listening_at_path(path: str | bytes, backlog: int) -> socket.socket:
    made = socket.socket(_stock.AF_UNIX)
    try:
        made.bind(path)
        made.listen(backlog)
        made.settimeout(None)
    except BaseException:
        made.close()
        raise
    return made
