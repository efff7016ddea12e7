"""The native types, as the extension module has them, ready for use.

Importing this raises UnsupportedPlatform, with the reason, where the extension module is not there.
"""

import _thread
import os
import sys

from cpythonplus.base.errors import UnsupportedPlatform

try:
    from cpythonplus import _native
    from cpythonplus._native import (
        Barrier,
        BoundedSemaphore,
        Condition,
        Event,
        LifoQueue,
        Lock,
        PriorityQueue,
        Queue,
        RLock,
        Semaphore,
        SimpleQueue,
    )
except ImportError as error:  # built without it: not Linux
    raise UnsupportedPlatform(
        f"there are no native thread primitives here: the extension module is not there ({error})"
    ) from error

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
]


def _main_thread() -> int:
    """Return the ident of the thread that runs signal handlers, most often without `threading`."""
    asked = getattr(_thread, "_get_main_thread_ident", None)  # 3.13
    if asked is not None:
        return int(asked())
    if "threading" not in sys.modules and _thread.get_native_id() == os.getpid():
        # The process's first thread, or the one that forked it; importing threading costs 2 ms.
        return _thread.get_ident()
    import threading

    return threading.main_thread().ident or 0


_native.threads_set_main(_main_thread())
