"""TLS that blocks only the tasklet: the standard `ssl` module, with another class of socket in it.

    from cpythonplus.tasklets.io import ssl

OpenSSL works on a descriptor that never blocks; when it needs to read or write, the tasklet waits.
All other names are the standard module's own: MemoryBIO and SSLObject do no input and output.
"""

# The standard library's names, and the parameters' names that go with them.

import os
import ssl as _stock
from ssl import SSLError, SSLWantReadError, SSLWantWriteError
from typing import TYPE_CHECKING, Any
from weakref import ref

from cpythonplus._native import io_give_way, io_wait
from cpythonplus.tasklets.io import _standard as standard
from cpythonplus.tasklets.io._descriptors import READ, WRITE, Limit
from cpythonplus.tasklets.io.socket import create_connection, socket

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer

__all__ = [
    "SSLContext",
    "SSLError",
    "SSLSocket",
    "SSLWantReadError",
    "SSLWantWriteError",
    "create_connection",
    "switch",
]


# The standard _create() uses super(SSLSocket, self), and looks that name up when it is called. It
# must find its own class even while patch() has put ours there.
_original_create = vars(_stock.SSLSocket)["_create"]
_create = standard.function_over(_original_create.__func__, {**vars(_stock)})


class _Waiting:
    """OpenSSL's part of a socket; when that needs to read or write, the tasklet waits."""

    __slots__ = ("_inner", "_socket")

    def __init__(self, inner: Any, owner: "SSLSocket") -> None:  # noqa: ANN401
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_socket", ref(owner))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)

    def read(self, *args: Any) -> Any:  # noqa: ANN401
        return self._finish(self._inner.read, args, "The read operation timed out")

    def write(self, data: "ReadableBuffer") -> Any:  # noqa: ANN401
        return self._finish(self._inner.write, (data,), "The write operation timed out")

    def do_handshake(self) -> Any:  # noqa: ANN401
        return self._finish(self._inner.do_handshake, (), "The handshake operation timed out")

    def shutdown(self) -> Any:  # noqa: ANN401
        return self._finish(self._inner.shutdown, (), "The read operation timed out")

    def _finish(self, call: "Callable[..., Any]", args: tuple[Any, ...], what: str) -> Any:  # noqa: ANN401
        """Call until OpenSSL needs no more input or output."""
        limit, owner = None, self._socket()
        if owner._timeout != 0.0:  # noqa: SLF001
            io_give_way()
        while True:
            try:
                return call(*args)
            except (SSLWantReadError, SSLWantWriteError) as error:
                if owner._timeout == 0.0:  # noqa: SLF001
                    raise
                events = READ if isinstance(error, SSLWantReadError) else WRITE
            limit = limit or Limit(owner._timeout)  # noqa: SLF001
            try:
                io_wait(owner._fd, events, limit.left(), True)  # noqa: FBT003, SLF001
            except TimeoutError:
                if limit.left() != 0.0:
                    raise  # not of this wait
                raise TimeoutError(what) from None


class SSLSocket(_stock.SSLSocket, socket):  # type: ignore[misc]
    """A TLS socket whose blocking calls block only the calling tasklet.

    Made by SSLContext.wrap_socket(). Arguments, methods and exceptions are those of the standard
    class. One tasklet may read while another writes. Closing it while one waits in it raises
    OSError (EBADF) there.
    """

    _sslobj: Any
    _timeout: float | None
    do_handshake_on_connect: bool

    @classmethod
    def _create(
        cls,
        sock: Any,  # noqa: ANN401
        server_side: bool = False,  # noqa: FBT001, FBT002
        do_handshake_on_connect: bool = True,  # noqa: FBT001, FBT002
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> "SSLSocket":
        # False: no handshake in _create(), which calls detach(): that makes our descriptor
        # blocking.
        self: SSLSocket = _create(cls, sock, server_side, False, *args, **kwargs)  # noqa: FBT003
        try:
            os.set_blocking(self._fd, False)
            self.do_handshake_on_connect = do_handshake_on_connect
            if self._sslobj is not None and do_handshake_on_connect:
                if self._timeout == 0.0:
                    raise ValueError(  # noqa: TRY301
                        "do_handshake_on_connect should not be specified for non-blocking sockets"
                    )
                self.do_handshake()
        except BaseException:
            self.close()
            raise
        return self

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401
        if name == "_sslobj" and value is not None:
            value = _Waiting(value, self)
        super().__setattr__(name, value)


class SSLContext(_stock.SSLContext):
    """The standard context, whose sockets block only the tasklet."""

    sslsocket_class = SSLSocket


# ---- the rest of the module ---------------------------------------------------------------------

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # noqa: ANN401


# The replacements of patch(), by module and name; see also switch().
REPLACEMENTS = {"ssl": {"SSLSocket": SSLSocket}}


def switch(*, on: bool) -> None:
    """Make the standard contexts, also existing ones, make our sockets, or their own again.

    SSLContext is not replaced: its methods look up its name for super(), and would find ours.
    """
    kind = SSLSocket if on else _stock_socket
    create = classmethod(_create) if on else _original_create
    _stock.SSLContext.sslsocket_class = kind
    _stock_socket._create = create  # type: ignore[attr-defined]  # noqa: SLF001


_stock_socket = _stock.SSLSocket
standard.fill(globals(), _stock)
