"""Processes: waiting for their ends, and for the pipes to them, blocks only the tasklet.

The end of a process is awaited by its descriptor, pidfd_open(2). A pipe is read when it is readable
and written when it is writable, at most PIPE_BUF bytes at once, which then certainly fit (pipe(7)).
So no shared file description is made non-blocking.
"""

import io as _stock
import os
import threading
from collections.abc import Callable
from select import PIPE_BUF
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from cpythonplus._base.replacing import original
from cpythonplus._native import io_forget
from cpythonplus.tasklets.io import _readiness as readiness
from cpythonplus.tasklets.io._descriptors import READ, WRITE, Limit
from cpythonplus.tasklets.locks import Lock

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_Ended = tuple[Any, ...]  # process, status, and perhaps its resources

_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.0005, 0.05  # the values of subprocess for time-outs


def _when_ended(reap: Callable[[int, int], _Ended], pid: int, options: int) -> _Ended:
    """Call `reap` when it no longer blocks."""
    found = reap(pid, options | os.WNOHANG)  # also checks that it is a child
    if found[0] or options & os.WNOHANG:
        return found
    fd = _descriptor_of(pid) if pid > 0 and options == 0 else None
    if fd is not None:
        try:
            readiness.wait(fd, READ, Limit(None))
        finally:
            io_forget(fd)
            os.close(fd)
        return reap(pid, options)
    # There is no descriptor for several processes, or for other events than the end.
    pause = _FIRST_LOOK_S
    while not found[0]:
        readiness.pause(pause)
        pause = min(2 * pause, _LONGEST_LOOK_S)
        found = reap(pid, options | os.WNOHANG)
    return found


def _descriptor_of(pid: int) -> int | None:
    """Return a descriptor of a child; None if the process or the system has none to give."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


_waitpid: Any = original(os, "waitpid")
_wait4: Any = original(os, "wait4")


def waitpid(pid: int, options: int, /) -> _Ended:
    """Wait for the end of a child process: os.waitpid()."""
    return _when_ended(_waitpid, pid, options)


def wait() -> _Ended:
    """Wait for the end of any child process: os.wait()."""
    return waitpid(-1, 0)


def wait4(pid: int, options: int) -> _Ended:
    """Wait for the end of a child process, and return what it used, too: os.wait4()."""
    return _when_ended(_wait4, pid, options)


def wait3(options: int) -> _Ended:
    """Wait for the end of any child process, and return what it used, too: os.wait3()."""
    return wait4(-1, options)


class Pipe(_stock.FileIO):
    """One end of a pipe."""

    def _wait(self, events: int) -> bool:
        """Wait, unless the program has made the pipe non-blocking; return whether it blocks."""
        blocks = os.get_blocking(self.fileno())
        if blocks:
            readiness.wait(self.fileno(), events, Limit(None))
        return blocks

    def close(self) -> None:
        """Close it; tasklets that wait for it get OSError."""
        if not self.closed and self.closefd:
            io_forget(self.fileno())
        super().close()

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        """Read the available bytes, or wait for some."""
        self._wait(READ)
        return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> bytes | None:  # type: ignore[override]
        """Read the available bytes, or wait for some; without a size, read until the end."""
        if size is None or size < 0:
            return self.readall()
        self._wait(READ)
        return super().read(size)

    def readall(self) -> bytes:
        """Read until the end; None: the pipe is non-blocking, and nothing is available."""
        parts = []
        while part := self.read(_stock.DEFAULT_BUFFER_SIZE):
            parts.append(part)
        if part is None and not parts:
            return part  # type: ignore[return-value]  # as typeshed's FileIO has it
        return b"".join(parts)

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write all of it; to a non-blocking pipe, what fits, None: nothing fits."""
        with memoryview(data) as view, view.cast("B") as left:
            written = 0
            while written < len(left):
                if not self._wait(WRITE):
                    some = super().write(left[written:])
                    return some if some is None or not written else written + some
                written += super().write(left[written : written + PIPE_BUF]) or 0
            return written


def _open(
    file: Any,  # noqa: ANN401
    mode: str = "r",
    buffering: int = -1,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> IO[Any]:
    """Open a file for subprocess; an end of a pipe is opened as a Pipe."""
    if not isinstance(file, int) or mode not in {"rb", "wb"}:
        return open(file, mode, buffering, *args, **kwargs)  # noqa: PTH123
    raw = Pipe(file, mode)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else _stock.DEFAULT_BUFFER_SIZE
    if mode == "rb":
        return _stock.BufferedReader(raw, size)  # type: ignore[type-var]
    return _stock.BufferedWriter(raw, size)


class _Like(ModuleType):
    """A module with replacements for some of its names."""

    def __init__(self, module: ModuleType, **names: object) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.__dict__["_module"], name)


# The replacements of patch(), by module and name.
REPLACEMENTS = {
    "os": {"waitpid": waitpid, "wait": wait, "wait3": wait3, "wait4": wait4},
    "subprocess": {
        "io": _Like(_stock, open=_open),
        "threading": _Like(threading, Lock=Lock),  # held while a process is awaited
    },
}
