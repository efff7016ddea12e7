"""Setting the thread's running asyncio loop aside while a tasklet waits.

asyncio keeps the running loop, the hooks of asynchronous generators and (3.14+) the current task
for each *thread*.  Several tasklets of a thread may each run a loop, so a tasklet that waits inside
of one sets these aside and restores them: the C half does so once `switch` has been called.
"""

# asyncio._set_running_loop() is documented for implementations of event loops.
# ruff: noqa: SLF001

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cpythonplus._native import io_running_loops

# Before 3.14 each loop has its own current task.
_swap_task: Callable[[asyncio.AbstractEventLoop, Any], Any] | None = None
if sys.version_info >= (3, 14):
    _swap_task = asyncio.tasks._swap_current_task  # type: ignore[attr-defined]


class Aside(NamedTuple):
    """The state of a thread inside of a loop."""

    loop: asyncio.AbstractEventLoop
    firstiter: Any
    finalizer: Any
    task: Any


def _set_aside() -> Aside:
    """Make the thread look as if no loop ran; return the argument of `_put_back`."""
    loop = asyncio.get_running_loop()
    hooks = sys.get_asyncgen_hooks()
    task = _swap_task(loop, None) if _swap_task is not None else None
    asyncio._set_running_loop(None)
    sys.set_asyncgen_hooks(None, None)
    return Aside(loop, hooks.firstiter, hooks.finalizer, task)


def _put_back(aside: Aside) -> None:
    """Undo `_set_aside`, in the same tasklet."""
    asyncio._set_running_loop(aside.loop)
    sys.set_asyncgen_hooks(aside.firstiter, aside.finalizer)
    if _swap_task is not None and aside.task is not None:
        _swap_task(aside.loop, aside.task)


def switch() -> None:
    """Make the waits of tasklets do that from now on."""
    io_running_loops(asyncio._get_running_loop, _set_aside, _put_back)
