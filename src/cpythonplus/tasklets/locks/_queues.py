"""Queues: the standard library's own code over our locks, and a queue that needs no lock."""

import sys
from collections import deque
from queue import Empty, Full
from time import monotonic
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cpythonplus.tasklets.locks import _stock as stock
from cpythonplus.tasklets.locks._conditions import Condition, Lock, Waiter
from cpythonplus.threads._errors import ShutDown

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import SupportsRichComparison

__all__ = ["Empty", "Full", "LifoQueue", "PriorityQueue", "Queue", "ShutDown", "SimpleQueue"]

_T = TypeVar("_T")
_Comparable = TypeVar("_Comparable", bound="SupportsRichComparison")

_locks = SimpleNamespace(Lock=Lock, Condition=Condition)

if sys.version_info >= (3, 13):

    class Queue(stock.Queue[_T]):
        """A queue, first in, first out: queue.Queue."""

        __init__ = stock.rebound(stock.Queue.__init__, threading=_locks)

else:

    class _Gate(Condition):
        """A condition that raises ShutDown, with or without a wait, once `is_over` is true."""

        def __init__(self, lock: Any, is_over: "Callable[[], bool]") -> None:  # noqa: ANN401
            super().__init__(lock)
            self._is_over = is_over

        def __enter__(self) -> bool:
            entered = super().__enter__()
            if self._is_over():
                self.release()
                raise ShutDown
            return entered

        def wait(self, timeout: float | None = None) -> bool:
            notified = super().wait(timeout)
            if self._is_over():
                raise ShutDown
            return notified

    class Queue(stock.Queue[_T]):
        """A queue, first in, first out: queue.Queue, with the shutdown() of 3.13."""

        _standard_init = stock.rebound(stock.Queue.__init__, threading=_locks)

        def __init__(self, maxsize: int = 0) -> None:
            self._standard_init(maxsize)
            self.is_shutdown = False
            self.not_full = _Gate(self.mutex, lambda: self.is_shutdown)
            self.not_empty = _Gate(self.mutex, lambda: self.is_shutdown and not self._qsize())

        def shutdown(self, immediate: bool = False) -> None:  # noqa: FBT001, FBT002  # as in 3.13
            """Make put() raise ShutDown from now on, and get() once nothing is left.

            immediate: drop the items that are left; they count as done.
            """
            with self.mutex:
                self.is_shutdown = True
                while immediate and self._qsize():
                    self._get()
                    self.unfinished_tasks = max(self.unfinished_tasks - 1, 0)
                if immediate:
                    self.all_tasks_done.notify_all()
                self.not_empty.notify_all()
                self.not_full.notify_all()


class LifoQueue(stock.LifoQueue[_T], Queue[_T]):
    """A queue, last in, first out: queue.LifoQueue."""


class PriorityQueue(stock.PriorityQueue[_Comparable], Queue[_Comparable]):
    """A queue, the least item first: queue.PriorityQueue."""


class SimpleQueue(Generic[_T]):
    """A queue without bounds and without a lock: queue.SimpleQueue.

    put() never waits, and may be called by finalisers and signal handlers, also in the midst of
    another put() or get().
    """

    __slots__ = ("__weakref__", "_items", "_waiters")

    def __init__(self) -> None:
        self._items: deque[_T] = deque()
        self._waiters: deque[Waiter] = deque()  # first come, first served

    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002
        """Put an item in; `block` and `timeout` are for compatibility."""
        self._items.append(item)
        self._wake()

    def put_nowait(self, item: _T) -> None:
        """Put an item in."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> _T:  # noqa: FBT001, FBT002
        """Take the first item; wait for one, at most for `timeout` seconds.

        Raises Empty when there is none in time, ValueError for a negative time-out.
        """
        if block and timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        try:
            return self._items.popleft()
        except IndexError:
            if not block:
                raise Empty from None
        return self._wait(None if timeout is None else monotonic() + timeout)

    def get_nowait(self) -> _T:
        """Take the first item, or raise Empty."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Return whether there is nothing in it now."""
        return not self._items

    def qsize(self) -> int:
        """Return how many items are in it now."""
        return len(self._items)

    def _wait(self, end: float | None) -> _T:
        waiter = Waiter()
        standing = in_time = True
        served = False
        try:
            waiter.stand_in(self._waiters)
            while True:
                try:
                    item = self._items.popleft()
                except IndexError:
                    if not in_time:
                        raise Empty from None
                else:
                    served = True
                    return item
                if standing:
                    in_time = self._wait_once(waiter, end)
                    standing = not in_time
                else:  # another tasklet was faster; check for new items after queueing again
                    waiter.stand_in(self._waiters, again=True)
                    standing = True
        finally:
            self._leave(waiter, served=served)

    @staticmethod
    def _wait_once(waiter: Waiter, end: float | None) -> bool:
        if end is None:
            return waiter.acquire()
        return waiter.acquire(timeout=max(end - monotonic(), 0))

    def _leave(self, waiter: Waiter, *, served: bool) -> None:
        try:
            self._waiters.remove(waiter)
        except ValueError:
            if self._items and not served:  # it was woken for an item that it does not take
                self._wake()

    def _wake(self) -> None:
        try:
            waiter = self._waiters.popleft()
        except IndexError:
            return
        waiter.release()


for _public in (Queue, LifoQueue, PriorityQueue, SimpleQueue):
    _public.__module__ = "cpythonplus.tasklets.locks"
