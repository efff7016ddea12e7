"""A clear refusal where there can be no tasklets; and their end, at the interpreter's end."""

import atexit
import os

from cpythonplus import _native
from cpythonplus._base.errors import UnsupportedPlatform

if _native.tasklets_refusal() is not None:
    raise UnsupportedPlatform(f"cpythonplus.tasklets: {_native.tasklets_refusal()}")

# After the `finally` clauses, which may call run_for(), its thread stays away from the interpreter.
atexit.register(_native.tasklets_stop_deadlines)

# Blocked tasklets get TaskletExit while everything that their `finally` clauses use is still there.
atexit.register(_native.tasklets_kill_all)
os.register_at_fork(
    before=_native.tasklets_before_fork,
    after_in_parent=_native.tasklets_after_fork_parent,
    after_in_child=_native.tasklets_after_fork,
)
