"""Cyclic garbage by root cause, and exceptions that are still held."""

from cpythonplus import _on_demand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpythonplus.memory._cycles.report import Cause, Cycle, Hoard, Kind, Report
    from cpythonplus.memory._cycles.watching import Watch, watch

__all__ = ["Cause", "Cycle", "Hoard", "Kind", "Report", "Watch", "watch"]

_HOMES = {
    "._cycles.report": "Cause Cycle Hoard Kind Report",
    "._cycles.watching": "Watch watch",
}
if not TYPE_CHECKING:  # names that are not listed are errors
    __getattr__, __dir__ = _on_demand(globals(), _HOMES)
