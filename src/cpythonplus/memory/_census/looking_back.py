"""Finds the referrers of a class's objects, and the path from a root to one of them."""

import sys
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

from cpythonplus import _native
from cpythonplus._interp import walk_losses
from cpythonplus.memory._census.naming import namespace_name
from cpythonplus.memory._census.steps import PathStep, path_steps, told_steps
from cpythonplus.memory._cycles.looking import is_type, qualified_name
from cpythonplus.memory._examined import Examined
from cpythonplus.memory._owners.model import Where

_OWN = __file__.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Referrer:
    """One way in which objects of a class are referred to, and its number of references.

    name: `app.Session (attribute cache)`, `dict of app.Session (attribute cache)`, `module
    app.CACHE`, `class app.Session.instances`, `variable session of handle()`; or the class of the
    referrers, such as `list`. The same in parts: how is `attribute`, `dict`, `module`, `class`,
    `variable` or `type`; owner: the class, module or function; attribute: the name in it, "" for
    `type`.
    """

    name: str
    references: int
    how: str
    owner: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Referrers(Examined):
    """The referrers of the objects of a class, most references first.

    type: the class, by its qualified name. rows: the first few. more: the number of others. losses:
    as of a census.
    """

    examination = "referrers"

    type: str
    rows: tuple[Referrer, ...]
    more: int
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReferencePath(Examined):
    """The path to an object: the root, then one step after the other, the last being the object.

    steps: `module app`, `.CACHE (dict)`, `['use...] (app.Session)`, `.items (list)`. The root is a
    module, or a variable of a function that is being executed; or "only C code, or garbage" if
    nothing else refers to the first object. losses: as of a census. objects, ways: for a class, its
    number of objects, and the most frequent ways to them; steps are those of one object that is
    reached in the first way.
    """

    examination = "path"

    steps: tuple[PathStep, ...]
    losses: tuple[str, ...] = ()
    objects: int = 0
    ways: tuple[Where, ...] = ()


def referrers(kind: str | type, top: int) -> Referrers:
    """Count what refers to the objects of a class; raises LookupError for an unknown name."""
    target: Any = _class(kind) if type(kind) is str else kind
    if not is_type(target):
        raise TypeError("expected a class or the name of one")
    sums: dict[tuple[str, str, str, str], int] = {}
    for how, owner, name, references in _native.memory_referrers_of(target):
        words = _referrer(how, owner, name)
        sums[words] = sums.get(words, 0) + references
    rows = sorted(sums.items(), key=lambda row: (-row[1], row[0]))
    shown = tuple(Referrer(name, count, *parts) for (name, *parts), count in rows[:top])
    return Referrers(qualified_name(target), shown, len(rows) - len(shown), walk_losses())


def path(what: object, *, show_keys: bool = False) -> ReferencePath:
    """Return the shortest path to an object; for a class, or its name, to some instance.

    show_keys: show keys of dicts as they are, see `key_text`.
    """
    target = _class(what) if type(what) is str else what
    code = _caller()
    root, name, objects = _native.memory_root_path(target, is_type(target), code, _OWN)
    steps = tuple(path_steps(root, name, objects, show_keys=show_keys))
    return ReferencePath(steps, walk_losses())


def most_frequent_path(name: str, *, show_keys: bool = False) -> ReferencePath:
    """Return the most frequent path to objects of a class; if there is no copy, a path to one."""
    from cpythonplus.memory._owners.looking import ways_of, ways_to

    kind = _class(name)
    try:
        objects, groups = ways_to(kind)
    except (OSError, RuntimeError, MemoryError):
        objects, groups = 0, []
    if not groups:
        return path(kind, show_keys=show_keys)
    steps = tuple(told_steps(groups[0]["steps"], show_keys=show_keys))
    return ReferencePath(steps, walk_losses(), objects, ways_of(groups))


def _class(name: str) -> type:
    """Return the class of that name, or `name#2`; of several, the one with most instances."""
    plain, mark, digits = name.rpartition("#")
    is_numbered = bool(mark) and digits.isascii() and digits.isdecimal()
    found = _classes(plain if is_numbered else name)
    if not found:
        raise LookupError(f"there is no class {name!r}")
    place = int(digits) - 1 if is_numbered else 0
    if not 0 <= place < len(found):
        raise LookupError(f"{name!r}: classes of that name: {len(found):,}")
    return found[place]


def _classes(name: str) -> list[type]:
    """Return the classes of that name, the one with most instances first."""
    counted = [(own[0], kind) for kind, own, *_ in _native.memory_census()[4]]
    counted = [pair for pair in counted if qualified_name(pair[1]) == name]
    return [kind for _, kind in sorted(counted, key=lambda pair: -pair[0])]


def _caller() -> CodeType | None:
    """Return the code of the function that called into this package."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  # documented for this
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return None if frame is None else frame.f_code


def _referrer(
    how: str,
    owner: Any,  # noqa: ANN401  # of many kinds
    name: str | None,
) -> tuple[str, str, str, str]:
    """Return name, how, owner and attribute of a `Referrer`."""
    shown = "?" if name is None else name
    if how == "module":
        owned = namespace_name(owner)
        return f"module {owned}.{shown}", how, owned, shown
    if how == "variable":
        owned = f"{owner.co_qualname}()"
        return f"variable {shown} of {owned}", how, owned, shown
    owned = qualified_name(owner)
    if how == "class":
        return f"class {owned}.{shown}", how, owned, shown
    if how == "type":
        return owned, how, owned, ""
    prefix = "dict of " if how == "dict" else ""
    return f"{prefix}{owned} (attribute {shown})", how, owned, shown
