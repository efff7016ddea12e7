"""Attributes, containers and outer variables that other functions of a file clear.

A function that keeps an exception on an object often leaves the clearing to another one: another
method, the outer function, the caller that owns the container. The rules cannot see whether that
function is called in time; they trust it if it exists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cpythonplus_lint.checks.scopes import names_of, parameters
from cpythonplus_lint.checks.source import (
    CALLED,
    Function,
    Source,
    dotted,
    last_name,
    own_nodes,
)

REMOVERS = {"clear", "pop", "popleft", "popitem", "remove", "discard"}
BREAKERS = {"drop", "detach", "close"}
"""Functions of cpythonplus.memory.exceptions and .closures that break the cycle of an argument."""
_CONTAINERS = {"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"}
_BEGINNINGS = {"__init__", "__new__", "__init_subclass__", "__set_name__", "__post_init__"}
"""Methods that set attributes to None to initialise them, not to clear them."""


@dataclass(frozen=True, slots=True)
class _Clearing:
    """A statement that empties something."""

    path: str
    row: int
    function: Function


class Elsewhere:
    """The clearings of one file, collected at the first query."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def clears(self, function: Function, path: str) -> bool:
        """Whether another function clears what `function` keeps at `path`."""
        path = _without_items(path)
        if "." in path:
            return self._clears_attribute(function, path)
        names = names_of(function.node)
        if path in names.parameters:
            return self._caller_clears(function, path)
        return path not in names.bound and self._outer_clears(function, path)

    def _clears_attribute(self, function: Function, path: str) -> bool:
        attribute = path.rpartition(".")[2]
        owner = function.owner
        on_itself = owner is not None and path == f"{_itself(function)}.{attribute}"
        related = (owner.name, *_bases(owner)) if owner is not None and on_itself else ()
        return any(
            one.function.node is not function.node
            and not (on_itself and self._of_another_class(function, one))
            for key in (("", *related) if on_itself else ("", "."))
            for one in self._by_attribute.get((attribute, key), ())
        )

    def _of_another_class(self, function: Function, one: _Clearing) -> bool:
        """Whether the cleared attribute is the own attribute of an unrelated class."""
        left, right = function.owner, _class_of_own(one)
        return (
            left is not None
            and right is not None
            and left is not right
            and left.name not in _bases(right)
            and right.name not in _bases(left)
        )

    def _caller_clears(self, function: Function, path: str) -> bool:
        """Whether a function that calls this one clears a variable of the parameter's name."""
        callers = self._callers.get((path, function.node.name), ())
        return any(one.node is not function.node for one in callers)

    def _text(self, function: Function) -> str:
        node = function.node
        return self._source.excerpt(node.body[0].lineno, node.end_lineno or node.lineno)

    def _outer_clears(self, function: Function, path: str) -> bool:
        """Whether the function that binds the variable clears it, later or in a `finally`."""
        end = function.node.end_lineno or 0
        outer = function.outer
        while outer is not None and path not in names_of(outer.node).bound:
            outer = outer.outer
        return outer is not None and any(
            row > end for row in self._rows.get((path, id(outer.node)), ())
        )

    # ---- all clearings --------------------------------------------------------------------------

    @cached_property
    def _all(self) -> list[_Clearing]:
        return [
            _Clearing(path, row, function)
            for function in self._source.functions
            for path, row in _cleared_by(function.node.body)
        ]

    @cached_property
    def _by_attribute(self) -> dict[tuple[str, str], list[_Clearing]]:
        """The clearings by the attribute and the name of the class, or of a base, that owns it.

        Instead of a class name: "" for an attribute of any object; "." for all that a class owns.
        """
        found: dict[tuple[str, str], list[_Clearing]] = {}
        for one in self._all:
            if "." in one.path and one.function.node.name not in _BEGINNINGS:
                attribute, owner = one.path.rpartition(".")[2], _class_of_own(one)
                for key in {""} if owner is None else {".", owner.name, *_bases(owner)}:
                    found.setdefault((attribute, key), []).append(one)
        return found

    @cached_property
    def _callers(self) -> dict[tuple[str, str], list[Function]]:
        """The functions that clear a variable, by its name and the name of a function they call."""
        clearing = {(one.path, id(one.function)): one for one in self._all if "." not in one.path}
        found: dict[tuple[str, str], list[Function]] = {}
        for one in clearing.values():
            for called in set(CALLED.findall(self._text(one.function))):
                found.setdefault((one.path, called), []).append(one.function)
        return found

    @cached_property
    def _rows(self) -> dict[tuple[str, int], list[int]]:
        """The rows that clear a variable, by its name and the id of the function's node."""
        found: dict[tuple[str, int], list[int]] = {}
        for one in self._all:
            found.setdefault((one.path, id(one.function.node)), []).append(one.row)
        return found


def _class_of_own(one: _Clearing) -> ast.ClassDef | None:
    """The class whose method clears an attribute of its own object; None for any other object."""
    other: Function | None = one.function
    while other is not None and other.owner is None:
        other = other.outer
    if other is None or one.path.count(".") != 1 or not one.path.startswith(f"{_itself(other)}."):
        return None
    return other.owner


def _itself(function: Function) -> str:
    """The name of a method's first parameter."""
    arguments = parameters(function.node.args)
    return arguments[0].arg if function.is_method and arguments else ""


def _bases(node: ast.ClassDef) -> set[str]:
    return set(map(last_name, node.bases))


def _without_items(path: str) -> str:
    """`self.errors` for `self.errors[]` and `self.errors[key]`."""
    return path.partition("[")[0]


def _cleared_by(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The paths that statements empty, and the lines."""
    aliases: dict[str, str] = {}
    for node in own_nodes(body):
        for holder in _emptied(node, aliases):
            path = _path(holder)
            if path:
                yield path, getattr(node, "lineno", 0)
    if not aliases:
        return
    for node in own_nodes(body):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)):
                if name in aliases and attribute in REMOVERS:
                    yield aliases[name], node.lineno
            case _:
                pass


def _emptied(node: ast.AST, aliases: dict[str, str]) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned_nothing(target, value)
                if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
                    aliases[target.id] = _path(value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _assigned_nothing(target, value)
        case ast.Delete(targets=targets):
            for target in targets:
                yield from target.elts if isinstance(target, ast.Tuple) else [target]
        case ast.Call(func=ast.Attribute(value=holder, attr=name)) if name in REMOVERS:
            yield holder
        case ast.Call(func=called, args=[holder]) if last_name(called) in BREAKERS:
            yield holder
        case ast.Call(
            func=ast.Name(id="setattr" | "delattr"),
            args=[holder, ast.Constant(value=str(name)), *rest],
        ) if all(map(is_empty, rest)):
            yield ast.Attribute(holder, name)
        case _:
            pass


def _assigned_nothing(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    """The parts of a target that are assigned an empty value, perhaps one side of a swap."""
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, given in zip(target.elts, value.elts, strict=True):
                yield from _assigned_nothing(one, given)
    elif is_empty(value):
        is_trace = isinstance(target, ast.Attribute) and target.attr == "__traceback__"
        yield target.value if is_trace else target  # type: ignore[attr-defined]


def _path(holder: ast.expr) -> str:
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    return dotted(holder) or (f"?.{holder.attr}" if isinstance(holder, ast.Attribute) else "")


def is_empty(value: ast.expr) -> bool:
    """Whether an expression is a constant, or a new container."""
    match value:
        case ast.Constant() | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Tuple(elts=elements):
            return all(map(is_empty, elements))
        case ast.Call(func=called, args=arguments):
            name = last_name(called)
            return name in _CONTAINERS and (not arguments or name == "defaultdict")
        case _:
            return False
