"""Replacing the types of `threading` and `queue` by the native ones.

There are three ways, depending on the form of the standard type:

- Lock and SimpleQueue are C types, or a function that makes objects of one: their names are
  replaced, also in `_thread`, where programs look for the types of locks.  RLock is a function
  written in Python, which stays and makes objects of the type that `_thread` has.
- Condition, Semaphore, BoundedSemaphore, Event, Barrier, Queue, LifoQueue and PriorityQueue are
  classes written in Python.  They stay, and calling one makes a native object (standard.h);
  subclasses run the standard library's code over native locks.
- Modules that are imported later (`threading` and `queue` themselves, if the program has not
  imported them yet) are treated as soon as they are imported (_base/replacing.py).  So a program
  without threads does not pay for importing them (3 ms).

In a module each global that *is* a stock object is replaced: `threading.Lock`, but also `from
threading import Lock` in any module, and `_allocate_lock` inside `threading`.  Locks that exist
already stay as they are, and so do references in class attributes, default arguments and
containers.

Green threads.  gevent and eventlet make the same names wait in their event loop instead of in the
thread; a native wait would stop the loop for ever.  Importing the patcher of one of them unpatches.
"""

import _thread
import os
import sys

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.replacing import Replacer, namespace_of, original
from cpythonplus._base.switch import skipped

try:
    from cpythonplus.threads import _primitives as primitives
except UnsupportedPlatform as error:
    primitives = None  # type: ignore[assignment]
    _why_not = str(error)
else:
    _why_not = ""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from typing import Any

    from cpythonplus._base.replacing import Pairs

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
"""The names that make native objects, by the module that they are public in."""

# The values of __module__ of stock objects.
STOCK_HOMES = frozenset({"_thread", "threading", "_queue", "queue"})
GREEN_PATCHERS = frozenset({"gevent.monkey", "eventlet.patcher"})
# A native lock, not the interpreter's: eventlet searches for those, to make them green.  Other code
# that replaces these names shares this lock.
_lock = _thread.RLock() if primitives is None else primitives.RLock()
os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # noqa: SLF001  # threading's own name for it


class _Threads(Replacer):
    """Replaces the names in NAMES."""

    def __init__(self) -> None:
        super().__init__(_lock, NAMES, GREEN_PATCHERS)
        self.natives: dict[str, object] = {}  # types and exceptions by name; empty until patched
        self.standing: list[type] = []

    def switched(self, *, on: bool) -> None:
        if on:
            self._treat_thread()
        else:
            for native in self.standing:
                primitives.stand(native, active=False)
            self.standing.clear()

    def _treat_thread(self) -> None:
        namespace = namespace_of(_thread)
        for name, native in self._in_thread().items():
            if name in namespace and namespace[name] is not native:
                self.change(namespace, name, native)

    def _in_thread(self) -> "dict[str, object]":
        lock = self.natives["LockType"]
        return {
            "LockType": lock,
            "lock": lock,  # the same type, from 3.13 on
            "allocate_lock": primitives.allocate_lock,
            "allocate": primitives.allocate_lock,
            "RLock": self.natives["RLock"],
        }

    def is_stock(self, value: object) -> bool:
        return getattr(value, "__module__", None) in STOCK_HOMES and not self.is_of_another(value)

    def further(self) -> "Pairs":
        # `threading` has them under its own names: _allocate_lock, _CRLock.
        in_thread = self._in_thread()
        names = ("allocate_lock", "LockType", "RLock")
        return [(original(_thread, name), in_thread[name]) for name in names]

    def finish(self, home: str, namespace: "dict[str, Any]") -> None:
        if home == "queue":
            share_exceptions(self, self.natives, namespace)
            self._treat_c_queue()
        else:
            # Note the objects that `threading`, imported after the patch, took out of `_thread`.
            known = {name for space, name, _, _ in self.changes if space is namespace}
            there = namespace_of(_thread)
            names = {id(new): name for name, new in self._in_thread().items() if name in there}
            for name, value in namespace.items():
                if name not in known and id(value) in names:
                    self.changes.append(
                        (namespace, name, original(_thread, names[id(value)]), value)
                    )
        module = sys.modules.get(home)
        if module is not None and namespace_of(module) is namespace:
            for native in primitives.introduce(module):
                primitives.stand(native, active=True)
                if native not in self.standing:
                    self.standing.append(native)

    def _treat_c_queue(self) -> None:
        module = sys.modules.get("_queue")  # pickles name its types
        if module is not None and module.SimpleQueue is not self.natives["SimpleQueue"]:
            self.change(namespace_of(module), "SimpleQueue", self.natives["SimpleQueue"])

    def about_to_import(self, name: str) -> None:  # noqa: ARG002
        unpatch()


_replacer = _Threads()


def patch() -> None:
    """Make `threading`, `queue` and names imported from them use the native types from now on.

    Lock and SimpleQueue are replaced: in `threading`, `queue` and `_thread`, now or when they are
    imported, and in every loaded module that took one of them by ``from threading import Lock`` or
    the like.  RLock stays the function that it is, and makes native objects.  Condition,
    Semaphore, BoundedSemaphore, Event, Barrier, Queue, LifoQueue and PriorityQueue stay the
    classes that they are, and make native objects when they are called; their subclasses, also
    existing ones, are standard classes over native locks.  Before 3.13 `queue` gets ShutDown too.
    Existing objects go on working, and mix with native ones.

    It may be called again, by any thread, at any time.  The sooner it is called, the more it
    reaches.  A forked child is patched like its parent.  With CPYTHONPLUS_DISABLE set it does
    nothing.

    Raises UnsupportedPlatform, with the reason, if there are no native types, or if another package
    (gevent, eventlet) has replaced the interpreter's locks; then nothing has been changed.
    """
    if skipped("threads.patch()"):
        return
    if primitives is None:
        raise UnsupportedPlatform(_why_not)
    refuse_green_threads()
    native: dict[str, object] = {name: getattr(primitives, name) for name in primitives.__all__}
    native["LockType"] = primitives.LockType
    if sys.version_info < (3, 13):
        native["Lock"] = primitives.allocate_lock
        from cpythonplus.threads._errors import ShutDown

        native["ShutDown"] = ShutDown
    stay = {**primitives.STAND_FOR, "threading": (*primitives.STAND_FOR["threading"], "RLock")}
    primitives.note_lines()
    with _lock:
        _replacer.natives.update(native)
    _replacer.start(
        {
            home: {name: native[name] for name in names if name not in stay[home]}
            for home, names in NAMES.items()
        }
    )


def unpatch() -> None:
    """Restore the standard types that ``patch`` replaced, unless other code has replaced them.

    Native objects that exist go on working, and modules that imported a native type after the patch
    keep it.  Does nothing when not patched.
    """
    _replacer.stop()


def patched() -> bool:
    """Return whether `threading` and `queue` use the native types, or will once imported."""
    return _replacer.active


def refuse_green_threads() -> None:
    """Raise UnsupportedPlatform if another package has replaced the interpreter's locks."""
    owner = getattr(_thread.allocate_lock, "__module__", "another package")
    if owner != "_thread":
        raise UnsupportedPlatform(f"the interpreter's locks have been replaced by {owner}")


def share_exceptions(
    replacer: Replacer, exceptions: "dict[str, object]", namespace: "dict[str, Any]"
) -> None:
    """Make `queue` name the exceptions that the queues in it raise.

    ShutDown is added before 3.13.  A further copy of the module (CPython's tests load some) has
    made classes of its own, and gets those of the first.
    """
    for name in ("Empty", "Full", "ShutDown"):
        if name not in namespace:
            replacer.change(namespace, "__all__", [*namespace["__all__"], name])
        shared = exceptions.setdefault(name, namespace.get(name))
        if namespace.get(name) is not shared:
            replacer.change(namespace, name, shared)
