"""A time limit for code that runs in the main thread and does not look at a clock.

SIGALRM interrupts it at any line.  Code in C that does not return to the interpreter is not
interrupted.  The signal's handler and timer are the program's own again afterwards.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

_AGAIN_S = 1.0
_LEAST_S = 1e-3


class TooLong(BaseException):  # it names what happened
    """A request took too long.  This is no Exception, so that an application does not answer it."""


@contextmanager
def limit(limit_s: float) -> Iterator[None]:
    """Raise TooLong in a `with` block that takes longer than `limit_s` seconds; 0: no limit.

    It is raised again each second if the block goes on.  Without effect outside of the main thread.
    """
    if not limit_s or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, frame: FrameType | None) -> None:
        place = f" (at {frame.f_code.co_filename}, line {frame.f_lineno})" if frame else ""
        raise TooLong(f"it took longer than {limit_s:g} s{place}")

    begun = monotonic()
    handler = signal.signal(signal.SIGALRM, interrupt)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, limit_s, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if left_s:
            left_s = max(left_s - (monotonic() - begun), _LEAST_S)
            signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)
