"""Replacing the types of `threading` and `queue` by these.

cpythonplus/threads/_patching.py tells what is replaced and what is not.  The native types that it
has put there count as the standard library's: they are replaced too, and `unpatch` restores them.
"""

import _thread
import sys
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.replacing import Replacer, everybodys, namespace_of, when_loaded
from cpythonplus._native import tasklets_local
from cpythonplus.tasklets.locks import _conditions as conditions
from cpythonplus.tasklets.locks import _joining as joining
from cpythonplus.tasklets.locks import _queues as queues
from cpythonplus.threads import _patching as threads_patching

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpythonplus._base.replacing import Pairs

# The names in `_thread` that programs use, because the types say that they come from there.
_IN_THREAD: dict[str, object] = {
    "LockType": conditions.Lock,
    "lock": conditions.Lock,  # the same type, from 3.13 on
    "allocate_lock": conditions.Lock,
    "allocate": conditions.Lock,
    "RLock": conditions.RLock,
}
_TYPES: dict[str, object] = {
    name: getattr(module, name)
    for module in (conditions, queues)
    for name in module.__all__
    if name not in {"BrokenBarrierError", "Empty", "Full"}
}


class _Locks(Replacer):
    """Replaces what threads.patch() replaces, and optionally threading.local."""

    def __init__(self) -> None:
        super().__init__(threads_patching._lock, threads_patching.NAMES)  # noqa: SLF001
        self.with_local = False

    def switched(self, *, on: bool) -> None:
        joining.switch(on=on)
        if on:
            namespace = namespace_of(_thread)
            for name, ours in _IN_THREAD.items():
                if name in namespace and namespace[name] is not ours:
                    self.change(namespace, name, ours)

    def is_stock(self, value: object) -> bool:
        return getattr(value, "__module__", None) in {*threads_patching.STOCK_HOMES, "signal"}

    def further(self) -> "Pairs":
        pairs: list[tuple[object, object]] = [
            (found, ours)
            for name, ours in _IN_THREAD.items()
            for found in everybodys(_thread, name)
        ]
        if self.with_local:
            pairs.append((_thread._local, tasklets_local))  # noqa: SLF001
        return pairs

    def finish(self, home: str, namespace: dict[str, Any]) -> None:
        if home == "queue":
            threads_patching.share_exceptions(self, _TYPES, namespace)


_replacer = _Locks()
_guarded: set[str] = set()


def _guard(name: str) -> None:
    """Make another patcher refuse while this one is in force.

    Its import is no reason to unpatch: many packages import it only to ask whether it was used.
    """
    module = sys.modules[name]
    homes = [module, sys.modules[name.partition(".")[0]]]
    for key in [key for key in namespace_of(module) if key.startswith(("patch_", "monkey_patch"))]:
        value: Any = namespace_of(module)[key]
        for home in homes if callable(value) else ():
            space = namespace_of(home)
            if key in space and space[key] is value:
                space[key] = _refusing(f"{name}.{key}()", value)


def _refusing(name: str, function: "Callable[..., object]") -> "Callable[..., object]":
    @wraps(function)
    def refuses(*args: object, **kwargs: object) -> object:
        if patched():
            raise UnsupportedPlatform(
                f"{name}: cpythonplus.tasklets.locks.patch() has replaced the same; use one of them"
            )
        return function(*args, **kwargs)

    return refuses


def patch(*, local: bool = True, threads: bool = False) -> None:
    """Make `threading`, `queue` and names imported from them use these types from now on.

    So a program's locks, conditions and queues block only the tasklet.  Lock, RLock, Condition,
    Semaphore, BoundedSemaphore, Event, Barrier, Queue, LifoQueue, PriorityQueue and SimpleQueue are
    replaced in the way of `cpythonplus.threads.patch`; if that was called, its types are replaced.
    `Thread.join` blocks only the tasklet too. Existing objects go on working, and block their whole
    thread.

    May be called again, by any thread.  The sooner it is called, the more it reaches.

    Args:
        local: also replace `threading.local`, so that its values are each tasklet's own.
        threads: make new threads tasklets of the thread that starts them. They take turns in it
            whenever they wait: one that computes, or blocks in C, stops the others.

    Raises UnsupportedPlatform if another package (gevent, eventlet) has replaced the interpreter's
    locks.
    """
    threads_patching.refuse_green_threads()
    for name in threads_patching.GREEN_PATCHERS - _guarded:
        _guarded.add(name)
        when_loaded(name, partial(_guard, name))
    _replacer.with_local = _replacer.with_local or local
    replacements = {
        home: {name: _TYPES[name] for name in names}
        for home, names in threads_patching.NAMES.items()
    }
    if local:
        replacements["threading"]["local"] = tasklets_local
    if threads:
        from cpythonplus.tasklets.locks import _threads as tasklet_threads

        replacements["threading"] |= tasklet_threads.REPLACEMENTS
        replacements["signal"] = tasklet_threads.SIGNAL_REPLACEMENTS
        tasklet_threads.wrap_handlers()
    _replacer.start(replacements)


def unpatch() -> None:
    """Restore what ``patch`` replaced, unless other code has replaced it since.

    Objects that exist go on working.  Does nothing when not patched.
    """
    _replacer.stop()
    _replacer.with_local = False
    if sys.modules.get("cpythonplus.tasklets.locks._threads") is not None:
        from cpythonplus.tasklets.locks import _threads as tasklet_threads

        tasklet_threads.stay_known()
    _replacer.replacements.pop("signal", None)
    stays = threads_patching.NAMES["threading"]
    for name in _replacer.replacements["threading"].keys() - set(stays):
        del _replacer.replacements["threading"][name]


def patched() -> bool:
    """Return whether `threading` and `queue` use these types, or will once imported."""
    return _replacer.active
