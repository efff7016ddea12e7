"""Tasklets, channels and a scheduler: Stackless Python's, as an extension of stock CPython.

A tasklet is a function that runs in turns with others of its thread, each on a C stack of its own;
a channel is a meeting point of two tasklets. Names and semantics are those of Stackless Python 3.x
(https://github.com/stackless-dev/stackless/wiki). Besides the names listed here the module has
computed attributes: `current`, `main`, `runcount`, `threads`.

Importing it raises `cpythonplus.UnsupportedPlatform` if it cannot work: in a sub-interpreter, in an
interpreter without a GIL, on another processor than x86-64 and aarch64, or with shadow stacks.
"""

from cpythonplus.tasklets import _life as _life  # first, because it may refuse

# isort: split
from cpythonplus.tasklets import _importing as _importing  # before any tasklet can import

# isort: split
from typing import TYPE_CHECKING

from cpythonplus._native import (
    TaskletExit,
    bomb,
    channel,
    get_channel_callback,
    get_schedule_callback,
    get_thread_info,
    getcurrent,
    getcurrentid,
    getmain,
    getruncount,
    getthreads,
    run,
    run_for,
    schedule,
    schedule_remove,
    set_channel_callback,
    set_error_handler,
    set_foreign_wakers,
    set_schedule_callback,
    set_trace_inheritance,
    stack_size,
    switch_trap,
    tasklet,
    trim_stacks,
)
from cpythonplus._native import tasklet_atomic as atomic
from cpythonplus.tasklets._computed import __getattr__ as __getattr__
from cpythonplus.tasklets._dump.on_signal import dump_off, dump_on
from cpythonplus.tasklets._dump.reporting import (
    ChannelReport,
    TaskletReport,
    ThreadReport,
    dump,
    report,
)

if TYPE_CHECKING:  # loaded when they are used: most programs do not pickle
    from cpythonplus.tasklets._pickling.code import pickling
    from cpythonplus.tasklets._pickling.wrapping import Pickler, dumps

__all__ = [
    "ChannelReport",
    "Pickler",
    "TaskletExit",
    "TaskletReport",
    "ThreadReport",
    "atomic",
    "bomb",
    "channel",
    "dump",
    "dump_off",
    "dump_on",
    "dumps",
    "get_channel_callback",
    "get_schedule_callback",
    "get_thread_info",
    "getcurrent",
    "getcurrentid",
    "getmain",
    "getruncount",
    "getthreads",
    "pickling",
    "report",
    "run",
    "run_for",
    "schedule",
    "schedule_remove",
    "set_channel_callback",
    "set_error_handler",
    "set_foreign_wakers",
    "set_schedule_callback",
    "set_trace_inheritance",
    "stack_size",
    "switch_trap",
    "tasklet",
    "trim_stacks",
]
