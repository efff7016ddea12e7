"""Sentinels in pickles and copies: an object without state is found again by its name.

`x is MISSING` has to hold when the tasklet goes on, though pickle would make another `object()`.
A sentinel is an instance of `object`, or of a class that adds no state, and is a variable of a
module or a class attribute. An object without such a name is written as before.

A sentinel of `__main__` only, in a frame, is made anew in a process whose `__main__` has none.
"""

import copyreg
import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from pickle import UnpicklingError
from types import ModuleType
from typing import Any

from cpythonplus.tasklets._pickling.code import globals_at

_HEAP_TYPE = 1 << 9
_MAIN = ("__main__", "__mp_main__")
_METHODS = ("__init__", "__reduce__", "__reduce_ex__", "__getstate__")
_names: dict[int, tuple[str, str]] = {}
_nameless: dict[int, object] = {}
_modules_then = 0
"""How many modules there were when `_nameless`, instances of `object`, were looked for."""


def may_be_sentinel(kind: type) -> bool:
    """Return whether instances of a class may be without state."""
    if kind is object:
        return True
    return (
        all(getattr(kind, name) is getattr(object, name) for name in _METHODS)
        and all(base.__flags__ & _HEAP_TYPE for base in kind.__mro__[:-1])
        and not hasattr(kind, "__getnewargs__")
        and not hasattr(kind, "__getnewargs_ex__")
    )


def _namespace(kind: type) -> Any:
    """Return a class's namespace; runs no code of its metaclass. None: the class is not ready."""
    return type.__dict__["__dict__"].__get__(kind)


def _variables(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the variables of a module and the attributes of its classes, each by its name."""
    for variable, value in list(vars(module).items()):
        yield variable, value
        if issubclass(type(value), type):
            own = _namespace(value)
            if own is not None and own.get("__module__") == name:
                for attribute, inner in list(own.items()):
                    yield f"{variable}.{attribute}", inner


def _at(name: str, path: str) -> Any:
    """Return what a module has at a path; None if it has nothing there."""
    found: Any = sys.modules.get(name)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found


def name_of_sentinel(value: object) -> tuple[str, str] | None:
    """Return the module and the path of a sentinel; None for another object."""
    global _modules_then  # noqa: PLW0603
    key = id(value)
    kept = _names.get(key)
    if kept is not None and _at(*kept) is value:
        return kept
    if type(value) is not object and value.__getstate__() is not None:
        return None
    if len(sys.modules) != _modules_then:
        _nameless.clear()
        _modules_then = len(sys.modules)
    if key in _nameless:
        return None
    modules = [
        (name, each) for name, each in sys.modules.copy().items() if type(each) is ModuleType
    ]
    own = type(value).__module__
    # A module that takes it over from another comes before that one; `__main__` comes last.
    modules.sort(key=lambda named: (named[0] == own, named[0] not in _MAIN))
    for name, module in reversed(modules):
        for path, each in _variables(name, module):
            if each is value:
                _names[key] = name, path
                return name, path
    if type(value) is object and len(_nameless) < 1000:  # noqa: PLR2004
        _nameless[key] = value
    return None


def sentinel(kind: Any, name: str, path: str) -> Any:
    """Pickle calls it for a sentinel; `__main__` gets the variable if it has none."""
    with suppress(ImportError):
        if name not in sys.modules:
            importlib.import_module(name)
    found = _at(name, path)
    if found is None and name in _MAIN and "." not in path:
        return globals_at(name).setdefault(path, kind.__new__(kind))
    if type(found) is not kind:
        raise UnpicklingError(f"{name}.{path} is not here: found {type(found).__name__}")
    return found


def _reduce_for_all(value: Any) -> Any:
    """Return what pickle writes for an instance of a class of sentinels: a global name."""
    name = name_of_sentinel(value)
    return object.__reduce_ex__(value, 4) if name is None else name[1]


def sentinel_reducer(value: Any) -> Any:
    """Return a function that reduces a sentinel that pickle alone cannot write; else None."""
    name = name_of_sentinel(value)
    if name is None:
        return None
    kind = type(value)
    # `copy` asks copyreg as well: a program may copy what has attributes, and change them.
    is_standard = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    if name[0] not in _MAIN and (is_standard or not kind.__dictoffset__):
        copyreg.pickle(kind, _reduce_for_all)
        return None
    return lambda _, __: (sentinel, (kind, *name))


copyreg.pickle(object, _reduce_for_all)
