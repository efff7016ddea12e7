"""Setting the thread's running asyncio loop aside while a tasklet waits.

asyncio keeps the running loop, the hooks of asynchronous generators and (3.14+) the current task
for each *thread*.  Several tasklets of a thread may each run a loop, so a tasklet that waits inside
of one sets these aside and restores them: the C half does so once `switch` has been called.
"""

# asyncio._set_running_loop() is documented for implementations of event loops.
# ruff: noqa: SLF001

import asyncio
import sys

from cpythonplus._native import io_running_loops

# Before 3.14 each loop has its own current task.
_swap_task = None
if sys.version_info >= (3, 14):
    _swap_task = asyncio.tasks._swap_current_task  # type: ignore[attr-defined]


def switch() -> None:
    """Make the waits of tasklets do that from now on."""
    io_running_loops(
        asyncio._get_running_loop,
        asyncio._set_running_loop,
        sys.get_asyncgen_hooks,
        sys.set_asyncgen_hooks,
        _swap_task,
    )
