"""Finds the holder of an object, as a path that a reader of the program understands.

An example is `drive(): last`. Runs no user code: instances are compared by type and identity only,
and attributes are read from slot descriptors and dicts.
"""

import gc
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from cpythonplus import _native
from cpythonplus._base.stacks import frames_of_threads, outwards, without_collection
from cpythonplus.memory._cycles.edges import frame_of, is_running
from cpythonplus.memory._cycles.keys import key_text
from cpythonplus.memory._cycles.looking import (
    is_exception,
    mro,
    slots,
    traceback_of,
    type_dict,
    type_qualname,
)

_LEVELS = 5
"""The most containers inside each other: holder.attribute -> dict -> list -> exception."""
# By id: a metaclass may have its own __eq__ and __hash__.
_PLAIN = {id(kind) for kind in (list, tuple, set, frozenset, deque)}
_OWN = tuple(__file__.rpartition("/memory/")[0] + room for room in ("/memory/", "/_doctor/"))


_names_of_module = vars(ModuleType)["__dict__"].__get__


class _Search:
    """The search for the holder of one object; path: the steps from `target` to the object."""

    __slots__ = ("found", "path", "target")

    def __init__(self, target: object) -> None:
        self.target = target
        self.path = ""
        self.found = ""


def every_object(kind: type[BaseException] | None = None) -> list[object]:
    """Return all objects that the collector knows, with frozen ones; release the list soon.

    kind: BaseException: all exceptions, perhaps among other objects; faster than all objects.

    Not `gc.get_objects()`: if another thread is just filling a tuple (`tuple(rows)`), a second
    reference to the tuple would make that thread fail.
    """
    try:
        return _native.memory_gc_objects_of(kind)
    except RuntimeError:
        return gc.get_objects()


def find_holders(
    objects: list[object], targets: Sequence[object], own: Sequence[object]
) -> list[str]:
    """Return the holder of each target: `last in drive() (loop.py:12)`, `app.errors[]`.

    objects: `every_object()`; own: the caller's containers, which do not count. If an object has
    several holders, variables of running functions and of modules come first. "?" if only C code
    holds it.
    """
    running = {id(value): place for value, place in _running_variables()}
    modules = {
        id(_names_of_module(module)): name
        for name, module in list(sys.modules.items())
        if type(module) is ModuleType
    }
    skipped = {id(container) for container in own}
    searches = [_Search(target) for target in targets]
    for _ in range(_LEVELS):
        waiting = [search for search in searches if not search.found]
        for search in waiting:
            place = running.get(id(search.target))
            if place is not None:
                search.found = _joined(place, search.path)
        waiting = [search for search in waiting if not search.found]
        if not waiting:
            break
        # From the second level on, many exceptions of one list have the same target.
        targets_now = {id(search.target): search.target for search in waiting}
        found = _native.memory_referrers_among(objects, list(targets_now.values()))
        referrers = dict(zip(targets_now, found, strict=True))
        for search in waiting:
            those = [each for each in referrers[id(search.target)] if id(each) not in skipped]
            _go_on(search, those, modules)
    handlers = dict(_handlers())
    return [
        search.found or handlers.get(id(search.target), "?") + search.path for search in searches
    ]


def _handlers() -> Iterator[tuple[int, str]]:
    """Yield the exceptions that threads handle just now, by identity, and their places."""
    for current in list(without_collection(sys._current_exceptions).values()):  # noqa: SLF001
        error: Any = current
        if sys.version_info < (3, 12):
            error = error[1]
        traceback = None if error is None else traceback_of(error)
        if traceback is not None:
            yield id(error), f"the handler in {_function(traceback.tb_frame)}"


def _running_variables() -> Iterator[tuple[object, tuple[str, str]]]:
    """Yield the variables of all functions that run, with (name, function)."""
    frames = frames_of_threads()
    while frames:
        for frame in outwards(frames.popitem()[1]):
            if not _is_own(frame):
                for name, value in _native.memory_frame_variables(frame).items():
                    yield value, (name, _function(frame))


def _function(frame: FrameType) -> str:
    code = frame.f_code
    name = code.co_qualname
    call = name if name == "<module>" else f"{name}()"
    return f"{call} ({code.co_filename}:{frame.f_lineno or code.co_firstlineno})"


def _joined(place: tuple[str, str], path: str) -> str:
    name, function = place
    return f"{name}{path} in {function}"


def _go_on(search: _Search, referrers: list[object], modules: dict[int, str]) -> None:
    """Take the best referrer: it is the holder, or the next target."""
    for _, referrer in sorted(
        ((_rank(referrer, modules), referrer) for referrer in referrers), key=lambda pair: pair[0]
    ):
        if _is_own(referrer):
            continue
        search.found, step = _step(search, referrer, modules)
        search.path = step + search.path
        search.target = referrer
        return


def _is_own(referrer: object) -> bool:
    """Whether it is a frame of this package."""
    return type(referrer) is FrameType and referrer.f_code.co_filename.startswith(_OWN)


def _rank(referrer: object, modules: dict[int, str]) -> int:
    """Return the rank of a referrer: names of modules and functions first, chains last."""
    kind = type(referrer)
    if id(referrer) in modules:
        return 0
    if is_running(referrer):
        return 1
    if kind is dict or kind is CellType:
        return 2
    if id(kind) in _PLAIN:
        return 3
    return 5 if is_exception(referrer) else 4


def _step(search: _Search, referrer: object, modules: dict[int, str]) -> tuple[str, str]:
    """Return (the whole holder, "") or ("", the text in front of the path)."""
    kind = type(referrer)
    frame = frame_of(referrer)
    if frame is not None:
        return _joined((_variable(frame, search.target), _function(frame)), search.path), ""
    if id(referrer) in modules and type(referrer) is dict:
        return f"{modules[id(referrer)]}.{_name_of(referrer, search.target)}{search.path}", ""
    step = _link(referrer, search.target)
    if step is not None:
        return "", step
    if type(referrer) is FunctionType:
        return f"{referrer.__qualname__}(){search.path}", ""
    name = "" if search.path.startswith(".") else _attribute(referrer, search.target)
    return f"{type_qualname(kind)}{name}{search.path}", ""


def _link(referrer: object, target: object) -> str | None:
    """Return the step of a referrer that has a holder itself; None if it has a name."""
    kind = type(referrer)
    if type(referrer) is dict:
        return _step_of_dict(referrer, target)
    if id(kind) in _PLAIN:
        return "[]"
    if kind is CellType:
        return ""
    return ".__context__" if is_exception(referrer) else None


def _variable(frame: FrameType, target: object) -> str:
    variables = _native.memory_frame_variables(frame).items()
    return next((name for name, value in variables if value is target), "?")


def _step_of_dict(holder: dict[object, object], target: object) -> str:
    for key, value in list(dict.items(holder)):
        if value is target:
            return f".{key}" if type(key) is str and key.isidentifier() else f"[{key_text(key)}]"
    return "[?]"


def _name_of(names: dict[object, object], target: object) -> str:
    found = (key for key, value in list(dict.items(names)) if value is target)
    key = next(found, "?")
    return key if type(key) is str else key_text(key)


def _attribute(holder: object, target: object) -> str:
    """Return `.name` of the attribute of an instance, "" if it is not found.

    Not by `__dict__`: instances keep their values inline, and the dict would be created and stay.
    Instead the slots of its class are read, and the names that the class's own code uses.
    """
    for name, value in slots(holder):
        if value is target:
            return f".{name}"
    for used in _names_used([type_dict(base) for base in mro(type(holder))]):
        try:
            if object.__getattribute__(holder, used) is target:
                return f".{used}"
        except AttributeError:
            continue
    return ""


def _names_used(bases: list[Mapping[str, Any]]) -> list[str]:
    """Return the names in the code of methods, except names in the classes: maybe properties."""
    functions = [f for names in bases for f in list(names.values()) if type(f) is FunctionType]
    used = dict.fromkeys(name for function in functions for name in function.__code__.co_names)
    return [name for name in used if not any(name in names for names in bases)]
