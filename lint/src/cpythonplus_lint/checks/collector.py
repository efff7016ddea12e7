"""CYC401: `gc.enable()` in a library; the application decides whether the collector runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from cpythonplus_lint.checks.source import FUNCTIONS, TRIES, Source, at, own_nodes
from cpythonplus_lint.model import Violation

CODES = frozenset({"CYC401"})

_TEST_FILE = re.compile(r"test_.*|.*_tests?|tests?|conftest|setup")
_TEST_FOLDERS = {"test", "tests", "testing", "benchmarks", "examples"}


def check(source: Source) -> Iterator[Violation]:
    """Yield the hits of a file."""
    text = source.text
    if "gc.enable(" not in text and "from gc import" not in text:
        return
    if _is_application(source):
        return
    for scope, calls in _scopes(source):
        enabling = [call for call in calls if source.full_name(call.func) == "gc.enable"]
        if enabling and not _restores(scope, calls, source):
            for call in enabling:
                yield at(call, "CYC401", "`gc.enable()` in a library overrides the application")


def _is_application(source: Source) -> bool:
    """Whether the file is a script or a test."""
    path = PurePath(source.name)
    in_tests = not _TEST_FOLDERS.isdisjoint(path.parent.parts)
    return (
        source.text.startswith("#!")
        or path.stem == "__main__"
        or in_tests
        or _TEST_FILE.fullmatch(path.stem) is not None
    )


def _scopes(source: Source) -> Iterator[tuple[ast.AST, list[ast.Call]]]:
    """Each function, and the module outside of `if __name__ == ...`, with the calls in it."""
    for scope in (source.tree, *(one.node for one in source.functions)):
        nodes = own_nodes(scope.body, _is_elsewhere)
        yield scope, [node for node in nodes if isinstance(node, ast.Call)]


def _is_elsewhere(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case _:
            return False


def _restores(scope: ast.AST, calls: list[ast.Call], source: Source) -> bool:
    """Whether `gc.enable()` restores a state: in `__exit__`, by `gc.isenabled()`, in `finally`."""
    if isinstance(scope, FUNCTIONS) and scope.name in ("__exit__", "__aexit__", "enable"):
        return True
    names = {source.full_name(call.func) for call in calls}
    if "gc.isenabled" in names:
        return True
    if "gc.disable" not in names:
        return False
    return any(
        source.full_name(call.func) == "gc.enable"
        for node in ast.walk(scope)
        if isinstance(node, TRIES)
        for statement in node.finalbody
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
    )
