"""The face of the package: each public name is documented, typed and reachable by one path.

After trio's test of its exports (`src/trio/_tests/test_exports.py`): public is what stands in the
`__all__` of a module no part of whose name begins with an underscore.
"""

import ast
import copyreg
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from cpythonplus import _native
from tools.docs_site.modules import BY_NAME, PACKAGE, STANDARD, path_of, public_modules

ROOT = Path(__file__).resolve().parent.parent
FACES = {"gil", "threads", "tasklets", "memory", "prefork", "dask", "stackless"}
# Drop-ins have the names of the modules in whose place they are used.
DROP_INS = re.compile(r"cpythonplus\.(stackless|threads|tasklets\.(locks|io\.\w+))$")
MODULES = public_modules()


def loaded(name: str) -> ModuleType | None:
    """Return a module, None where what it is for is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("cpythonplus"):
            raise
        return None


LOADED = {
    name: module for name in MODULES if name not in BY_NAME and (module := loaded(name)) is not None
}
# dask has every exception and traceback pickled in another way, also those of other tests.
for kind, reducer in [*copyreg.dispatch_table.items()]:
    if getattr(reducer, "func", reducer).__module__.startswith("tblib"):
        del copyreg.dispatch_table[kind]


def names_of(module: ModuleType) -> list[str]:
    return [name for name in module.__all__ if not name.startswith("__")]


def test_only_the_faces_are_public() -> None:
    assert {name.split(".")[1] for name in MODULES if "." in name} == FACES


@pytest.mark.parametrize("name", LOADED)
def test_a_public_module_says_what_it_exports(name: str) -> None:
    module = LOADED[name]
    assert module.__doc__
    assert len(set(module.__all__)) == len(module.__all__)
    for each in module.__all__:
        assert hasattr(module, each), f"{name}.{each}"
        assert not each.startswith("_") or each == "__version__"


def test_each_name_is_reachable_by_one_path() -> None:
    paths: dict[int, list[str]] = {}
    for name, module in LOADED.items():
        if DROP_INS.match(name):
            continue
        for each in names_of(module):
            value = getattr(module, each)
            if isinstance(value, type) or callable(value):
                paths.setdefault(id(value), []).append(f"{name}.{each}")
    assert [found for found in paths.values() if len(found) > 1] == []


def documented() -> str:
    return "".join(page.read_text("utf-8") for page in (ROOT / "docs/reference").glob("*.md"))


def is_documented(module: str, name: str, text: str) -> bool:
    """By its docstring, or by hand: as code in a page of the reference."""
    return f"<!-- generated: {module}.{name} -->" in text or bool(
        re.search(rf"(?:`(?:[\w.]+\.)?{name}[`(]|^#+ (?:[\w.]+\.)?{name}$)", text, re.MULTILINE)
    )


@pytest.mark.parametrize("name", sorted({*LOADED} - STANDARD))
def test_each_name_is_documented(name: str) -> None:
    module = LOADED[name]
    pages = documented()
    missing = [
        each
        for each in names_of(module)
        if not isinstance(getattr(module, each), ModuleType)
        and not is_documented(name, each, pages)
    ]
    assert missing == []
    undocumented = [each for each in names_of(module) if not inspect.getdoc(getattr(module, each))]
    assert undocumented == []


def statically_known(path: Path) -> set[str]:
    """Return the names that a module defines or imports, for who reads it without running it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                found |= {each.asname or each.name for each in names}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
    return found


@pytest.mark.parametrize("name", LOADED)
def test_each_name_is_known_to_type_checkers(name: str) -> None:
    """What they make of it, `make check` tells: mypy is strict about each definition."""
    module = LOADED[name]
    known = statically_known(path_of(name))
    if "*" in known:  # stackless: of tasklets
        known |= statically_known(PACKAGE / "tasklets" / "__init__.py")
    if name in STANDARD:
        known |= {*dir(import_module(name.rpartition(".")[2]))}
    assert {*names_of(module)} - known == set()


def test_natives_have_stubs() -> None:
    stubs = statically_known(PACKAGE / "_native.pyi")
    assert {name for name in dir(_native) if not name.startswith("__")} - stubs == set()
    assert (PACKAGE / "py.typed").exists()
