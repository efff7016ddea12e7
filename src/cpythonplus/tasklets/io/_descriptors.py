"""Waiting for any descriptor: a pipe, a terminal, a socket of a C library."""

from time import monotonic
from typing import Protocol, TypeAlias

from cpythonplus import _native

READ = 1  # EPOLLIN
WRITE = 4  # EPOLLOUT

_LONGEST_S = 1e9  # a longer time counts as for ever


class Limit:
    """The remaining time of a wait, in seconds; None: for ever."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float | None) -> None:
        forever = seconds is None or seconds > _LONGEST_S
        self._end = None if forever or seconds is None else monotonic() + seconds

    def left(self) -> float | None:
        """Return the seconds that are left, at least 0; None: for ever."""
        return None if self._end is None else max(self._end - monotonic(), 0.0)

    def is_over(self) -> bool:
        """Return whether the time is over, allowing for rounding."""
        return self._end is not None and monotonic() > self._end - 0.0005


class HasFileno(Protocol):
    def fileno(self) -> int:
        """Return the descriptor's number."""


FileDescriptorLike: TypeAlias = int | HasFileno


def _number(file: FileDescriptorLike) -> int:
    fileno = None if isinstance(file, int) else getattr(file, "fileno", None)
    number = fileno() if fileno is not None else file
    if not isinstance(number, int):
        raise TypeError("expected a file descriptor or an object with a fileno() method")
    if number < 0:
        raise ValueError(f"file descriptor cannot be a negative integer ({number})")
    return number


def wait_readable(fd: FileDescriptorLike, timeout: float | None = None) -> None:
    """Block the running tasklet until reading would not block.

    fd: a descriptor's number, or an object with fileno(); of a pipe, socket, terminal, eventfd.
    timeout: seconds; None: for ever; 0 or less: only look, after the others have run.  Raises
    TimeoutError; OSError, as of epoll_ctl(2): EPERM for a regular file, EBADF for none at all, or
    if a socket of `cpythonplus.tasklets.io` is closed meanwhile; ValueError for a negative number,
    TypeError for an object without one.
    """
    _native.io_wait(_number(fd), READ, timeout, False)  # noqa: FBT003  # positional only


def wait_writable(fd: FileDescriptorLike, timeout: float | None = None) -> None:
    """Block the running tasklet until writing would not block; as `wait_readable`."""
    _native.io_wait(_number(fd), WRITE, timeout, False)  # noqa: FBT003  # positional only
