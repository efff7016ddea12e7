"""What to do about a cycle, in a few words."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = [
    "for_class",
    "for_closure",
    "for_exception",
    "for_frame",
    "for_instances",
    "for_namespace",
    "for_snapshot",
]

_NAME: Final = re.compile(r"[^.\[]*")


def for_exception(variable: str, others: Sequence[str] = ()) -> str:
    """Return how to let go of an exception.  others: variables to be cleared with it."""
    name, rest = split(variable)
    if variable == "sys.exception()":
        return "leave the except block before the yield or the await"
    if "." in rest:
        return for_attribute(name, rest)
    names = ", ".join([name, *others])
    if rest and not rest[1:-1].isdecimal():
        return f"keep e.with_traceback(None), or clear {name} on every way out (finally)"
    return f"del {names} on every way out (finally: del {names})"


def for_attribute(name: str, rest: str) -> str:
    """Return how to let go of an exception in an attribute of `name`, or in what that has."""
    attribute = rest[: rest.rindex(".") + 1] + _NAME.match(rest, rest.rindex(".") + 1)[0]  # type: ignore[index]
    private = attribute.rpartition(".")[2].startswith("_")
    if private and name != "self":
        return f"del {name} on every way out (finally: del {name})"
    verb = f"clear {name}{attribute}" if attribute != rest else f"set {name}{attribute} to None"
    return f"{verb} once it was used, or keep e.with_traceback(None)"


def for_snapshot() -> str:
    """Return what to do about a copy of a frame's variables that stays in the frame."""
    return (
        "its f_locals were read, which keeps a copy before 3.13: traceback.clear_frames() after it"
    )


def split(variable: str) -> tuple[str, str]:
    """Return a path's variable, and what follows it."""
    name = _NAME.match(variable)
    end = name.end() if name else 0
    return variable[:end], variable[end:]


def for_closure(variable: str, function: str) -> str:
    """Return how to open a cycle of functions that refer to one another."""
    if variable.endswith("]"):
        container = variable.rpartition("[")[0]
        return f"remove the function from {container} when done, or let it hold a weakref.ref"
    if "." in variable:
        return f"set {variable} to None when done, or let the function hold a weakref.ref"
    where = function.rpartition(".")[2] or "the outer function"
    return f"decorate {where} with @closing, or pass {variable} as an argument"


def for_class(name: str) -> str:
    """Return what to do about a class that is made again and again."""
    return f"make {name} once, at module level, or cache it"


def for_frame(variable: str) -> str:
    """Return how to let go of a frame or of what runs in it."""
    name, rest = split(variable)
    if name == "self" and rest:
        return f"set {variable} to None when done"
    return f"del {name} on every way out (finally: del {name})"


def for_namespace(name: str) -> str:
    """Return what to do about functions that were made by ``exec``."""
    return f"keep {name} and use it again, or clear its namespace when done"


def for_instances(variable: str) -> str:
    """Return what to do about objects that refer to one another."""
    if variable.endswith("]"):
        container = variable.rpartition("[")[0]
        return f"put a weakref.ref into {container}, or clear it when done"
    return f"make {variable} a weakref.ref, or set it to None when done"
