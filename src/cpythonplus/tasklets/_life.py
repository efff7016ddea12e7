"""A clear refusal where there can be no tasklets; and their end, at the interpreter's end."""

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

# Not before: a program that has no greenlets does without them.
when_loaded("greenlet", _native.tasklets_fence_greenlets)

# A variable, not a call: it is for who runs a program, and knows what else is in its process.
if is_on(os.environ.get("CPYTHONPLUS_NO_SIGSEGV_HANDLER", "")) is not False:
    _native.tasklets_decline_sigsegv()

# After the `finally` clauses, which may call run_for(), its thread stays away from the interpreter.
atexit.register(_native.tasklets_stop_deadlines)

# Blocked tasklets get TaskletExit while everything that their `finally` clauses use is still there.
atexit.register(_native.tasklets_kill_all)
os.register_at_fork(
    before=_native.tasklets_before_fork,
    after_in_parent=_native.tasklets_after_fork_parent,
    after_in_child=_native.tasklets_after_fork,
)
