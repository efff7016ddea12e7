"""Copies of tasklets, which go on from the same state independently.

A copy has its own state: the frames, the cells that they share with inner functions, those
functions, generators and iterators. All other objects are shared, as in any shallow copy.
`copy.deepcopy` copies all objects, as a pickle does.
"""

import copy
import gc
import pickle
from contextlib import suppress
from contextvars import Context, Token, copy_context
from pickle import PicklingError
from types import (
    BuiltinMethodType,
    CellType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
)
from typing import Any

from cpythonplus import _native
from cpythonplus.tasklets._pickling.code import has_name
from cpythonplus.tasklets._pickling.iterators import KINDS, reduced
from cpythonplus.tasklets._pickling.reducing import (
    CoroutineIteratorType,
    check,
    function_of,
    make_generator,
    restore,
)
from cpythonplus.tasklets._pickling.wrapping import CONTAINERS, leads, remade

_DIRECT = -1
"""The key of a memo for the ids of the iterators and generators that lie directly in frames."""


def _copied(obj: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of an object that belongs to the state of frames; any other object itself."""
    kind = type(obj)
    if kind in CONTAINERS:
        return _copied_container(obj, memo)
    if kind not in _COPIERS and not _is_iterator(kind):
        return obj
    if id(obj) not in memo:
        memo[id(obj)] = _COPIERS.get(kind, _copied_iterator)(obj, memo)
    return memo[id(obj)]


def _copied_container(container: Any, memo: dict[int, Any]) -> Any:
    """Copy a container if an item of it belongs to the state of the frames; else return it."""
    if id(container) in memo or not leads(container, lambda each: _is_of_state(each, memo)):
        return memo.get(id(container), container)
    function, arguments, *rest = remade(container, lambda each: _copied_inside(each, memo))
    if id(container) in memo:  # the container refers to itself
        return memo[id(container)]
    made = memo[id(container)] = function(*arguments)
    _, items, pairs = (*rest, None, None, None)[:3]
    for each in items or ():
        made.append(each)
    for key, value in pairs or ():
        made[key] = value
    return made


def _is_of_state(obj: Any, memo: dict[int, Any]) -> bool:
    """Return whether the copied frames have the object, or share a variable with it."""
    if memo.get(id(obj), obj) is not obj or id(obj) in memo[_DIRECT]:
        return True
    kind = type(obj)
    if kind in CONTAINERS:
        return leads(obj, lambda each: _is_of_state(each, memo))
    if kind in (BuiltinMethodType, MethodType, MethodWrapperType):
        parts = obj.__self__, getattr(obj, "__func__", None)
        return any(_is_of_state(each, memo) for each in parts)
    if kind in (GeneratorType, CoroutineType):
        obj, kind = _native.generator_function(obj), FunctionType
    elif _is_iterator(kind):
        try:
            _, arguments, state, _ = reduced(obj)
        except PicklingError:
            return False
        return _is_of_state((arguments, state), memo)
    cells = getattr(obj, "__closure__", None) if kind is FunctionType else None
    return any(memo.get(id(cell), cell) is not cell for cell in cells or ())


def _copied_inside(obj: Any, memo: dict[int, Any]) -> Any:
    if type(obj) in CONTAINERS or _is_of_state(obj, memo):
        return _copied(obj, memo)
    return obj


def _copied_method(method: MethodType, memo: dict[int, Any]) -> MethodType:
    return MethodType(_copied(method.__func__, memo), _copied(method.__self__, memo))


def _copied_method_in_c(method: Any, memo: dict[int, Any]) -> Any:
    """Return `iterator.__next__` or `items.append` of the copy, if its object is copied."""
    it = method.__self__
    made = _copied(it, memo)
    return method if made is it else getattr(made, method.__name__)


def _copied_cell(cell: CellType, memo: dict[int, Any]) -> CellType:
    _copy_cells((cell,), memo)
    return memo[id(cell)]  # type: ignore[no-any-return]


def _copied_function(function: FunctionType, memo: dict[int, Any]) -> FunctionType:
    """Copy a function if it shares a variable with a frame that is copied; else return it."""
    cells = function.__closure__ or ()
    if all(memo.get(id(cell), cell) is cell for cell in cells):
        return function
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(_copied(cell, memo) for cell in cells),
    )
    memo[id(function)] = made
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


def _share_named_cells(function: FunctionType | None, memo: dict[int, Any]) -> None:
    """Share the variables around a named function, such as a decorator's: they are not state."""
    if function is not None and function.__closure__ and has_name(function):
        memo.update((id(cell), cell) for cell in function.__closure__)


def _copied_generator(generator: Any, memo: dict[int, Any]) -> Any:
    state = _native.generator_capture(generator, PicklingError)
    function = _native.generator_function(generator)
    is_coroutine = type(generator) is CoroutineType
    made = make_generator(function, generator.__name__, generator.__qualname__, is_coroutine)
    memo[id(generator)] = made
    _share_named_cells(function, memo)
    if state is not None:
        offset, kinds, values, handled, number = state
        values = _copied_values(values, memo)
        _native.generator_restore(made, (offset, kinds, values, handled, number))
    return made


def _copied_coroutine_iterator(iterator: Any, memo: dict[int, Any]) -> Any:
    (coroutine,) = gc.get_referents(iterator)
    return _copied(coroutine, memo).__await__()


def _is_copied(kind: type) -> bool:
    return kind in (GeneratorType, CoroutineType) or _is_iterator(kind)


def _is_iterator(kind: type) -> bool:
    if kind in KINDS:
        return True
    return kind.__module__ in ("builtins", "_collections") and hasattr(kind, "__next__")


def _copied_iterator(iterator: Any, memo: dict[int, Any]) -> Any:
    """Return an iterator that goes on from the same place, over the same object."""
    memo[id(iterator)] = iterator  # in case the iterator refers to itself
    function, arguments, state, set_state = reduced(iterator)
    made = function(*(_copied(each, memo) for each in arguments))
    memo[id(iterator)] = made
    if state is not None:
        set_state(made, _copied_values(state, memo))
    return made


def _copied_values(values: Any, memo: dict[int, Any]) -> Any:
    if type(values) is not tuple:
        return _copied(values, memo)
    _copy_cells(values, memo)
    for each in values:  # copied before containers, which check whether they contain one of these
        if type(each) not in CONTAINERS:
            _copied(each, memo)
    return tuple(_copied(each, memo) for each in values)


def _contents(cell: CellType) -> list[Any]:
    with suppress(ValueError):  # the cell is empty
        return [cell.cell_contents]
    return []


def _copy_cells(values: Any, memo: dict[int, Any]) -> None:
    """Copy cells before all else: functions check whether they share one, even those in cells."""
    cells = [each for each in values if type(each) is CellType and id(each) not in memo]
    for cell in cells:
        memo[id(cell)] = CellType()
    contents = []
    for cell in cells:
        contents += [(memo[id(cell)], each) for each in _contents(cell)]
    contents.sort(key=lambda each: type(each[1]) in CONTAINERS)
    for made, value in contents:
        made.cell_contents = _copied(value, memo)


_COPIERS: dict[type, Any] = {
    BuiltinMethodType: _copied_method_in_c,
    CellType: _copied_cell,
    CoroutineIteratorType: _copied_coroutine_iterator,
    CoroutineType: _copied_generator,
    FunctionType: _copied_function,
    GeneratorType: _copied_generator,
    MethodType: _copied_method,
    MethodWrapperType: _copied_method_in_c,
}


def _why_not(value: Any) -> str | None:
    if type(value) is Token and " used " not in repr(value):
        return "cannot copy a contextvars.Token, which is for the context of one tasklet"
    return None


def _give_context(task: _native.tasklet, made: _native.tasklet) -> Context | None:
    """Give the copy a copy of the context; return that."""
    if task.context_id is None or not task.alive:
        return None
    context: Context = task.context_run(copy_context)
    made.set_context(context)
    return context


def copy_tasklet(task: _native.tasklet) -> _native.tasklet:
    """Return a tasklet that goes on from the same place: `copy.copy(tasklet)`.

    It has its own frames, cells that they share with inner functions, generators and iterators, and
    its own context; all other objects are shared. It is in no queue. PicklingError as for a pickle.
    """
    flags, tempval, frames, handled, call, channel = _native.tasklets_capture(task, PicklingError)
    if channel is not None:
        raise PicklingError("a tasklet that waits in a channel cannot be copied, but pickled")
    made = type(task).__new__(type(task))
    memo: dict[int, Any] = {_DIRECT: set()}
    if frames is not None:
        for frame in frames:
            function = function_of(frame[0])
            check(function, frame, _why_not)
            _share_named_cells(function, memo)
        owners = [_copied_owner(first, memo) for first, *_ in frames]
        values = [each for frame in frames for each in frame[3]]
        contents = [each for cell in values if type(cell) is CellType for each in _contents(cell)]
        memo[_DIRECT] = {id(each) for each in (*values, *contents) if _is_copied(type(each))}
        _copy_cells(values, memo)
        for frame in frames:
            for each in frame[3]:
                if type(each) not in CONTAINERS:
                    _copied(each, memo)
        frames = tuple(
            (first, offset, kinds, _copied_values(values, memo), exception)
            for first, (_, offset, kinds, values, exception) in zip(owners, frames, strict=True)
        )
    restore(made, flags, tempval, frames=frames, handled=handled, call=call)
    _give_context(task, made)
    if attributes := getattr(task, "__dict__", None):
        made.__dict__.update(attributes)
    return made


def _copied_owner(first: Any, memo: dict[int, Any]) -> Any:
    """Make a generator of the chain, to be filled when the chain goes on; a function is kept."""
    if type(first) is FunctionType:
        return first
    function = _native.generator_function(first)
    made = make_generator(function, first.__name__, first.__qualname__)
    memo[id(first)] = made
    return made


def deepcopy_tasklet(task: _native.tasklet, memo: dict[int, Any]) -> _native.tasklet:
    """Return a tasklet that goes on from the same place and shares nothing: `copy.deepcopy()`.

    It has a copy of the context. An object that both the frames and the context hold is one object
    in the copy too; values that only the context holds are shared.
    """
    reduced: Any = task.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    function, arguments, *state = reduced
    made: _native.tasklet = function(*arguments)
    memo[id(task)] = made
    if state:
        made.__setstate__(copy.deepcopy(state[0], memo))
    context = _give_context(task, made)
    for variable, value in list(context.items()) if context is not None else ():
        if id(value) in memo:
            context.run(variable.set, memo[id(value)])  # type: ignore[union-attr]
    return made
