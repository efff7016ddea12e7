"""The attributes of Stackless's module that are computed when they are read."""

from typing import Any

from cpythonplus import _native

__all__ = ["__getattr__"]

_NAMES = ("current", "main", "runcount", "threads")


def __getattr__(name: str) -> Any:  # noqa: ANN401  # as Stackless has them
    """Return `current`, `main`, `runcount` or `threads`; AttributeError for another name.

    For a module that imports this function as its own `__getattr__` (PEP 562).
    """
    if name in _NAMES:
        return getattr(_native, f"get{name}")()
    raise AttributeError(f"module 'cpythonplus.tasklets' has no attribute {name!r}", name=name)
