"""What `threading` has beside locks: the standard library's own code over our Lock and RLock."""

from collections import deque
from threading import BrokenBarrierError

from cpythonplus._native import tasklets_Lock as Lock
from cpythonplus._native import tasklets_RLock as RLock
from cpythonplus.tasklets.locks import stock

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


class Condition(stock.Condition):
    """A condition variable: threading.Condition.

    A notification is never lost: one that comes to a waiter that is killed, or whose time is over,
    goes to the next, or counts.  The lock may be one of the standard library's; to wait for that
    blocks the whole thread.
    """

    _waiters: "deque[Lock]"  # of the standard class

    __init__ = stock.rebound(stock.Condition.__init__, RLock=RLock)

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait until notified or for so many seconds, and take the lock again.

        Returns False when the time was over first.  Raises RuntimeError when the lock is not held;
        what ends the wait otherwise, such as TaskletExit, is raised once the lock is held again.
        """
        if not self._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        saved = self._release_save()  # type: ignore[attr-defined]
        try:
            try:
                if timeout is None:
                    notified = waiter.acquire()
                elif timeout > 0:
                    notified = waiter.acquire(timeout=timeout)
                else:
                    notified = waiter.acquire(blocking=False)
            finally:
                self._acquire_restore(saved)  # type: ignore[attr-defined]
        except BaseException:
            if self._is_notified(waiter) and self._is_owned():  # type: ignore[attr-defined]
                self.notify()
            raise
        return notified or self._is_notified(waiter)

    def _is_notified(self, waiter: Lock) -> bool:
        """Return whether a waiter that waits no more had been chosen; forget it."""
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
    """Where a number of tasklets or threads wait for each other: threading.Barrier."""

    __init__ = stock.rebound(stock.Barrier.__init__, Condition=Condition, Lock=Lock)


for _public in (Condition, Semaphore, BoundedSemaphore, Event, Barrier):
    _public.__module__ = "cpythonplus.tasklets.locks"
