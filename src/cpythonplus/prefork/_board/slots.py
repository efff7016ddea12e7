"""A worker's own place on the board, and its numbers."""

import os
import threading

from cpythonplus.prefork._board.records import WORD_MAX, Record
from cpythonplus.prefork._limits.endings import REASONS

# Words of a slot's record of numbers, by place.
CLAIM, READY, REASON, PRIVATE, SHARED, PROPORTIONAL, REQUESTS, WAITS, WAIT_NS, LOOKED_NS = range(10)
NUMBERS = 10
COUNTERS = (REQUESTS, WAITS, WAIT_NS)  # from the worker's start
_PLACES = {
    "private_bytes": PRIVATE,
    "shared_bytes": SHARED,
    "proportional_bytes": PROPORTIONAL,
    "requests": REQUESTS,
    "gil_waits": WAITS,
    "gil_wait_ns": WAIT_NS,
    "looked_ns": LOOKED_NS,
}


class Slot:
    """A worker's place on the board.

    Only the worker itself writes: in any other process, its own children included, the methods do
    nothing.  Any thread and any signal handler may call them.  None waits for another process.
    """

    __slots__ = ("_changed", "_lock", "_record", "_values", "_writing", "index", "pid")

    def __init__(self, index: int, pid: int, record: Record) -> None:
        self.index = index
        self.pid = pid
        self._record = record
        self._values = record.read()
        self._lock = threading.RLock()
        self._writing = False
        self._changed = False

    def write(self, **numbers: int) -> None:
        """Replace numbers of this worker on the board; the names are those of _PLACES."""
        self._set({_PLACES[name]: value for name, value in numbers.items()})

    def count_request(self) -> None:
        """Add one to the requests: use this and not `write(requests=...)` if threads serve them."""
        if os.getpid() != self.pid:
            return  # the lock may have been held by another thread of the parent
        with self._lock:
            self._set({REQUESTS: self._values[REQUESTS] + 1})

    def ready(self) -> None:
        """Say that this worker serves.  A turn that was taken before this worker came ends now."""
        self._set({READY: 1})

    def leaves(self, reason: str) -> None:
        """Note the reason why this worker is about to leave: one of REASONS, else ValueError."""
        self._set({REASON: 1 + code_of(reason)})

    @property
    def claim(self) -> int:
        """The number of the claim, from 1 and never used again, that this slot was given for."""
        return self._values[CLAIM]

    @property
    def requests(self) -> int:
        """The number of requests that this worker has counted."""
        return self._values[REQUESTS]

    def _set(self, values: dict[int, int]) -> None:
        if os.getpid() != self.pid:
            return
        with self._lock:
            for place, value in values.items():
                self._values[place] = min(max(value, 0), WORD_MAX)
            self._changed = True
        # A signal handler may interrupt the thread that is writing: it leaves the writing to that
        # thread, which checks again after each write.
        while self._changed:
            with self._lock:
                if self._writing:
                    return
                try:  # a signal handler may raise at any call
                    self._writing = True
                    self._changed = False
                    self._record.write(self._values)
                finally:
                    self._writing = False


def code_of(reason: str) -> int:
    if reason not in REASONS:
        raise ValueError(
            f"{reason!r} is not a reason for leaving; expected one of {', '.join(REASONS)}"
        )
    return REASONS.index(reason)
