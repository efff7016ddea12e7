"""Drop-in for `select` whose waits block only the tasklet.

select(), poll and epoll are the ones below; all other names are those of the standard module.
"""

import operator
import select as _stock
from collections.abc import Iterable
from functools import partial
from math import ceil
from types import TracebackType
from typing import Any, Self, SupportsIndex

from cpythonplus import _native
from cpythonplus.tasklets.io import _readiness as readiness

__all__ = ["epoll", "poll", "select"]

# The standard functions, taken before any patch.
_select, _poll, _epoll = _stock.select, _stock.poll, _stock.epoll

_MOST_S = 2**63 / 1e9
_INT_MAX = 2**31 - 1


def __getattr__(name: str) -> Any:  # noqa: ANN401
    return getattr(_stock, name)


def __dir__() -> list[str]:
    return sorted({*dir(_stock), *globals()})


def _number(timeout: float | SupportsIndex, kind: str) -> float:
    if isinstance(timeout, float):
        if timeout != timeout:  # noqa: PLR0124
            raise ValueError("Invalid value NaN (not a number)")
        return timeout
    try:
        return operator.index(timeout)
    except TypeError:
        raise TypeError(f"timeout must be {kind} or None") from None


def _seconds(timeout: float | SupportsIndex | None, kind: str) -> float | None:
    number = _number(timeout, kind) if timeout is not None else 0.0
    if abs(number) > _MOST_S:
        raise OverflowError("timestamp too large to convert to C PyTime_t")
    return number if timeout is not None else None


def _descriptor(thing: Any) -> int:  # noqa: ANN401
    number: int = thing if isinstance(thing, int) else thing.fileno()
    return number  # the standard call has checked it


# ---- select -------------------------------------------------------------------------------------

Lists = tuple[list[Any], list[Any], list[Any]]


def _again(things: Any) -> Any:  # noqa: ANN401
    """Return an iterable that can be iterated more than once."""
    if isinstance(things, (list, tuple)) or not isinstance(things, Iterable):
        return things  # unchanged: fileno() may change a list, which the standard call then sees
    return list(things)


def _watched(lists: Iterable[Any]) -> dict[int, int]:
    result: dict[int, int] = {}
    events = (_stock.EPOLLIN, _stock.EPOLLOUT, _stock.EPOLLPRI)
    for event, things in zip(events, lists, strict=True):
        for thing in list(things):
            fd = _descriptor(thing)
            result[fd] = result.get(fd, 0) | event
    return result


def _try(lists: tuple[Any, Any, Any], seconds: float | None) -> Lists | tuple[()]:
    found = _select(*lists, seconds)
    return found if any(found) else ()


def select(
    rlist: Iterable[Any],
    wlist: Iterable[Any],
    xlist: Iterable[Any],
    timeout: float | None = None,
    /,
) -> Lists:
    """Wait until one of the descriptors is ready, as select.select() does; only the tasklet waits.

    timeout: in seconds; None: for ever.
    """
    seconds = _seconds(timeout, "a float")
    if seconds is not None and seconds < 0:
        raise ValueError("timeout must be non-negative")
    _native.io_give_way()
    lists = (_again(rlist), _again(wlist), _again(xlist))
    look = partial(_try, lists, 0)
    found = look()
    if found:
        return found
    watched = _watched(lists) if seconds != 0 else {}
    if seconds is not None and not watched:
        readiness.pause(seconds)  # select() used as sleep()
        found = look()
    else:
        found = readiness.until_found(look, partial(_try, lists), watched, seconds)
    return found or ([], [], [])


# ---- poll ---------------------------------------------------------------------------------------


class poll:  # noqa: N801  # the standard name
    """A polling object, as select.poll() gives one; only the tasklet waits in poll()."""

    __slots__ = ("_polling", "_real", "_watched")

    def __init__(self) -> None:
        self._real = _poll()
        self._watched: dict[int, int] = {}
        self._polling = False

    def register(
        self,
        fd: Any,  # noqa: ANN401
        eventmask: int = _stock.POLLIN | _stock.POLLPRI | _stock.POLLOUT,
        /,
    ) -> None:
        """Watch a descriptor from now on."""
        self._real.register(fd, eventmask)
        self._watched[_descriptor(fd)] = eventmask

    def modify(self, fd: Any, eventmask: int, /) -> None:  # noqa: ANN401
        """Watch `fd` for other events; OSError(ENOENT) if it is not registered."""
        self._real.modify(fd, eventmask)
        self._watched[_descriptor(fd)] = eventmask

    def unregister(self, fd: Any, /) -> None:  # noqa: ANN401
        """Stop watching `fd`; KeyError if it is not registered."""
        self._real.unregister(fd)
        del self._watched[_descriptor(fd)]

    def _block(self, seconds: float | None) -> list[tuple[int, int]]:
        return self._real.poll(None if seconds is None else seconds * 1000)

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        """Return descriptors and what they are ready for.

        timeout: in milliseconds, rounded up; None or negative: for ever.  RuntimeError while
        another tasklet or thread waits in the same object.
        """
        milliseconds = -1 if timeout is None else _number(timeout, "an integer")
        if abs(milliseconds) > _INT_MAX:
            raise OverflowError("timeout is too large")
        if self._polling:
            raise RuntimeError("concurrent poll() invocation")
        self._polling = True
        try:
            return self._poll(milliseconds)
        finally:
            self._polling = False

    def _poll(self, milliseconds: float) -> list[tuple[int, int]]:
        _native.io_give_way()
        look = partial(self._real.poll, 0)
        found = look()
        if found:
            return found
        if milliseconds == 0:
            readiness.pause(0)
            found = look()
        else:
            seconds = None if milliseconds < 0 else ceil(milliseconds) / 1000
            found = readiness.until_found(look, self._block, self._watched.copy(), seconds)
        return found


# ---- epoll --------------------------------------------------------------------------------------


class epoll:  # noqa: N801  # the standard name
    """An epoll object, as select.epoll() gives one; only the tasklet waits in poll()."""

    __slots__ = ("_real",)

    def __init__(self, sizehint: int = -1, flags: int = 0) -> None:
        self._real = _epoll(sizehint, flags)  # type: ignore[deprecated]

    @classmethod
    def fromfd(cls, fd: int, /) -> Self:
        """Return an object for an epoll descriptor, which is then the object's."""
        self = cls.__new__(cls)
        self._real = _epoll.fromfd(fd)
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # register(), fileno(), closed, ...
        return getattr(object.__getattribute__(self, "_real"), name)

    def __enter__(self) -> Self:
        self._real.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; tasklets that wait for it get OSError(EBADF)."""
        if not self._real.closed:
            _native.io_forget(self._real.fileno())
            self._real.close()

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Return descriptors and what they are ready for, at most `maxevents` (-1: some thousand).

        timeout: in seconds, rounded up to milliseconds; None or negative: for ever.
        """
        seconds = _seconds(timeout, "an integer")
        if seconds is not None and seconds > _INT_MAX / 1000:
            raise OverflowError("timeout is too large")
        _native.io_give_way()
        look = partial(self._real.poll, 0, maxevents)
        found = look()
        if found:
            return found
        if seconds == 0:
            readiness.pause(0)
            found = look()
        else:
            if seconds is not None:
                seconds = None if seconds < 0 else ceil(seconds * 1000) / 1000
            limit = readiness.Limit(seconds)
            found = readiness.wait_for_epoll(self._real, look, self._block(maxevents), limit)
        return found

    def _block(self, maxevents: int) -> Any:  # noqa: ANN401
        return lambda seconds: self._real.poll(seconds, maxevents)
