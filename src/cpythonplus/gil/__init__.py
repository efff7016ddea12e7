"""The GIL, scheduled: interactive threads first, no starvation, atomic sections.

Re-exports only.  The names are loaded when they are first used (PEP 562): the start-up hook of
``cpythonplus run`` needs ``install`` and none of the data classes, whose import would cost more
than the installation.
"""

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.gil.control import active, install, reset_statistics, statistics, uninstall
    from cpythonplus.gil.policy import Policy
    from cpythonplus.gil.sections import OverlongSection, atomic
    from cpythonplus.gil.stats import (
        AtomicStatistics,
        ClassStatistics,
        Statistics,
        ThreadStatistics,
        Times,
    )

__all__ = [
    "AtomicStatistics",
    "ClassStatistics",
    "OverlongSection",
    "Policy",
    "Statistics",
    "ThreadStatistics",
    "Times",
    "active",
    "atomic",
    "install",
    "reset_statistics",
    "statistics",
    "uninstall",
]

_HOMES = {
    "Policy": "policy",
    "OverlongSection": "sections",
    "atomic": "sections",
    "AtomicStatistics": "stats",
    "ClassStatistics": "stats",
    "Statistics": "stats",
    "ThreadStatistics": "stats",
    "Times": "stats",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'control')}"), name)
    globals()[name] = value
    return value
