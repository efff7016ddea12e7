"""Ctrl-C and SIGTERM that never leave a program behind.

An exception between the fork and the note of the child would leave the child running, and so would
a second Ctrl-C while the child is being ended. Rejected: blocking the signals, because a child
inherits the mask.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_holds = 0
_came: list[int] = []


@contextmanager
def caught() -> Iterator[None]:
    """Make SIGINT and SIGTERM raise KeyboardInterrupt(number). Main thread only.

    A signal that is ignored already, as under nohup, stays ignored.
    """
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held() -> Iterator[None]:
    """Delay signals to the end of the block."""
    global _holds  # noqa: PLW0603  # handlers belong to the process, too
    _holds += 1
    try:
        yield
    finally:
        _holds -= 1
        if _came and not _holds:
            number = _came[0]
            _came.clear()
            raise KeyboardInterrupt(number)


def _handle(number: int, _frame: FrameType | None) -> None:
    if not _holds:
        raise KeyboardInterrupt(number)
    _came.append(number)
