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
    "get_channel_callback",
    "get_schedule_callback",
    "get_thread_info",
    "getcurrent",
    "getcurrentid",
    "getmain",
    "getruncount",
    "getthreads",
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

stackless = sys.modules[__name__]
vars(builtins)["TaskletExit"] = TaskletExit
