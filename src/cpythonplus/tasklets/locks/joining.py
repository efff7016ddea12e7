"""Waiting for the end of a thread blocks only the tasklet.

A thread says itself that it ends: the last function of its that is written in Python is replaced.
Those that began before are looked at now and then.
"""

import threading
from time import monotonic
from typing import Any
from weakref import WeakSet

from cpythonplus._native import io_delivery

__all__ = ["switch"]

_LOOK_EVERY_S = 0.02

_waits: dict[int, list[io_delivery]] = {}  # by the id() of each thread that will say its end
_before: WeakSet[threading.Thread] = WeakSet()  # those that will not
_stock: dict[str, Any] = {}  # methods of Thread by name, while they are replaced


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    """Wait until the thread ends: threading.Thread.join()."""
    stock = _stock.get("join", threading.Thread.join)
    waits = _waits.get(id(self), [] if self in _before else None)
    if waits is None or not self.is_alive() or self is threading.current_thread():
        stock(self, timeout)  # it has said its end; or it has not begun
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
    # What is left of its end is the interpreter's own.
    stock(self, None if deadline is None else max(deadline - monotonic(), 0))


def _bootstrap_inner(self: threading.Thread) -> None:
    _waits[id(self)] = []
    try:
        _stock["_bootstrap_inner"](self)
    finally:
        for ended in _waits.pop(id(self), ()):
            ended.deliver()


_METHODS = {"join": _join, "_bootstrap_inner": _bootstrap_inner}


def switch(*, on: bool) -> None:
    """Replace the methods, or put them back wherever nobody else has replaced them since."""
    if on and threading.Thread.join is not _join:
        _before.update(threading.enumerate())
    for name, method in _METHODS.items():
        found = getattr(threading.Thread, name)
        if on and found is not method:
            _stock[name] = found
            setattr(threading.Thread, name, method)
        elif not on and found is method:
            setattr(threading.Thread, name, _stock[name])
