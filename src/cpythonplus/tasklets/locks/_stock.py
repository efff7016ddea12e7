"""The standard library's own classes as base classes, even if a `patch()` has replaced them."""

import queue
import sys
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.replacing import original
from cpythonplus.tasklets.io._standard import function_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from queue import LifoQueue, PriorityQueue, Queue
    from threading import Barrier, BoundedSemaphore, Condition, Event, Semaphore

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "Condition",
    "Event",
    "LifoQueue",
    "PriorityQueue",
    "Queue",
    "Semaphore",
    "rebound",
]


def _stock(module: Any, name: str) -> Any:  # noqa: ANN401  # a class, typed above for mypy
    found = original(module, name)
    if not isinstance(found, type) or found.__module__ != module.__name__:
        raise UnsupportedPlatform(
            f"cpythonplus.tasklets.locks: {module.__name__}.{name} has been replaced by {found!r}"
        )
    return found


if not TYPE_CHECKING:
    Barrier, BoundedSemaphore, Condition, Event, Semaphore = (
        _stock(threading, name)
        for name in ("Barrier", "BoundedSemaphore", "Condition", "Event", "Semaphore")
    )
    LifoQueue, PriorityQueue, Queue = (
        _stock(queue, name) for name in ("LifoQueue", "PriorityQueue", "Queue")
    )


def rebound(function: "Callable[..., None]", **names: object) -> Any:  # noqa: ANN401  # the same
    """Return a function of the standard library that sees other objects under some global names.

    Raises UnsupportedPlatform if it uses none of them: then it works in some other way than known.
    """
    if not isinstance(function, FunctionType) or not set(names) & set(function.__code__.co_names):
        version = ".".join(map(str, sys.version_info[:3]))
        raise UnsupportedPlatform(
            f"cpythonplus.tasklets.locks: {function!r} of Python {version} is not as expected"
        )
    return function_over(function, {**function.__globals__, **names})
