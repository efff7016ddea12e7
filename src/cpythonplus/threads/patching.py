"""Putting the native types in the place of those of `threading` and `queue`.

Modules that are loaded are patched where they stand; `threading` and `queue` themselves, where the
program has not imported them yet, as soon as it does: a finder in front of `sys.meta_path` sees
their import.  So a program without threads does not pay for importing them (3 ms).

What is replaced in a module is each global that *is* a stock object: `threading.Lock`, and so also
`from threading import Lock` in whichever module, and `_allocate_lock` inside `threading`.  It stays
as it is: `_thread` and `_queue`, which the import system depends on; objects and subclasses that
exist already; what hides in class attributes, default arguments and containers.  The Barrier of
`multiprocessing` keeps its counts in shared memory by overriding what the standard Barrier has
inside, so it goes on being a subclass of that one.

Green threads.  gevent and eventlet make the same names wait in their event loop instead of in the
thread; a native wait would stop the loop for ever.  Importing the patcher of one of them unpatches.
"""

# On the start-up path of `run`: importing pathlib or importlib would cost more than all of this.
# ruff: noqa: PTH120, PTH121

import _thread
import os
import sys

from cpythonplus.base.errors import UnsupportedPlatform

try:
    from cpythonplus.threads import primitives
except UnsupportedPlatform as error:
    primitives = None  # type: ignore[assignment]
    _why_not = str(error)
else:
    _why_not = ""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

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
_STOCK_HOMES = frozenset({"_thread", "threading", "_queue", "queue"})
_LEFT_ALONE = frozenset({"_thread", "_queue", "_frozen_importlib", "_frozen_importlib_external"})
_GREEN_PATCHERS = frozenset({"gevent.monkey", "eventlet.patcher"})
_BUILT_ON_STOCK_BARRIER = "multiprocessing.synchronize"
_MISSING = object()

# Guards what follows; nothing is imported while it is held. Not the interpreter's: eventlet looks
# for those, to make them green. In the child of a fork ours is free when its owner is not there.
_lock = _thread.RLock() if primitives is None else primitives.RLock()
_active = False
_natives: "dict[str, object]" = {}  # types and exceptions by name; empty until the first patch
_changes: "list[tuple[dict[str, Any], str, object, object]]" = []  # namespace, name, old, new


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
    global _active  # noqa: PLW0603
    if primitives is None:
        raise UnsupportedPlatform(_why_not)
    _refuse_green_threads()
    native: dict[str, object] = {name: getattr(primitives, name) for name in primitives.__all__}
    if sys.version_info < (3, 13):
        from cpythonplus.threads.errors import ShutDown

        native["ShutDown"] = ShutDown
    with _lock:
        _natives.update(native)
        _active = True
        if _watcher not in sys.meta_path:
            sys.meta_path.insert(0, _watcher)
    for name in NAMES:
        if sys.modules.get(name) is not None:
            __import__(name)  # waits for another thread that is in the middle of it
    with _lock:
        if _active:
            _name_types(patched=True)
            _replace_everywhere()


def unpatch() -> None:
    """Put the standard types back wherever ``patch`` replaced them and nobody else has since.

    Native objects that exist go on working, and modules that imported a native type after the patch
    keep it.  Does nothing when not patched.
    """
    global _active  # noqa: PLW0603
    with _lock:
        _active = False
        _name_types(patched=False)
        if _watcher in sys.meta_path:
            sys.meta_path.remove(_watcher)
        while _changes:
            namespace, name, old, new = _changes.pop()
            if namespace.get(name) is not new:
                continue
            if old is _MISSING:
                del namespace[name]
            else:
                namespace[name] = old


def patched() -> bool:
    """Return whether `threading` and `queue` use the native types, or will once imported."""
    return _active


# ---- replacing ----------------------------------------------------------------------------------


def _refuse_green_threads() -> None:
    owner = getattr(_thread.allocate_lock, "__module__", "another package")
    if owner != "_thread":
        raise UnsupportedPlatform(f"the interpreter's locks have been replaced by {owner}")


def _name_types(*, patched: bool) -> None:
    """Let the types say where a program finds them: pickles of the types and reprs go by that."""
    for name, native in _natives.items():
        if isinstance(native, type) and name != "ShutDown":
            standard = "queue" if name.endswith("Queue") else "threading"
            native.__module__ = standard if patched else "cpythonplus.threads"


def _replace_everywhere() -> None:
    # What has put itself into sys.modules without being a module has no globals. (Not isinstance():
    # it would ask such an object for its class.)
    modules = {
        name: module
        for name, module in sys.modules.copy().items()
        if issubclass(type(module), type(sys))
    }
    standard = [name for name in NAMES if name in modules and _is_standard(modules[name])]
    substitutes = _substitutes([_namespace(modules[name]) for name in standard])
    for name, module in modules.items():
        if not _is_left_alone(name):
            _replace(_namespace(module), substitutes)
    if "queue" in standard:
        _share_exceptions(_namespace(modules["queue"]))


def _replace_in(module: "ModuleType") -> None:
    """Patch `threading` or `queue` as it has just been loaded; nobody has imported from it yet."""
    namespace = _namespace(module)
    with _lock:
        if not _active or not _is_standard(module):
            return
        _replace(namespace, _substitutes([namespace]))
        if module.__name__ == "queue":
            _share_exceptions(namespace)


def _namespace(module: "ModuleType") -> "dict[str, Any]":
    # Not vars(): it would load a module that is still to be loaded (importlib.util.LazyLoader).
    found: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return found


def _is_left_alone(name: str) -> bool:
    return name in _LEFT_ALONE or name == "cpythonplus" or name.startswith("cpythonplus.")


def _is_standard(module: "ModuleType") -> bool:
    """Return False for a module of the program's own that is called `queue` or `threading`."""
    folders = [os.path.dirname(_namespace(each).get("__file__") or "") for each in (module, os)]
    if folders[0] == folders[1]:
        return True
    try:
        return os.path.samefile(*folders)
    except OSError:
        return False


def _substitutes(namespaces: "Sequence[dict[str, Any]]") -> dict[int, tuple[object, object]]:
    """Return stock objects and their native counterparts, by the stock object's id."""
    pairs: list[tuple[object, object]] = [
        # What threading.Lock and threading.RLock are made of has more than one name there.
        (_thread.allocate_lock, _natives["Lock"]),
        (_thread.LockType, _natives["Lock"]),
        (_thread.RLock, _natives["RLock"]),
    ]
    for names in NAMES.values():
        for name in names:
            pairs += [(space[name], _natives[name]) for space in namespaces if name in space]
    return {
        id(stock): (stock, native)
        for stock, native in pairs
        if getattr(stock, "__module__", None) in _STOCK_HOMES
    }


def _replace(namespace: "dict[str, Any]", substitutes: dict[int, tuple[object, object]]) -> None:
    for name, value in namespace.copy().items():
        pair = substitutes.get(id(value))
        if pair is not None:
            _change(namespace, name, pair[1])


def _share_exceptions(namespace: "dict[str, Any]") -> None:
    """Have `queue` name the exceptions that the native queues raise.

    ShutDown is added before 3.13. A further copy of the module (CPython's tests load some) has made
    classes of its own, and gets those of the first.
    """
    for name in ("Empty", "Full", "ShutDown"):
        if name not in namespace:
            _change(namespace, "__all__", [*namespace["__all__"], name])
        shared = _natives.setdefault(name, namespace.get(name))
        if namespace.get(name) is not shared:
            _change(namespace, name, shared)


def _change(namespace: "dict[str, Any]", name: str, new: object) -> None:
    old = namespace.get(name, _MISSING)
    namespace[name] = new
    _changes.append((namespace, name, old, new))


# ---- what is imported later ---------------------------------------------------------------------


class _Watcher:
    """A finder that has `threading` and `queue` patched at their import; finds nothing itself."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name in _GREEN_PATCHERS:
            unpatch()
        if name not in NAMES and name != _BUILT_ON_STOCK_BARRIER:
            return None
        for spec in self._specs(name, path, target):
            if hasattr(spec.loader, "exec_module"):
                loader = _Loader if name in NAMES else _StockBarrierLoader
                spec.loader = loader(spec.loader)  # type: ignore[assignment]
            return spec
        return None

    def _specs(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
    ) -> "Iterator[ModuleSpec]":
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is not self and find_spec is not None:
                spec = find_spec(name, path, target)
                if spec is not None:
                    yield spec


class _Loader:
    """A module's own loader, but that it patches what it has loaded."""

    def __init__(self, loader: "Any") -> None:  # noqa: ANN401  # the import system's protocol
        self._loader = loader

    def __getattr__(self, name: str) -> "Any":  # noqa: ANN401
        return getattr(self.__dict__["_loader"], name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: "ModuleType") -> None:
        # The module is to look as if nobody had been there.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._execute(module)

    def _execute(self, module: "ModuleType") -> None:
        self._loader.exec_module(module)
        _replace_in(module)


class _StockBarrierLoader(_Loader):
    """Has a module subclass the standard Barrier.

    A thread that makes a Barrier during these milliseconds gets a standard one, which works too.
    """

    def _execute(self, module: "ModuleType") -> None:
        import threading

        native = threading.Barrier
        with _lock:
            stock = next((old for _, _, old, new in _changes if new is native), native)
        threading.Barrier = stock  # type: ignore[assignment, misc]
        try:
            self._loader.exec_module(module)
        finally:
            if _active and threading.Barrier is stock:
                threading.Barrier = native  # type: ignore[misc]


_watcher = _Watcher()
