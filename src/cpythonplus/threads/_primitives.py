"""The native types of the extension module, ready for use.

Importing this raises UnsupportedPlatform, with the reason, if the extension module is missing.
"""

import _thread
import os
import sys

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.replacing import namespace_of, original

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

try:
    from cpythonplus import _native
    from cpythonplus._native import (
        Barrier,
        BoundedSemaphore,
        Condition,
        Event,
        LifoQueue,
        Lock,
        PriorityQueue,
        Queue,
        RLock,
        Semaphore,
        SimpleQueue,
    )
except ImportError as error:  # built without it: not Linux
    raise UnsupportedPlatform(
        f"native thread primitives are unavailable: the extension module is missing ({error})"
    ) from error

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
]


LockType = _native.LockType  # the type of the objects that threading.Lock() makes
# Before 3.13 this is threading.Lock, and is pickled as that.
allocate_lock: "Callable[[], Lock]" = _native.allocate_lock
allocate_lock.__module__ = "_thread"

STAND_FOR = {
    "threading": ("Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"),
    "queue": ("Queue", "LifoQueue", "PriorityQueue"),
}
"""The types that stand for a class that is written in Python, by that class's module."""

# The globals of the modules whose classes the types stand for.
_homes: "dict[str, dict[str, Any]]" = {}


def introduce(module: "ModuleType") -> "list[type]":
    """Introduce a module's native types and their standard classes; return the types with one.

    Only the first copy of a module counts; it may be reloaded.  If other code has replaced a class
    of the module, that class stays as it is, and its native type gets no standard class.
    """
    home, namespace = module.__name__, namespace_of(module)
    if home == "threading":
        note_lines(namespace.get("RLock"))
    if _homes.setdefault(home, namespace) is not namespace:
        return []
    known: list[type] = []
    for name in STAND_FOR[home]:
        native: type = globals()[name]
        standard = original(module, name) if name in namespace else None
        if isinstance(standard, type) and _is_own(standard, namespace):
            _native.threads_introduce(native, standard, namespace)
            known.append(native)
    return known


def note_lines(rlock: object = None) -> None:
    """Note the line that makes a lock or queue, from now on; rlock: threading.RLock."""
    _native.threads_note_lines(getattr(rlock, "__code__", None))


def stand(native: type, *, active: bool) -> None:
    """Make calls of a type's standard class make objects of the type, or no longer."""
    _native.threads_stand(native, active)


def _is_own(standard: type, namespace: "dict[str, Any]") -> bool:
    functions = vars(standard).values()
    return standard.__module__ == namespace["__name__"] and any(
        getattr(function, "__globals__", None) is namespace for function in functions
    )


def _main_thread() -> int:
    """Return the ident of the thread that runs signal handlers, most often without `threading`."""
    asked = getattr(_thread, "_get_main_thread_ident", None)  # 3.13
    if asked is not None:
        return int(asked())
    if "threading" not in sys.modules and _thread.get_native_id() == os.getpid():
        # The process's first thread, or the one that forked it; importing threading costs 2 ms.
        return _thread.get_ident()
    import threading

    return threading.main_thread().ident or 0


_native.threads_set_main(_main_thread())
