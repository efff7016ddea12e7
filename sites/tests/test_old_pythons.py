"""All but the clock's script is for Python 3.9 and later: neither grammar nor names are newer.

The tests themselves run there by `make old-pythons`.
"""

import ast
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import cpythonplus_sites

any_version = pytest.mark.any_version

PACKAGE = Path(cpythonplus_sites.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
OLDEST = (3, 9)

NEWER_MODULES = {
    "tomllib",
    "compression",
    "annotationlib",
    "pathlib.types",
    "concurrent.interpreters",
}
NEWER_NAMES = {
    "asyncio": {"Runner", "TaskGroup", "timeout"},
    "collections.abc": {"Buffer"},
    "contextlib": {"aclosing", "chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumType", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "functools": {"Placeholder"},
    "hashlib": {"file_digest"},
    "inspect": {"get_annotations", "markcoroutinefunction"},
    "itertools": {"batched", "pairwise"},
    "os": {"EFD_CLOEXEC", "process_cpu_count", "splice", "unshare"},
    "sys": {"exception", "orig_argv", "stdlib_module_names"},
    "types": {"EllipsisType", "NoneType", "NotImplementedType", "UnionType", "get_original_bases"},
    "typing": {
        *("Concatenate", "LiteralString", "Never", "NotRequired", "ParamSpec", "Required", "Self"),
        *("TypeAlias", "TypeAliasType", "TypeGuard", "TypeIs", "TypeVarTuple", "Unpack"),
        *("assert_never", "assert_type", "dataclass_transform", "override", "reveal_type"),
    },
}
NEWER_METHODS = {"bit_count", "hardlink_to", "walk_up", "full_match", "add_note"}
NEWER_ARGUMENTS = {
    "dataclass": {"slots", "kw_only", "match_args", "weakref_slot"},
    "zip": {"strict"},
    "map": {"strict"},
    "TemporaryDirectory": {"delete", "ignore_cleanup_errors"},
    "rmtree": {"onexc"},
    "relative_to": {"walk_up"},
    "bisect_left": {"key"},
    "bisect_right": {"key"},
    "exists": {"follow_symlinks"},
}


def newer(source: str) -> Iterator[str]:
    """Give what of a source Python 3.9 does not have; what only type checkers see may be newer."""
    tree = ast.parse(source, feature_version=OLDEST)
    is_lazy = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )
    for node in _at_run_time(tree, is_lazy=is_lazy):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imported(node)
        elif isinstance(node, ast.Attribute):
            known = NEWER_NAMES.get(node.value.id) if isinstance(node.value, ast.Name) else None
            if node.attr in NEWER_METHODS or (known and node.attr in known):
                yield f"{node.lineno}: {node.attr}"
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            words = {word.arg or "" for word in node.keywords} & NEWER_ARGUMENTS.get(called, set())
            yield from (f"{node.lineno}: {word}=" for word in words)
            if called == "to_bytes" and len(node.args) + len(node.keywords) < 2:
                yield f"{node.lineno}: to_bytes"
            if called in {"isinstance", "issubclass"} and isinstance(node.args[1], ast.BinOp):
                yield f"{node.lineno}: {called} with |"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = ast.unparse(node)
            if re.search(r"\b(None|str|int|bool|bytes|float|Path|list|dict|tuple)\b(?!\()", sides):
                yield f"{node.lineno}: {sides}"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = {each.name for each in node.names}
    if isinstance(node, ast.Import):
        yield from (f"{node.lineno}: {name}" for name in names & NEWER_MODULES)
        return
    if node.module in NEWER_MODULES:
        yield f"{node.lineno}: {node.module}"
    found = names & NEWER_NAMES.get(node.module or "", set())
    yield from (f"{node.lineno}: {node.module}.{name}" for name in found)


def _at_run_time(node: ast.AST, *, is_lazy: bool) -> Iterator[ast.AST]:
    """Give the nodes that are carried out on an old Python."""
    if isinstance(node, ast.If):
        condition = ast.unparse(node.test)
        if condition == "TYPE_CHECKING" or condition.startswith("sys.version_info >="):
            for each in node.orelse:
                yield from _at_run_time(each, is_lazy=is_lazy)
            return
    yield node
    left_out = {"annotation", "returns"} if is_lazy else set()
    for name, value in ast.iter_fields(node):
        if name in left_out:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _at_run_time(each, is_lazy=is_lazy)


@any_version
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nothing_is_newer(path: Path) -> None:
    assert list(newer(path.read_text("utf-8"))) == []


@any_version
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import tomllib", "tomllib"),
        ("from itertools import pairwise", "itertools.pairwise"),
        ("from datetime import UTC", "datetime.UTC"),
        ("import sys\nsys.exception()", "exception"),
        ("zip(a, b, strict=True)", "strict="),
        ("@dataclass(frozen=True, slots=True)\nclass A: pass", "slots="),
        ("isinstance(a, int | str)", "isinstance with |"),
        ("Keys = tuple[str | int, ...]", "str | int"),
        ("def f(a: int | None) -> None: pass", "int | None"),
        ("x.to_bytes(4)", "to_bytes"),
        ("path.hardlink_to(other)", "hardlink_to"),
    ],
)
def test_what_is_newer_is_found(source: str, found: str) -> None:
    assert any(found in each for each in newer(source)), list(newer(source))
    quiet = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
    assert list(newer(quiet + "".join(f"    {line}\n" for line in source.split("\n")))) == []


@any_version
@pytest.mark.parametrize("source", ["match a:\n    case 1: pass", "try: pass\nexcept* E: pass"])
def test_newer_grammar_is_found(source: str) -> None:
    with pytest.raises(SyntaxError):
        list(newer(source))


@any_version
@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations\ndef f(a: int | None) -> Self: pass",
        "os.O_RDWR | os.O_CLOEXEC",
        "data = a | b",
        "x.to_bytes(4, 'big')",
    ],
)
def test_what_is_not_newer_is_not(source: str) -> None:
    assert list(newer(source)) == []


@pytest.mark.skipif(sys.version_info < (3, 14), reason="some of the names are newer")
def test_the_lists_are_of_what_there_is() -> None:
    """On a Python that has them all: a misspelled name would never be found."""
    for name, names in NEWER_NAMES.items():
        module = __import__(name, fromlist=["*"])
        assert isinstance(module, types.ModuleType)
        assert {each for each in names if not hasattr(module, each)} == set()
