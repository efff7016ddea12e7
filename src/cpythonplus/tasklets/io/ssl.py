"""TLS that blocks only the tasklet: the standard `ssl` module, with another class of socket in it.

    from cpythonplus.tasklets.io import ssl

OpenSSL works on a descriptor that never blocks; where it wants to read or write, the tasklet waits.
What is not replaced is the standard module's own: MemoryBIO and SSLObject do no input and output.
"""

# The standard library's names, and the parameters' names that go with them.
# ruff: noqa: A002

import os
import ssl as _stock
from ssl import SSL_ERROR_EOF, SSLError, SSLWantReadError, SSLWantWriteError
from typing import TYPE_CHECKING, Any

from cpythonplus._native import io_wait
from cpythonplus.tasklets.io import _standard as standard
from cpythonplus.tasklets.io._descriptors import READ, WRITE, Limit
from cpythonplus.tasklets.io.socket import create_connection, socket

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = [
    "SSLContext",
    "SSLError",
    "SSLSocket",
    "SSLWantReadError",
    "SSLWantWriteError",
    "create_connection",
    "switch",
]


# The standard _create() says super(SSLSocket, self), and looks that name up when it is called. It
# is to find its own class also while patch() has put ours there.
_original_create = vars(_stock.SSLSocket)["_create"]
_create = standard.function_over(_original_create.__func__, {**vars(_stock)})


def _wanted(error: SSLError) -> int:
    return READ if isinstance(error, SSLWantReadError) else WRITE


class SSLSocket(_stock.SSLSocket, socket):  # type: ignore[misc]
    """A TLS socket whose blocking calls block only the calling tasklet.

    Made by SSLContext.wrap_socket(). Arguments, methods and exceptions are those of the standard
    class. One tasklet may read while another writes. Closing it while one waits in it raises
    OSError (EBADF) there.
    """

    _sslobj: Any
    _timeout: float | None
    _check_connected: "Callable[[], None]"
    do_handshake_on_connect: bool
    suppress_ragged_eofs: bool

    @classmethod
    def _create(
        cls,
        sock: Any,  # noqa: ANN401
        server_side: bool = False,  # noqa: FBT001, FBT002
        do_handshake_on_connect: bool = True,  # noqa: FBT001, FBT002
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> "SSLSocket":
        # No handshake in there: to detach() a socket of ours has its descriptor block.
        self: SSLSocket = _create(cls, sock, server_side, False, *args, **kwargs)  # noqa: FBT003
        try:
            os.set_blocking(self._fd, False)
            self.do_handshake_on_connect = do_handshake_on_connect
            if self._sslobj is not None and do_handshake_on_connect:
                self._shake_hands_now()
        except BaseException:
            self.close()
            raise
        return self

    def _shake_hands_now(self) -> None:
        if self._timeout == 0.0:
            raise ValueError(
                "do_handshake_on_connect should not be specified for non-blocking sockets"
            )
        self.do_handshake()

    # ---- waiting -----------------------------------------------------------------------------

    def _finish(
        self,
        events: int,
        call: "Callable[..., Any]",
        args: tuple[Any, ...],
        timeout: float | None,
        what: str,
    ) -> Any:  # noqa: ANN401
        """Call until OpenSSL has what it wants: `events` to begin with, 0: nothing yet."""
        limit = None
        while True:
            if events:
                limit = limit or Limit(timeout)
                try:
                    io_wait(self._fd, events, limit.left(), True)  # noqa: FBT003
                except TimeoutError:
                    if limit.left() != 0.0:
                        raise  # somebody else's
                    raise TimeoutError(what) from None
            try:
                return call(*args)
            except (SSLWantReadError, SSLWantWriteError) as error:
                if timeout == 0.0:
                    raise
                events = _wanted(error)

    # ---- reading -----------------------------------------------------------------------------

    def _read(self, events: int, *args: Any) -> Any:  # noqa: ANN401
        what = "The read operation timed out"
        try:
            return self._finish(events, self._sslobj.read, args, self._timeout, what)
        except SSLError as error:
            if not self._is_end(error):
                raise
        return b"" if len(args) == 1 else 0

    def _is_end(self, error: SSLError) -> bool:
        """Return whether the peer has gone without a word, and that is to look like an end."""
        return bool(error.args[0] == SSL_ERROR_EOF and self.suppress_ragged_eofs)

    def read(self, len: int = 1024, buffer: "WriteableBuffer | None" = None) -> Any:  # noqa: ANN401
        """Read at most so many bytes and return them, or how many were read into the buffer."""
        if self._sslobj is None:
            raise ValueError("Read on closed or unwrapped SSL socket.")
        return self._read(0, len) if buffer is None else self._read(0, len, buffer)

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Receive at most so many bytes; none at the end."""
        sslobj = self._sslobj
        if sslobj is None:
            return socket.recv(self, buflen, flags)
        if flags != 0:
            raise self._no_flags("recv")
        received: bytes
        try:
            received = sslobj.read(buflen)
        except (SSLWantReadError, SSLWantWriteError) as error:
            if self._timeout == 0.0:
                raise
            received = self._read(_wanted(error), buflen)
        except SSLError as error:
            if not self._is_end(error):
                raise
            received = b""
        return received

    def recv_into(
        self, buffer: "WriteableBuffer", nbytes: int | None = None, flags: int = 0
    ) -> int:
        """Receive into a buffer, at most `nbytes`, or as much as it takes; return how many."""
        if self._sslobj is None:
            return socket.recv_into(self, buffer, nbytes or 0, flags)
        if flags != 0:
            raise self._no_flags("recv_into")
        if nbytes is None:
            nbytes = memoryview(buffer).nbytes if buffer is not None else 0
            nbytes = nbytes or 1024
        result: int = self.read(nbytes, buffer)
        return result

    # ---- writing -----------------------------------------------------------------------------

    def _no_flags(self, call: str) -> ValueError:
        return ValueError(f"non-zero flags not allowed in calls to {call}() on {self.__class__}")

    def write(self, data: "ReadableBuffer") -> int:
        """Write; return how many bytes were taken."""
        sslobj = self._sslobj
        if sslobj is None:
            raise ValueError("Write on closed or unwrapped SSL socket.")
        return self._write(sslobj, data)

    def _write(self, sslobj: Any, data: "ReadableBuffer") -> int:  # noqa: ANN401
        what = "The write operation timed out"
        taken: int = self._finish(0, sslobj.write, (data,), self._timeout, what)
        return taken

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        """Send; return how many bytes were taken."""
        sslobj = self._sslobj
        if sslobj is None:
            return socket.send(self, data, flags)
        if flags != 0:
            raise self._no_flags("send")
        return self._write(sslobj, data)

    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        """Send all of it; the time-out is that of each part which the system takes."""
        sslobj = self._sslobj
        if sslobj is None:
            return socket.sendall(self, data, flags)
        if flags != 0:
            raise self._no_flags("sendall")
        with memoryview(data) as view, view.cast("B") as octets:
            sent, amount = 0, len(octets)
            while sent < amount:
                sent += self._write(sslobj, octets[sent:] if sent else octets)
        return None

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:  # noqa: ANN401
        """Send a file; return how many bytes."""
        if self._sslobj is None:
            return socket.sendfile(self, file, offset, count)
        result: int = self._sendfile_use_send(file, offset, count)  # type: ignore[attr-defined]
        return result

    # ---- the connection's beginning and end --------------------------------------------------

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002
        """Do the TLS handshake; `block`: even where the time-out is 0."""
        self._check_connected()
        timeout = None if block and self._timeout == 0.0 else self._timeout
        self._finish(0, self._sslobj.do_handshake, (), timeout, "The handshake operation timed out")

    def unwrap(self) -> Any:  # noqa: ANN401
        """Say that nothing more comes, wait for the peer to say so, and go on in clear text."""
        sslobj = self._sslobj
        if not sslobj:
            raise ValueError("No SSL wrapper around " + str(self))
        result = self._finish(0, sslobj.shutdown, (), self._timeout, "The read operation timed out")
        self._sslobj = None
        return result


class SSLContext(_stock.SSLContext):
    """The standard context, whose sockets block only the tasklet."""

    sslsocket_class = SSLSocket


# ---- the rest of the module ---------------------------------------------------------------------

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # noqa: ANN401


# What patch() puts in the place of what, by module and name; besides, see switch().
REPLACEMENTS = {"ssl": {"SSLSocket": SSLSocket}}


def switch(*, on: bool) -> None:
    """Have the standard contexts, also those that exist, make our sockets, or again their own.

    Not by replacing SSLContext: its methods look up its name for super(), and would find ours.
    """
    kind = SSLSocket if on else _stock_socket
    create = classmethod(_create) if on else _original_create
    _stock.SSLContext.sslsocket_class = kind
    _stock_socket._create = create  # type: ignore[attr-defined]  # noqa: SLF001


_stock_socket = _stock.SSLSocket
standard.fill(globals(), _stock)
