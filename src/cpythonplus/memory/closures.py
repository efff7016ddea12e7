"""Functions inside functions that call themselves or each other, and so keep themselves.

Such a function is a cycle: it holds the cell of its own name, and the cell holds it. Emptying the
cell breaks the cycle; `close` does so at once, `closing` when the function around is done.
"""

from __future__ import annotations  # the reference shows them as they are written

import dis
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from types import CellType, CodeType, FunctionType, MethodType, coroutine
from typing import Any, ParamSpec, TypeVar, cast

from cpythonplus import _native
from cpythonplus.memory.exceptions import frames

__all__ = ["close", "closing"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_COPY_FREE_VARS = dis.opmap["COPY_FREE_VARS"]
_MAKE_CELL = dis.opmap["MAKE_CELL"]
_EXTENDED_ARG = dis.opmap["EXTENDED_ARG"]
_NOP = dis.opmap["NOP"]
_LARGEST_ARGUMENT = 255  # of an instruction of its own
_MOST_WRAPPERS = 1000  # around a function


# ---- closing at once -----------------------------------------------------------------------------


def close(function: Callable[..., object], *, only: Iterable[str] | None = None) -> int:
    """Empty the variables that an inner function has from the functions around it.

    function: a Python function, a method of one, or the wrapper of one, as by
        `functools.lru_cache`, that is not a function itself.
    only: the names of those variables to empty; None: all but `__class__`, which the methods of a
        class share.

    Returns how many had a value; 0 for a function that is not an inner one. After that, a call of
    the function raises NameError if it needs one of them, and so do the others that share them, the
    function around included. Raises TypeError for an object without variables of a Python function,
    and ValueError for a name in `only` that the function does not have.
    """
    plain = _python_function(function)
    cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
    names = set(cells) - {"__class__"} if only is None else set(only)
    unknown = sorted(names - set(cells))
    if unknown:
        raise ValueError(f"{plain.__qualname__}() has no {unknown[0]!r} from an enclosing function")
    return sum(_emptied(cells[name]) for name in sorted(names))


def _python_function(function: object) -> FunctionType:
    inner = function
    left = _MOST_WRAPPERS
    while not isinstance(inner, FunctionType):
        # A wrapper written in C has only `__wrapped__`; one written in Python has cells of its own.
        inner = inner.__func__ if isinstance(inner, MethodType) else _wrapped(inner)
        left -= 1
        if inner is None or not left:  # an object with every attribute has an endless chain
            raise TypeError(f"close() takes a Python function, not {type(function).__name__}")
    return inner


def _wrapped(wrapper: object) -> object:
    return getattr(wrapper, "__wrapped__", None)


def _emptied(cell: CellType) -> bool:
    try:
        content = cell.cell_contents
    except ValueError:
        return False
    # The last reference is released after the cell is empty; this may run any code.
    del cell.cell_contents
    del content
    return True


# ---- closing at the end --------------------------------------------------------------------------


def closing(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function so that its inner recursive functions do not outlive it as garbage.

    When the function has returned or raised, or the generator, coroutine or asynchronous generator
    is exhausted or closed, its variables that only a cycle of inner functions keeps are emptied. An
    inner function that was returned or stored, or that such a function needs, is not changed.

    function: a Python function or method, of any kind; a function without variables that inner
        functions use is returned as it is.

    Name, signature and kind stay; the function itself is `__wrapped__`. A variable that inner
    functions use and that has no value yet raises NameError instead of UnboundLocalError. Raises
    TypeError for an object that is no Python function, and ValueError for a function that has more
    than 255 such variables or whose code begins in an unknown way.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"closing() takes a Python function, not {type(function).__name__}")
    own = _own_cells(function.__code__)
    if not own:
        return function
    opened = _opened(function.__code__, own)
    wrap = _wrap_of(function.__code__.co_flags)
    wrapper = wrap(function, opened, len(own))
    functools.update_wrapper(wrapper, function)
    return cast("Callable[_P, _R]", wrapper)


def _wrap_of(flags: int) -> Callable[[FunctionType, CodeType, int], FunctionType]:
    if flags & inspect.CO_ASYNC_GENERATOR:
        return _wrap_async_generator
    if flags & inspect.CO_COROUTINE:
        return _wrap_coroutine
    if flags & inspect.CO_ITERABLE_COROUTINE:
        return _wrap_generator_coroutine
    return _wrap_generator if flags & inspect.CO_GENERATOR else _wrap_plain


def _cells(function: FunctionType, count: int) -> tuple[CellType, ...]:
    """Return a closure for one call: new cells, and those of the functions around."""
    return (*[CellType() for _ in range(count)], *(function.__closure__ or ()))


def _body(function: FunctionType, code: CodeType, closure: tuple[CellType, ...]) -> FunctionType:
    body = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    body.__kwdefaults__ = function.__kwdefaults__
    return body


def _end(closure: tuple[CellType, ...], count: int, e: BaseException | None = None) -> None:
    try:  # noqa: SIM105 - which needs another frame
        # Finished frames on the traceback of an exception have references that do not count.
        _native.memory_close_cells(closure, count, [] if e is None else frames(e))
    except (MemoryError, RecursionError):
        pass  # the function's exception stays; the collector has to break the cycle


def _wrap_plain(function: FunctionType, code: CodeType, count: int) -> FunctionType:
    def run(*args: object, **kwargs: object) -> object:
        closure = _cells(function, count)
        try:
            result = _body(function, code, closure)(*args, **kwargs)
        except BaseException as e:
            del args, kwargs  # one of them may be the exception
            _end(closure, count, e)
            raise
        _end(closure, count)
        return result

    return cast("FunctionType", run)


def _wrap_coroutine(function: FunctionType, code: CodeType, count: int) -> FunctionType:
    async def run(*args: object, **kwargs: object) -> object:
        closure = _cells(function, count)
        try:
            result = await _body(function, code, closure)(*args, **kwargs)
        except BaseException as e:
            del args, kwargs  # one of them may be the exception
            _end(closure, count, e)
            raise
        _end(closure, count)
        return result

    return cast("FunctionType", run)


def _wrap_generator(function: FunctionType, code: CodeType, count: int) -> FunctionType:
    def run(*args: object, **kwargs: object) -> Generator[Any, Any, Any]:
        closure = _cells(function, count)
        try:
            result = yield from _body(function, code, closure)(*args, **kwargs)
        except BaseException as e:
            del args, kwargs  # one of them may be the exception
            _end(closure, count, e)
            raise
        _end(closure, count)
        return result

    return cast("FunctionType", run)


def _wrap_generator_coroutine(function: FunctionType, code: CodeType, count: int) -> FunctionType:
    return cast("FunctionType", coroutine(_wrap_generator(function, code, count)))


def _wrap_async_generator(function: FunctionType, code: CodeType, count: int) -> FunctionType:
    async def run(*args: object, **kwargs: object) -> AsyncGenerator[Any, Any]:
        closure = _cells(function, count)
        body = _body(function, code, closure)(*args, **kwargs)
        step = body.asend(None)
        try:
            while True:
                try:
                    value = await step
                except StopAsyncIteration:
                    break
                # The same as `yield from`, which asynchronous generators do not have.
                try:
                    sent = yield value
                except GeneratorExit:
                    await body.aclose()
                    raise
                except BaseException as e:  # noqa: BLE001 - it is passed on
                    step = body.athrow(e)
                else:
                    step = body.asend(sent)
        except BaseException as e:
            del args, kwargs, body, step
            _end(closure, count, e)
            raise
        del body, step
        _end(closure, count)

    return cast("FunctionType", run)


# ---- code whose cells come from outside ----------------------------------------------------------


def _own_cells(code: CodeType) -> tuple[str, ...]:
    """Return the variables that inner functions use, except parameters, which have two places."""
    return tuple(name for name in code.co_cellvars if name not in code.co_varnames)


def _layout(code: CodeType) -> tuple[str, ...]:
    """Return all variables in the order of their numbers in instructions."""
    return (*code.co_varnames, *_own_cells(code), *code.co_freevars)


def _opened(code: CodeType, own: tuple[str, ...]) -> CodeType:
    """Return code that takes its own cells from the function's closure instead of making them.

    The variables keep their numbers, because own cells come before those of functions around. So
    only the instructions that make and copy cells change, which are the first ones.
    """
    kept = tuple(name for name in code.co_cellvars if name not in own)
    free = (*own, *code.co_freevars)
    length = _prefix_length(code)
    prefix = _prefix(code, kept, len(free), length)
    opened = code.replace(
        co_cellvars=kept, co_freevars=free, co_code=prefix + code.co_code[length:]
    )
    if _layout(opened) != _layout(code):
        raise _refusal(code)
    return opened


def _prefix_length(code: CodeType) -> int:
    """Return the length of the code that fills a function's cells; raises for unknown code."""
    raw, position, argument = code.co_code, 0, 0
    copied, made, length = 0, [], 0
    while raw[position] in (_EXTENDED_ARG, _COPY_FREE_VARS, _MAKE_CELL):
        instruction, argument = raw[position], argument << 8 | raw[position + 1]
        position += 2
        if instruction == _EXTENDED_ARG:
            continue
        if instruction == _COPY_FREE_VARS:
            copied += argument
        else:
            made.append(argument)
        argument, length = 0, position
    names = _layout(code)
    if copied != len(code.co_freevars) or sorted(made) != sorted(
        map(names.index, code.co_cellvars)
    ):
        raise _refusal(code)
    return length


def _prefix(code: CodeType, kept: tuple[str, ...], free: int, length: int) -> bytes:
    if free > _LARGEST_ARGUMENT:
        raise ValueError(
            f"closing() does not accept a function with {free} variables of inner functions"
        )
    instructions = [(_COPY_FREE_VARS, free)]
    instructions += [(_MAKE_CELL, code.co_varnames.index(name)) for name in kept]
    raw = b""
    for instruction, argument in instructions:
        if argument > _LARGEST_ARGUMENT:
            raw += bytes([_EXTENDED_ARG, argument >> 8])
        raw += bytes([instruction, argument & 0xFF])
    if len(raw) > length:
        raise _refusal(code)
    return raw + bytes([_NOP, 0]) * ((length - len(raw)) // 2)


def _refusal(code: CodeType) -> ValueError:
    return ValueError(
        f"closing() does not recognise the first instructions of {code.co_qualname}()"
    )
