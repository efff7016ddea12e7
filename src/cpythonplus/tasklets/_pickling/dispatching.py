"""Pickles of methods that are `functools.singledispatchmethod`: their parts go by name.

Such a method calls functions that only its descriptor, or the decorator's own variables, lead to.
"""

import functools
import importlib
from contextlib import suppress
from pickle import PicklingError, UnpicklingError
from types import FunctionType
from typing import Any

from cpythonplus.tasklets._pickling.code import Wrap, at_name, reduce_function
from cpythonplus.tasklets._pickling.wrapping import reduce_as

_DISPATCH = functools.singledispatch(bool).dispatch.__code__


def _descriptor(module: str, qualname: str) -> Any:
    """Return what a module or class has under a name, without binding it."""
    path, _, name = qualname.rpartition(".")
    try:
        return vars(at_name(module, path) if path else importlib.import_module(module))[name]
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        raise UnpicklingError(f"{module}.{qualname} is not here: {error!r}") from None


def _named(function: Any, is_it: Any) -> tuple[str, str]:
    """Return where the method of a function is; PicklingError if it is not there."""
    named = function.__module__, function.__qualname__
    with suppress(UnpicklingError):
        if is_it(_descriptor(*named)):
            return named
    raise PicklingError(f"the dispatcher of {'.'.join(named)} cannot be pickled: it has no name")


def _reduce_descriptor(method: Any, _: Wrap) -> tuple[Any, ...]:
    return _descriptor, _named(method.func, lambda found: found is method)


def _dispatch_of(descriptor: Any) -> Any:
    return getattr(descriptor, "dispatcher", descriptor).dispatch


def _made_dispatch(module: str, qualname: str) -> Any:
    return _dispatch_of(_descriptor(module, qualname))


def _reduce_function(function: FunctionType, wrap: Wrap) -> tuple[Any, ...]:
    if function.__code__ is not _DISPATCH:
        return reduce_function(function, wrap)
    at = _DISPATCH.co_freevars.index("registry")
    registry = (function.__closure__ or ())[at].cell_contents
    return _made_dispatch, _named(registry[object], lambda each: _dispatch_of(each) is function)


def _bound(descriptor: Any, it: Any, kind: Any) -> Any:
    return descriptor.__get__(it, kind)


def _reduce_bound(method: Any, wrap: Wrap) -> tuple[Any, ...]:
    it, kind = method._obj, method._cls  # noqa: SLF001
    return _bound, (wrap(method._unbound), wrap(it), kind)  # noqa: SLF001


reduce_as(FunctionType, _reduce_function)
reduce_as(functools.singledispatchmethod, _reduce_descriptor)
_kind = getattr(functools, "_singledispatchmethod_get", None)
if _kind is not None:  # from 3.14 on; before, it is a function
    reduce_as(_kind, _reduce_bound)
