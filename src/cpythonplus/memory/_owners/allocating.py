"""Finds the lines that allocated the objects of an owner, as noted by tracemalloc.

A sample is taken in the process itself while nothing else runs. Nothing here calls code of the
program: no property, no `__getattr__`, no comparison. No `__dict__` is created.
"""

import gc
import sys
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from types import MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any, Final

from cpythonplus._base.data import Place
from cpythonplus._base.modules import imported
from cpythonplus.memory._owners.spelling import LIBRARIES, Step

_MOST: Final = 64
_OF_EACH: Final = 4
_NOTHING: Final = object()
_MRO: Final[Any] = type.__dict__["__mro__"]
_CLASS_DICT: Final[Any] = type.__dict__["__dict__"]
_MODULE_DICT: Final[Any] = vars(ModuleType)["__dict__"]


def allocated_at(steps: Sequence[Step], entries: int, before: int) -> Place:
    """Return the line that has allocated most of the newest parts of the object at the steps.

    entries, before: numbers of entries of the owner. If it has as many as before, the parts of its
    parts are asked, and so are they if before is -1 (the first look does not note small owners).
    The result has no file if the line is unknown: tracemalloc is off or was off when the parts were
    made, or no name leads to the object.
    """
    tracemalloc = imported("tracemalloc")
    if tracemalloc is None or not tracemalloc.is_tracing():
        return Place()
    owner = _reached(steps)
    if owner is _NOTHING:
        return Place()
    parts = _newest(owner, _MOST)
    if 0 <= entries <= (before if before >= 0 else _MOST):
        parts = [each for part in parts for each in _newest(part, _OF_EACH)]
    traces = (tracemalloc.get_object_traceback(part) for part in parts)
    lines = Counter(_line(trace) for trace in traces if trace is not None)
    return Place(*lines.most_common(1)[0][0]) if lines else Place()


def _line(trace: Iterable[Any]) -> tuple[str, int]:
    """Return the last line outside of libraries, if tracemalloc has kept so many frames."""
    frames = list(trace)[::-1]
    own = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)]
    place = (own or frames)[0]
    return place.filename, place.lineno


def _newest(owner: object, most: int) -> list[object]:
    """Return the last items of a container, or the referents of another object."""
    if isinstance(owner, dict):
        return list(islice(reversed(dict.values(owner)), most))
    if isinstance(owner, list):
        return list.__getitem__(owner, slice(-most, None))
    if isinstance(owner, deque):
        return list(islice(deque.__reversed__(owner), most))
    return gc.get_referents(owner)[-most:]


def _reached(steps: Sequence[Step]) -> object:
    """Return the object at the steps; `_NOTHING` if they begin at no module, or end before."""
    if not steps or steps[0][0] != "module":
        return _NOTHING
    found: object = sys.modules.get(str(steps[0][1]), _NOTHING)
    for step in steps[1:]:
        if found is _NOTHING:
            break
        found = _next(found, step)
    return found


def _next(source: object, step: Step) -> object:
    how, label, kind = step
    found = _NOTHING
    if how == "dict":
        found = _names(source)
    elif how == "attribute":
        found = _attribute(source, label)
    elif how in {"key", "interned"} and type(label) in (str, int):
        if isinstance(source, dict):
            found = dict.get(source, label, _NOTHING)
        elif isinstance(source, MappingProxyType):
            found = source.get(label, _NOTHING)
    elif how == "index" and isinstance(source, list):
        found = next(iter(list.__getitem__(source, slice(label, label + 1))), _NOTHING)
    elif how == "index" and isinstance(source, tuple):
        found = next(iter(tuple.__getitem__(source, slice(label, label + 1))), _NOTHING)
    return _of_kind(gc.get_referents(source), kind) if found is _NOTHING else found


def _names(source: object) -> object:
    """Return the namespace of a module or a class, or the `__dict__` of an instance, if any."""
    if isinstance(source, ModuleType):
        return _MODULE_DICT.__get__(source)
    if isinstance(source, type):
        return _CLASS_DICT.__get__(source)
    return _NOTHING


def _attribute(source: object, label: object) -> object:
    """Return an attribute stored in the instance; properties of its class are not called."""
    if isinstance(source, type | ModuleType) or type(label) is not str:
        return _NOTHING
    for each in _MRO.__get__(type(source)):
        descriptor = _CLASS_DICT.__get__(each).get(label, _NOTHING)
        if descriptor is not _NOTHING:
            is_slot = type(descriptor) is MemberDescriptorType
            return descriptor.__get__(source) if is_slot else _NOTHING
    try:
        return object.__getattribute__(source, label)
    except AttributeError:
        return _NOTHING


def _of_kind(referents: list[object], kind: str) -> object:
    """Return the object of a class, the largest container if there are several; else `_NOTHING`."""
    name = kind.rpartition(".")[2]
    found = [each for each in referents if type(each).__name__ == name]
    if len(found) > 1:
        found = [each for each in found if type(each) in (dict, list, deque)]
    return max(found, key=len, default=_NOTHING) if len(found) != 1 else found[0]  # type: ignore[arg-type]
