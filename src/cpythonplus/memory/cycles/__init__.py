"""Cyclic garbage by root cause, and exceptions that are still held."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpythonplus.memory.cycles.report import Cause, Cycle, Hoard, Kind, Report
    from cpythonplus.memory.cycles.watching import Watch, watch

__all__ = ["Cause", "Cycle", "Hoard", "Kind", "Report", "Watch", "watch"]

# On demand: other parts of the room read objects with `cycles.looking`, which needs none of this.
_HOMES = {
    "Cause": "report",
    "Cycle": "report",
    "Hoard": "report",
    "Kind": "report",
    "Report": "report",
    "Watch": "watching",
    "watch": "watching",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
