"""Threads as tasklets: `threading.Thread` starts a tasklet of the thread that calls start().

The functions of `_thread` that `threading` uses to start a thread, to tell the running one, and to
tell its end are replaced.  So Thread, Timer, executors and their subclasses stay what they are.  A
Thread object that was made before starts a real thread.
"""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any

from cpythonplus._base.replacing import original
from cpythonplus._native import getcurrent, getmain, io_unraisable, tasklet, tasklets_abandon
from cpythonplus.tasklets.locks._conditions import Event, Lock

_idents: dict[tasklet, int] = {}  # the tasklets that are threads
_handles: dict[tasklet, Any] = {}  # their handles, from 3.13 on

_stock_ident: Callable[[], int] = original(_thread, "get_ident")  # type: ignore[assignment]
_waiting_at_exit = False
_forked_by: tasklet | None = None  # in a child: the only tasklet of the parent that goes on


def get_ident() -> int:
    """Return a number that no other thread has now, be it a tasklet or not: threading.get_ident."""
    return (_idents and _idents.get(getcurrent())) or _stock_ident()


def _begin(
    call: Callable[[], object],
    ended: Callable[[], object],
    name: object,
    handle: Any = None,  # noqa: ANN401
) -> int:
    """Make a tasklet that calls `call`, and then `ended`; return its number."""
    _wait_at_exit()

    def body() -> None:
        try:
            call()
        except SystemExit:
            pass
        except BaseException as error:  # noqa: BLE001  # reported as for a thread
            io_unraisable(error, name)
        finally:
            if getcurrent() is _forked_by:
                os._exit(0)  # as a process ends with its only thread
            _idents.pop(getcurrent(), None)
            _handles.pop(getcurrent(), None)
            ended()

    made = tasklet(body)
    ident = _idents[made] = id(made)
    if handle is not None:
        _handles[made] = handle
    made()
    return ident


def _wait_at_exit() -> None:
    """Make the interpreter's end wait for the tasklets that are not daemons, as for threads."""
    global _waiting_at_exit  # noqa: PLW0603
    if not _waiting_at_exit:
        _waiting_at_exit = True
        # Called last: executors tell their threads to end by such a function.
        threading._register_atexit(_end_all)  # type: ignore[attr-defined]  # noqa: SLF001
        calls = threading._threading_atexits  # type: ignore[attr-defined]  # noqa: SLF001
        calls.insert(0, calls.pop())


def _end_all() -> None:
    while True:
        numbers = set(_idents.values()) - {get_ident()}
        left = [t for t in threading.enumerate() if t.ident in numbers and not t.daemon]
        if not left:
            return
        for thread in left:
            thread.join()


def _forget(gone: list[tasklet]) -> None:
    for task in gone:
        _idents.pop(task, None)
        handle = _handles.pop(task, None)
        if handle is not None:
            handle.set_done_at_fork()


def _after_fork() -> None:
    """Make only the thread that forked go on in the child."""
    global _forked_by  # noqa: PLW0603
    me, main = getcurrent(), getmain()
    _forget([task for task in _idents if task is not me and task.thread_id != me.thread_id])
    if me not in _idents and not (me is main and _idents):
        return
    others = [task for task in (*_idents, main) if task is not me]
    for task in others:
        tasklets_abandon(task)
    _forget(others)
    if me is not main:
        _forked_by = me


os.register_at_fork(after_in_child=_after_fork)


# ---- signals ------------------------------------------------------------------------------------

_stock_signal: Any = signal.signal
_stock_getsignal: Any = signal.getsignal


class _InMain:
    """A signal's handler whose exceptions go to the main tasklet, as to the main thread.

    It runs in the tasklet that has its turn, and would end that one.
    """

    def __init__(self, handler: Callable[[int, object], object]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: object) -> None:
        main = getmain()
        try:
            self.handler(number, frame)
        except BaseException as error:
            me = getcurrent()
            if me in {main, _forked_by} or me not in _idents:
                raise
            main.throw(type(error), error, error.__traceback__, pending=True)
            with suppress(RuntimeError):  # while the whole thread waits, main comes next
                main.run()


def _of_everybody(handler: object) -> object:
    return handler.handler if isinstance(handler, _InMain) else handler


@wraps(_stock_signal)
def _signal(signalnum: int, handler: Any) -> object:  # noqa: ANN401  # any, as signal.signal
    if callable(handler):
        handler = _InMain(handler)
    return _of_everybody(_stock_signal(signalnum, handler))


@wraps(_stock_getsignal)
def _getsignal(signalnum: int) -> object:
    return _of_everybody(_stock_getsignal(signalnum))


SIGNAL_REPLACEMENTS: dict[str, object] = {"signal": _signal, "getsignal": _getsignal}


def wrap_handlers() -> None:
    """Have the handlers that exist raise in the main tasklet."""
    if threading.current_thread() is not threading.main_thread():
        return  # only that one may set handlers
    for number in signal.valid_signals():
        handler = _stock_getsignal(number)
        if callable(handler) and not isinstance(handler, _InMain):
            _stock_signal(number, _InMain(handler))


def stay_known() -> None:
    """Make threads that are tasklets keep their numbers after unpatch()."""
    if _idents:
        threading.get_ident = get_ident


if sys.version_info >= (3, 13):
    _stock_start: Any = original(_thread, "start_joinable_thread")

    class _Handle:
        """The end of a tasklet that is a thread: _thread._ThreadHandle."""

        def __init__(self) -> None:
            self.ident = 0
            self._end = Event()

        def is_done(self) -> bool:
            return bool(self._end.is_set())

        def join(self, timeout: float | None = None) -> None:
            self._end.wait(None if timeout is None or timeout < 0 else timeout)

        def _set_done(self) -> None:
            self._end.set()

        def set_done_at_fork(self) -> None:
            """Mark a thread as ended that is not in the child; it may have been about to end."""
            lock = self._end._cond._lock  # type: ignore[attr-defined]  # noqa: SLF001
            if lock.locked():
                lock._at_fork_reinit()  # noqa: SLF001
            self._end.set()

    def _start_joinable_thread(
        function: Callable[[], object],
        *,
        handle: Any = None,  # noqa: ANN401
        daemon: bool = True,
    ) -> Any:  # noqa: ANN401
        if handle is not None and not isinstance(handle, _Handle):
            return _stock_start(function, handle=handle, daemon=daemon)
        handle = handle or _Handle()
        handle.ident = _begin(function, handle._set_done, function, handle)  # noqa: SLF001
        return handle

    # The replacements, by their names in `threading`.
    REPLACEMENTS: dict[str, object] = {
        "_start_joinable_thread": _start_joinable_thread,
        "_ThreadHandle": _Handle,
        "get_ident": get_ident,
    }
else:
    _stock_start: Any = original(_thread, "start_new_thread")
    _stock_sentinel: Any = original(_thread, "_set_sentinel")
    _sentinels: dict[tasklet, Lock] = {}  # released when the tasklets that are threads end

    def _set_sentinel() -> Any:  # noqa: ANN401
        task = getcurrent()
        if task not in _idents:
            return _stock_sentinel()
        return _sentinels.setdefault(task, Lock())

    def _release_sentinel() -> None:
        sentinel = _sentinels.pop(getcurrent(), None)
        if sentinel is not None and sentinel.locked():
            sentinel.release()

    def _start_new_thread(
        function: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any] | None = None,
    ) -> int:
        thread = getattr(function, "__self__", None)
        if isinstance(thread, threading.Thread) and not isinstance(
            thread._started,  # type: ignore[attr-defined]  # noqa: SLF001
            Event,
        ):
            started: int = _stock_start(function, args, kwargs or {})
            return started
        return _begin(lambda: function(*args, **kwargs or {}), _release_sentinel, function)

    REPLACEMENTS = {
        "_start_new_thread": _start_new_thread,
        "_set_sentinel": _set_sentinel,
        "get_ident": get_ident,
    }
