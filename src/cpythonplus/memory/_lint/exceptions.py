"""CYC101 to CYC105: exceptions that a function still holds when it is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cpythonplus.memory._lint.flow import Flow, Origin, State, TooComplexError
from cpythonplus.memory._lint.keeping import ADDERS, INFO, PART, Keeping, initial_state, raised_name
from cpythonplus.memory._lint.model import Violation
from cpythonplus.memory._lint.scopes import names_of
from cpythonplus.memory._lint.source import Function, Source, at, dotted, within

_KEEPS = re.compile(rf"(?<![=!<>])=(?!=)|\.(?:{'|'.join(sorted(ADDERS))})\(")

CODES = frozenset({"CYC101", "CYC102", "CYC103", "CYC104", "CYC105"})


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    for function in candidates(source):
        for origin in sorted(kept(source, function), key=_place):
            if not _broken_elsewhere(function, origin):
                yield at(origin.node, origin.code, _message(origin))


def candidates(source: Source) -> list[Function]:
    """The functions that may keep an exception, as far as can be told without following them."""
    found = [function for function, handler in source.handlers if _may_keep(source, handler)]
    found += [function for function, node in source.raises if raised_name(node) is not None]
    lines = sorted({*source.lines_with("exc_info"), *source.lines_with("exception()")})
    found += [function for function in source.functions if within(lines, function.node)]
    return list({id(function): function for function in found}.values())


def _may_keep(source: Source, handler: ast.ExceptHandler) -> bool:
    """Whether a handler assigns something, or adds something to a container."""
    last = handler.end_lineno or handler.lineno
    return _KEEPS.search(source.excerpt(handler.body[0].lineno, last)) is not None


def kept(source: Source, function: Function) -> set[Origin]:
    """What a function still holds when it is left, on one way out at least."""
    names = names_of(function.node).global_names if "global" in source.text else ()
    domain = Keeping(source, frozenset(names))
    try:
        out = Flow(domain).run(function.node.body, initial_state(function.node))
    except TooComplexError:
        return set()
    ways: list[State] = [way for way in (out.normal, out.returns, out.raises) if way is not None]
    found = {origin for way in ways for origins in way.values() for origin in origins}
    return {origin for origin in found if origin.code in CODES}


def _place(origin: Origin) -> tuple[int, int, str]:
    return origin.node.lineno, origin.node.col_offset, origin.path


def _message(origin: Origin) -> str:
    path = origin.path
    what = "`exc_info()`" if origin.kind in (INFO, PART) else "exception"
    match origin.code:
        case "CYC101":
            return f"exception kept in `{path}`, on its own traceback; `finally: del {path}`"
        case "CYC102":
            return f"`exc_info()` kept in `{path}`, on its own traceback; `finally: del {path}`"
        case "CYC103":
            return f"{what} put into `{path.removesuffix('[]')}`, which outlives the handler"
        case "CYC104":
            return f"{what} kept in `{path}` with all frames of its traceback"
        case _:
            return f"`raise {path}` leaves `{path}` on its own traceback; `finally: del {path}`"


# ---- what other functions clear -----------------------------------------------------------------


def _broken_elsewhere(function: Function, origin: Origin) -> bool:
    """Whether another function of the class, or around this one, clears what is kept."""
    path = origin.path.removesuffix("[]")
    if "." in path and function.owner is not None:
        own = function.node
        methods = (one for one in function.owner.body if one is not own)
        return any(clears(method, path) for method in methods if _is_not_init(method))
    return function.outer is not None and _outer_clears(function, path)


def _is_not_init(node: ast.stmt) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in (
        "__init__",
        "__new__",
        "__init_subclass__",
        "__set_name__",
    )


def _outer_clears(function: Function, path: str) -> bool:
    """Whether the function that a `nonlocal` variable belongs to clears it later."""
    if path not in names_of(function.node).nonlocal_names:
        return False
    outer = function.outer
    while outer is not None and path not in names_of(outer.node).bound:
        outer = outer.outer
    if outer is None:
        return False
    end = function.node.end_lineno or 0
    return any(clears(one, path, after=end) for one in outer.node.body)


def clears(node: ast.stmt, path: str, after: int = 0) -> bool:
    """Whether a statement, or one inside it behind line `after`, empties `path`."""
    for inner in ast.walk(node):
        if getattr(inner, "lineno", 0) <= after:
            continue
        match inner:
            case ast.Assign(targets=targets, value=value) if _is_empty(value):
                if any(_names(target, path) for target in targets):
                    return True
            case ast.Delete(targets=targets):
                if any(_names(target, path) for target in targets):
                    return True
            case ast.Call(func=ast.Attribute(value=holder, attr="clear" | "pop" | "popleft")):
                if dotted(holder) == path:
                    return True
            case _:
                pass
    return False


def _names(target: ast.expr, path: str) -> bool:
    """Whether a target is the path, or a part of it or of what it unpacks to."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_names(part, path) for part in target.elts)
    if isinstance(target, ast.Subscript):
        target = target.value
    return dotted(target) == path


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=None) | ast.List(elts=[]) | ast.Dict(keys=[]) | ast.Tuple(elts=[]):
            return True
        case ast.Tuple(elts=elements):
            return all(_is_empty(element) for element in elements)
        case ast.Call(func=ast.Name(id="list" | "dict" | "set" | "deque"), args=[]):
            return True
        case _:
            return False
