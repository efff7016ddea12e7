"""The types of `threading` beside locks: the standard library's code over our Lock and RLock."""

import sys
from collections import deque
from itertools import count
from math import isnan
from threading import BrokenBarrierError

from cpythonplus._native import tasklets_Lock as Lock
from cpythonplus._native import tasklets_RLock as RLock
from cpythonplus.tasklets.locks import _stock as stock

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "Condition",
    "Event",
    "Lock",
    "RLock",
    "Semaphore",
]


_tickets = count()

_REFUSES_NAN = sys.version_info >= (3, 14)
"""Whether threading.Condition.wait refuses NaN; before, it did not wait then."""


class Waiter:
    """A locked lock that a tasklet waits for, in a line of such; releasing it wakes the tasklet.

    A tasklet that was woken in vain, because another was faster, gets its old place again: the line
    is in the order of tickets. So no tasklet is overtaken for ever.
    """

    __slots__ = ("acquire", "release", "ticket")

    def __init__(self, ticket: int | None = None) -> None:
        lock = Lock()
        lock.acquire()
        self.acquire, self.release = lock.acquire, lock.release
        self.ticket = next(_tickets) if ticket is None else ticket

    def stand_in(self, line: "deque[Waiter]", *, again: bool = False) -> None:
        """Go to the end of a line, or back to the old place."""
        if again:
            for place in range(len(line)):
                try:
                    later = line[place].ticket > self.ticket
                except IndexError:  # another thread has woken some waiters
                    break
                if later:
                    line.insert(place, self)
                    return
        line.append(self)


class Condition(stock.Condition):
    """A condition variable: threading.Condition.

    Waiters are notified in the order in which they came. A waiter that finds that another one was
    faster, and waits again inside of the same `with`, keeps its place.

    A notification is never lost: if its waiter is killed, or its time is over, the next waiter gets
    it, or it counts as in time.  The lock may be one of the standard library's; waiting for such a
    lock blocks the whole thread.
    """

    _waiters: "deque[Waiter]"  # an attribute of the standard class

    # The ticket of the tasklet that holds the lock by `with`, or -1 before its first wait; else
    # None.
    _visit: int | None = None

    __init__ = stock.rebound(stock.Condition.__init__, RLock=RLock)

    def __enter__(self) -> bool:
        entered: bool = self._lock.__enter__()  # type: ignore[attr-defined]
        self._visit = -1
        return entered

    def __exit__(self, *exception: object) -> None:
        self._visit = None
        self._lock.__exit__(*exception)  # type: ignore[attr-defined]

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait until notified or timed out, and take the lock again.

        timeout: in seconds; None: without limit.  Returns False if the time was over first.  Raises
        RuntimeError if the lock is not held; another exception that ends the wait, such as
        TaskletExit, is raised once the lock is held again.
        """
        if not self._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError("cannot wait on un-acquired lock")
        if _REFUSES_NAN and timeout is not None and isnan(timeout):
            raise ValueError("Invalid value NaN (not a number)")
        visit, self._visit = self._visit, None
        again = visit is not None and visit >= 0
        waiter = Waiter(visit if again else None)
        try:
            waiter.stand_in(self._waiters, again=again)
            saved = self._release_save()  # type: ignore[attr-defined]
            try:
                if timeout is None:
                    notified = waiter.acquire()
                elif timeout > 0:
                    notified = waiter.acquire(timeout=timeout)
                else:
                    notified = waiter.acquire(blocking=False)
            finally:
                self._acquire_restore(saved)  # type: ignore[attr-defined]
                if visit is not None:
                    self._visit = waiter.ticket
        except BaseException:
            if self._is_notified(waiter) and self._is_owned():  # type: ignore[attr-defined]
                self.notify()
            raise
        return notified or self._is_notified(waiter)

    def _is_notified(self, waiter: Waiter) -> bool:
        """Return whether a waiter that has stopped waiting was notified; remove it."""
        try:
            self._waiters.remove(waiter)
        except ValueError:
            return True
        return False


class Semaphore(stock.Semaphore):
    """A counter that is never below zero: threading.Semaphore."""

    __init__ = stock.rebound(stock.Semaphore.__init__, Condition=Condition, Lock=Lock)


class BoundedSemaphore(stock.BoundedSemaphore, Semaphore):
    """A semaphore that is not released more often than acquired: threading.BoundedSemaphore."""

    __init__ = stock.rebound(stock.BoundedSemaphore.__init__, Semaphore=Semaphore, super=super)


class Event(stock.Event):
    """A flag to wait for: threading.Event."""

    __init__ = stock.rebound(stock.Event.__init__, Condition=Condition, Lock=Lock)


class Barrier(stock.Barrier):
    """A meeting point of a number of tasklets or threads: threading.Barrier."""

    __init__ = stock.rebound(stock.Barrier.__init__, Condition=Condition, Lock=Lock)


for _public in (Condition, Semaphore, BoundedSemaphore, Event, Barrier):
    _public.__module__ = "cpythonplus.tasklets.locks"
