"""Forking while another thread imports.

The child then has half a module, but not the thread that would finish it: an import of that module
waits for ever, or fails as if the module did not exist.
"""

import importlib
import threading
import time
from collections.abc import Collection

_LOOK_INTERVAL_S = 0.001


def settle_imports(limit_s: float, *, endless: Collection[str] = ()) -> list[str]:
    """Wait until no other thread imports; return the modules still being imported after `limit_s`.

    endless: names of modules that are not waited for.

    An import that begins between the return and the fork is not seen: there is no lock that could
    be held over both and keeps nothing else waiting.
    """
    end = time.monotonic() + limit_s
    while True:
        names = [name for name in _imported_elsewhere() if name not in endless]
        if not names or time.monotonic() >= end:
            return names
        time.sleep(_LOOK_INTERVAL_S)


def _imported_elsewhere() -> list[str]:
    """Return the names of the modules that other threads are importing.

    Found by the locks that importlib holds meanwhile (`importlib._bootstrap._module_locks`: a weak
    reference to each, which knows its owner); empty if their form is unknown.
    """
    own = threading.get_ident()
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", None)
    if not isinstance(locks, dict):
        return []
    owners = {name: getattr(found(), "owner", None) for name, found in list(locks.items())}
    return sorted(name for name, owner in owners.items() if owner not in (None, own))
