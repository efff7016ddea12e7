"""The attributes of the module that are computed, or loaded, when they are read."""

from importlib import import_module
from typing import Any

from cpythonplus import _native

_NAMES = ("current", "main", "runcount", "threads")
_PICKLING = "cpythonplus.tasklets._pickling"
_LOADED = {"Pickler": "wrapping", "dumps": "wrapping", "pickling": "code"}


def __getattr__(name: str) -> Any:  # as Stackless has them
    """Return a computed attribute, or a name that pickles; AttributeError for other names.

    For a module that imports this function as its own `__getattr__` (PEP 562).
    """
    if name in _NAMES:
        return getattr(_native, f"get{name}")()
    if name in _LOADED:
        import_module(f"{_PICKLING}.reducing")  # it registers all reducers
        return getattr(import_module(f"{_PICKLING}.{_LOADED[name]}"), name)
    raise AttributeError(f"module 'cpythonplus.tasklets' has no attribute {name!r}", name=name)
