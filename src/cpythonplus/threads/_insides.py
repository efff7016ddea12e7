"""The attributes of a native object that the standard class has in its ``__dict__``."""

import copyreg
import sys
from collections import deque
from contextlib import suppress

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from typing import Any

_SEMAPHORE = ("_cond", "_value")
_QUEUE = (
    *("maxsize", "queue", "mutex", "not_empty", "not_full", "all_tasks_done"),
    *("unfinished_tasks", *(("is_shutdown",) if sys.version_info >= (3, 13) else ())),
)
# Each tuple is in the order in which __init__ makes the attributes.
_PARTS = {
    "Condition": ("_lock", "_waiters"),
    "Semaphore": _SEMAPHORE,
    "BoundedSemaphore": (*_SEMAPHORE, "_initial_value"),
    "Event": ("_cond", "_flag"),
    "Barrier": ("_cond", "_action", "_timeout", "_parties", "_state", "_count"),
    "Queue": _QUEUE,
    "LifoQueue": _QUEUE,
    "PriorityQueue": _QUEUE,
}
# The methods that a condition takes from its lock, if the lock has them.
_OF_LOCK = (
    *("acquire", "release", "_release_save", "_acquire_restore", "_is_owned"),
    *(("locked",) if sys.version_info >= (3, 14) else ()),
)


def fill(native: "Any", values: "dict[str, object]") -> None:  # noqa: ANN401
    """Put into the dict of a native object what a standard one has there; done at each access."""
    parts = _PARTS[type(native).__name__]
    # An object that was never initialised has none of them.
    values.update((name, getattr(native, name)) for name in parts if hasattr(native, name))
    lock = values.get("_lock")
    values.update((name, getattr(lock, name)) for name in _OF_LOCK if hasattr(lock, name))


def reduce(native: "Any", protocol: int) -> "str | tuple[Any, ...]":  # noqa: ANN401
    """Return the ``__reduce_ex__`` result of a standard object with the same parts.

    So a copy is a standard object that shares the parts, and they decide whether it can be pickled.
    """
    registered = copyreg.dispatch_table.get(native.__class__)  # copy and pickle use the native type
    if registered is not None:
        return registered(native)
    standard = object.__new__(native.__class__)
    standard.__dict__.update(native.__dict__)
    reduced: str | tuple[Any, ...] = standard.__reduce_ex__(protocol)
    return reduced


def list_names(native: object) -> list[str]:
    """Return the result of ``dir``: the names of the native type and of the standard class."""
    own = {*dir(type(native)), *native.__dict__}
    # Values that copyreg and others keep in a class are not mirrored, so they are not listed.
    further = {*dir(native.__class__)} - own
    return [*own, *(name for name in further if hasattr(native, name))]


class _NativeWaiter:
    """Stands in a condition's ``_waiters`` for a thread that waits natively."""

    __slots__ = ("_condition",)

    def __init__(self, condition: "Any") -> None:  # noqa: ANN401
        self._condition = condition

    def release(self) -> None:
        """Wake the thread; the standard ``notify`` releases the lock that a thread sleeps on."""
        self._condition.notify()


def _all_of(waiters: "deque[Any]") -> "list[Any]":
    """Return the items of a deque to which other threads may do something meanwhile."""
    while True:
        with suppress(RuntimeError):  # without a GIL: mutated during iteration
            return list(waiters)


def renew_waiters(condition: object, known: "deque[Any] | None", native: int) -> "deque[Any]":
    """Return the waiters of a condition, ``native`` of them in C; ``known``: the deque so far.

    Other threads may do the same, and put waiters of their own in, at the same time.
    """
    waiters = deque() if known is None else known
    present = [each for each in _all_of(waiters) if type(each) is _NativeWaiter]
    for each in present[native:]:
        with suppress(ValueError):
            waiters.remove(each)
    waiters.extend([_NativeWaiter(condition) for _ in range(native - len(present))])
    return waiters


def notify_standard(waiters: "deque[Any]", count: int) -> int:
    """Wake up to ``count`` threads that wait in the standard ``wait``; return how many are left."""
    for waiter in [each for each in _all_of(waiters) if type(each) is not _NativeWaiter]:
        if count == 0:
            break
        waiters.remove(waiter)
        waiter.release()
        count -= 1
    return count
