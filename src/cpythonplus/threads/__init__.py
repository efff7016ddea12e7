"""Native locks, conditions and queues: a drop-in for ``threading`` and ``queue``, and more.

This file only re-exports.  The names are loaded when they are first used (PEP 562): ``cpythonplus
run`` needs only ``patch`` at start-up.
"""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from queue import Empty, Full
    from threading import BrokenBarrierError

    from cpythonplus.threads._errors import ShutDown
    from cpythonplus.threads._joining import join
    from cpythonplus.threads._patching import patch, patched, unpatch
    from cpythonplus.threads._primitives import (
        Barrier,
        BoundedSemaphore,
        Condition,
        Event,
        LifoQueue,
        Lock,
        PriorityQueue,
        Queue,
        RLock,
        Semaphore,
        SimpleQueue,
    )
    from cpythonplus.threads._stats import WaitStatistics
    from cpythonplus.threads._waits import Deadlock, Wait, Waits, waits

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "BrokenBarrierError",
    "Condition",
    "Deadlock",
    "Empty",
    "Event",
    "Full",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "ShutDown",
    "SimpleQueue",
    "Wait",
    "WaitStatistics",
    "Waits",
    "join",
    "patch",
    "patched",
    "unpatch",
    "waits",
]

_HOMES = {
    "._errors": "ShutDown",
    "._joining": "join",
    "._patching": "patch patched unpatch",
    "._primitives": "Barrier BoundedSemaphore Condition Event LifoQueue"
    " Lock PriorityQueue Queue RLock Semaphore SimpleQueue",
    "._stats": "WaitStatistics",
    "._waits": "Deadlock Wait Waits waits",
    "queue": "Empty Full",
    "threading": "BrokenBarrierError",
}
_load, __dir__ = _on_demand(globals(), _HOMES)


def __getattr__(name: str) -> object:
    value: object = _load(name)
    if name in _HOMES["._primitives"].split():
        from importlib import import_module

        from cpythonplus.threads._primitives import STAND_FOR, introduce

        for standard, names in STAND_FOR.items():
            if name in names:
                introduce(import_module(standard))
    return value
