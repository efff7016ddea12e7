"""Memory-hungry work in a process of its own, which gives all of its memory back by ending.

The child writes the result into a memfd, and the parent maps it: large buffers of the result (numpy
arrays, memoryviews) are parts of that mapping, and are not copied again.
"""

# The unpickled data come from a child that runs this very module.
# ruff: noqa: S301

import mmap
import os
import pickle
import select
import signal
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from io import BufferedWriter, FileIO
from multiprocessing import get_context
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import MappingProxyType
from typing import Any, TypeVar

_T = TypeVar("_T")

_GRACE_S = 10.0
"""The time for a child to end after its result, before it is killed."""
_STATUS_S = 1.0
"""The time to wait for the status of an ended child that another thread has read."""
_LONGEST_POLL_MS = 1e9
"""poll(2) takes some weeks, no more."""
_ALIGNMENT = 64  # of a buffer in the file: a cache line
_EMPTY: Mapping[str, Any] = MappingProxyType({})

# The message about the file: the kind of contents, the offset of its table, and its length.
_MESSAGE = struct.Struct("=BQQ")
_RETURNED, _RAISED = range(2)
_Message = tuple[int, "memoryview[int]", int]
"""_RETURNED or _RAISED, the mapped file, the offset of its table."""


class ChildEndedError(RuntimeError):
    """The child ended before there was a result; the message says how."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """Describe it; status: as `multiprocessing.Process.exitcode`, a signal is negative."""
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        """Return the message alone."""
        return self.message


class _ChildTracebackError(Exception):
    """The cause of an exception of the child: the text of its traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def in_subprocess(
    func: Callable[..., _T],
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] = _EMPTY,
    *,
    timeout: float | None = None,
    context: str | BaseContext | None = None,
) -> _T:
    """Call `func(*args, **kwargs)` in a child process and return what it returns.

    This process needs memory for the result only. The contents of a numpy array or a memoryview in
    it are memory that the child wrote and this process has mapped; it goes back when the last
    object in the result that needs it dies. The rest is pickled (protocol 5), so a change that
    `func` makes to its arguments stays in the child.

    timeout: seconds after which the child is killed; None: however long it takes.
    context: how the child is started: a context of multiprocessing or its name; None for the
        default.  With `fork` the arguments may be anything, a lambda as `func` too, and starting
        takes a millisecond; but a program with threads may deadlock in the child.  With `spawn` and
        `forkserver` `func` and the arguments are pickled, and `func` is found by its module.

    Raises the exception of `func`, with the text of the child's traceback as its cause (one that
    cannot be pickled comes as ChildEndedError); ChildEndedError if the child ended otherwise, by a
    signal or `sys.exit`; TimeoutError.  After any exception, also KeyboardInterrupt, the child is
    gone; processes that it has started are not.

    May be called from any thread, and by many at once.  A daemonic process of multiprocessing may
    not start processes, so not call this either.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    if context is None or isinstance(context, str):
        context = get_context(context)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here:
        # Each context has a process class of its own.
        process = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(there, func, tuple(args), dict(kwargs)), name="in_subprocess"
        )
        message = None
        try:
            with there, _InterruptLater():
                process.start()
            message = _wait(process, here, deadline)
        except _TooLate:
            raise TimeoutError(
                f"the child took longer than {timeout:g} s, and was killed"
            ) from None
        finally:
            with _InterruptLater():
                status = _end(process, _STATUS_S if message is None else 0.0)
    if message is None:
        raise ChildEndedError(_obituary(status), status)
    kind, contents, place = message
    found: Any = _read(contents, place)
    if kind == _RETURNED:
        return found  # type: ignore[no-any-return]
    del message, contents  # the exception's traceback holds this frame
    error = _rebuilt(*found)
    try:
        raise error
    finally:
        del error, found


class _InterruptLater:
    """Delays the effect of SIGINT to the end of a block: between a fork and the note of its child.

    Blocking the signal would block it in the child, too. In other threads nothing is raised.
    """

    def __init__(self) -> None:
        self.before: Any = None
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.before = signal.getsignal(signal.SIGINT)
            if self.before is not None:  # a handler that C code has set could not be restored
                signal.signal(signal.SIGINT, self.note)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
            if self._came:
                signal.raise_signal(signal.SIGINT)

    def note(self, *_: object) -> None:
        self._came = True


def _interrupt_as_before() -> None:
    """Undo the parent's delay of SIGINT, in a forked child."""
    note = signal.getsignal(signal.SIGINT)
    later = getattr(note, "__self__", None)
    if isinstance(later, _InterruptLater):
        signal.signal(signal.SIGINT, later.before)


class _TooLate(Exception):  # noqa: N818  # never leaves this module
    pass


def _wait(process: BaseProcess, here: socket.socket, deadline: float | None) -> "_Message | None":
    """Wait for the child's message, and for its end; None if it ended without one."""
    # Not `sentinel`: children of other threads inherit this pipe, and keep it open.
    ended = -1
    with suppress(OSError):  # gone already, or not supported by the kernel or a sandbox
        ended = os.pidfd_open(process.pid or -1)
    try:
        ends = ended if ended >= 0 else process.sentinel
        if not _poll((here.fileno(), ends), deadline):
            raise _TooLate
        message = _receive(here)
        # Without a message the exit status is needed: let the child end by itself while there is
        # time.
        grace = time.monotonic() + _GRACE_S
        last = grace if message is not None or deadline is None else deadline
        _poll((ends,), last)
    finally:
        if ended >= 0:
            os.close(ended)
    return message


def _poll(descriptors: Iterable[int], deadline: float | None) -> bool:
    """Whether one of the descriptors became readable before the time `deadline`."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    while deadline is not None:
        left_ms = max(0.0, deadline - time.monotonic()) * 1000
        if poll.poll(min(left_ms, _LONGEST_POLL_MS)):
            return True
        if left_ms <= _LONGEST_POLL_MS:
            return False
    return bool(poll.poll())


def _end(process: BaseProcess, patience_s: float) -> int | None:
    """Kill the child if it still runs; return its status, None if other code took it."""
    if process.pid is not None:
        process.kill()
        process.join()
        # If another thread starts a process, it polls all children, and may be about to note this
        # one's status. If a thread waits for any child, as servers do, it takes the status for
        # good.
        limit = time.monotonic() + patience_s
        while process.exitcode is None and time.monotonic() < limit:
            time.sleep(0.001)
    status = process.exitcode
    popen = getattr(process, "_popen", None)
    if status is None and popen is not None:
        # The program has reaped it, or the kernel has if SIGCHLD is ignored. multiprocessing would
        # not notice the end, and would keep the process among its children.
        popen.returncode = 0
        process.join()
    process.close()
    return status


def _obituary(status: int | None) -> str:
    if status is None:
        return "the child ended without a result, and its status was taken by another waitpid()"
    if status >= 0:
        return f"the child ended with status {status}, without a result"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    memory = ": the kernel does that when memory is short" if -status == signal.SIGKILL else ""
    return f"the child was ended by {name}{memory}"


# ---- the file ------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Stores the contents of memoryviews beside the pickle, as numpy does for its arrays."""

    def reducer_override(self, obj: Any) -> Any:  # noqa: ANN401
        if type(obj) is not memoryview or obj.format not in _FORMATS or not obj.nbytes:
            return NotImplemented
        contents = pickle.PickleBuffer(obj) if obj.c_contiguous else obj.tobytes()
        return _view, (contents, obj.format, obj.shape)


_FORMATS = frozenset("bBhHiIlLqQnNfd?")


def _view(contents: Any, form: str, shape: tuple[int, ...]) -> "memoryview[Any]":  # noqa: ANN401
    flat = memoryview(contents).cast("B")
    return flat if form == "B" and len(shape) == 1 else flat.cast(form, shape)  # type: ignore[call-overload]


def _write(result: object) -> tuple[int, int, int]:
    """Put `result` into a new memfd; return its descriptor, the table's offset, its length.

    The file: the pickle; each buffer, aligned; the table: a pickled list of (offset, length,
    whether it is read-only) for each buffer.
    """
    buffers: list[pickle.PickleBuffer] = []
    file = os.memfd_create("cpythonplus-result", os.MFD_CLOEXEC)
    try:
        with BufferedWriter(FileIO(file, "wb", closefd=False)) as stream:
            _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(result)
            table = []
            for buffer in buffers:
                with buffer.raw() as raw:
                    stream.write(bytes(-stream.tell() % _ALIGNMENT))
                    table.append((stream.tell(), raw.nbytes, raw.readonly))
                    stream.write(raw)
            place = stream.tell()
            pickle.dump(table, stream, protocol=5)
            return file, place, stream.tell()
    except BaseException:
        os.close(file)
        raise


def _read(contents: "memoryview[int]", place: int) -> Any:  # noqa: ANN401
    """Return the result that was given to `_write`; its buffers are parts of `contents`."""
    buffers = []
    for begin, length, readonly in pickle.loads(contents[place:]):
        part = contents[begin : begin + length]
        buffers.append(part.toreadonly() if readonly else part)
    return pickle.loads(contents[:place], buffers=buffers)


# ---- the child -----------------------------------------------------------------------------------


def _serve(
    there: socket.socket, func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        _interrupt_as_before()
        try:
            kind, (file, place, length) = _RETURNED, _write(func(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # the parent raises it
            kind, (file, place, length) = _RAISED, _write(_portable(error))
        with suppress(BrokenPipeError, ConnectionResetError):  # the parent has given up
            socket.send_fds(there, [_MESSAGE.pack(kind, place, length)], [file])
    finally:
        there.close()


def _portable(error: Exception) -> tuple[bytes, str, str]:
    """Return an exception pickled, empty if it cannot be; its last line; its traceback's text."""
    text = "".join(traceback.format_exception(error))
    line = "".join(traceback.format_exception_only(error)).strip()
    try:
        pickled = pickle.dumps(error, protocol=5)
        pickle.loads(pickled)  # many can be pickled, but not unpickled
    except Exception:  # noqa: BLE001  # its __reduce__ may raise anything
        pickled = b""
    return pickled, line, text


# ---- the parent ----------------------------------------------------------------------------------


def _receive(here: socket.socket) -> "_Message | None":
    """Return the message, if any: its kind, the mapped file, the offset of the table."""
    here.setblocking(False)  # noqa: FBT003
    try:
        message, files, _, _ = socket.recv_fds(
            here, _MESSAGE.size, 1, flags=socket.MSG_CMSG_CLOEXEC
        )
    except (BlockingIOError, ConnectionResetError):  # the child ended without one
        return None
    try:
        if len(message) < _MESSAGE.size or not files:
            return None
        kind, place, length = _MESSAGE.unpack(message)
        # Shared: in a private mapping, the first write to each page would copy it.
        return kind, memoryview(mmap.mmap(files[0], length)), place
    finally:
        for file in files:
            os.close(file)


def _rebuilt(pickled: bytes, line: str, text: str) -> BaseException:
    """Return the exception that was given to `_portable`."""
    error: BaseException = ChildEndedError(line)
    with suppress(Exception):  # it may be in a module that only the child could import
        error = pickle.loads(pickled)
    error.__cause__ = _ChildTracebackError(text)
    return error
