"""Native locks, conditions and queues: a drop-in for ``threading`` and ``queue``, and more.

Re-exports only.  The names are loaded when they are first used (PEP 562): ``cpythonplus run`` needs
``patch`` and nothing else at start-up.
"""

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
    "PriorityQueue",
    "Queue",
    "RLock",
    "Semaphore",
    "ShutDown",
    "SimpleQueue",
    "WaitStatistics",
    "join",
    "patch",
    "patched",
    "unpatch",
]

# Every other name is one of the primitives.
_HOMES = {
    "BrokenBarrierError": "threading",
    "Empty": "queue",
    "Full": "queue",
    "ShutDown": "cpythonplus.threads._errors",
    "WaitStatistics": "cpythonplus.threads._stats",
    "join": "cpythonplus.threads._joining",
    "patch": "cpythonplus.threads._patching",
    "patched": "cpythonplus.threads._patching",
    "unpatch": "cpythonplus.threads._patching",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # `from cpythonplus.threads import _patching` does without

    home = import_module(_HOMES.get(name, f"{__name__}._primitives"))
    value: object = getattr(home, name)
    if name not in _HOMES:
        for standard, names in home.STAND_FOR.items():
            if name in names:
                home.introduce(import_module(standard))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
