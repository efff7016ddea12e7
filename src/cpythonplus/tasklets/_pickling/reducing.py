"""Pickles of tasklets: their content, and how loading makes a tasklet of it.

A tasklet reduces to its state, a tuple:

    (format, (3, minor), flags, tempval, frames, handled, links, call, channel, attributes, decimal)

    frames      captured frames, outermost first, or None: _interp/saved_frames/frame_capture.h
    handled     the exception that is being handled outside of generators, or None
    links       (exception, cause, context, suppress, whether it has a traceback) of exceptions that
                the frames hold, because pickle drops these
    call        (func, args, kwargs) of a tasklet that has not begun, or None
    channel     the one that it is blocked on, or None.  The channel's own state has its queue
    attributes  those of an instance of a subclass, or None
    decimal     the decimal context, or None

The interpreter's instructions and their offsets differ between minor versions, so a pickle of
another one is refused before anything is restored.
"""

import copyreg
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import (
    AsyncExitStack,
    ExitStack,
    _GeneratorContextManager,
    aclosing,
    closing,
    nullcontext,
    suppress,
)
from functools import partial
from pickle import PicklingError, UnpicklingError
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    TracebackType,
)
from typing import Any

from cpythonplus import _native
from cpythonplus.tasklets._pickling import dispatching, iterators  # noqa: F401  # reducers
from cpythonplus.tasklets._pickling.code import VERSION, cell_by_name, name_of, version_text
from cpythonplus.tasklets._pickling.wrapping import (
    PLAIN,
    are_plain,
    is_wrapped,
    owner,
    reduce_as,
    refusal,
    wrap,
    wrap_as,
    wrap_owner,
    wrapped,
)

FORMAT, _ITEMS = 1, 11
ATOMIC, IGNORE_NESTING, BLOCK_TRAP, ALIVE, BLOCKED = 1, 2, 4, 8, 16

Frame = tuple[Any, int, bytes, tuple[Any, ...], Any]
"""Owner, offset, kinds, values, handled exception."""


def initialise(made: Any, init: Any) -> Any:
    """Do what the call of a class does; only its `__init__` is a Python function."""
    returned = init()
    if returned is not None:
        raise TypeError(f"__init__() should return None, not {type(returned).__name__!r}")
    return made


_native.tasklets_capture_prepare(initialise)


def _name_of(code: CodeType, kinds: bytes, index: int) -> str:
    """Return the name of the value at an index of a captured frame."""
    places = [place for place, kind in enumerate(kinds) if kind != ord("n")]
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    names = [*code.co_varnames, *cells, *code.co_freevars]
    place = places[index]
    return f"local {names[place]!r}" if place < len(names) else "an operand"


def _refusal_within(value: Any, around: frozenset[int] = frozenset()) -> str | None:
    """Return what refusal() does, also for the values of variables shared with inner functions.

    around: ids of the functions and cells that led here.
    """
    if id(value) in around or is_wrapped(value):
        return None
    if type(value) is CellType:
        with suppress(ValueError):  # the cell is empty
            return _refusal_within(value.cell_contents, around | {id(value)})
    elif type(value) is FunctionType and value.__closure__ and name_of(value) is None:
        for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
            why = _refusal_within(cell, around | {id(value)})
            if why is not None:
                return f"variable {name!r} of {value.__qualname__}(): {why}"
    else:
        return refusal(value)
    return None


def check(
    function: FunctionType | None,
    frame: Frame,
    refusal: Callable[[Any], str | None] = _refusal_within,
) -> None:
    """Raise PicklingError that names the first value that cannot be pickled, or is refused."""
    _, offset, kinds, values, _ = frame
    for index, value in enumerate(values):
        why = refusal(value)
        if why is not None:
            assert function is not None  # noqa: S101  # a frame has one
            code = function.__code__
            at = ~offset if offset < 0 else offset
            lines = (line for start, end, line in code.co_lines() if start <= at < end)
            raise PicklingError(
                f"{_name_of(code, kinds, index)} of {code.co_qualname}() "
                f"line {next(lines, 0)}: {why}"
            )


def _made_apart(frames: tuple[Frame, ...]) -> Iterator[Any]:
    """Make generators of a chain without their frames, which the chain has already."""
    for first, *_ in frames:
        if type(first) is not FunctionType:
            yield wrap_as(first, partial(_made, first))


def _named_cells(function: FunctionType | None) -> Iterator[Any]:
    """Pickle variables around a function that is pickled by name (a decorator's) by name too.

    Such variables belong to the function of the other process: a lock, a counter.
    """
    cells = function.__closure__ if function is not None else None
    name = name_of(function) if function is not None and cells else None
    if name is not None:
        for index, cell in enumerate(cells or ()):
            yield wrap_as(cell, partial(_reduced_cell, (*name, index)))


def _reduced_cell(name: tuple[Any, ...]) -> tuple[Any, ...]:
    return cell_by_name, name


def function_of(first: Any) -> FunctionType | None:
    """Return the function of a frame, whose first item is the function or a generator."""
    return first if type(first) is FunctionType else _native.generator_function(first)


def _frame(frame: Frame) -> Frame:
    first, offset, kinds, values, handled = frame
    if not PLAIN.issuperset(map(type, values)):
        check(function_of(first), frame)
    first = wrap_owner(first) if type(first) is FunctionType else wrap(first)
    return first, offset, kinds, wrapped(values), wrap(handled)


def _links(found: list[BaseException]) -> tuple[Any, ...] | None:
    """Return the links of these exceptions and of those that they refer to."""
    links, seen = [], set()
    while found:
        one = found.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        others = [each for each in (one.__cause__, one.__context__) if each is not None]
        if isinstance(one, BaseExceptionGroup):
            found += one.exceptions
        was_raised = one.__traceback__ is not None
        if others or was_raised or one.__suppress_context__:
            rest = wrap(one.__cause__), wrap(one.__context__), one.__suppress_context__
            links.append((wrap(one), *rest, was_raised))
            found += others
    return tuple(links) or None


def raised_before_it_was_pickled() -> TracebackType:
    """Make a traceback that stands for that of a pickled exception: `except*` needs one."""
    # The function has returned by the time it is used; it is called once, and the result kept.
    frame = sys._getframe()  # noqa: SLF001, CYC106
    return TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


_ELSEWHERE = raised_before_it_was_pickled()


def _link(links: tuple[Any, ...] | None) -> None:
    for one, cause, context, suppressed, was_raised in links or ():
        one.__cause__, one.__context__, one.__suppress_context__ = cause, context, suppressed
        if was_raised and one.__traceback__ is None:
            one.__traceback__ = _ELSEWHERE


def _exceptions(frames: tuple[Frame, ...], handled: BaseException | None) -> list[BaseException]:
    """Return the exceptions that lie in frames."""
    found = [] if handled is None else [handled]
    for _, _, _, values, exception in frames:
        if exception is not None:
            found.append(exception)
        if not PLAIN.issuperset(map(type, values)):
            for each in values:
                if isinstance(each, BaseException):
                    found.append(each)
                elif type(each) is list and each and isinstance(each[0], BaseException):
                    # The list may be an operand: the exceptions that `except*` clauses have raised.
                    found += [one for one in each if isinstance(one, BaseException)]
    return found


def _simple(frames: tuple[Frame, ...]) -> tuple[Any, ...] | None:
    """Return the frames if they are functions' and pickle can write all their values; else None."""
    written = []
    for first, offset, kinds, values, _ in frames:
        if type(first) is not FunctionType or not are_plain(values):
            return None
        written.append((wrap_owner(first), offset, kinds, values, None))
    return tuple(written)


def _decimal_context(task: _native.tasklet) -> Any:
    """Return the tasklet's decimal context; its module registers reducers of local contexts."""
    if "decimal" not in sys.modules:
        return None
    from cpythonplus.tasklets._pickling.decimals import decimal_context

    return decimal_context(task)


def reduce_tasklet(task: _native.tasklet) -> tuple[Any, ...]:
    """Return the result of `__reduce__`; PicklingError names a value that cannot be pickled."""
    flags, tempval, frames, handled, call, channel = _native.tasklets_capture(task, PicklingError)
    links = None
    simple = _simple(frames) if frames is not None and handled is None else None
    if simple is not None:
        frames = simple
    elif frames is not None:
        exceptions = _exceptions(frames, handled)
        links = _links(exceptions) if exceptions else None
        apart = list(_made_apart(frames))  # these wrappers must live while the others are made
        for first, *_ in frames:
            apart += _named_cells(function_of(first))
        frames = tuple(map(_frame, frames))
        del apart
        handled = wrap(handled)
    elif call is not None:
        call = wrapped(call)
    kind = type(task)
    attributes = None if kind is _native.tasklet else getattr(task, "__dict__", None) or None
    if type(tempval) not in PLAIN:
        tempval = wrap(tempval)
    rest = links, call, channel, attributes, _decimal_context(task) if flags & ALIVE else None
    state = FORMAT, VERSION, flags, tempval, frames, handled, *rest
    return copyreg.__newobj__, (kind,), state  # type: ignore[attr-defined]


def set_tasklet_state(task: _native.tasklet, state: Any) -> None:
    """Give a new tasklet the state of `reduce_tasklet`; UnpicklingError if it does not fit."""
    if type(state) is not tuple or len(state) != _ITEMS or state[0] != FORMAT:
        raise UnpicklingError("not the state of a tasklet, or of another release of cpythonplus")
    _, version, flags, tempval, frames, handled, links, call, _, attributes, within = state
    if version != VERSION:
        raise UnpicklingError(
            f"a tasklet was pickled by Python {version_text(version)}, "
            f"and this is Python {version_text(VERSION)}"
        )
    try:
        if frames is not None:
            frames = tuple([(owner(first), *rest) for first, *rest in frames])
        _link(links)
        restore(task, flags, tempval, frames=frames, handled=handled, call=call)
        if within is not None:
            from cpythonplus.tasklets._pickling.decimals import set_decimal_context

            set_decimal_context(task, within)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(str(error)) from None
    if attributes:
        task.__dict__.update(attributes)


def restore(
    task: _native.tasklet, flags: int, tempval: Any, *, frames: Any, handled: Any, call: Any
) -> None:
    """Restore the state; TypeError or ValueError if it does not fit."""
    if frames is not None:
        _native.tasklets_restore(task, frames, handled, tempval)
    elif call is not None:
        func, args, kwargs = call
        task.bind(func, args if args is not None else (), kwargs)
    task.tempval = tempval
    task.set_atomic(bool(flags & ATOMIC))
    task.set_ignore_nesting(bool(flags & IGNORE_NESTING))
    task.block_trap = bool(flags & BLOCK_TRAP)


def reduce_channel(channel: _native.channel) -> tuple[Any, ...]:
    """Return the result of `__reduce__`: with the tasklets that wait in it, in their order."""
    direction, waiting = _native.channel_waiting(channel)
    flags = channel.preference, channel.schedule_all, channel.closing
    attributes = getattr(channel, "__dict__", None) or None
    state = FORMAT, direction, flags, waiting, attributes
    return copyreg.__newobj__, (type(channel),), state  # type: ignore[attr-defined]


def set_channel_state(channel: _native.channel, state: Any) -> None:
    """Give a new channel the state of `reduce_channel`; UnpicklingError if it does not fit."""
    if type(state) is not tuple or state[:1] != (FORMAT,):
        raise UnpicklingError("not the state of a channel, or of another release of cpythonplus")
    try:
        _, direction, (preference, schedule_all, closing), waiting, attributes = state
        _native.channel_restore(channel, waiting, direction)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(str(error)) from None
    channel.preference, channel.schedule_all = preference, schedule_all
    if closing:
        channel.close()
    if attributes:
        channel.__dict__.update(attributes)


def reduce_bomb(bomb: _native.bomb) -> tuple[Any, ...]:
    """Return the result of `__reduce__`, without the traceback."""
    return _native.bomb, (bomb.type, bomb.value, None)


# ---- generators ---------------------------------------------------------------------------------


def _ended() -> Iterator[None]:
    yield  # stands for a generator that has ended, whose function is not known


async def _ended_coroutine() -> None:
    """Stands for a coroutine that has ended."""


def make_generator(
    function: Any,
    name: str,
    qualname: str,
    is_coroutine: bool = False,  # noqa: FBT001, FBT002  # pickled by position
) -> Any:
    """Make a new generator or coroutine of a function; if that is None, an ended one."""
    ended = _ended_coroutine if is_coroutine else _ended
    made = _native.generator_make(ended if function is None else owner(function))
    made.__name__, made.__qualname__ = name, qualname
    if function is None:
        made.close()
    return made


def set_generator_state(generator: Any, state: Any) -> None:
    """Called by pickle with a generator that was just made."""
    try:
        captured, links = state
        _link(links)
        _native.generator_restore(generator, captured)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(str(error)) from None


def _made(generator: Any) -> tuple[Any, ...]:
    function = _native.generator_function(generator)
    names = generator.__name__, generator.__qualname__
    if function is None and type(generator) is CoroutineType:
        return make_generator, (None, *names, True)
    return make_generator, (None if function is None else wrap_owner(function), *names)


def reduce_generator(generator: Any, _: Any = None) -> tuple[Any, ...]:
    """Return the result of `__reduce__` for a generator or coroutine that does not run."""
    state = _native.generator_capture(generator, PicklingError)
    made = _made(generator)
    if state is None:
        return made
    offset, kinds, values, handled, number = state
    exceptions = _exceptions(((None, offset, kinds, values, None),), handled)
    links = _links(exceptions) if exceptions else None
    cells = list(_named_cells(_native.generator_function(generator)))  # kept for wrapped() below
    state = (offset, kinds, wrapped(values), wrap(handled), number), links
    del cells
    return *made, state, None, None, set_generator_state


def _made_iterator(coroutine: Any) -> Any:
    return coroutine.__await__()


def _reduce_coroutine_iterator(iterator: Any, _: Any) -> tuple[Any, ...]:
    """Reduce the result of `coroutine.__await__()`, which has no attribute for the coroutine."""
    (coroutine,) = gc.get_referents(iterator)
    return _made_iterator, (wrap(coroutine),)


def _reduce_traceback(_: TracebackType, __: Any) -> tuple[Any, ...]:
    """Reduce a traceback without its frames, which have ended; each `__exit__` has one."""
    return raised_before_it_was_pickled, ()


def _made_manager(kind: type[Any], state: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


def _reduce_manager(manager: Any, wrap: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Reduce a manager of contextlib: a generator or a local function lies in an attribute."""
    state = {name: wrap(value) for name, value in vars(manager).items()}
    return _made_manager, (type(manager), state)


def _made_method(function: Any, instance: Any) -> MethodType:
    return MethodType(function, instance)


def _is_found(method: MethodType) -> bool:
    """Return whether the object has the method by the function's name: pickle writes it so."""
    it, function = method.__self__, method.__func__
    name = getattr(function, "__name__", "")
    for each in (it if isinstance(it, type) else type(it)).__mro__:
        if name in vars(each):
            found = vars(each)[name]
            break
    else:
        return False
    if isinstance(it, type):
        return isinstance(found, classmethod) and found.__func__ is function
    return found is function and name not in getattr(it, "__dict__", ())


def _reduce_method(method: MethodType, wrap: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Reduce a method: pickle would look for the function by its name in the object."""
    return _made_method, (wrap(method.__func__), wrap(method.__self__))


def _is_free(method: Any) -> bool:
    """Return whether a function in C belongs to a module, not to an object."""
    return method.__self__ is None or isinstance(method.__self__, ModuleType)


def _reduce_method_in_c(method: Any, wrap: Callable[[Any], Any]) -> Any:
    """Reduce `items.append`, `iterator.__next__`: a deep copy would share the object."""
    if _is_free(method):
        return method.__name__  # which pickle looks for
    return getattr, (wrap(method.__self__), method.__name__)


def _always(_: Any) -> bool:
    return True


reduce_as(MethodType, _reduce_method, pickled=_is_found)
_kind: Any
for _kind in (BuiltinMethodType, MethodWrapperType):
    reduce_as(_kind, _reduce_method_in_c, pickled=_is_free)
reduce_as(_GeneratorContextManager, _reduce_manager)
for _kind in (AsyncExitStack, ExitStack, aclosing, closing, nullcontext):
    reduce_as(_kind, _reduce_manager, pickled=_always)
reduce_as(GeneratorType, reduce_generator)
reduce_as(CoroutineType, reduce_generator)
reduce_as(TracebackType, _reduce_traceback)
_coroutine = _ended_coroutine()
CoroutineIteratorType: type = type(_coroutine.__await__())
reduce_as(CoroutineIteratorType, _reduce_coroutine_iterator)
_coroutine.close()
