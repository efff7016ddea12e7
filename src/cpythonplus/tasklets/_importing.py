"""The import system's locks belong to tasklets: two tasklets may import at the same time.

A module's lock identifies its owner by the number of the owner's thread.  A tasklet that imports a
module while another tasklet of the same thread is importing it would be taken for the owner: it
would get half a module, and release a lock that it does not have.

The name `_thread` of `importlib._bootstrap` is replaced, from the import of this package on, for
good.  Before, only main tasklets can have imported; their number is that of their thread, so a lock
that is held now keeps its owner.  A later replacement would lose owners.

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
    tasklets_RLock,
)

__all__: list[str] = []

_stock_rlock: Any = original(_thread, "RLock")


def _rlock() -> Any:  # of tasklets or of the interpreter
    return tasklets_RLock() if tasklets_has_scheduler() else _stock_rlock()


namespace_of(sys.modules["_frozen_importlib"])["_thread"] = SimpleNamespace(
    **{
        **vars(_thread),
        "allocate_lock": tasklets_Lock,
        "RLock": _rlock,
        "get_ident": tasklets_get_ident,
    }
)
