"""Keeps exceptions, or hands them on, without keeping the functions that they went through.

The traceback of an exception holds the frames that it went through, with all their variables, and
each frame holds the frames of its callers. If one of these variables is the exception, there is a
cycle. Frames that only tell the place, without variables and callers, make none.
"""

from __future__ import annotations  # the reference shows them as they are written

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import CodeType, FrameType, MappingProxyType, TracebackType
from typing import Any, Generic, TypeVar

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus._base.stacks import outwards
from cpythonplus._native import reraise

__all__ = ["Outcome", "catch", "detach", "drop", "reraise"]

_T = TypeVar("_T")
_Error = TypeVar("_Error", bound=BaseException)

_NO_KEYWORDS: Mapping[str, Any] = MappingProxyType({})

# A class may have properties of the same names, which would run code.
_TRACEBACK = BaseException.__dict__["__traceback__"]
_CAUSE = BaseException.__dict__["__cause__"]
_CONTEXT = BaseException.__dict__["__context__"]
_LINKS = (_CAUSE, _CONTEXT)
_MEMBERS = BaseExceptionGroup.__dict__["exceptions"]

# Globals that find the source of a module that does not come from a file.
_SOURCE_NAMES = ("__name__", "__loader__", "__spec__")


class Outcome(Generic[_T]):
    """The result of a call: a value or an exception; `catch` makes them.

    It holds no frame, so keeping it makes no cycle.
    """

    __slots__ = ("_exception", "_ok", "_traceback", "_value")

    def __init__(self, value: _T | None, exception: BaseException | None) -> None:
        self._ok = exception is None
        self._value = value
        self._exception = exception
        self._traceback = None if exception is None else _TRACEBACK.__get__(exception)

    @property
    def ok(self) -> bool:
        """Whether the call returned."""
        return self._ok

    @property
    def value(self) -> _T:
        """The value that the call returned; after an exception this raises, as `reraise` does."""
        self.reraise()
        return self._value  # type: ignore[return-value]

    @property
    def exception(self) -> BaseException | None:
        """The exception, as `detach` leaves it; None for a value, and once reraised."""
        return self._exception

    @property
    def trace(self) -> tuple[Place, ...]:
        """The frames of the exception, the outermost function first; empty for a value."""
        return tuple(
            Place(
                entry.tb_frame.f_code.co_filename,
                entry.tb_lineno or 0,
                entry.tb_frame.f_code.co_qualname,
            )
            for entry in _entries(self._traceback)
        )

    def reraise(self) -> None:
        """Raise the exception and forget it; do nothing if there is none.

        A second time it raises RuntimeError: an outcome that kept what it raises would be part of
        a cycle.
        """
        if self._ok:
            return
        exception, self._exception = self._exception, None
        if exception is None:
            raise RuntimeError("the exception of this outcome has been raised before")
        reraise(exception)

    def __repr__(self) -> str:
        if self._ok:
            return "<Outcome: a value>"
        kind = type(self._exception).__qualname__ if self._exception else "raised again"
        return f"<Outcome: {kind}>"


def drop(e: BaseException) -> None:
    """Release all objects of an exception's traceback, when it will no longer be read.

    Takes the traceback off and clears the variables of its frames, except functions that are
    running, and generators that may go on. Does the same for the exceptions that it was raised from
    or during, and for the members of a group. An exception that the caller or a function further
    out may still be handling is left unchanged, and `e` loses its link to it.

    Raises TypeError for something that is no exception.
    """
    _check(e, "drop")
    tracebacks = []
    for one in _separated(e):
        tracebacks.append(_TRACEBACK.__get__(one))
        _TRACEBACK.__set__(one, None)
    for traceback in tracebacks:
        for entry in _entries(traceback):
            _clear(entry.tb_frame)


def detach(e: _Error) -> _Error:
    """Make an exception hold no frames, to be stored; return it.

    Its traceback is replaced by a copy that prints the same and whose frames have no variables and
    no callers. The same for the exceptions that it was raised from or during, and for the members
    of a group.

    Raises TypeError for something that is no exception.
    """
    _check(e, "detach")
    for one in chain(e):
        _TRACEBACK.__set__(one, _copied(_TRACEBACK.__get__(one)))
    return e


def catch(
    call: Callable[..., _T],
    *kinds: type[BaseException],
    args: Iterable[Any] = (),
    kwargs: Mapping[str, Any] = _NO_KEYWORDS,
) -> Outcome[_T]:
    """Call something and return its value, or its exception, as an Outcome.

    call: called with `args` and `kwargs`.
    kinds: the exceptions that are caught, Exception if none is given; others are raised.

    The exception is kept as `detach` leaves it, and without a link to one that the caller is
    handling: that is the caller's. Raises TypeError if one of `kinds` is no class of
    exceptions.
    """
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"catch() takes classes of exceptions, not {type(kind).__name__}")
    wanted = kinds or (Exception,)
    handled = sys.exception()
    try:
        value = call(*args, **kwargs)
    except wanted as e:
        _leave_out_first(e)
        if handled is not None:
            _unlink(e, handled)
        return Outcome(None, detach(e))
    return Outcome(value, None)


def chain(e: BaseException) -> list[BaseException]:
    """Return an exception, those it was raised from or during, and members of groups, each once."""
    found = {id(e): e}
    todo = [e]
    while todo:
        one = todo.pop()
        others = [link.__get__(one) for link in _LINKS]
        if issubclass(type(one), BaseExceptionGroup):
            others += _MEMBERS.__get__(one)
        for other in others:
            if other is not None and id(other) not in found:
                found[id(other)] = other
                todo.append(other)
    return list(found.values())


def frames(e: BaseException) -> list[FrameType]:
    """Return the frames on the tracebacks of a whole chain, each once."""
    found = {}
    for one in chain(e):
        for entry in _entries(_TRACEBACK.__get__(one)):
            found[id(entry.tb_frame)] = entry.tb_frame
    return list(found.values())


def _separated(e: BaseException) -> list[BaseException]:
    """Return the chain without exceptions that may still be handled, and cut the links to these."""
    running = {id(frame) for frame in outwards(sys._getframe())}  # noqa: SLF001 - no other way
    left = {
        id(one)
        for one in chain(e)
        if one is not e and _may_be_handled(_TRACEBACK.__get__(one), running)
    }
    for one in chain(e):
        for link in _LINKS:
            if id(one) not in left and id(link.__get__(one)) in left:
                link.__set__(one, None)
    # Members of a group cannot be removed from it.
    return [one for one in chain(e) if id(one) not in left]


def _may_be_handled(traceback: TracebackType | None, running: set[int]) -> bool:
    """Return whether the outermost function on the traceback, which caught it, goes on."""
    if traceback is None:
        return False
    frame = traceback.tb_frame
    return id(frame) in running or _native.memory_frame_generator(frame) is not None


def _unlink(e: BaseException, context: BaseException) -> None:
    for one in chain(e):
        if _CONTEXT.__get__(one) is context:
            _CONTEXT.__set__(one, None)


def _entries(traceback: TracebackType | None) -> Iterable[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _copied(traceback: TracebackType | None) -> TracebackType | None:
    copy = None
    for entry in reversed(list(_entries(traceback))):
        line = -1 if entry.tb_lineno is None else entry.tb_lineno
        copy = TracebackType(copy, _bare(entry.tb_frame), entry.tb_lasti, line)
    return copy


def _bare(frame: FrameType) -> FrameType:
    names = {
        name: dict.get(frame.f_globals, name)
        for name in _SOURCE_NAMES
        if dict.__contains__(frame.f_globals, name)
    }
    return _native.memory_bare_frame(_without_cells(frame.f_code), names)


def _without_cells(code: CodeType) -> CodeType:
    """Return code whose frames may be inspected though it never ran and nothing filled its cells.

    Its instructions stay, because they tell the columns, and the variables keep their places.
    """
    if not code.co_freevars:
        return code
    own = [name for name in code.co_cellvars if name not in code.co_varnames]
    names = (*code.co_varnames, *own, *code.co_freevars)
    return code.replace(co_varnames=names, co_nlocals=len(names), co_cellvars=(), co_freevars=())


def _clear(frame: FrameType) -> None:
    # Until 3.12, clearing the frame of a suspended generator closes the generator.
    if _native.memory_frame_generator(frame) is None:
        with suppress(RuntimeError):  # the frame is running
            frame.clear()


def _leave_out_first(e: BaseException) -> None:
    """Remove the function that caught `e` from its traceback, unless that is the only one."""
    traceback = _TRACEBACK.__get__(e)
    if traceback is not None and traceback.tb_next is not None:
        _TRACEBACK.__set__(e, traceback.tb_next)


def _check(e: object, name: str) -> None:
    if not issubclass(type(e), BaseException):
        raise TypeError(f"{name}() takes an exception, not {type(e).__name__}")
