"""Telling a deadlock by itself: a thread looks from time to time whether one lasts.

It ends before a fork, and begins again in parent and child, so that the fork is one of a process
without it. Looking costs a read of the native waits; frames are read only while a wait without a
time-out has lasted for long enough.
"""

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from cpythonplus import _native
from cpythonplus.threads._waits import Deadlock, Waits, waits
from cpythonplus.threads._waits_text import deadlock_lines

__all__ = ["watch_deadlocks"]

_JOIN_S = 1.0


def watch_deadlocks(after_s: float, tell: Callable[[str], object] | None = None) -> None:
    """Tell each deadlock once, when it has lasted for `after_s` seconds; lasts until the exit.

    tell: called with the text, in a thread of its own; default: written to sys.stderr.
    """
    watch = _Watch(after_s, tell or _write)
    watch.start()
    start = watch.start  # one object, known by its address
    os.register_at_fork(
        before=watch.stop,
        after_in_parent=partial(_native.gil_behind_fork, start),  # a hook in C
        after_in_child=start,
    )
    # The interpreter waits for the program's threads before that, and they may be deadlocked.
    atexit.register(watch.stop)


class _Watch:
    def __init__(self, after_s: float, tell: Callable[[str], object]) -> None:
        self._after_s = after_s
        self._tell = tell
        self._told: set[frozenset[int]] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is not None:
            return
        # Without a thread (RuntimeError: the system gives none) the program goes on unwatched.
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._over,), name="cpythonplus deadlocks", daemon=True
        )
        with suppress(RuntimeError):
            self._thread.start()

    def stop(self) -> None:
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            thread.join(_JOIN_S)

    def _run(self, over: threading.Event) -> None:
        while not over.wait(self._after_s / 2):
            if any(
                waited_ns >= self._after_s * 1e9 and not timed
                for _, _, _, waited_ns, timed, _ in _native.threads_present_waits()
            ):
                self._look()

    def _look(self) -> None:
        found = waits()
        lasting = [each for each in found.deadlocks if self._lasts(each, found)]
        if lasting:
            self._told.update(frozenset(each.threads) for each in lasting)
            text = Waits(found.waits, (*lasting,), found.names).as_json()
            lines = "".join(f"{line}\n" for line in deadlock_lines(text))
            self._tell(f"cpythonplus: process {os.getpid()} does not go on\n{lines}")

    def _lasts(self, deadlock: Deadlock, found: Waits) -> bool:
        """Whether all of its waits whose length is known have lasted, and it was not told yet."""
        lengths = [
            each.waited_ns
            for each in found.waits
            if each.ident in deadlock.threads and each.waited_ns is not None
        ]
        return (
            frozenset(deadlock.threads) not in self._told
            and min(lengths, default=0) >= self._after_s * 1e9
        )


def _write(text: str) -> None:
    # The terminal may be gone, or the file closed: nobody can be told.
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
