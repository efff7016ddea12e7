"""Telling a deadlock by itself: a thread looks from time to time whether one lasts.

Looking costs a read of the native waits; frames are read only while a wait without a
time-out has lasted for long enough.
"""

import atexit
import os
from collections.abc import Callable

from cpythonplus import _native
from cpythonplus.gil._background import Background, write
from cpythonplus.threads._waits import Deadlock, Waits, waits
from cpythonplus.threads._waits_text import deadlock_lines


def watch_deadlocks(after_s: float, tell: Callable[[str], object] | None = None) -> None:
    """Tell each deadlock once, when it has lasted for `after_s` seconds; lasts until the exit.

    tell: called with the text, in a thread of its own; default: written to sys.stderr.
    """
    watch = _Watch(after_s, tell or write)
    background = Background("cpythonplus deadlocks", after_s / 2, watch.look)
    background.start()
    background.go_on_behind_forks(background.start)
    # The interpreter waits for the program's threads before that, and they may be deadlocked.
    atexit.register(background.stop)


class _Watch:
    def __init__(self, after_s: float, tell: Callable[[str], object]) -> None:
        self._after_s = after_s
        self._tell = tell
        self._told: set[frozenset[int]] = set()

    def look(self) -> None:
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
