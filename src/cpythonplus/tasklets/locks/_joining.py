"""Waiting for the end of a thread blocks only the tasklet.

A thread announces its end itself: the last Python function that it runs is replaced.  Threads that
began before are checked periodically.  start() waits as usual: run() must not return in the middle
of it, as it does when tasklets wait for locks.
"""

import _thread
import sys
import threading
from time import monotonic
from typing import Any
from weakref import WeakSet

from cpythonplus._base.replacing import original
from cpythonplus._native import TaskletExit, io_delivery

_LOOK_EVERY_S = 0.02

_waits: dict[int, list[io_delivery]] = {}  # by id() of each thread that will announce its end
_before: WeakSet[threading.Thread] = WeakSet()  # threads that will not
_stock: dict[str, Any] = {}  # standard methods of Thread by name, while they are replaced


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    """Wait until the thread ends: threading.Thread.join()."""
    stock = _stock.get("join", threading.Thread.join)
    waits = _waits.get(id(self), [] if self in _before else None)
    if waits is None or not self.is_alive() or self is threading.current_thread():
        stock(self, timeout)  # it has announced its end, or has not begun
        return
    deadline = None if timeout is None else monotonic() + timeout
    ended = io_delivery()
    waits.append(ended)
    try:
        while self.is_alive():
            left = _LOOK_EVERY_S if deadline is None else deadline - monotonic()
            if left <= 0:
                return
            if ended.wait(min(left, _LOOK_EVERY_S)):
                break
    finally:
        if ended in waits:
            waits.remove(ended)
    # The rest of the thread's end is the interpreter's own.
    stock(self, None if deadline is None else max(deadline - monotonic(), 0))


class _Started:
    """The part of Event that start() uses: its maker waits for a real thread to begin."""

    __slots__ = ("_is_set", "_lock")

    _allocate_lock: Any = original(_thread, "allocate_lock")

    def __init__(self) -> None:
        self._is_set = False
        self._at_fork_reinit()

    def _at_fork_reinit(self) -> None:
        self._lock = self._allocate_lock()
        if not self._is_set:
            self._lock.acquire()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set and self._lock.acquire(timeout=-1 if timeout is None else timeout):
            self._lock.release()
        return self._is_set


def _start(self: threading.Thread) -> None:
    """Start it: threading.Thread.start()."""
    starter = getattr(threading, _STARTER)
    if starter is _stock_starter and not self._started.is_set():  # type: ignore[attr-defined]
        self._started = _Started()  # type: ignore[attr-defined]
    _stock["start"](self)


_STARTER = "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread"
_stock_starter = getattr(threading, _STARTER)


def _bootstrap_inner(self: threading.Thread) -> None:
    _waits[id(self)] = []
    tell = self._invoke_excepthook  # type: ignore[attr-defined]

    def tell_of_others(thread: threading.Thread) -> None:
        if not isinstance(sys.exception(), TaskletExit):
            tell(thread)

    self._invoke_excepthook = tell_of_others  # type: ignore[attr-defined]
    try:
        _stock["_bootstrap_inner"](self)
    finally:
        for ended in _waits.pop(id(self), ()):
            ended.deliver()


_METHODS = {"start": _start, "join": _join, "_bootstrap_inner": _bootstrap_inner}


def switch(*, on: bool) -> None:
    """Replace the methods, or restore them unless other code has replaced them since."""
    if on and threading.Thread.join is not _join:
        _before.update(threading.enumerate())
    for name, method in _METHODS.items():
        found = getattr(threading.Thread, name)
        if on and found is not method:
            _stock[name] = found
            setattr(threading.Thread, name, method)
        elif not on and found is method:
            setattr(threading.Thread, name, _stock[name])
