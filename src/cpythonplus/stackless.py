"""Stackless Python's module: `import cpythonplus.stackless as stackless`.

It has the names of `cpythonplus.tasklets`, under the name that programs for Stackless Python know.
`from stackless import *` gives what it gives there, and nothing that a program may have itself.
As there, `TaskletExit` is a builtin: importing this module makes it one.
"""

import builtins
import sys
import threading

from cpythonplus.tasklets import *  # noqa: F403
from cpythonplus.tasklets import (
    TaskletExit,
    __getattr__,  # noqa: F401  # the computed attributes
)

__all__ = [  # noqa: F405
    "TaskletExit",
    "atomic",
    "channel",
    "enable_softswitch",
    "get_channel_callback",
    "get_schedule_callback",
    "get_thread_info",
    "getcurrent",
    "getcurrentid",
    "getdebug",
    "getmain",
    "getruncount",
    "getthreads",
    "getuncollectables",
    "pickle_flags",
    "pickle_flags_default",
    "pickle_with_tracing_state",
    "run",
    "schedule",
    "schedule_remove",
    "set_channel_callback",
    "set_error_handler",
    "set_schedule_callback",
    "stackless",
    "switch_trap",
    "tasklet",
]

PICKLEFLAGS_PRESERVE_TRACING_STATE = 1
PICKLEFLAGS_PRESERVE_AG_FINALIZER = 2
PICKLEFLAGS_RESET_AG_FINALIZER = 4
PICKLEFLAGS_PICKLE_CONTEXT = 8

pickle_with_tracing_state = False
"""Accepted, and without an effect: trace functions stay with the process that pickles."""

debug = False
"""Stackless's own builds for debugging: there is none of this module."""

uncollectables: list[tasklet] = []  # noqa: F405
"""Always empty: the garbage collector sees what a tasklet's frames refer to."""

_default = {"softswitch": 1, "flags": 0}
_own = threading.local()  # flags of a thread


def enable_softswitch(flag: object, /) -> bool:
    """Return what was set last (at first True), and note `flag`; None: only return it.

    It changes nothing here: a switch is of one kind, each tasklet has a C stack, and it can be
    pickled wherever no C code is in the middle of its frames.
    """
    was = bool(_default["softswitch"])
    if flag is not None:
        _default["softswitch"] = bool(flag)
    return was


def getdebug() -> bool:
    """Return `debug`: False."""
    return debug


def getuncollectables() -> list[tasklet]:  # noqa: F405
    """Return the tasklets that cannot be collected: an empty list."""
    return []


def _exchange_flags(kept: dict[str, int], new_flags: int, mask: int) -> int:
    was = kept.setdefault("flags", _default["flags"])
    if new_flags < -1 or new_flags & mask > 15:  # noqa: PLR2004  # all four
        raise ValueError(f"no flags for pickles: {new_flags}")
    if new_flags != -1:
        kept["flags"] = was & ~mask | new_flags & mask
    return was


def pickle_flags(new_flags: int = -1, /, mask: int = -1) -> int:
    """Return the flags for pickles of this thread, and set those in `mask`; -1: none is set.

    They are kept and change nothing: tracing states, asynchronous generators and contexts are not
    pickled.  ValueError for flags that there are not.
    """
    return _exchange_flags(vars(_own), new_flags, mask)


def pickle_flags_default(new_flags: int = -1, /, mask: int = -1) -> int:
    """Do as `pickle_flags` with the flags that new threads begin with."""
    return _exchange_flags(_default, new_flags, mask)


stackless = sys.modules[__name__]
vars(builtins)["TaskletExit"] = TaskletExit
