"""CYC201 to CYC203: functions and classes made inside functions that lead back to themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cpythonplus_lint.checks.flow import Flow, Origin, State, TooComplexError
from cpythonplus_lint.checks.keeping import Keeping
from cpythonplus_lint.checks.scopes import declared_nonlocal, free_names, names_of
from cpythonplus_lint.checks.source import (
    FUNCTIONS,
    Function,
    FunctionNode,
    Source,
    at,
    last_name,
    own_nodes,
    within,
)
from cpythonplus_lint.model import Violation

Inner = FunctionNode | ast.Lambda

CODES = frozenset({"CYC201", "CYC202", "CYC203"})

_LAMBDA = re.compile(r"^\s*\w+\s*(?::.*)?=\s*\(?lambda\b|:=\s*\(?lambda\b")
_WORD = re.compile(r"\w+")
_CLOSING = "closing"
_FACTORIES = ("namedtuple", "NamedTuple", "TypedDict", "make_dataclass", "new_class", "type")
_OF_TYPE = 3
"""`type(name, bases, namespace)` makes a class; with one argument it looks one up."""


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    for function in candidates(source):
        if not _is_closed(function.node):
            yield from map(_violation, left_over(source, function))
    yield from _classes(source)


def candidates(source: Source) -> list[Function]:
    """The functions that may contain recursive functions, judged by the text alone."""
    inside: dict[int, list[Function]] = {}
    for one in source.functions:
        if one.outer is not None:
            inside.setdefault(id(one.outer), []).append(one)
    lines = [
        number
        for number in source.lines_with("lambda")
        if _LAMBDA.search(source.excerpt(number, number))
    ]
    return [
        one
        for one in source.functions
        if _may_be_recursive(source, inside.get(id(one), [])) or within(lines, one.node)
    ]


def _may_be_recursive(source: Source, functions: list[Function]) -> bool:
    """Whether, by the text, the functions may refer to each other in a cycle."""
    names = {one.node.name for one in functions}
    reached: dict[str, set[str]] = {name: set() for name in names}
    for one in functions:
        body = one.node.body
        text = source.excerpt(body[0].lineno, body[-1].end_lineno or body[0].lineno)
        own = len(names) > 1 or one.node.name in text
        reached[one.node.name] |= names.intersection(_WORD.findall(text)) if own else set()
    return any(_leads_to(name, name, reached) for name in names)


def left_over(source: Source, function: Function) -> list[tuple[Origin, ...]]:
    """The cycles of inner functions that still exist when a function is left."""
    found = inner_functions(function.node)
    reached = _references(function.node, found, source) if found else {}
    recursive = {node: name for node, name in found.items() if _leads_to(name, name, reached)}
    return _kept(source, function, recursive, reached) if recursive else []


def inner_functions(node: FunctionNode) -> dict[Inner, str]:
    """The functions and named lambdas made directly in one function, with their names."""
    found: dict[Inner, str] = {}
    for one in own_nodes(node.body, _is_definition):
        match one:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[one] = name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                found[value] = name
            case ast.NamedExpr(target=ast.Name(id=name), value=ast.Lambda() as value):
                found[value] = name
            case _:
                pass
    return found


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef))


def _is_closed(node: FunctionNode) -> bool:
    """Whether the function is decorated with `closures.closing`, which empties the cells."""
    return _CLOSING in _decorators(node)


def _decorators(node: FunctionNode) -> set[str]:
    """The last parts of the names of a function's decorators."""
    every = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return set(map(last_name, every))


def _references(node: FunctionNode, found: dict[Inner, str], source: Source) -> dict[str, set[str]]:
    """For each inner function: the inner functions' names that it takes from the outer function."""
    own = names_of(node)
    names = {name for name in found.values() if name in own.bound}
    if source.says("nonlocal"):
        said = _nonlocal_lines(source, node)
        names = {name for name in names if name not in said or not declared_nonlocal(node, name)}
    reached: dict[str, set[str]] = {name: set() for name in names}
    for inner, name in found.items():
        if name in names and not _is_wrapper(inner):
            reached[name] |= free_names(inner) & names
    return reached


def _nonlocal_lines(source: Source, node: FunctionNode) -> str:
    """The lines of a function that say `nonlocal`."""
    lines = source.lines[node.lineno - 1 : node.end_lineno]
    return "".join(line for line in lines if "nonlocal" in line)


def _is_wrapper(inner: Inner) -> bool:
    """Whether a function is a decorator's wrapper, made and kept once per decorated function."""
    return not isinstance(inner, ast.Lambda) and not _decorators(inner).isdisjoint(
        ("wraps", "update_wrapper")
    )


def _leads_to(start: str, goal: str, reached: dict[str, set[str]]) -> bool:
    return goal in _all_from(start, reached)


def _all_from(start: str, reached: dict[str, set[str]]) -> set[str]:
    """All names that can be reached from a name; the name itself only if it is in a cycle."""
    seen: set[str] = set()
    todo = list(reached.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(reached.get(name, ()))
    return seen


def _kept(
    source: Source,
    function: Function,
    recursive: dict[Inner, str],
    reached: dict[str, set[str]],
) -> list[tuple[Origin, ...]]:
    """The cycles of functions that exist on at least one exit path; one tuple for each."""
    domain = Keeping(source, frozenset(), recursive)
    try:
        out = Flow(domain).run(function.node.body, {})
    except TooComplexError:
        return []
    cycles: dict[tuple[str, ...], tuple[Origin, ...]] = {}
    for way in (out.normal, out.returns, out.raises):
        for cycle in _cycles(way or {}, reached):
            cycles.setdefault(tuple(origin.path for origin in cycle), cycle)
    return sorted(cycles.values(), key=lambda cycle: cycle[0].node.lineno)


def _cycles(state: State, reached: dict[str, set[str]]) -> Iterator[tuple[Origin, ...]]:
    """The strongly connected groups among the functions that a state still holds."""
    held = {
        path: origin
        for path, origins in state.items()
        # If two functions have one name, the first in the file stands for both, in every run.
        for origin in sorted(origins, key=lambda one: -one.node.lineno)
        if origin.code == "CYC201"
    }
    left = {name: names & held.keys() for name, names in reached.items() if name in held}
    done: set[str] = set()
    for name in held:
        every = set() if name in done else _all_from(name, left)
        if name not in every:
            continue
        group = [other for other in every if _leads_to(other, name, left)]
        done.update(group)
        yield tuple(sorted((held[one] for one in group), key=lambda one: one.node.lineno))


def _violation(cycle: tuple[Origin, ...]) -> Violation:
    first = cycle[0]
    if len(cycle) == 1:
        code = "CYC201"
        text = f"`{first.path}` refers to itself through its own cell; `finally: del {first.path}`"
    else:
        code = "CYC202"
        names = " and ".join(f"`{origin.path}`" for origin in cycle)
        text = f"{names} refer to each other through their cells; `finally: del {first.path}`"
    return at(first.node, code, text)


# ---- classes ------------------------------------------------------------------------------------


def _classes(source: Source) -> Iterator[Violation]:
    for one in source.classes:
        if one.outer is not None:
            name = one.node.name
            yield at(one.node, "CYC203", _class_text(f"class `{name}`"))
    lines = sorted({line for name in _FACTORIES for line in source.lines_with(f"{name}(")})
    for function in source.functions if lines else ():
        if within(lines, function.node):
            for node in own_nodes(function.node.body, _is_definition):
                if isinstance(node, ast.Call) and _makes_class(node):
                    yield at(node, "CYC203", _class_text(f"a class by `{last_name(node.func)}()`"))


def _class_text(what: str) -> str:
    return f"{what} is created by each call, and every class is a reference cycle"


def _makes_class(call: ast.Call) -> bool:
    name = last_name(call.func)
    return name in _FACTORIES and (name != "type" or len(call.args) == _OF_TYPE)
