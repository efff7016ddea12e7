"""Sockets that block only the tasklet: the standard `socket` module, with another class in it.

    from cpythonplus.tasklets.io import socket

The class is a subclass of the standard one. Its descriptor never blocks; the time-out is kept here,
and only the tasklet waits. All other names are the standard module's own.
"""

# The standard library's names, and the parameters' names that go with them.
# ruff: noqa: A001, A002, N801

import _socket
import contextlib
import errno
import operator
import os
import socket as _stock
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from cpythonplus._native import (
    io_accept,
    io_forget,
    io_give_way,
    io_recv,
    io_recv_into,
    io_send,
    io_sendall,
    io_sleep,
    io_wait,
)
from cpythonplus.tasklets.io import _standard as standard
from cpythonplus.tasklets.io import names
from cpythonplus.tasklets.io._descriptors import READ, WRITE, Limit
from cpythonplus.tasklets.io.names import (
    getaddrinfo,
    gethostbyaddr,
    gethostbyname,
    gethostbyname_ex,
    getnameinfo,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer, WriteableBuffer

    Address: TypeAlias = Any

__all__ = [
    "getaddrinfo",
    "gethostbyaddr",
    "gethostbyname",
    "gethostbyname_ex",
    "getnameinfo",
    "socket",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_NONBLOCK = _socket.SOCK_NONBLOCK
_AT_ONCE = _socket.MSG_DONTWAIT | getattr(_socket, "MSG_ERRQUEUE", 0)
_INET = (_socket.AF_INET, _socket.AF_INET6)
_ACCEPTED = (*_INET, _socket.AF_UNIX)  # families whose addresses io_accept() returns
_UNDER_WAY = (errno.EINPROGRESS, errno.EALREADY)
_LONGEST_S = 9223372036.0  # threading.TIMEOUT_MAX

_family_of = _socket.socket.family.__get__
_type_of = _socket.socket.type.__get__
_proto_of = _socket.socket.proto.__get__


def _seconds(value: float | None) -> float | None:
    """Return a time-out in seconds, or raise what settimeout() raises."""
    if value is None:
        return None
    seconds = value if isinstance(value, float) else float(operator.index(value))
    if seconds != seconds:  # noqa: PLR0124  # NaN
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("Timeout value out of range")
    if seconds > _LONGEST_S:
        raise OverflowError("timestamp too large to convert to C PyTime_t")
    return seconds


class socket(_stock.socket):
    """A socket whose blocking calls block only the calling tasklet.

    Arguments, methods and exceptions are those of the standard class. Several tasklets, also of
    several threads, may use it at once. Closing it while one waits in it raises OSError (EBADF)
    there; the standard one leaves it waiting.
    """

    __slots__ = ("_fd", "_is_stream", "_timeout")

    _fd: int  # -1: closed
    _timeout: float | None
    _is_stream: bool  # a short read means that there is no more now

    def __init__(
        self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
    ) -> None:
        if fileno is None:
            if type == -1:
                type = _socket.SOCK_STREAM
            super().__init__(family, int(type) | _NONBLOCK, proto)
            waits_never = type & _NONBLOCK
        else:
            super().__init__(family, type, proto, fileno)
            super().setblocking(False)  # noqa: FBT003
            waits_never = type != -1 and type & _NONBLOCK
        self._begin(0.0 if waits_never else _socket.getdefaulttimeout())

    def _begin(self, timeout: float | None) -> None:
        self._fd = fd = self.fileno()
        self._timeout = timeout
        # A Unix socket's read stops at descriptors that were sent along, so it may be short.
        self._is_stream = _type_of(self) == _socket.SOCK_STREAM and _family_of(self) in _INET
        io_forget(fd)  # a former file with this number may have been closed without close()

    # ---- time-outs ---------------------------------------------------------------------------

    def settimeout(self, value: float | None, /) -> None:
        """Limit the waits of calls, in seconds; None: without limit; 0: no waits."""
        timeout = _seconds(value)
        self._check_open()
        self._timeout = timeout

    def gettimeout(self) -> float | None:
        """Return the time-out in seconds, or None."""
        return self._timeout

    @property
    def timeout(self) -> float | None:
        """The time-out in seconds, or None."""
        return self._timeout

    def setblocking(self, flag: bool, /) -> None:  # noqa: FBT001
        """Make calls wait without limit, or not at all."""
        super().setblocking(False)  # noqa: FBT003  # other code may have changed it
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        """Return whether calls may wait."""
        return self._timeout != 0.0

    def _check_open(self) -> None:
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    # ---- a stream's reading and writing ------------------------------------------------------

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Receive at most `bufsize` bytes; none at the end."""
        return io_recv(self._fd, bufsize, flags, self._timeout, self._is_stream)

    def recv_into(self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0) -> int:
        """Receive into a buffer, at most `nbytes`, or as much as it takes; return how many."""
        return io_recv_into(self._fd, buffer, nbytes, flags, self._timeout, self._is_stream)

    def send(self, data: "ReadableBuffer", flags: int = 0, /) -> int:
        """Send what the system takes at once, waiting until it takes any; return how many bytes."""
        return io_send(self._fd, data, flags, self._timeout)

    def sendall(self, data: "ReadableBuffer", flags: int = 0, /) -> None:
        """Send all of it."""
        io_sendall(self._fd, data, flags, self._timeout)

    # ---- the same with addresses and ancillary data ------------------------------------------

    def recvfrom(self, bufsize: int, flags: int = 0, /) -> "tuple[bytes, Address]":
        """Receive; return the bytes and who sent them."""
        return self._repeat(READ, flags, super().recvfrom, bufsize, flags)

    def recvfrom_into(
        self, buffer: "WriteableBuffer", nbytes: int = 0, flags: int = 0
    ) -> "tuple[int, Address]":
        """Receive into a buffer; return how many bytes and who sent them."""
        return self._repeat(READ, flags, super().recvfrom_into, buffer, nbytes, flags)

    def recvmsg(
        self, bufsize: int, ancbufsize: int = 0, flags: int = 0, /
    ) -> "tuple[bytes, list[tuple[int, int, bytes]], int, Address]":
        """Receive, also ancillary data."""
        return self._repeat(READ, flags, super().recvmsg, bufsize, ancbufsize, flags)

    def recvmsg_into(
        self, buffers: "Iterable[WriteableBuffer]", ancbufsize: int = 0, flags: int = 0, /
    ) -> "tuple[int, list[tuple[int, int, bytes]], int, Address]":
        """Receive into buffers, also ancillary data."""
        buffers = list(buffers)  # there may be a second try
        return self._repeat(READ, flags, super().recvmsg_into, buffers, ancbufsize, flags)

    def sendto(self, data: "ReadableBuffer", *args: Any) -> int:  # noqa: ANN401
        """Send to an address: ``sendto(data[, flags], address)``; return how many bytes."""
        flags = args[0] if len(args) == 2 and isinstance(args[0], int) else 0  # noqa: PLR2004
        if args:
            args = (*args[:-1], self._resolved(args[-1]))
        return self._repeat(WRITE, flags, super().sendto, data, *args)

    def sendmsg(
        self,
        buffers: "Iterable[ReadableBuffer]",
        ancdata: "Iterable[tuple[int, int, ReadableBuffer]]" = (),
        flags: int = 0,
        address: "Address" = None,
        /,
    ) -> int:
        """Send buffers and ancillary data; return how many bytes."""
        buffers, ancdata = list(buffers), list(ancdata)
        rest = () if address is None else (self._resolved(address),)
        return self._repeat(WRITE, flags, super().sendmsg, buffers, ancdata, flags, *rest)

    def _repeat(
        self,
        events: int,
        flags: int,
        call: "Callable[_P, _R]",
        /,
        *args: "_P.args",
        **kwargs: "_P.kwargs",
    ) -> _R:
        """Call until the call no longer finds that it would have to wait."""
        limit = None
        if self._timeout != 0.0 and not flags & _AT_ONCE:
            io_give_way()
        while True:
            try:
                return call(*args, **kwargs)
            except BlockingIOError:
                if self._timeout == 0.0 or flags & _AT_ONCE:
                    raise
            limit = self._await(events, limit)

    def _await(self, events: int, limit: Limit | None) -> Limit:
        """Wait until the socket is ready; return the limit (made if None) for the next call."""
        limit = limit or Limit(self._timeout)
        io_wait(self._fd, events, limit.left(), True)  # noqa: FBT003
        return limit

    # ---- connections -------------------------------------------------------------------------

    def accept(self) -> "tuple[socket, Address]":
        """Wait for a connection; return its socket and the peer's address."""
        family = _family_of(self)
        if family in _ACCEPTED:
            fd, address = io_accept(self._fd, self._timeout)
        else:
            fd, address = self._repeat(READ, 0, super()._accept)  # type: ignore[misc]
            os.set_blocking(fd, False)
        new = socket.__new__(socket)
        try:
            _socket.socket.__init__(new, family, _type_of(self) | _NONBLOCK, _proto_of(self), fd)
        except BaseException:
            os.close(fd)
            raise
        new._io_refs = 0  # type: ignore[attr-defined]  # noqa: SLF001  # as the standard __init__
        new._closed = False  # type: ignore[attr-defined]  # noqa: SLF001
        new._begin(_socket.getdefaulttimeout())  # noqa: SLF001
        return new, address

    def bind(self, address: "Address", /) -> None:
        """Give the socket its own address."""
        super().bind(self._resolved(address))

    def connect(self, address: "Address", /) -> None:
        """Connect to an address; a name in it is looked up as names.getaddrinfo() does."""
        code = self._connect(address)
        if code != 0:
            raise OSError(code, os.strerror(code))

    def connect_ex(self, address: "Address", /) -> int:
        """Connect; return the error's number, 0 for none, EAGAIN when the time is over."""
        try:
            return self._connect(address)
        except TimeoutError:
            return errno.EAGAIN

    def _connect(self, address: "Address") -> int:
        """Connect; an exception that is no Exception, like TaskletExit, closes the socket.

        Programs close it if connect() raises OSError, and would leave it to the collector here.
        """
        try:
            return self._connect_and_wait(address)
        except Exception:
            raise
        except BaseException:
            self.close()
            raise

    def _connect_and_wait(self, address: "Address") -> int:
        address = self._resolved(address)
        code = super().connect_ex(address)
        if self._timeout == 0.0:
            return code
        limit, pause, waited = Limit(self._timeout), 0.0005, False
        # Calling again gives the result; readiness alone may be that of an earlier try.
        while code in _UNDER_WAY or code == errno.EAGAIN:
            if code in _UNDER_WAY:
                self._await(WRITE, limit)
                waited = True
            else:  # a Unix socket's listener has no room, and nothing notifies us when it has
                pause = min(pause * 2, 0.05)
                if limit.left() == 0.0:
                    raise TimeoutError("timed out")
                io_sleep(pause)
            code = super().connect_ex(address)
        return 0 if code == errno.EISCONN and waited else code

    def _resolved(self, address: "Address") -> "Address":
        """Return the address with its host's name resolved: the system's look-up would block."""
        if (
            _family_of(self) not in _INET
            or not isinstance(address, tuple)
            or not address
            or not isinstance(address[0], str)
        ):
            return address
        return names.with_number(address, _family_of(self))

    # ---- files -------------------------------------------------------------------------------

    def _sendfile_use_sendfile(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        from cpythonplus.tasklets.io import selectors  # imports asyncio

        names = {**vars(_stock), "selectors": selectors}
        stock = super()._sendfile_use_sendfile.__func__  # type: ignore[misc]
        return standard.function_over(stock, names)(self, *args, **kwargs)

    # ---- closing -----------------------------------------------------------------------------

    def _real_close(self, _forget: "Callable[[int], None]" = io_forget) -> None:
        # Uses no globals: it may be called at the interpreter's end.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            _forget(fd)
        super()._real_close()  # type: ignore[misc]

    def detach(self) -> int:
        """Give the descriptor up and return it; it blocks as the time-out says."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            io_forget(fd)
            with contextlib.suppress(OSError):  # it may have been closed by its number
                os.set_blocking(fd, self._timeout is None)
        return super().detach()


# ---- the rest of the module ---------------------------------------------------------------------

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # noqa: ANN401


# The replacements of patch(), by module and name.
REPLACEMENTS = {"socket": {"socket": socket}}
standard.fill(globals(), _stock)
globals()["__all__"] = [*_stock.__all__]
