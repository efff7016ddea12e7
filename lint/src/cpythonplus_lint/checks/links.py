"""CYC204, CYC205: objects that hold a reference that leads back to them.

If a method, a lambda or an inner function that refers to `self` is kept on `self`, each instance is
part of a cycle from its beginning. So are a parent and a child that refer to each other, but trees
are built like that: CYC205 is reported only if it is selected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cpythonplus_lint.checks.elsewhere import Elsewhere
from cpythonplus_lint.checks.scopes import free_names, parameters
from cpythonplus_lint.checks.source import (
    FUNCTIONS,
    Function,
    Source,
    at,
    dotted,
    last_name,
    own_nodes,
)
from cpythonplus_lint.model import Violation

CODES = frozenset({"CYC204", "CYC205"})

_KEEPING = {"append", "appendleft", "add", "insert", "setdefault"}
_STATIC = {"staticmethod", "classmethod"}


@dataclass(frozen=True, slots=True)
class _Stored:
    """A value that is put into an attribute, or into a container in one."""

    path: str
    """The path of the attribute, as `self.callbacks`."""
    value: ast.expr
    node: ast.stmt


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    elsewhere = Elsewhere(source)
    inside: dict[int, list[Function]] = {}
    for function in source.functions:
        if function.outer is not None:
            inside.setdefault(id(function.outer), []).append(function)
    told: set[tuple[int, str]] = set()
    for function in sorted(source.functions, key=lambda one: one.node.lineno):
        stores = list(_stores(source.stores.get(id(function.node), ())))
        if not stores:
            continue
        stores.sort(key=lambda one: one.node.lineno)
        yield from _parents(function, stores)
        if function.is_method:
            inner = inside.get(id(function), [])
            for path, hit in _callbacks(function, inner, stores, elsewhere):
                # A state machine (`self.state = self.start`) is one cycle, however often it is set.
                if (id(function.owner), path) not in told:
                    told.add((id(function.owner), path))
                    yield hit


# ---- callbacks ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Method:
    """A method's names for its object, and for functions that refer to the object."""

    itself: str
    methods: frozenset[str]
    """The names that are bound methods when they are read from the object."""
    inner: frozenset[str]
    """Inner functions that refer to the object."""


def _method(function: Function, inside: list[Function]) -> _Method | None:
    """A method whose first parameter is its object and is never rebound; None for others."""
    node, owner = function.node, function.owner
    arguments = parameters(node.args)
    decorators = {last_name(one) for one in node.decorator_list}
    if owner is None or not arguments or decorators & _STATIC or node.name == "__new__":
        return None
    itself = arguments[0].arg
    if itself in ("cls", "mcs", "mcls", "metacls", "klass"):
        return None
    if any(
        isinstance(one, ast.Name) and one.id == itself and not isinstance(one.ctx, ast.Load)
        for one in own_nodes(node.body)
    ):
        return None
    inner = frozenset(
        one.node.name
        for one in inside
        if not one.node.decorator_list and itself in free_names(one.node)
    )
    return _Method(itself, _methods(owner), inner)


def _methods(owner: ast.ClassDef) -> frozenset[str]:
    plain = {
        one.name for one in owner.body if isinstance(one, FUNCTIONS) and not one.decorator_list
    }
    others = {one.name for one in owner.body if isinstance(one, FUNCTIONS) and one.decorator_list}
    return frozenset(plain - others)


def _callbacks(
    function: Function, inner: list[Function], stores: list[_Stored], elsewhere: Elsewhere
) -> Iterator[tuple[str, Violation]]:
    """The hits of one method, each with its attribute."""
    arguments = parameters(function.node.args)
    itself = arguments[0].arg if arguments else ""
    names = {one.node.name for one in inner}
    if not any(_may_lead_back(one.value, itself, names) for one in stores):
        return
    method = _method(function, inner)
    if method is None:
        return
    first: dict[str, _Stored] = {}
    for stored in stores:
        if not stored.path.startswith(f"{method.itself}.") or stored.path.count(".") != 1:
            continue
        if _leads_back(stored.value, method) and not _is_managed(function, stored.path):
            first.setdefault(stored.path, stored)
        elif isinstance(stored.value, ast.Constant) and isinstance(stored.node, ast.Assign):
            first.pop(stored.path, None)
    for path, stored in first.items():
        if not elsewhere.clears(function, path) and not _cleared_here(function, stored):
            text = f"`{path}` keeps what refers to `{method.itself}`, and so the object itself"
            yield path, at(stored.node, "CYC204", text)


def _may_lead_back(value: ast.expr, itself: str, names: set[str]) -> bool:
    """Whether a value may be a function, or contain one: a quick test, as most are not."""
    match value:
        case ast.Lambda() | ast.IfExp() | ast.BoolOp() | ast.Tuple() | ast.List() | ast.Dict():
            return True
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(value=ast.Name(id=name)):
            return name == itself
        case ast.Call(func=called):
            return last_name(called) == "partial"
        case _:
            return False


def _stores(nodes: Iterable[ast.Assign | ast.AnnAssign | ast.Expr]) -> Iterator[_Stored]:
    """The stores into attributes: `x.a = v`, `x.a[k] = v`, `x.a.append(v)`."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _parts(target, value, node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _parts(target, value, node)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=holder, attr=name), args=[*_, value])
            ):
                if name in _KEEPING and isinstance(holder, (ast.Attribute, ast.Subscript)):
                    yield from _parts(holder, value, node)
            case _:
                pass


def _parts(target: ast.expr, value: ast.expr, node: ast.stmt) -> Iterator[_Stored]:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, given in zip(target.elts, value.elts, strict=True):
                yield from _parts(one, given, node)
        return
    while isinstance(target, ast.Subscript):
        target = target.value
    path = dotted(target)
    if "." in path:
        yield _Stored(path, value, node)


def _leads_back(value: ast.expr, method: _Method) -> bool:  # noqa: PLR0911  # a table
    """Whether a value holds a reference to the object whose method this is."""
    itself = method.itself
    match value:
        case ast.Lambda():
            return itself in free_names(value) or any(
                isinstance(one, ast.Name) and one.id == itself for one in value.args.defaults
            )
        case ast.Name(id=name):
            return name in method.inner
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return name == itself and attribute in method.methods
        case ast.Call(func=called, args=[*arguments]) if last_name(called) == "partial":
            return any(
                _leads_back(one, method) or (isinstance(one, ast.Name) and one.id == itself)
                for one in [*arguments, *(word.value for word in value.keywords)]
            )
        case ast.IfExp(body=body, orelse=orelse):
            return _leads_back(body, method) or _leads_back(orelse, method)
        case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            return any(_leads_back(one, method) for one in values)
        case ast.Dict(values=values):
            return any(_leads_back(one, method) for one in values)
        case _:
            return False


def _is_managed(function: Function, path: str) -> bool:
    """Whether the class has a property of that name, or a `__setattr__`."""
    name = path.rpartition(".")[2]
    return function.owner is not None and any(
        isinstance(one, FUNCTIONS) and one.name in (name, "__setattr__")
        for one in function.owner.body
    )


def _cleared_here(function: Function, stored: _Stored) -> bool:
    """Whether the same function deletes the attribute further down."""
    return any(
        isinstance(node, ast.Delete)
        and node.lineno > stored.node.lineno
        and stored.path in map(dotted, node.targets)
        for node in own_nodes(function.node.body)
    )


# ---- parents and children -----------------------------------------------------------------------


def _parents(function: Function, stores: list[_Stored]) -> Iterator[Violation]:
    """`a.child = b` and `b.parent = a` in one function; `self.child = Child(self)`."""
    seen: dict[tuple[str, str], _Stored] = {}
    itself = parameters(function.node.args)[:1] if function.is_method else []
    for stored in stores:
        holder = stored.path.partition(".")[0]
        match stored.value:
            case ast.Name(id=name) if name != holder:
                if (name, holder) in seen:
                    text = f"`{holder}` and `{name}` refer to each other"
                    yield at(stored.node, "CYC205", text)
                seen[holder, name] = stored
            case ast.Call(func=called, args=arguments, keywords=words):
                given = [*arguments, *(word.value for word in words)]
                passes = any(isinstance(one, ast.Name) and one.id == holder for one in given)
                is_class = last_name(called)[:1].isupper()
                if is_class and passes and [one.arg for one in itself] == [holder]:
                    text = f"`{stored.path}` was given `{holder}`, and may refer to it"
                    yield at(stored.node, "CYC205", text)
            case _:
                pass
