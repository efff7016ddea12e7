"""The import system's locks belong to tasklets: two of them may import at the same time.

A module's lock knows its owner by the number of the owner's thread.  A tasklet that asks for a
module while another one, of the same thread, is in the middle of it would be taken for the owner:
it would get half a module, and give up a lock that it does not have.

Replaced is what `importlib._bootstrap` calls `_thread`, from the import of this package on and for
good.  Before, only main tasklets can have imported; their number is that of their thread, so that a
lock that is held now keeps its owner.  An exchange at any later time would lose owners.
"""

import _thread
import sys
from types import SimpleNamespace

from cpythonplus._base.replacing import namespace_of
from cpythonplus._native import tasklets_get_ident, tasklets_Lock, tasklets_RLock

__all__: list[str] = []

namespace_of(sys.modules["_frozen_importlib"])["_thread"] = SimpleNamespace(
    **{
        **vars(_thread),
        "allocate_lock": tasklets_Lock,
        "RLock": tasklets_RLock,
        "get_ident": tasklets_get_ident,
    }
)
