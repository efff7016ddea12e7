"""Runs memray's tracer in this process, while the agent's answer to `doctor growth --native` waits.

The program is left unchanged. memray clears the profile function of every thread when it ends. So
the tracer is refused if a thread has a profile function, and one that the program sets meanwhile is
set again. Before a fork and at the end of the process the agent ends its answers, and with them the
tracer. The file has no name: it is gone with its last descriptor, however the process ends.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Final, Self

from cpythonplus import _native
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.stacks import switchers

_LARGEST: Final = 64 << 20
"""Bytes of the file: some 14 million allocations."""
_FREE_TIMES: Final = 4
"""The free space on the disk, as a multiple of the file."""
_LOOK_MS: Final = 100
_files: list[IO[bytes]] = []
"""The file of the last trace, until the doctor has read it."""
_memrays: set[int] = set()
"""Addresses of memray's own profile functions."""


def ready() -> dict[str, Any]:
    """Import memray; raises UnsupportedPlatform, with a line, if it must not trace."""
    module = _memray()
    # Calls of greenlets do not return in the order that the tracer relies on.
    if switchers:
        raise UnsupportedPlatform(
            f"memray cannot begin in the middle of a program with {min(switchers)}: start it under"
            " `memray run --native`"
        )
    gevent = getattr(sys.modules.get("gevent"), "config", None)
    if getattr(gevent, "monitor_thread", False):
        raise UnsupportedPlatform(
            "gevent's monitor of blocked threads has a trace function with greenlet, which memray"
            " would take the place of"
        )
    if _is_tracing(module):
        raise UnsupportedPlatform("memray traces this process already")
    inner: Any = import_module("memray._memray")
    if _others_profilers(inner.start_thread_trace):
        raise UnsupportedPlatform(
            "a thread of the program has a profile function (sys.setprofile), which memray would"
            " take the place of"
        )
    # If memray does not see the switches of greenlets, it follows frames that are gone. It calls
    # this function once, under its lock, to print that this is an experiment. It must not print
    # into the program's output, and a Python function would wait for the GIL with the lock held.
    inner.print_greenlet_warning = int
    found = {"memray": str(module.__version__), "limit_bytes": _room()}
    # memray and its libunwind keep some memory and a pipe for ever: exclude them from growth.
    with _Tracer("/dev/null"):
        bytearray(1 << 16)
    return found


def _memray() -> Any:  # noqa: ANN401  # a module that may be missing
    try:
        return import_module("memray")
    except ModuleNotFoundError as error:
        if error.name == "memray":
            raise UnsupportedPlatform(
                f"the process's environment has no memray: {sys.executable} -m pip install"
                " 'cpythonplus[native]'"
            ) from None
        raise


def _is_tracing(module: Any) -> bool:  # noqa: ANN401
    """Whether a memray tracer is active: it replaces two attributes of threads meanwhile."""
    interceptor = getattr(module, "_thread_name_interceptor", None)
    kind = getattr(interceptor, "ThreadNameInterceptor", None)
    threading = import_module("threading")
    return kind is not None and type(threading.Thread.__dict__.get("_name")) is kind


def _others_profilers(hook: object) -> list[Any]:
    """Return (thread, function, object) of each profile function that is not memray's.

    hook: memray's object in a thread that has not called anything yet; a thread that began while
    memray stopped keeps it for ever.
    """
    rows = _native.memory_profilers()
    return [row for row in rows if row[1] not in _memrays and row[2] is not hook]


def _room() -> int:
    """Return the limit of the file's size; UnsupportedPlatform if there is too little room."""
    folder = import_module("tempfile").gettempdir()
    found = os.statvfs(folder)
    room = min(_LARGEST, found.f_bavail * found.f_frsize // _FREE_TIMES)
    if room < _LARGEST // _FREE_TIMES:
        raise UnsupportedPlatform(f"{folder} has too little room for the tracer's file")
    return room


def trace(argument: str) -> dict[str, object]:
    """Trace for `SECONDS,PID`, until that doctor has ended or the file is full.

    With `,1` after it, blocks of Python's own allocator are traced, too. They are most of a
    program's memory in small blocks, and take most time.

    Returns the cost, and the descriptor that the `file` has until `forget()`. Raises as `ready()`.
    """
    seconds, pid, *small = argument.split(",")
    forget()
    limit = ready()["limit_bytes"]  # checked again: the program has run since
    file = import_module("tempfile").TemporaryFile(prefix="cpythonplus-")
    _files.append(file)
    try:
        cpu_s, began = time.process_time(), time.monotonic()
        with _Tracer(f"/proc/self/fd/{file.fileno()}", small=bool(small)) as tracer:
            ended_by = _wait(file, float(seconds), int(pid), limit)
    except BaseException:
        forget()
        raise
    return {
        "file": file.fileno(),
        "seconds": round(time.monotonic() - began, 3),
        "cpu_s": round(time.process_time() - cpu_s, 3),
        "pause_ns": tracer.pause_ns,
        "file_bytes": os.fstat(file.fileno()).st_size,
        "ended_by": ended_by,
        "executable": sys.executable,
    }


def forget() -> dict[str, object]:
    """Close the file; a child that was forked with it keeps nothing on the disk either."""
    count = len(_files)
    while _files:
        file = _files.pop()
        with suppress(OSError):
            os.ftruncate(file.fileno(), 0)
        with suppress(OSError):
            file.close()
    return {"forgotten": count}


def _wait(file: IO[bytes], seconds: float, doctor: int, limit: int) -> str:
    """Return the reason for the end: "" for the time, else `fork`, `size` or `doctor`."""
    end = time.monotonic() + seconds
    seen = os.path.exists(f"/proc/{doctor}")  # noqa: PTH110  # false in another PID namespace
    while (left := end - time.monotonic()) > 0:
        if _native.memory_agent_wait(min(int(left * 1000) + 1, _LOOK_MS)):
            return "fork"
        if os.fstat(file.fileno()).st_size >= limit:
            return "size"
        if seen and not os.path.exists(f"/proc/{doctor}"):  # noqa: PTH110
            return "doctor"
    return ""


class _Tracer:
    """memray's tracer around a block. pause_ns: the longer of its start and its end."""

    def __init__(self, path: str, *, small: bool = False) -> None:
        memray = _memray()
        destination = memray.FileDestination(path=path, overwrite=True, compress_on_exit=False)
        self._tracker = memray.Tracker(
            destination=destination, native_traces=True, trace_python_allocators=small
        )
        self._threading = import_module("threading")
        self._own_hook: object = import_module("memray._memray").start_thread_trace
        self.pause_ns = 0

    def __enter__(self) -> Self:
        began = time.perf_counter_ns()
        self._tracker.__enter__()
        # This thread certainly has memray's function; another may have set its own already.
        own = sys.getprofile()
        _memrays.update(row[1] for row in _native.memory_profilers() if row[2] is own)
        self.pause_ns = time.perf_counter_ns() - began
        return self

    def __exit__(self, *_: object) -> None:
        began = time.perf_counter_ns()
        hook = self._threading.getprofile()
        programs = _others_profilers(self._own_hook)
        self._tracker.__exit__(None, None, None)
        _native.memory_profilers_set(programs)
        if hook is not self._own_hook:
            self._threading.setprofile(hook)
        self.pause_ns = max(self.pause_ns, time.perf_counter_ns() - began)
