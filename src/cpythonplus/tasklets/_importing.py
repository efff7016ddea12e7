"""The import system's locks belong to tasklets: two tasklets may import at the same time.

A module's lock identifies its owner by the number of the owner's thread.  A tasklet that imports a
module while another tasklet of the same thread is importing it would be taken for the owner: it
would get half a module, and release a lock that it does not have.

The name `_thread` of `importlib._bootstrap` is replaced, from the import of this package on, for
good.  Before, only main tasklets can have imported; their number is that of their thread, so a lock
that is held now keeps its owner.  A later replacement would lose owners.

A tasklet's number names its thread too: `run()` waits for a module that another thread imports, and
returns if the importer is a tasklet of its own thread, which may wait for whatever comes after.

An RLock of tasklets makes a scheduler for its thread, with signal handlers.  From 3.12 on each
module's lock has an RLock, which is held for some instructions only: a thread that has used no
tasklets makes one of the interpreter's.
"""

import _thread
import sys
from types import SimpleNamespace
from typing import Any

from cpythonplus._base.replacing import namespace_of, original
from cpythonplus._native import (
    tasklets_get_ident,
    tasklets_has_scheduler,
    tasklets_Lock,
    tasklets_lock_for_imports,
    tasklets_RLock,
)

_bootstrap = namespace_of(sys.modules["_frozen_importlib"])
_stock_rlock: Any = original(_thread, "RLock")
_thread_ident: Any = original(_thread, "get_ident")


def _lock() -> Any:
    return tasklets_lock_for_imports(tasklets_Lock)


def _rlock() -> Any:  # of tasklets or of the interpreter
    scheduled = tasklets_has_scheduler()
    return tasklets_lock_for_imports(tasklets_RLock) if scheduled else _stock_rlock()


def _ident() -> int | tuple[int, int]:
    thread, running = _thread_ident(), tasklets_get_ident()
    return thread if running == thread else (thread, running)


def is_elsewhere(waited: object) -> bool:
    """Return whether the lock that the running tasklet waits for depends on another thread."""
    found: Any = _bootstrap["_blocking_on"].get(_ident())
    lock = found[-1] if found and isinstance(found, list) else found  # a list from 3.12 on
    if not lock or lock.wakeup is not waited:
        return True  # a lock that is held for some instructions
    owner = lock.owner
    return owner is None or (owner[0] if type(owner) is tuple else owner) != _thread_ident()


_bootstrap["_thread"] = SimpleNamespace(
    **{**vars(_thread), "allocate_lock": _lock, "RLock": _rlock, "get_ident": _ident}
)
