"""Sleeping, timers and time limits that concern only a tasklet.

`timeout` is asyncio.timeout() for tasklets, with the same rules for nesting and for exceptions
(https://docs.python.org/3/library/asyncio-task.html#timeouts).
"""

import math
from collections.abc import Callable
from typing import Self

from cpythonplus import _native
from cpythonplus._native import getcurrent, tasklet

# The replacements of patch(), by module and name.
REPLACEMENTS = {"time": {"sleep": _native.io_sleep}}


def sleep(seconds: float) -> None:
    """Block the running tasklet for a number of seconds; the others of its thread continue.

    seconds: 0 lets the others run once.

    Raises, like time.sleep(), ValueError for a negative number or NaN, TypeError for an argument
    that is no number; OverflowError above 9.2e9.
    """
    _native.io_sleep(seconds)


class Timer:
    """A call that is to come; made by `call_later`."""

    __slots__ = ("_tasklet",)

    def __init__(self, call: tasklet) -> None:
        self._tasklet: tasklet | None = call

    @property
    def active(self) -> bool:
        """Whether the call is still to come."""
        call = self._tasklet
        return call is not None and call.alive and call.recursion_depth == 0 and call.blocked

    def cancel(self) -> None:
        """Keep the call from beginning; does nothing once it has begun.  From any thread."""
        call, self._tasklet = self._tasklet, None
        if call is not None:
            _native.io_begin_never(call)


def call_later(delay: float, func: Callable[..., object], /, *args: object) -> Timer:
    """Call func(*args) in its own tasklet, `delay` seconds from now.

    delay: seconds; negative ones count as 0.

    run() waits for it as for a tasklet that sleeps; a thread that ends does not.  The tasklet's
    context is a copy of the caller's.  Raises ValueError for NaN, OverflowError above 9.2e9,
    TypeError if `func` cannot be called.
    """
    call = tasklet(func, args)
    _native.io_begin_after(call, delay)
    return Timer(call)


class _Expired(BaseException):
    """Ends the body of a `with timeout()`; not an Exception, so that no `except Exception` does."""


class timeout:  # noqa: N801  # as asyncio's
    """A context manager that raises TimeoutError when its body takes longer than `seconds`.

    The body ends at its present or next wait for anything: a lock, a channel, a socket, run().  The
    exception that ends it is no Exception; it becomes TimeoutError at the end of the `with`, and
    only there: an inner `timeout` never takes it for its own.  A body that does not wait, or that
    ends in time, is not touched.

    seconds: None for no limit yet; 0 or less: the body ends at its first wait.

    One `timeout` serves for one `with`, else RuntimeError.  ValueError for NaN.
    """

    __slots__ = ("_expired", "_seconds", "_tasklet", "_timer", "_used")

    def __init__(self, seconds: float | None) -> None:
        if seconds is not None and math.isnan(seconds):
            raise ValueError("Invalid value NaN (not a number)")
        self._seconds = seconds
        self._tasklet: tasklet | None = None
        self._timer: tasklet | None = None
        self._expired: _Expired | None = None
        self._used = False

    def expired(self) -> bool:
        """Return whether the time was over before the body ended."""
        return self._expired is not None

    def reschedule(self, seconds: float | None) -> None:
        """Let the time-out end `seconds` from now; None: never.

        RuntimeError if the body has ended, has not begun, or its time is over.
        """
        if self._tasklet is None or self._expired is not None:
            raise RuntimeError("cannot change the time of a timeout that is not active")
        timer = None
        if seconds is not None and not seconds <= 0:
            timer = tasklet(self._expire, ())
            _native.io_begin_after(timer, seconds)
        self._stop()
        self._timer = timer
        if seconds is not None and timer is None:
            self._expire()

    def _stop(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and not _native.io_begin_never(timer):
            timer.kill(pending=True)

    def _expire(self) -> None:
        """Runs in the timer's tasklet; in the body's own if the time was over from the start."""
        self._expired = _Expired()
        body = self._tasklet
        while body is not None and body.alive and not _native.io_interrupt(body, self._expired):
            # Another time-out of the body has expired too: wait until its exception has been
            # raised.
            _native.io_sleep(0.001)

    def __enter__(self) -> Self:
        if self._used:
            raise RuntimeError("a timeout can be used for one `with` only")
        self._used = True
        self._tasklet = getcurrent()
        try:
            self.reschedule(self._seconds)
        except BaseException:
            self._tasklet = None
            raise
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._tasklet = None  # a timer that a signal handler keeps from being stopped ends nothing
        self._stop()
        if self._expired is None:
            return
        _native.io_not_due(self._expired)
        if error is self._expired:
            raise TimeoutError from error
