"""Finds the function and the line that store the object at a path, and its spelling there."""

import gc
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, NamedTuple

from cpythonplus._base.data import Place
from cpythonplus.memory._cycles import report
from cpythonplus.memory._cycles.bytecode import steps
from cpythonplus.memory._cycles.component import Component
from cpythonplus.memory._cycles.edges import Edge, Role, frame_of
from cpythonplus.memory._cycles.looking import function_name, function_of, mro, type_dict
from cpythonplus.memory._cycles.paths import Path
from cpythonplus.memory._cycles.places import find_code, mentions, setter_at, store_line

# Types of class attributes that are functions, or descriptors without code of the program.
_PLAIN: Final = frozenset(map(id, (FunctionType, MemberDescriptorType, GetSetDescriptorType)))


class Stored(NamedTuple):
    """The place of a store.

    steps: its spelling there, `self`, `.errors`, `[]`. exact: the code stores it there literally.
    """

    place: Place
    steps: tuple[str, ...]
    exact: bool = False

    @property
    def variable(self) -> str:
        """The steps in one text."""
        return "".join(self.steps)


def _steps(name: str, edges: Sequence[Edge], code: CodeType | None) -> tuple[str, ...]:
    """Return its spelling in the code; keys that the code does not mention are left out."""
    parts = [
        "[]"
        if _is_key(edge) and (code is None or not mentions(code, edge.name[1:-1]))
        else edge.name
        for edge in edges
    ]
    return (name, *parts)


def along(start: str, steps: Sequence[str]) -> list[report.Edge]:
    """Return the edges of an access path; the last one is the one to remove."""
    sources = [start, *("".join(steps[: count + 1]) for count in range(len(steps) - 1))]
    last = len(steps) - 1
    return [
        report.Edge(source, step, closing=count == last)
        for count, (source, step) in enumerate(zip(sources, steps, strict=True))
    ]


def place_of(code: CodeType, line: int) -> Place:
    """Return a line of a function."""
    return Place(code.co_filename, line, code.co_qualname)


def _is_key(edge: Edge) -> bool:
    return edge.role is Role.PART and edge.name.startswith("[")


# ---- by the owner of the variable ---------------------------------------------------------------


def place_in(
    component: Component, path: Path, after: int = 0, caught: Sequence[str] = ()
) -> Stored:
    """Return the place where the owner of the path's variable, a frame or generator, stores it.

    after: the line of that frame when there was nothing to store yet. caught: the names of the
    classes of the stored exception, its own first.
    """
    frame = frame_of(path.owner)
    if frame is None:
        unknown = Stored(Place(), _steps(path.variable, path.shown(), None))
        return place_by_class(component, path) or unknown
    code = frame.f_code
    parts = path.stored_parts
    written = _steps(path.variable, path.shown(), code)
    line = store_line(code, path.variable, parts, after=after, caught=caught)
    if line:
        return Stored(place_of(code, line), written, exact=True)
    if path.variable == _first_parameter(code):
        method = place_by_class(component, path)
        if method is not None:
            return method
    line = _near_store(code, path, after) or after or frame.f_lineno or code.co_firstlineno
    return Stored(place_of(code, line), written)


def _near_store(code: CodeType, path: Path, after: int) -> int:
    """Return the line that puts something into the variable or a part of it, or else stores it."""
    parts = path.stored_parts
    own = store_line(code, path.variable, [])
    if own and len(parts) == 1 and parts[0].startswith("['"):
        return own  # {"key": ...}: items that are added later have other keys
    line = 0
    if parts:
        line = store_line(code, path.variable, [*parts, ""], after=after)
        line = line or store_line(code, path.variable, [""], after=after)
    return line or own or _any_store(code, path.variable)


def _any_store(code: CodeType, variable: str) -> int:
    lines = [step.line for step in steps(code) if step[:2] == ("store", variable)]
    return lines[-1] if lines else 0


def place_in_scope(component: Component, path: Path) -> Stored:
    """Return the place where a function's free variable is stored, in the outer function.

    If the outer function cannot be found any more, return the line where the inner one begins.
    """
    function = path.owner
    assert type(function) is FunctionType  # noqa: S101  # for the type checker
    inner = function.__code__
    scope = inner.co_qualname.rpartition(".<locals>.")[0]
    code = code_of_scope(function.__globals__, scope, component.owner(path.value))
    line = 0
    if code is not None:
        line = store_line(code, path.variable, path.stored_parts) or _near_store(code, path, 0)
    written = _steps(path.variable, path.shown(), code)
    place = Place(inner.co_filename, line or inner.co_firstlineno, scope)
    return Stored(place, written, exact=bool(line))


def code_of_scope(namespace: dict[str, Any], qualname: str, inside: object) -> CodeType | None:
    """Return the code of a function by its qualified name: of a class of `inside`, or a module."""
    for code in methods(type(inside)):
        if code.co_qualname == qualname:
            return code
    return find_code(namespace, qualname)


# ---- by the class of the attribute's owner ------------------------------------------------------


def place_by_class(component: Component, path: Path) -> Stored | None:
    """Return the method that stores the path's attribute, in the class of the attribute's owner."""
    edges = path.shown()
    named = [i for i, each in enumerate(edges) if each.name.startswith(".")]
    # Search by the last attribute and the parts after it; else by the first.
    for at in dict.fromkeys((named[-1], named[0])) if named else ():
        holder = path.sources[path.edges.index(edges[at])]
        inside = path.is_open() or at != named[-1]
        found = place_in_class(type(component.owner(holder)), edges[at:], inside=inside)
        if found is not None:
            return found
    return None


def place_in_class(kind: type, edges: Sequence[Edge], *, inside: bool = False) -> Stored | None:
    """Return the method of a class, or of a base, that stores ``self`` followed by `edges`.

    A method that stores a variable's value is preferred to one that makes something; then comes a
    method that puts something into the attribute, then a function that computes it at its first
    use. inside: the object is inside of the attribute, so methods that put something into it come
    first.
    """
    stored = list(edges)
    while stored and stored[-1].role is Role.INDEX:
        stored.pop()
    parts = [each.name for each in stored]
    own = list(methods(kind))
    ways = [(parts, True), (parts, False), ([*parts, ""], False)]
    if inside:
        ways.reverse()
    if len(parts) > 1:
        ways.append((parts[:1], False))  # self.errors = [error]
    for wanted, from_variable in ways:
        for code in own:
            first = _first_parameter(code)
            line = first and store_line(code, first, wanted, from_variable=from_variable)
            if line:
                name = setter_at(code, line, parts[0][1:]) or first
                return Stored(place_of(code, line), _steps(name, edges, code), exact=True)
    return _computed(kind, edges)


def _computed(kind: type, edges: Sequence[Edge]) -> Stored | None:
    """Return the function behind a descriptor such as `functools.cached_property`."""
    name = edges[0].name[1:]
    for each in mro(kind):
        descriptor = type_dict(each).get(name)
        if descriptor is None or id(type(descriptor)) in _PLAIN:
            continue
        for inside in gc.get_referents(descriptor):
            if type(inside) is FunctionType and inside.__code__.co_name == name:
                code = inside.__code__
                written = _steps(_first_parameter(code), edges, code)
                return Stored(place_of(code, code.co_firstlineno), written, exact=True)
    return None


def _first_parameter(code: CodeType) -> str:
    return code.co_varnames[0] if code.co_argcount else ""


def methods(kind: type) -> Iterator[CodeType]:
    """Yield the code of the functions that a class and its bases define, also of decorated ones."""
    for each in mro(kind):
        for value in type_dict(each).values():
            function = function_of(value)
            if function is not None and not function.__code__.co_name.startswith("__annotate"):
                yield function.__code__
                yield from _decorated(function)


def _decorated(function: FunctionType) -> Iterator[CodeType]:
    """Yield the code of functions in a wrapper that have the same name."""
    for cell in function.__closure__ or ():
        for value in gc.get_referents(cell):
            if type(value) is FunctionType and value.__code__.co_name == function_name(function):
                yield value.__code__
