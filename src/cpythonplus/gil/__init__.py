"""The GIL, scheduled: interactive threads first, no starvation, atomic sections.

This file only re-exports.  A name is loaded at its first use (PEP 562): the start-up hook of
``cpythonplus run`` needs ``install`` and none of the data classes, whose import would cost more
than the installation.
"""

from cpythonplus import _on_demand

TYPE_CHECKING = False  # as in typing, whose import costs more than all the rest
if TYPE_CHECKING:
    from cpythonplus.gil._control import active, install, reset_statistics, statistics, uninstall
    from cpythonplus.gil._policy import Policy
    from cpythonplus.gil._sections import OverlongSection, atomic
    from cpythonplus.gil._stalls import Stall, stalls
    from cpythonplus.gil._stats import (
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
    "Stall",
    "Statistics",
    "ThreadStatistics",
    "Times",
    "active",
    "atomic",
    "install",
    "reset_statistics",
    "stalls",
    "statistics",
    "uninstall",
]

_HOMES = {
    "._control": "active install reset_statistics statistics uninstall",
    "._policy": "Policy",
    "._sections": "OverlongSection atomic",
    "._stalls": "Stall stalls",
    "._stats": "AtomicStatistics ClassStatistics Statistics ThreadStatistics Times",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
