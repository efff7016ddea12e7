"""The refusal of platforms without tasklets; and the end of tasklets, at the interpreter's end."""

import atexit
import os

from cpythonplus import _native
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.replacing import when_loaded
from cpythonplus._base.stacks import switchers
from cpythonplus._base.switch import is_on

if _native.tasklets_refusal() is not None:
    raise UnsupportedPlatform(f"cpythonplus.tasklets: {_native.tasklets_refusal()}")

switchers.add("tasklets")

# Set up when greenlet is loaded, because many programs do without greenlet.
when_loaded("greenlet", _native.tasklets_fence_greenlets)

# An environment variable, since the person who runs a program knows what else is in its process.
if is_on(os.environ.get("CPYTHONPLUS_NO_SIGSEGV_HANDLER", "")) is not False:
    _native.tasklets_decline_sigsegv()

# Runs after the `finally` clauses, which may call run_for(); stops the thread of run_for().
atexit.register(_native.tasklets_stop_deadlines)

# Blocked tasklets get TaskletExit while everything that their `finally` clauses use still exists.
atexit.register(_native.tasklets_kill_all)
os.register_at_fork(
    before=_native.tasklets_before_fork,
    after_in_parent=_native.tasklets_after_fork_parent,
    after_in_child=_native.tasklets_after_fork,
)
