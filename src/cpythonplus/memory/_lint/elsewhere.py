"""What other functions of a file clear: an attribute, a container, a variable of the outer one.

Whoever keeps an exception on an object often leaves it to somebody else to let go of it: another
method, the function around, the caller that the container belongs to. Whether that is called in
time cannot be seen here; that somebody thought of it can, and is believed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cpythonplus.memory._lint.scopes import names_of, parameters
from cpythonplus.memory._lint.source import (
    Function,
    Source,
    dotted,
    last_name,
    own_nodes,
)

REMOVERS = {"clear", "pop", "popleft", "popitem", "remove", "discard"}
BREAKERS = {"drop", "detach", "close"}
"""Of cpythonplus.memory.exceptions and .closures: what they are given makes no cycle any more."""
_CONTAINERS = {"list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter"}
_BEGINNINGS = {"__init__", "__new__", "__init_subclass__", "__set_name__", "__post_init__"}
"""What they set to None was nothing before."""


@dataclass(frozen=True, slots=True)
class _Clearing:
    """A place that empties something."""

    path: str
    row: int
    function: Function | None


class Elsewhere:
    """The clearings of one file, looked for when the first question is asked."""

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
        on_itself = path == f"{_itself(function)}.{attribute}"
        return any(
            one.function is not None
            and one.function.node is not function.node
            and one.function.node.name not in _BEGINNINGS
            and not (on_itself and self._of_another_class(function, one))
            for one in self._by_attribute.get(attribute, ())
        )

    def _of_another_class(self, function: Function, one: _Clearing) -> bool:
        """Whether it is another class's own attribute of that name that is cleared."""
        other = one.function
        while other is not None and other.owner is None:
            other = other.outer
        if other is None or other.owner is None or function.owner is None:
            return False
        if one.path.count(".") != 1 or not one.path.startswith(f"{_itself(other)}."):
            return False
        left, right = function.owner, other.owner
        return (
            left is not right and left.name not in _bases(right) and right.name not in _bases(left)
        )

    def _caller_clears(self, function: Function, path: str) -> bool:
        """Whether a function that calls this one clears a variable of the parameter's name."""
        name = function.node.name
        return any(
            one.function is not None
            and one.function.node is not function.node
            and f"{name}(" in self._text(one.function)
            for one in self._by_name.get(path, ())
        )

    def _text(self, function: Function) -> str:
        node = function.node
        return self._source.excerpt(node.body[0].lineno, node.end_lineno or node.lineno)

    def _outer_clears(self, function: Function, path: str) -> bool:
        """Whether the function that the variable belongs to clears it, later or in a `finally`."""
        end = function.node.end_lineno or 0
        outer = function.outer
        while outer is not None and path not in names_of(outer.node).bound:
            outer = outer.outer
        return outer is not None and any(
            one.function is not None and one.function.node is outer.node and one.row > end
            for one in self._by_name.get(path, ())
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
    def _by_attribute(self) -> dict[str, list[_Clearing]]:
        return _grouped((one.path.rpartition(".")[2], one) for one in self._all if "." in one.path)

    @cached_property
    def _by_name(self) -> dict[str, list[_Clearing]]:
        return _grouped((one.path, one) for one in self._all if "." not in one.path)


def _grouped(pairs: Iterable[tuple[str, _Clearing]]) -> dict[str, list[_Clearing]]:
    found: dict[str, list[_Clearing]] = {}
    for name, one in pairs:
        found.setdefault(name, []).append(one)
    return found


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
    """The parts of a target that are given nothing: one side of a swap, perhaps."""
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
