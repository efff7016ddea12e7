"""Suggests an option, in one line, if an exception with something of ours ended the program.

It reads the exception that the interpreter notes before printing (`sys.last_value`), when the
process ends. Rejected: a `sys.excepthook` of ours. Programs would see it in place of
`sys.__excepthook__`, and programs that set their own would lose it.

Something of ours is: a frame of code that runs under an unmodified program; an object of a native
type that the exception carries; the name of a native type in its message, as in "cannot pickle 'X'
object". The exceptions that it was raised from count, too. Frames of other packages of ours do not
count: such a program imports them itself, and would not work without.
"""

# The program may have changed anything by now, so import as little as possible.
# ruff: noqa: PTH118, PTH120

import os
import sys

from cpythonplus._cli.features import COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import TracebackType

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_OURS = tuple(os.path.join(_PACKAGE, room, "") for room in ("_base", "_cli", "gil", "threads"))
"""Folders with code that `run` puts under an unmodified program."""
MOST_EXCEPTIONS = 1000
"""Causes, contexts and members of groups that are looked at."""


def line(value: BaseException, enabled: "Collection[str]") -> str | None:
    """Return the line about an exception that ended the program, None for none.

    enabled: names of the features that are on.
    """
    if not _ended_the_program(value):
        return None
    where = next((found for each in _chain(value) if (found := _ours_in(each))), None)
    switches = [f"--no-{name}" for name in ("threads", "gil") if name in enabled]
    if where is None or not switches:
        return None
    return (
        f"{COMMAND}: cpythonplus code is part of this error ({where}): if the program works under "
        f"plain python, try {' or '.join(switches)}, and please report it"
    )


def _ended_the_program(value: BaseException) -> bool:
    """Whether it left the first frame of the thread: test runners and shells note others there."""
    trace = value.__traceback__
    return trace is not None and trace.tb_frame.f_back is None and not hasattr(sys, "ps1")


def _chain(value: BaseException) -> "Iterator[BaseException]":
    """Yield an exception and those that it was raised from or holds, each once."""
    waiting, seen = [value], {id(value)}
    for _ in range(MOST_EXCEPTIONS):
        if not waiting:
            return
        each = waiting.pop(0)
        yield each
        members = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        for other in (each.__cause__, each.__context__, *members):
            if other is not None and id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def _ours_in(value: BaseException) -> str | None:
    """Return our part in an exception, None if there is none. Runs nothing of the program."""
    carried = list(BaseException.__dict__["args"].__get__(value))
    if isinstance(value, AttributeError):
        carried.append(AttributeError.__dict__["obj"].__get__(value))
    natives = _natives()
    # The second form is the name that C code uses, from the type's creation.
    names = [*map(_name, natives), *(f"cpythonplus.threads.{each.__name__}" for each in natives)]
    for each in carried:
        kind = next((base for base in type(each).__mro__ if base in natives), None)
        if kind is not None:
            return _name(kind)
        if type(each) is str:
            name = next((name for name in names if name in each), None)
            if name is not None:
                return name
    return _frame_of_ours(value.__traceback__)


def _frame_of_ours(trace: "TracebackType | None") -> str | None:
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_OURS):
            return (
                f"{os.path.relpath(code.co_filename, os.path.dirname(_PACKAGE))}:{trace.tb_lineno}"
            )
        trace = trace.tb_next
    return None


def _natives() -> "tuple[type, ...]":
    """Return the types that replace standard ones, if there are any."""
    primitives = sys.modules.get("cpythonplus.threads._primitives")
    names = getattr(primitives, "__all__", ())
    found = (getattr(primitives, name, None) for name in names)
    return tuple(
        each for each in found if isinstance(each, type) and not issubclass(each, BaseException)
    )


def _name(kind: type) -> str:
    """Return a type's name as in messages: `threading.Lock`."""
    return f"{kind.__module__}.{kind.__qualname__}"
