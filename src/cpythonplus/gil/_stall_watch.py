"""Telling the stalls of the GIL: a thread takes the records once a second, and writes lines.

The same place is told once a minute, with the number of its stalls since; no more than
ten lines a minute are written.
"""

import atexit
import os
from collections.abc import Callable
from time import monotonic

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus._base.text.sizes import duration
from cpythonplus._base.text.visible import visible
from cpythonplus.gil._background import Background, write
from cpythonplus.gil._late_loops import LateLoops
from cpythonplus.gil._stalls import Stall, forget, take, untold

LIMIT_MS = 100
LASTING_S = 10.0
_TURN_S = 1.0
_MINUTE_S = 60.0
_LINES_A_MINUTE = 10


def watch_stalls(
    limit_ms: float = LIMIT_MS,
    tell: Callable[[str], object] | None = None,
    count: Callable[[Stall], object] | None = None,
) -> bool:
    """Record holds of the GIL for which a thread has waited `limit_ms` or more, and tell them.

    tell: called with a line, in a thread of its own; default: written to sys.stderr. count: called
    there with each stall. A hold that has lasted for ten seconds is written to standard error while
    it goes on. Lasts until the exit. Returns False in a subinterpreter, and if frames cannot be
    read. A second call changes all of it.
    """
    if not _native.gil_watch_stalls(int(limit_ms * 1000), int(max(LASTING_S * 1000, limit_ms))):
        return False
    _watch.tell, _watch.count, _watch.limit_ms = tell or _write, count, limit_ms
    _watch.loops.set_limit(limit_ms)
    _watch.begin()
    return True


def count_stalls(count: Callable[[Stall], object]) -> float:
    """Have stalls counted that are told already, or else not told; return the limit.

    The limit is in milliseconds, 0 if stalls cannot be recorded.
    """
    if not _watch.limit_ms:
        watch_stalls(tell=_tell_nobody)
    _watch.count = count
    return _watch.limit_ms


def _tell_nobody(_: str) -> None:
    pass


class _Watch:
    """The one thread of a process, and what it has told."""

    def __init__(self) -> None:
        self.tell: Callable[[str], object] = _write
        self.count: Callable[[Stall], object] | None = None
        self.limit_ms = 0.0
        self.loops = LateLoops()
        self._begun = False
        self._background = Background("cpythonplus stalls", _TURN_S, self._look)
        self._told: dict[Place, float] = {}
        self._untold: dict[Place, list[Stall]] = {}
        self._minute_s, self._lines = monotonic(), 0

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._background.start()
            self._background.go_on_behind_forks(self.start_in_child)
            atexit.register(self.end)

    def start_in_child(self) -> None:
        forget()
        self._told.clear()
        self._untold.clear()
        self._background.start()

    def end(self) -> None:
        """Tell at the exit what is left."""
        self._background.stop()
        self.loops.stop()
        self._look(last=True)

    def _look(self, *, last: bool = False) -> None:
        take()
        if not last:
            self.loops.find()
        now_s = monotonic()
        while untold:
            each = untold.popleft()
            if self.count is not None:
                self.count(each)
            self._untold.setdefault(each.at, []).append(each)
        if now_s - self._minute_s >= _MINUTE_S:
            self._minute_s, self._lines = now_s, 0
        for place in [*self._untold]:
            since_s = now_s - self._told.get(place, -_MINUTE_S)
            if self._lines < _LINES_A_MINUTE and (last or since_s >= _MINUTE_S):
                self._lines += 1
                self._told[place] = now_s
                self.tell(_line(self._untold.pop(place)))


def _line(found: list[Stall]) -> str:
    longest = max(found, key=lambda each: each.hold_ns)
    total = duration(sum(each.hold_ns for each in found))
    more = f" ({len(found)} times, {total} together)" if len(found) > 1 else ""
    return f"stall in process {os.getpid()}{more}: {visible(str(longest))}"


def _write(line: str) -> None:
    write(f"cpythonplus: {line}\n")


_watch = _Watch()
