"""Holding a lock for the length of a block, if it can be had in time."""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from typing import Protocol

    class Holdable(Protocol):
        """A Lock, RLock, Condition or Semaphore."""

        def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...  # noqa: FBT001
        def release(self) -> object: ...


class AcquireTimeout:
    """The result of ``acquire_timeout``: acquires on entry, and releases on exit if it acquired.

    Entering returns whether the lock was acquired; the block runs in either case.  It raises what
    ``acquire`` raises, and RuntimeError while the same object is being used already: each ``with``
    needs one of its own.
    """

    __slots__ = ("_entered", "_lock", "_timeout")

    def __init__(self, lock: "Holdable", timeout: float | None) -> None:
        """Hold ``lock``, waiting for it at most ``timeout`` seconds; None: as long as it takes."""
        self._lock = lock
        self._timeout = timeout
        self._entered: list[bool] = []

    def __enter__(self) -> bool:
        if self._entered:
            raise RuntimeError("this acquire_timeout() is already in use")
        if self._timeout is None:
            acquired = self._lock.acquire()
        else:
            acquired = self._lock.acquire(timeout=self._timeout)
        self._entered.append(acquired)
        return acquired

    def __exit__(self, kind: object, value: object, where: object) -> None:
        if self._entered.pop():
            self._lock.release()
