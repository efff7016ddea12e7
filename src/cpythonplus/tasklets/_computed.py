"""The attributes of Stackless's module that are computed when they are read."""

from typing import Any

from cpythonplus import _native

__all__ = ["__getattr__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # as Stackless has them
    """Return `current`, `main`, `runcount` or `threads`; AttributeError for another name.

    For a module that imports this function as its own `__getattr__` (PEP 562).
    """
    if name == "current":
        return _native.getcurrent()
    if name == "main":
        return _native.getmain()
    if name == "runcount":
        return _native.getruncount()
    if name == "threads":
        return _native.getthreads()
    raise AttributeError(f"module 'cpythonplus.tasklets' has no attribute {name!r}", name=name)
