"""Facts about the names of one function that are found in the rest of its file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from cpythonplus_lint.checks.flow import path_of
from cpythonplus_lint.checks.keeping import (
    ENDS_THE_PROCESS,
    INSTANCE_NAME,
    About,
    is_exception,
    is_exception_type,
    makes_exception,
)
from cpythonplus_lint.checks.scopes import parameters
from cpythonplus_lint.checks.source import (
    CALLED,
    FUNCTIONS,
    Function,
    Source,
    last_name,
    own_nodes,
)


class Around:
    """The facts about one file; each is computed when it is needed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._attributes: dict[int, frozenset[str]] = {}

    def about(self, function: Function) -> About:
        """The facts about the names in a function."""
        text = self._source.excerpt(function.node.lineno, function.node.end_lineno or 0)
        return About(
            self._exception_attributes(function) if "raise " in text else frozenset(),
            self._catching(function),
            self._ending,
            frozenset(_walked(function)) if ".f_back" in text else frozenset(),
        )

    # ---- attributes -----------------------------------------------------------------------------

    def _exception_attributes(self, function: Function) -> frozenset[str]:
        arguments = parameters(function.node.args)
        if function.owner is None or not arguments:
            return frozenset()
        known = self._attributes.get(id(function.owner))
        if known is None:
            known = frozenset(_exceptions_of(function.owner, self._source))
            self._attributes[id(function.owner)] = known
        return frozenset(f"{arguments[0].arg}.{name}" for name in known)

    # ---- functions that catch, and return -------------------------------------------------------

    @cached_property
    def _returning(self) -> list[Function]:
        """The functions that return an exception that they caught."""
        return [
            function
            for function, handler in self._source.handlers
            if isinstance(function.node, ast.FunctionDef)
            and not function.node.decorator_list
            and _returns(handler)
            and not any(
                isinstance(node, (ast.Yield, ast.YieldFrom))
                for node in own_nodes(function.node.body)
            )
        ]

    @cached_property
    def _catching_in(self) -> dict[int | None, frozenset[str]]:
        """The names in `_returning`, by the id of the class whose methods may call them.

        The key None: any function may call them.
        """
        found: dict[int | None, set[str]] = {None: set()}
        for one in self._returning:
            if one.owner is not None:
                found.setdefault(id(one.owner), set()).add(f"self.{one.node.name}")
            elif one.outer is None:
                found[None].add(one.node.name)
        return {owner: frozenset(names | found[None]) for owner, names in found.items()}

    def _catching(self, function: Function) -> frozenset[str]:
        return self._catching_in.get(id(function.owner), self._catching_in[None])

    @cached_property
    def _ending(self) -> frozenset[str]:
        """The functions of the module whose last statement ends the process."""
        return frozenset(
            one.node.name
            for one in self._source.functions
            if one.owner is None and one.outer is None and _ends(one.node.body[-1])
        )

    def calls_of_returning(self) -> list[int]:
        """The lines that may call a function in `_returning`."""
        names = {one.node.name for one in self._returning}
        lines = enumerate(self._source.lines, 1) if names else ()
        return [row for row, line in lines if not names.isdisjoint(CALLED.findall(line))]


def _ends(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=called)):
            return last_name(called) in ENDS_THE_PROCESS
        case ast.Raise(exc=ast.Name(id="SystemExit") | ast.Call(func=ast.Name(id="SystemExit"))):
            return True
        case _:
            return False


def _returns(handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(node, ast.Return)
        and isinstance(node.value, ast.Name)
        and node.value.id == handler.name
        for node in own_nodes(handler.body)
    )


def _exceptions_of(owner: ast.ClassDef, source: Source) -> Iterator[str]:
    """The attributes to which a class's methods assign exceptions, and never an exception class."""
    text = source.excerpt(owner.lineno, owner.end_lineno or owner.lineno)
    for name in {name for node in owner.body for name in _given_exceptions(node)}:
        as_class = rf"\.{name}\(|issubclass\(\w+\.{name}\b|{name}: *(?:typing\.)?[Tt]ype\["
        if not re.search(as_class, text):
            yield name


def _given_exceptions(node: ast.stmt) -> Iterator[str]:
    """The attributes that are exceptions, by a method or by an annotation in the class."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        if is_exception_type(node.annotation):
            yield node.target.id
    elif isinstance(node, FUNCTIONS):
        given = {one.arg for one in parameters(node.args) if is_exception(one)}
        nodes = list(own_nodes(node.body))
        given |= {one.name for one in nodes if isinstance(one, ast.ExceptHandler) and one.name}
        for inner in nodes:
            yield from _given_exception(inner, given)


def _given_exception(node: ast.AST, given: set[str]) -> Iterator[str]:
    match node:
        case ast.AnnAssign(target=ast.Attribute(attr=name), annotation=annotation):
            if is_exception_type(annotation):
                yield name
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(), attr=name)], value=ast.Name(id=value)
        ):
            if value in given and INSTANCE_NAME.search(value) is not None:
                yield name
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=name)], value=value):
            if makes_exception(value):
                yield name
        case _:
            pass


def _walked(function: Function) -> Iterator[str]:
    """The variables that are replaced by their frame's caller: `frame = frame.f_back`."""
    for node in own_nodes(function.node.body):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Attribute(value=holder, attr="f_back")
            ) if path_of(holder).partition(".")[0] == name:
                yield name
            case _:
                pass
