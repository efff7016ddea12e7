"""Putting the native types in the place of those of `threading` and `queue`.

Modules that are loaded are patched where they stand; `threading` and `queue` themselves, where the
program has not imported them yet, as soon as it does (base/replacing.py).  So a program without
threads does not pay for importing them (3 ms).

What is replaced in a module is each global that *is* a stock object: `threading.Lock`, and so also
`from threading import Lock` in whichever module, and `_allocate_lock` inside `threading`.  It stays
as it is: `_thread` and `_queue`, which the import system depends on; objects and subclasses that
exist already; what hides in class attributes, default arguments and containers.  The Barrier of
`multiprocessing` keeps its counts in shared memory by overriding what the standard Barrier has
inside, so it goes on being a subclass of that one.

Green threads.  gevent and eventlet make the same names wait in their event loop instead of in the
thread; a native wait would stop the loop for ever.  Importing the patcher of one of them unpatches.
"""

import _thread
import sys

from cpythonplus.base.errors import UnsupportedPlatform
from cpythonplus.base.replacing import Loader, Replacer

try:
    from cpythonplus.threads import primitives
except UnsupportedPlatform as error:
    primitives = None  # type: ignore[assignment]
    _why_not = str(error)
else:
    _why_not = ""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from cpythonplus.base.replacing import Pairs

__all__ = ["patch", "patched", "unpatch"]

NAMES = {
    "threading": (
        "Lock",
        "RLock",
        "Condition",
        "Semaphore",
        "BoundedSemaphore",
        "Event",
        "Barrier",
    ),
    "queue": ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"),
}
"""The names that are replaced, by the module that they are public in."""

# Where a stock object says that it comes from.
STOCK_HOMES = frozenset({"_thread", "threading", "_queue", "queue"})
GREEN_PATCHERS = frozenset({"gevent.monkey", "eventlet.patcher"})
_BUILT_ON_STOCK_BARRIER = "multiprocessing.synchronize"

# Not the interpreter's: eventlet looks for those, to make them green. In the child of a fork ours
# is free when its owner is not there. Whoever else replaces these names shares it.
_lock = _thread.RLock() if primitives is None else primitives.RLock()


class _Threads(Replacer):
    """Replaces what NAMES has."""

    def __init__(self) -> None:
        super().__init__(_lock, NAMES)
        self.natives: dict[str, object] = {}  # types and exceptions by name; empty until patched

    def switched(self, *, on: bool) -> None:
        # Let the types say where a program finds them: pickles of the types and reprs go by that.
        for name, native in self.natives.items():
            if isinstance(native, type) and name != "ShutDown":
                standard = "queue" if name.endswith("Queue") else "threading"
                native.__module__ = standard if on else "cpythonplus.threads"

    def is_stock(self, value: object) -> bool:
        return getattr(value, "__module__", None) in STOCK_HOMES

    def further(self) -> "Pairs":
        # What threading.Lock and threading.RLock are made of has more than one name there.
        return [
            (_thread.allocate_lock, self.natives["Lock"]),
            (_thread.LockType, self.natives["Lock"]),
            (_thread.RLock, self.natives["RLock"]),
        ]

    def finish(self, home: str, namespace: "dict[str, Any]") -> None:
        if home == "queue":
            share_exceptions(self, self.natives, namespace)

    def about_to_import(self, name: str) -> None:
        if name in GREEN_PATCHERS:
            unpatch()

    def loader(self, name: str) -> "type[Loader] | None":
        return _StockBarrierLoader if name == _BUILT_ON_STOCK_BARRIER else super().loader(name)


class _StockBarrierLoader(Loader):
    """Has a module subclass the standard Barrier.

    A thread that makes a Barrier during these milliseconds gets a standard one, which works too.
    """

    def execute(self, module: "ModuleType") -> None:
        import threading

        native = threading.Barrier
        with _lock:
            stock = next((old for _, _, old, new in _replacer.changes if new is native), native)
        threading.Barrier = stock  # type: ignore[assignment, misc]
        try:
            self._loader.exec_module(module)
        finally:
            if _replacer.active and threading.Barrier is stock:
                threading.Barrier = native  # type: ignore[misc]


_replacer = _Threads()


def patch() -> None:
    """Have `threading`, `queue` and what was imported from them use the native types from now on.

    Replaced are Lock, RLock, Condition, Semaphore, BoundedSemaphore, Event, Barrier, Queue,
    LifoQueue, PriorityQueue and SimpleQueue: in `threading` and `queue`, now or when they are
    imported, and in every loaded module that took one of them by ``from threading import Lock`` or
    the like.  Before 3.13 `queue` gets ShutDown too.  Objects that exist go on working, and mix
    with native ones; subclasses that exist keep their bases.

    May be called again, by any thread, at any time.  The sooner it is called, the more it reaches.
    A forked child is patched as its parent is.

    Raises UnsupportedPlatform, with the reason and having changed nothing, where there are no
    native types, and where another package (gevent, eventlet) has replaced the interpreter's locks.
    """
    if primitives is None:
        raise UnsupportedPlatform(_why_not)
    refuse_green_threads()
    native: dict[str, object] = {name: getattr(primitives, name) for name in primitives.__all__}
    if sys.version_info < (3, 13):
        from cpythonplus.threads.errors import ShutDown

        native["ShutDown"] = ShutDown
    with _lock:
        _replacer.natives.update(native)
    _replacer.start({home: {name: native[name] for name in names} for home, names in NAMES.items()})


def unpatch() -> None:
    """Put the standard types back wherever ``patch`` replaced them and nobody else has since.

    Native objects that exist go on working, and modules that imported a native type after the patch
    keep it.  Does nothing when not patched.
    """
    _replacer.stop()


def patched() -> bool:
    """Return whether `threading` and `queue` use the native types, or will once imported."""
    return _replacer.active


def refuse_green_threads() -> None:
    """Raise UnsupportedPlatform where another package has replaced the interpreter's locks."""
    owner = getattr(_thread.allocate_lock, "__module__", "another package")
    if owner != "_thread":
        raise UnsupportedPlatform(f"the interpreter's locks have been replaced by {owner}")


def share_exceptions(
    replacer: Replacer, exceptions: "dict[str, object]", namespace: "dict[str, Any]"
) -> None:
    """Have `queue` name the exceptions that the queues put there raise.

    ShutDown is added before 3.13. A further copy of the module (CPython's tests load some) has made
    classes of its own, and gets those of the first.
    """
    for name in ("Empty", "Full", "ShutDown"):
        if name not in namespace:
            replacer.change(namespace, "__all__", [*namespace["__all__"], name])
        shared = exceptions.setdefault(name, namespace.get(name))
        if namespace.get(name) is not shared:
            replacer.change(namespace, name, shared)
