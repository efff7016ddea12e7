"""A thread of ours that looks at something from time to time.

It ends before a fork, and begins again in parent and child, so that the fork is one of a process
without it.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic, sleep

from cpythonplus import _native

_JOIN_S = 1.0


class Background:
    """Calls `look` at each turn, in a thread."""

    def __init__(self, name: str, turn_s: float, look: Callable[[], object]) -> None:
        """Nothing begins before `start`."""
        self.turn_s = turn_s
        self._name, self._look = name, look
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it has begun. Without a thread (the system gives none) nothing is done."""
        if self._thread is not None:
            return
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._over,), name=self._name, daemon=True
        )
        with suppress(RuntimeError):
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is None or not thread.is_alive():
            return
        end_s = monotonic() + _JOIN_S
        thread.join(_JOIN_S)
        # The kernel counts it for a moment more, and os.fork() warns of what the kernel counts.
        while os.path.exists(f"/proc/self/task/{thread.native_id}") and monotonic() < end_s:  # noqa: PTH110
            sleep(0.0001)

    def go_on_behind_forks(self, start_in_child: Callable[[], object]) -> None:
        """End before each fork; begin again behind it: in a child by `start_in_child`."""
        start = self.start  # one object, known by its address
        os.register_at_fork(
            before=self.stop,
            after_in_parent=partial(_native.gil_behind_fork, start),  # a hook in C
            after_in_child=start_in_child,
        )

    def _run(self, over: threading.Event) -> None:
        with suppress(OSError), open("/proc/thread-self/comm", "w") as name:  # noqa: PTH123
            name.write("cpythonplus")  # before 3.14 the kernel does not know the thread's name
        while not over.wait(self.turn_s):
            self._look()


def write(text: str) -> None:
    """Write to sys.stderr. If the terminal is gone or the file closed, nobody can be told."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
