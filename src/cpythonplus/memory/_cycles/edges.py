"""The references of an object, each with its spelling in a program."""

import collections
import enum
import gc
import weakref
from collections.abc import Callable, Iterator
from types import (
    AsyncGeneratorType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    TracebackType,
)
from typing import Any, Final, NamedTuple

from cpythonplus import _native
from cpythonplus.memory._cycles.looking import (
    attribute_dict,
    is_dict,
    is_exception,
    is_list,
    is_tuple,
    is_type,
    slots,
    type_dict,
    type_name,
)


class Role(enum.Enum):
    """The use of a reference for naming a cycle."""

    NATURAL = enum.auto()
    """A reference between exceptions, tracebacks, frames and functions that no program text has."""
    VARIABLE = enum.auto()
    """A local or free variable; a name begins with it."""
    PART = enum.auto()
    """An attribute or an item that can be stored again."""
    INDEX = enum.auto()
    """An item of a tuple, which was there from the start."""
    HIDDEN = enum.auto()
    """Inside of a cell or of an object written in C: adds nothing to the name."""


class Edge(NamedTuple):
    """One reference. name: the variable, or the text after the holder: ``.error``, ``[1]``."""

    name: str
    role: Role


_Reached = Iterator[tuple[Edge, object]]

_OPTIMIZED: Final = 1  # co_flags: locals are in slots, so reading them runs no code
_HIDDEN: Final = Edge("", Role.HIDDEN)
_NATURAL: Final = Edge("", Role.NATURAL)
_ITEM: Final = Edge("[]", Role.PART)

SNAPSHOT: Final = Edge(".f_locals", Role.NATURAL)
"""From a frame to a copy of its variables, which is a holder of its own."""

_frame_fields = FrameType.__dict__
_f_back = _frame_fields["f_back"].__get__
_f_code = _frame_fields["f_code"].__get__
_f_trace = _frame_fields["f_trace"].__get__

_BODIES: Final = {
    id(GeneratorType): GeneratorType.__dict__["gi_frame"].__get__,
    id(CoroutineType): CoroutineType.__dict__["cr_frame"].__get__,
    id(AsyncGeneratorType): AsyncGeneratorType.__dict__["ag_frame"].__get__,
}


def is_running(value: object) -> bool:
    """Whether it is a frame, a generator or a coroutine."""
    return type(value) is FrameType or id(type(value)) in _BODIES


def frame_of(value: object) -> FrameType | None:
    """Return a frame, or that of a generator; None: another object, or a finished generator."""
    if type(value) is FrameType:
        return value
    body = _BODIES.get(id(type(value)))
    return None if body is None else body(value)


def edges(value: object) -> _Reached:
    """Yield those references of an object that have names; the same target may come twice.

    Call this for garbage only: it creates dicts of attributes and frames of generators.
    """
    reader = _READERS.get(id(type(value)))
    if reader is not None:
        return reader(value)
    return _type_edges(value) if is_type(value) else _instance_edges(value)  # type: ignore[arg-type]


# ---- variables ----------------------------------------------------------------------------------


def _frame_edges(frame: FrameType) -> _Reached:
    yield _NATURAL, _f_back(frame)
    yield Edge(".f_trace", Role.PART), _f_trace(frame)
    yield from _variables(frame, gc.get_referents(frame))


def _generator_edges(generator: object) -> _Reached:
    # The generator's references first: asking for the frame adds one.
    held = gc.get_referents(generator)
    frame = frame_of(generator)
    if frame is not None:
        yield _NATURAL, frame
        yield from _variables(frame, held)


def _variables(frame: FrameType, held: list[object]) -> _Reached:
    """Yield a frame's variables; held: all referents of the frame, or of its generator."""
    code = _f_code(frame)
    function = _function(code, held)
    yield _NATURAL, function
    if not code.co_flags & _OPTIMIZED:
        # The body of a module or a class has its variables in a mapping, perhaps of a user's class.
        for value in held:
            if type(value) is dict:
                yield from ((Edge(k, Role.VARIABLE), v) for k, v in value.items() if _is_str(k))
        return
    yield from _snapshot(function, held)
    values = _native.memory_frame_variables(frame)
    yield from ((Edge(name, Role.VARIABLE), value) for name, value in values.items())
    yield from _cells(code, function, values, held)


def _snapshot(function: FunctionType | None, held: list[object]) -> _Reached:
    """Yield the copy of the variables that reading ``f_locals`` before 3.13 leaves in a frame.

    The collector visits the copy first, then the frame's function, then the variables.
    """
    for value in held:
        if value is function:
            return
        if type(value) is dict:
            yield SNAPSHOT, value


def _function(code: CodeType, held: list[object]) -> FunctionType | None:
    for value in held:
        if type(value) is FunctionType and _function_code(value) is code:
            return value
    return None


def _cells(
    code: CodeType, function: FunctionType | None, values: dict[str, object], held: list[object]
) -> _Reached:
    """Yield the cells of variables, with the variables' names."""
    free = {}
    if function is not None:
        closure = _function_closure(function) or ()
        free = {id(cell): name for cell, name in zip(closure, code.co_freevars, strict=False)}
    own = list(code.co_cellvars)
    for cell in held:
        if type(cell) is not CellType:
            continue
        name = free.get(id(cell))
        if name is None:
            inside = gc.get_referents(cell)
            name = next((n for n in own if inside and values.get(n) is inside[0]), None)
            if name is None:
                continue
            own.remove(name)
        yield Edge(name, Role.VARIABLE), cell


# ---- functions, exceptions, classes -------------------------------------------------------------

_function_fields = FunctionType.__dict__
_function_code = _function_fields["__code__"].__get__
_function_closure = _function_fields["__closure__"].__get__


def _function_edges(function: FunctionType) -> _Reached:
    yield _NATURAL, _function_closure(function)
    for name in ("__globals__", "__defaults__", "__kwdefaults__"):
        yield Edge(f".{name}", Role.PART), _function_fields[name].__get__(function)
    yield from _attributes(function)


def _cell_edges(cell: CellType) -> _Reached:
    return ((_HIDDEN, value) for value in gc.get_referents(cell))


def _traceback_edges(traceback: TracebackType) -> _Reached:
    return ((_NATURAL, value) for value in gc.get_referents(traceback))


_exception_fields = BaseException.__dict__
_EXCEPTION_LINKS: Final = tuple(
    (Edge(f".{name}", Role.NATURAL), _exception_fields[name].__get__)
    for name in ("__traceback__", "__context__", "__cause__")
)


def _exception_links(error: BaseException) -> _Reached:
    yield from ((edge, get(error)) for edge, get in _EXCEPTION_LINKS)
    yield Edge(".args", Role.PART), _exception_fields["args"].__get__(error)


def _type_edges(kind: type) -> _Reached:
    for name, value in type_dict(kind).items():
        if _is_str(name):
            yield Edge(f".{name}", Role.PART), value


# ---- instances and containers -------------------------------------------------------------------


def _instance_edges(value: object) -> _Reached:
    if is_exception(value):
        yield from _exception_links(value)  # type: ignore[arg-type]
    elif is_dict(value):
        yield from _items(value)  # type: ignore[arg-type]
    elif is_list(value):
        yield from _entries(value)  # type: ignore[arg-type]
    elif is_tuple(value):
        yield from _fields(value)  # type: ignore[arg-type]
    yield from ((Edge(f".{name}", Role.PART), item) for name, item in slots(value))
    yield from _attributes(value)


def _entries(items: list[object]) -> _Reached:
    return ((_ITEM, item) for item in list.__iter__(items))


def _attributes(value: object) -> _Reached:
    attributes = attribute_dict(value)
    if attributes is not None:
        yield _HIDDEN, attributes
        yield from attribute_items(attributes)


def attribute_items(attributes: dict[Any, object]) -> _Reached:
    """Yield the attributes in the dict of an instance, a function or a module."""
    for name, value in dict.items(attributes):
        if _is_str(name):
            yield Edge(f".{name}", Role.PART), value


def _items(mapping: dict[Any, object]) -> _Reached:
    for key, value in dict.items(mapping):
        yield Edge(f"[{_key(key)}]", Role.PART), value
        yield _ITEM, key


def _key(key: object) -> str:
    if _is_str(key) or type(key) is int:
        return repr(key)
    return f"<{type_name(type(key))}>"


def _fields(items: tuple[object, ...]) -> _Reached:
    for number, item in enumerate(tuple.__iter__(items)):
        yield Edge(f"[{number}]", Role.INDEX), item


def _collection_edges(items: object) -> _Reached:
    return ((_ITEM, item) for item in gc.get_referents(items))


def _reference_edges(reference: "weakref.ref[Any]") -> _Reached:
    yield Edge(".__callback__", Role.PART), weakref.ref.__dict__["__callback__"].__get__(reference)


def _is_str(value: object) -> bool:
    return type(value) is str


_READERS: Final[dict[int, Callable[[Any], _Reached]]] = {
    id(FrameType): _frame_edges,
    id(GeneratorType): _generator_edges,
    id(CoroutineType): _generator_edges,
    id(AsyncGeneratorType): _generator_edges,
    id(FunctionType): _function_edges,
    id(CellType): _cell_edges,
    id(TracebackType): _traceback_edges,
    id(dict): _items,
    id(list): _collection_edges,
    id(tuple): _fields,
    id(set): _collection_edges,
    id(frozenset): _collection_edges,
    id(collections.deque): _collection_edges,
    id(weakref.ref): _reference_edges,
}
