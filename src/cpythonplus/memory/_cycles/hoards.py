"""Exceptions that are still referenced, and the objects that their tracebacks keep."""

import sys
from types import TracebackType

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus.memory._cycles.holders import every_object, find_holders
from cpythonplus.memory._cycles.looking import traceback_of, type_qualname
from cpythonplus.memory._cycles.report import Hoard

_LARGE_BYTES = 16 * 1024
"""Smaller hoards are left out."""
_NAMED_MAX = 500
"""The most exceptions whose holder is looked for; others count with those of their line."""


def find_hoards(min_bytes: int = _LARGE_BYTES) -> tuple[Hoard, ...]:
    """Return the exceptions that are still referenced, those that keep most first.

    An exception keeps its traceback, the traceback its frames, and these all variables of their
    functions. Only objects that would be freed with the traceback count. Exceptions of one type
    from one line, held at one place, are one hoard. Hoards that keep less than `min_bytes` together
    are left out, and so are the exceptions that the calling thread is handling.

    Looks at every object that the collector knows, several times: 0.1 s for a million of them.
    Objects hidden by `gc.freeze()` are seen, too. Runs no user code.
    """
    handled = _handled_here()
    errors = [
        error
        for error in _native.memory_exceptions_among(every_object(BaseException))
        if id(error) not in handled
    ]
    held = [_native.memory_traceback_holds(error) for error in errors]
    if sum(size_bytes for _, size_bytes in held) < min_bytes:
        return ()
    largest = sorted(range(len(errors)), key=lambda i: -held[i][1])[:_NAMED_MAX]
    targets = [errors[i] for i in largest]
    holders = find_holders(every_object(), targets, [errors, targets])
    groups: dict[tuple[str, Place, str], list[int]] = {}
    for i, holder in zip(largest, holders, strict=True):
        error = errors[i]
        place, frames = _origin(traceback_of(error))
        group = (type_qualname(type(error)), place, holder)
        total = groups.setdefault(group, [0, 0, 0, 0])
        for k, number in enumerate((1, frames, *held[i])):
            total[k] += number
    _add_others(groups, errors, held, {*largest})
    hoards = [Hoard(*group, *total) for group, total in groups.items() if total[3] >= min_bytes]
    return tuple(sorted(hoards, key=lambda hoard: -hoard.size_bytes))


def _add_others(
    groups: dict[tuple[str, Place, str], list[int]],
    errors: list[BaseException],
    held: list[tuple[int, int]],
    named: set[int],
) -> None:
    """Count exceptions without a known holder with the largest group of their type and line."""
    most: dict[tuple[str, Place], tuple[str, Place, str]] = {}
    for group in sorted(groups, key=lambda each: groups[each][0]):
        most[group[:2]] = group
    for i, error in enumerate(errors):
        if i in named:
            continue
        place, frames = _origin(traceback_of(error))
        kind = type_qualname(type(error)), place
        total = groups.setdefault(most.get(kind, (*kind, "?")), [0, 0, 0, 0])
        for k, number in enumerate((1, frames, *held[i])):
            total[k] += number


def _handled_here() -> set[int]:
    """Return the identities of the exceptions that this thread handles, and of their chains."""
    found: set[int] = set()
    waiting = [sys.exc_info()[1]]
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in found:
            continue
        found.add(id(error))
        waiting += [_cause_of(error), _context_of(error)]
    return found


_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__


def _origin(traceback: TracebackType) -> tuple[Place, int]:
    """Return the place where it was raised, and the number of frames."""
    frames = 1
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
        frames += 1
    code = traceback.tb_frame.f_code
    return Place(code.co_filename, traceback.tb_lineno or 0, code.co_qualname), frames
