"""Advice for breaking a cycle, in a few words."""

from collections.abc import Sequence


def for_exception(steps: Sequence[str], others: Sequence[str] = ()) -> str:
    """Return advice for releasing an exception.

    steps: the access path: `self`, `.errors`, `[]`. others: variables to be cleared with it.
    """
    name, *rest = filter(None, steps)
    if name == "sys.exception()":
        return "leave the except block before the yield or the await"
    if _has_attribute(rest):
        return for_attribute(name, rest)
    names = ", ".join([name, *others])
    if rest and not (len(rest) == 1 and rest[0][1:-1].isdecimal()):
        return f"keep e.with_traceback(None), or clear {name} on every exit path (finally)"
    return f"del {names} on every exit path (finally: del {names})"


def for_attribute(name: str, rest: Sequence[str]) -> str:
    """Return advice for an exception in an attribute of `name`, or behind such an attribute."""
    last = max(n for n, step in enumerate(rest) if step.startswith("."))
    if rest[last].startswith("._") and name != "self":
        return f"del {name} on every exit path (finally: del {name})"
    attribute = name + "".join(rest[: last + 1])
    verb = f"clear {attribute}" if rest[last + 1 :] else f"set {attribute} to None"
    return f"{verb} after use, or keep e.with_traceback(None)"


def _has_attribute(steps: Sequence[str]) -> bool:
    return any(step.startswith(".") for step in steps)


def for_snapshot() -> str:
    """Return advice for a copy of a frame's variables that stays in the frame."""
    return (
        "its f_locals were read, which keeps a copy before 3.13: call"
        " traceback.clear_frames() afterwards"
    )


def for_closure(steps: Sequence[str], function: str) -> str:
    """Return advice for functions that refer to one another."""
    variable = "".join(steps)
    if variable.endswith("]"):
        container = "".join(steps[:-1])
        return f"remove the function from {container} when done, or let it hold a weakref.ref"
    if _has_attribute(steps):
        return f"set {variable} to None when done, or let the function hold a weakref.ref"
    where = function.rpartition(".")[2] or "the outer function"
    return f"decorate {where} with @closing, or pass {variable} as an argument"


def for_class(name: str) -> str:
    """Return advice for a class that is made again and again."""
    return f"create {name} once, at module level, or cache it"


def for_frame(steps: Sequence[str]) -> str:
    """Return advice for a frame, or for a function that runs in it."""
    name = steps[0]
    if name == "self" and len(steps) > 1:
        return f"set {''.join(steps)} to None when done"
    return f"del {name} on every exit path (finally: del {name})"


def for_namespace(name: str) -> str:
    """Return advice for functions that were made by ``exec``."""
    return f"keep {name} and reuse it, or clear its namespace when done"


def for_instances(steps: Sequence[str]) -> str:
    """Return advice for objects that refer to one another."""
    variable = "".join(steps)
    if variable.endswith("]"):
        return f"put a weakref.ref into {''.join(steps[:-1])}, or clear it when done"
    return f"make {variable} a weakref.ref, or set it to None when done"
