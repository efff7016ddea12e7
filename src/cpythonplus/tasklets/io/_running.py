"""Which asyncio loop runs in the thread, set aside while its tasklet waits.

asyncio keeps the running loop, the hooks of asynchronous generators and (3.14+) the current task
for each *thread*.  Several tasklets of a thread may each run a loop, so whoever waits in the middle
of one takes them away and puts them back: in the native half, once `switch` has been called.
"""

# The documented way for whoever implements an event loop to say which one runs in the thread.
# ruff: noqa: SLF001

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cpythonplus._native import io_running_loops

__all__ = ["Aside", "switch"]

# Before 3.14 each loop has its own current task.
_swap_task: Callable[[asyncio.AbstractEventLoop, Any], Any] | None = None
if sys.version_info >= (3, 14):
    _swap_task = asyncio.tasks._swap_current_task  # type: ignore[attr-defined]


class Aside(NamedTuple):
    """What a thread had of a loop."""

    loop: asyncio.AbstractEventLoop
    firstiter: Any
    finalizer: Any
    task: Any


def _set_aside() -> Aside:
    """Have the thread look as if no loop ran; return what `_put_back` is to get."""
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
    """Have waits of tasklets do that from now on."""
    io_running_loops(asyncio._get_running_loop, _set_aside, _put_back)
