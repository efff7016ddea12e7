"""The import system's locks belong to tasklets: two of them may import at the same time.

A module's lock knows its owner by the number of the owner's thread.  A tasklet that asks for a
module while another one, of the same thread, is in the middle of it would be taken for the owner:
it would get half a module, and give up a lock that it does not have.

Replaced is what `importlib._bootstrap` calls `_thread`, from the import of this package on and for
good.  Before, only main tasklets can have imported; their number is that of their thread, so that a
lock that is held now keeps its owner.  An exchange at any later time would lose owners.

An RLock of tasklets makes its thread a scheduler, with handlers of signals.  From 3.12 on each
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


def _rlock() -> Any:  # of either kind
    return tasklets_RLock() if tasklets_has_scheduler() else _stock_rlock()


namespace_of(sys.modules["_frozen_importlib"])["_thread"] = SimpleNamespace(
    **{
        **vars(_thread),
        "allocate_lock": tasklets_Lock,
        "RLock": _rlock,
        "get_ident": tasklets_get_ident,
    }
)
