"""Which asyncio loop runs in the thread, set aside while its tasklet waits.

asyncio keeps the running loop, the hooks of asynchronous generators and (3.14+) the current task
for each *thread*.  Several tasklets of a thread may each run a loop, so whoever lets others run in
the middle of one takes them away and puts them back.
"""

# The documented way for whoever implements an event loop to say which one runs in the thread.
# ruff: noqa: SLF001

import asyncio
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Aside", "put_back", "set_aside"]

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


def set_aside() -> Aside | None:
    """Have the thread look as if no loop ran; return what put_back() is to get."""
    loop = asyncio._get_running_loop()
    if loop is None:
        return None
    hooks = sys.get_asyncgen_hooks()
    task = _swap_task(loop, None) if _swap_task is not None else None
    asyncio._set_running_loop(None)
    sys.set_asyncgen_hooks(None, None)
    return Aside(loop, hooks.firstiter, hooks.finalizer, task)


def put_back(aside: Aside | None) -> None:
    """Undo set_aside(), in the same tasklet."""
    if aside is None:
        return
    asyncio._set_running_loop(aside.loop)
    sys.set_asyncgen_hooks(aside.firstiter, aside.finalizer)
    if _swap_task is not None and aside.task is not None:
        _swap_task(aside.loop, aside.task)
