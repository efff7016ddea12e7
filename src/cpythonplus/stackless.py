"""Stackless Python's module: `import cpythonplus.stackless as stackless`.

It has the names of `cpythonplus.tasklets`, under the name that programs for Stackless Python know.
`from stackless import *` gives what it gives there, and nothing that a program may have itself.
As there, `TaskletExit` is a builtin: importing this module makes it one.
"""

import builtins
import sys

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
    "getmain",
    "getruncount",
    "getthreads",
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

_kept = {"softswitch": True, "flags": 0, "default": 0}


def enable_softswitch(flag: bool, /) -> bool:  # noqa: FBT001  # Stackless's signature
    """Return what was set last (at first True), and note `flag`.

    It changes nothing here: a switch is of one kind, each tasklet has a C stack, and it can be
    pickled wherever no C code is in the middle of its frames.
    """
    was, _kept["softswitch"] = bool(_kept["softswitch"]), bool(flag)
    return was


def _exchange_flags(which: str, new_flags: int, mask: int) -> int:
    was = _kept[which]
    if new_flags != -1:
        if not 0 <= new_flags <= 15:  # noqa: PLR2004  # all four
            raise ValueError(f"no flags for pickles: {new_flags}")
        _kept[which] = was & ~mask | new_flags & mask
    return was


def pickle_flags(new_flags: int = -1, /, mask: int = 15) -> int:
    """Return the flags for pickles, and set those in `mask`; -1: none is set. ValueError.

    They are kept and change nothing: tracing states, asynchronous generators and contexts are not
    pickled.
    """
    return _exchange_flags("flags", new_flags, mask)


def pickle_flags_default(new_flags: int = -1, /, mask: int = 15) -> int:
    """The same of the flags that a thread begins with."""
    return _exchange_flags("default", new_flags, mask)


stackless = sys.modules[__name__]
vars(builtins)["TaskletExit"] = TaskletExit
