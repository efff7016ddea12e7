"""Telling a deadlock by itself: a thread looks from time to time whether one lasts.

Looking costs a read of the native waits; frames are read only while a wait without a
time-out has lasted for long enough, or the process hardly runs.
"""

import atexit
import os
from collections.abc import Callable
from time import monotonic, process_time

from cpythonplus import _native
from cpythonplus.gil._background import Background, write
from cpythonplus.threads._waits import Deadlock, Waits, waits
from cpythonplus.threads._waits_text import deadlock_lines

_IDLE = 0.05
"""A process that runs for less than this share of the time may be one that waits for ever."""


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
        self._since: dict[frozenset[int], float] = {}
        """When each deadlock that is there was seen first."""
        self._looked_s = monotonic()
        self._ran_s = process_time()

    def look(self) -> None:
        if self._is_idle() or any(
            waited_ns >= self._after_s * 1e9 and not timed
            for _, _, _, waited_ns, timed, _ in _native.threads_present_waits()
        ):
            self._look()
        else:
            self._since.clear()

    def _is_idle(self) -> bool:
        """Whether the process has hardly run since the last look.

        All of its threads may wait for other processes then, which is in no native wait.
        """
        before_s, self._looked_s = self._looked_s, monotonic()
        ran_s, self._ran_s = self._ran_s, process_time()
        return self._ran_s - ran_s < (self._looked_s - before_s) * _IDLE

    def _look(self) -> None:
        found = waits()
        keys = [frozenset(each.threads) for each in found.deadlocks]
        self._since = {key: self._since.get(key, self._looked_s) for key in keys}
        lasting = [each for each in found.deadlocks if self._lasts(each, found)]
        if lasting:
            self._told.update(frozenset(each.threads) for each in lasting)
            text = Waits(found.waits, (*lasting,), found.names).as_json()
            lines = "".join(f"{line}\n" for line in deadlock_lines(text))
            self._tell(f"cpythonplus: process {os.getpid()} does not go on\n{lines}")

    def _lasts(self, deadlock: Deadlock, found: Waits) -> bool:
        """Whether all of its waits have lasted, and it was not told yet.

        A deadlock of waits without a known length counts from the look that saw it first.
        """
        key = frozenset(deadlock.threads)
        lengths = [
            each.waited_ns
            for each in found.waits
            if each.ident in deadlock.threads and each.waited_ns is not None
        ]
        lasted_s = min(lengths) / 1e9 if lengths else self._looked_s - self._since[key]
        return key not in self._told and lasted_s >= self._after_s
