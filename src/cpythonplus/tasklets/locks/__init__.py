"""Locks, conditions and queues that block only the tasklet, and work between threads too.

This file only re-exports.  The types are drop-ins for those of `threading` and `queue`; the same
object may be used by tasklets of one thread, tasklets of several threads, and threads that know
nothing of tasklets.  `patch` replaces the standard library's types by them.
"""

from cpythonplus._native import tasklets_local as local
from cpythonplus.tasklets.locks._conditions import (
    Barrier,
    BoundedSemaphore,
    BrokenBarrierError,
    Condition,
    Event,
    Lock,
    RLock,
    Semaphore,
)
from cpythonplus.tasklets.locks._patching import patch, patched, unpatch
from cpythonplus.tasklets.locks._queues import (
    Empty,
    Full,
    LifoQueue,
    PriorityQueue,
    Queue,
    ShutDown,
    SimpleQueue,
)
from cpythonplus.tasklets.locks._statistics import LockStatistics

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "Condition",
    "Empty",
    "Event",
    "Full",
    "LifoQueue",
    "Lock",
    "LockStatistics",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "ShutDown",
    "SimpleQueue",
    "local",
    "patch",
    "patched",
    "unpatch",
]
