"""The C half of the room, or a clear refusal; and the end of tasklets at the interpreter's end."""

import atexit
import os

from cpythonplus import _native
from cpythonplus._base.errors import UnsupportedPlatform

if _native.tasklets_refusal() is not None:
    raise UnsupportedPlatform(f"cpythonplus.tasklets: {_native.tasklets_refusal()}")

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
from cpythonplus._native import tasklets_engine as engine

__all__ = [
    "TaskletExit",
    "atomic",
    "bomb",
    "channel",
    "engine",
    "get_channel_callback",
    "get_schedule_callback",
    "get_thread_info",
    "getcurrent",
    "getcurrentid",
    "getmain",
    "getruncount",
    "getthreads",
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

# After the `finally` clauses, which may call run_for(), its thread stays away from the interpreter.
atexit.register(_native.tasklets_stop_deadlines)

# Blocked tasklets get TaskletExit while everything that their `finally` clauses use is still there.
atexit.register(_native.tasklets_kill_all)
os.register_at_fork(after_in_child=_native.tasklets_after_fork)
