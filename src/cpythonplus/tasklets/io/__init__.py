"""Waiting that blocks only the tasklet: sleep, timers, descriptors, sockets, TLS, names.

The functions are here. `socket`, `ssl`, `select` and `selectors` are modules that replace the
standard ones of these names, by hand or by patch(), and `names` has the look-ups. Unused parts are
not imported.
"""

from cpythonplus import _on_demand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpythonplus.tasklets.io import names as names
    from cpythonplus.tasklets.io import select as select
    from cpythonplus.tasklets.io import selectors as selectors
    from cpythonplus.tasklets.io import socket as socket
    from cpythonplus.tasklets.io import ssl as ssl
    from cpythonplus.tasklets.io._descriptors import wait_readable, wait_writable
    from cpythonplus.tasklets.io._hub import set_loop_factory
    from cpythonplus.tasklets.io._patching import patch, patched, unpatch
    from cpythonplus.tasklets.io._server import StreamServer
    from cpythonplus.tasklets.io._threadpool import in_thread, set_thread_limit
    from cpythonplus.tasklets.io._timing import Timer, call_later, sleep, timeout

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
    "._descriptors": "wait_readable wait_writable",
    "._hub": "set_loop_factory",
    "._patching": "patch patched unpatch",
    "._server": "StreamServer",
    "._threadpool": "in_thread set_thread_limit",
    "._timing": "Timer call_later sleep timeout",
    ".names": "names",
    ".select": "select",
    ".selectors": "selectors",
    ".socket": "socket",
    ".ssl": "ssl",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
