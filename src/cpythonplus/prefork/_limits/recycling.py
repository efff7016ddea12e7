"""Replacing workers that have grown too large or old, one at a time.

Server-neutral: `Recycler.poll` tells when; the server's own way of leaving gracefully does the
rest.
"""

import logging
import math
import os
import random
import time
from collections.abc import Callable

from cpythonplus._base.text.sizes import format_size
from cpythonplus.prefork._blame.sharing import ProcessMemory, process_memory
from cpythonplus.prefork._board.board import Board, BoardError, Slot

_log = logging.getLogger("cpythonplus.prefork")

# A reading walks through the page tables of the process, and keeps its mappings locked: about 1 ms
# for each 100 MB.  It may take this share of the time at most.
_READING_SHARE = 0.01
# The factor of min_age_s for a worker that was above the limit from the start.
_HOPELESS = 10


class Recycler:
    """Tells a worker that it is too large or too old, and that it is its turn to leave.

    Its size is its *private* memory (Private_Clean + Private_Dirty), which would be free again if
    the worker left.  Resident memory would be wrong: it includes the memory shared with the master,
    which for a prepared heap is nearly all (253 of 263 MB), and which replacing the worker does not
    free.  Private memory that has been swapped out does not count.  A page that the master gives up
    while only one worker still shares it becomes private then.

    Make it in the master or in the worker; each process has its own state.  Call `poll` often: once
    right after the start, then after each request or in the server's own loop.
    """

    def __init__(
        self,
        limit_bytes: int,
        board: Board,
        *,
        lifetime_s: float = 0.0,
        jitter_s: float = 0.0,
        interval_s: float = 1.0,
        min_age_s: float = 10.0,
        read: Callable[[int], ProcessMemory] = process_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allow `limit_bytes` of private memory to a worker, and `lifetime_s`; 0: no limit.

        jitter_s: each worker lives up to this much longer. interval_s: time between two readings of
        the memory; longer if a reading is slow, so that reading takes a hundredth of the time at
        most. min_age_s: a worker is not too large for this long, and until it has served a request
        (if it counts them): else, with a limit below the memory of a fresh worker, a server would
        only replace workers.  A worker that is above the limit at the first poll is left alone ten
        times as long, and logged once. read, clock: for tests.

        Raises ValueError unless one limit and the interval are above zero, and no number is below.
        """
        numbers = (limit_bytes, lifetime_s, jitter_s, min_age_s)
        if min(numbers) < 0 or interval_s <= 0 or not (limit_bytes or lifetime_s):
            raise ValueError("a limit and an interval must be above zero")
        self.limit_bytes = limit_bytes
        self.reason = ""
        """One of REASONS, when `poll` has returned True."""
        self._board = board
        self._lifetime_s = lifetime_s
        self._jitter_s = jitter_s
        self._interval_s = interval_s
        self._min_age_s = min_age_s
        self._read = read
        self._clock = clock
        self._pid = 0
        # Set by `_start`, anew in each process.
        self._started_s = self._next_s = self._old_at_s = 0.0
        self._told = False
        self._first_bytes: int | None = None
        self._slot: Slot | None = None

    def poll(self) -> bool:
        """Return True, once, when this worker has to leave now; it notes the reason on the board.

        Mostly only reads the clock.  At most once per interval it reads its memory, and puts the
        result on the board.  Never raises for lack of a slot or of a reading.
        """
        now_s = self._clock()
        if self._pid != os.getpid():
            self._start(now_s)
        if self._told or now_s < self._next_s:
            return False
        large = self._is_large(now_s)
        reason = "lifetime" if now_s >= self._old_at_s else "private_memory" if large else ""
        if not reason or not self._board.take_turn(self._pid):
            return False
        self._told = True
        self.reason = reason
        if self._slot is not None:
            self._slot.leaves(reason)
        return True

    def _is_large(self, now_s: float) -> bool:
        private_bytes = self._measure(now_s)
        if self._first_bytes is None:
            self._first_bytes = private_bytes
            self._check_limit()
        return private_bytes > self.limit_bytes > 0 and self._old_enough(now_s)

    def _start(self, now_s: float) -> None:
        self._pid = os.getpid()
        self._started_s = self._next_s = now_s
        jitter_s = random.uniform(0, self._jitter_s)  # noqa: S311  # nothing secret
        self._old_at_s = now_s + self._lifetime_s + jitter_s if self._lifetime_s else math.inf
        self._told = False
        self._first_bytes = None
        self._slot = None
        try:
            self._slot = self._board.claim(self._pid)
        except BoardError as error:
            _log.warning("worker %d is not counted: %s", self._pid, error)

    def _measure(self, now_s: float) -> int:
        """Read the memory, put it on the board, set the time of the next reading."""
        if not self.limit_bytes:
            self._next_s = now_s + self._interval_s
            return 0
        try:
            memory = self._read(self._pid)
        except (OSError, RuntimeError):
            # The memory is unavailable (an old kernel, a closed /proc): then there is no limit
            # either.
            self._next_s = now_s + self._interval_s / _READING_SHARE
            return 0
        end_s = self._clock()
        self._next_s = now_s + max(self._interval_s, (end_s - now_s) / _READING_SHARE)
        if self._slot is not None:
            self._slot.write(
                private_bytes=memory.private_bytes,
                shared_bytes=memory.shared_bytes,
                proportional_bytes=memory.proportional_bytes,
            )
        return memory.private_bytes

    def _old_enough(self, now_s: float) -> bool:
        hopeless = self._first_bytes is not None and self._first_bytes > self.limit_bytes
        if now_s - self._started_s < self._min_age_s * (_HOPELESS if hopeless else 1):
            return False
        counts = self._board.snapshot().requests > 0
        return not counts or self._slot is None or self._slot.requests > 0

    def _check_limit(self) -> None:
        first_bytes = self._first_bytes or 0
        if first_bytes > self.limit_bytes > 0 and self._board.warn_once():
            _log.warning(
                "a fresh worker has %s of private memory, more than the limit of %s: workers are "
                "recycled at most every %g s",
                format_size(first_bytes),
                format_size(self.limit_bytes),
                self._min_age_s * _HOPELESS,
            )
