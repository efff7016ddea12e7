"""Common to the screens of `top` and `doctor watch`: single keys, and the end by a signal."""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b": "escape",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x04": "q",
}
_LONGEST_KEY = max(map(len, _KEYS))


class _Terminated(BaseException):
    """SIGTERM has come: the terminal is restored first."""


def _raise_terminated(*_: object) -> None:
    raise _Terminated


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM end the block.

    The list has SIGTERM afterwards, if that came: the caller raises it again after its own work.
    """
    again: list[int] = []
    before = signal.signal(signal.SIGTERM, _raise_terminated)
    try:
        yield again
    except KeyboardInterrupt:
        pass
    except _Terminated:
        again.append(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def single_keys() -> Iterator[None]:
    """Let each key be read when it is pressed, and be shown by nobody."""
    saved = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


def read_keys(wait_s: float) -> list[str]:
    """Return the keys that were pressed; waits so many seconds for the first one."""
    if not select.select([sys.stdin], [], [], wait_s)[0]:
        return []
    data = os.read(sys.stdin.fileno(), 1024)
    if not data:  # the terminal is gone
        return ["q"]
    keys: list[str] = []
    while data:
        known = next((data[:n] for n in range(_LONGEST_KEY, 0, -1) if data[:n] in _KEYS), data[:1])
        keys.append(_KEYS.get(known, known.decode(errors="replace")))
        data = data[len(known) :]
    return keys
