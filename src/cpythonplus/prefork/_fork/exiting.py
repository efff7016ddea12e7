"""Ending a worker without tearing its heap down.

At a normal end the interpreter takes every object apart, and so makes all shared pages its own: for
some seconds each worker of a large service needs as much memory as if nothing had been shared.  A
process that is about to vanish need not do that.  The visible parts of a normal end are kept: the
exit functions, the threads, the buffers of files, temporary files, the status.
"""

import atexit
import contextlib
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, SimpleNamespace
from typing import NoReturn

from cpythonplus import _native
from cpythonplus.prefork._fork.preparing import flush_files
from cpythonplus.prefork._fork.temporaries import delete_own

_UNIT_BYTES = 2  # of CPython's code
_CANNOT_FLUSH = 120  # CPython's own status when the standard streams cannot be written out

# The thread in which fast_exit runs.  A child that an exit function forks inherits the number, and
# must not call all exit functions anew; a child of another thread may.
_ending_thread: int | None = None
_light_shutdown: Callable[[], None] | None = None  # set by end_lightly


def fast_exit(status: object = 0) -> NoReturn:
    """End this process as `sys.exit` does, but leave the heap as it is.

    Waits for the threads that are not daemons, calls all `atexit` functions, writes out what open
    files and the standard streams have buffered, deletes the `NamedTemporaryFile`s that this
    process made, then ends at once (`os._exit`).  The `finally` and `with` blocks around the call
    are not run, and neither are the finalisers of existing objects (`__del__`, `finally` in
    suspended generators) and the exit functions of C libraries.

    Not for exit functions (`atexit.register(fast_exit)`): those that ran already would run again,
    and the status of the process is not known there.  Called while it is at work, by a signal
    handler or an exit function, it raises SystemExit, and the first call goes on.

    Args:
        status: as for `sys.exit`: a number, None for 0; anything else is printed to standard error,
            and the status is 1.

    Raises RuntimeError when another than the main thread calls it.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("fast_exit() must be called by the main thread")
    global _ending_thread  # noqa: PLW0603
    if _ending_thread == threading.get_ident():
        raise SystemExit(status)
    _ending_thread = threading.get_ident()
    number = 1
    try:
        number = _number(status)
        _run_end()
        if not _flush_standard_streams():
            number = _CANNOT_FLUSH
    finally:
        os._exit(number)


def end_lightly() -> None:
    """Make the interpreter's own end leave the heap as it is.

    For processes whose status only the interpreter knows.  Replaces `threading._shutdown`, the
    first call of the interpreter's end, in this process.
    """
    global _light_shutdown  # noqa: PLW0603
    original = threading._shutdown  # type: ignore[attr-defined]  # noqa: SLF001  # CPython calls it
    if original is _light_shutdown:
        return  # inherited

    def shutdown() -> None:
        if not _is_interpreters_end():
            # multiprocessing's children call it too, and then end in their own way.
            original()
            return
        threading._shutdown = original  # type: ignore[attr-defined]  # noqa: SLF001
        _run_end()
        _flush_standard_streams()
        # This must be the last step: a wrapper of this function (gevent's) may import after it.
        atexit.register(_hide_heap)

    _light_shutdown = threading._shutdown = shutdown  # type: ignore[attr-defined]  # noqa: SLF001


def is_awaited(frame: FrameType | None, *, harmless: tuple[str, ...] = ()) -> bool:
    """Whether a SystemExit raised in `frame` would run code on its way: finally, with or except.

    If not, ending at once instead of raising it makes no difference.  Blocks in compiled modules
    cannot be seen.

    harmless: beginnings of the names of files whose blocks need not be left.
    """
    passed = (*harmless, "<frozen runpy>")
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(passed) and _has_handler(code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def _has_handler(code: CodeType, offset: int) -> bool:
    """Whether an exception at the instruction at `offset` (bytes) is handled in this function.

    The table's form: CPython, InternalDocs/exception_handling.md.  Rejected: `dis`, whose function
    for it is private, and asking whether there is a table at all: from 3.12 on the comprehensions
    of a script make one.
    """
    table = iter(code.co_exceptiontable)
    for first in table:
        start, length, _target, _depth = (
            _number_from(first, table),
            *(_number_from(next(table), table) for _ in range(3)),
        )
        if start * _UNIT_BYTES <= offset < (start + length) * _UNIT_BYTES:
            return True
    return False


def _number_from(byte: int, table: Iterator[int]) -> int:
    """Return a number of the table that begins with `byte`: six bits in each, the highest first."""
    value = byte & 63
    while byte & 64:
        byte = next(table)
        value = value << 6 | byte & 63
    return value


def _is_interpreters_end() -> bool:
    """Whether no Python function calls `threading._shutdown`, or a wrapper of it."""
    frame = sys._getframe()  # noqa: SLF001
    while frame.f_back is not None:
        frame = frame.f_back
    current = threading._shutdown  # type: ignore[attr-defined]  # noqa: SLF001
    return frame.f_code is getattr(current, "__code__", None)


def _number(status: object) -> int:
    if status is None:
        return 0
    if isinstance(status, int):
        return status & 0xFF
    if sys.stderr is not None:
        with contextlib.suppress(Exception):
            print(status, file=sys.stderr)  # noqa: T201  # as sys.exit does
    return 1


def _run_end() -> None:
    """Do the interpreter's steps before it takes anything apart."""
    # Both functions report exceptions themselves, except KeyboardInterrupt.
    for step in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]  # noqa: SLF001
        try:
            step()
        except BaseException as error:  # noqa: BLE001  # as at a normal end
            _tell(error, step)
    flush_files()
    # After the exit functions, which may use the files, as at a normal end.
    delete_own()


def _tell(error: BaseException, step: object) -> None:
    with contextlib.suppress(Exception):  # the hook may be the program's own
        sys.unraisablehook(
            SimpleNamespace(
                exc_type=type(error),
                exc_value=error,
                exc_traceback=error.__traceback__,
                err_msg=None,
                object=step,
            )
        )


def _flush_standard_streams() -> bool:
    """Return False when standard output could not be written, as CPython does."""
    done = True
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except Exception as error:  # noqa: BLE001  # any error of the program's stream
            if stream is sys.stdout:
                done = False
                _tell(error, stream)
    return done


def _hide_heap() -> None:
    """Hide modules and objects from finalisation."""
    modules = list(sys.modules.values())
    _native.prefork_keep_forever(modules)
    gc.disable()
    gc.freeze()
    sys.modules.clear()
