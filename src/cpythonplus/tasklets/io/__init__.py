"""Waiting that blocks only the tasklet: sleep, timers, descriptors, sockets, TLS, names.

The functions are here; `socket`, `ssl`, `select` and `selectors` are modules that are used in the
place of the standard ones of these names, by hand or by patch(), and `names` has the look-ups. What
is not used is not imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpythonplus.tasklets.io import names as names
    from cpythonplus.tasklets.io import select as select
    from cpythonplus.tasklets.io import selectors as selectors
    from cpythonplus.tasklets.io import socket as socket
    from cpythonplus.tasklets.io import ssl as ssl
    from cpythonplus.tasklets.io.descriptors import wait_readable, wait_writable
    from cpythonplus.tasklets.io.hub import set_loop_factory
    from cpythonplus.tasklets.io.patching import patch, patched, unpatch
    from cpythonplus.tasklets.io.server import StreamServer
    from cpythonplus.tasklets.io.threadpool import in_thread, set_thread_limit
    from cpythonplus.tasklets.io.timing import Timer, call_later, sleep, timeout

__all__ = [
    "StreamServer",
    "Timer",
    "call_later",
    "in_thread",
    "patch",
    "patched",
    "set_loop_factory",
    "set_thread_limit",
    "sleep",
    "timeout",
    "unpatch",
    "wait_readable",
    "wait_writable",
]

_HOMES = {
    "StreamServer": "server",
    "Timer": "timing",
    "call_later": "timing",
    "in_thread": "threadpool",
    "patch": "patching",
    "patched": "patching",
    "set_loop_factory": "hub",
    "set_thread_limit": "threadpool",
    "sleep": "timing",
    "timeout": "timing",
    "unpatch": "patching",
    "wait_readable": "descriptors",
    "wait_writable": "descriptors",
}
_MODULES = ("names", "select", "selectors", "socket", "ssl")


def __getattr__(name: str) -> Any:  # noqa: ANN401
    home = _HOMES.get(name)
    if home is not None:
        found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = found
        return found
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
