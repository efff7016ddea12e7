"""Which files and folders of a room need which others; docs/contributing/map.md has the table.

Read from the sources as text and syntax trees; tests/test_layering.py refuses circles in it.
"""

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "COMMENT",
    "PACKAGE",
    "ROOMS",
    "c_needs",
    "circle",
    "folder_needs",
    "map_of",
    "python_needs",
]

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "cpythonplus"

ROOMS = (
    "_base",
    "_interp",
    "gil",
    "threads",
    "tasklets",
    "_heap",
    "_compact",
    "memory",
    "prefork",
    "_doctor",
)
"""From the lowest up."""

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

# Definitions for other files, as clang-format lays them out: a function's name is at the left
# margin below its type, a variable ends at its value or its semicolon.
C_DEFINITION = re.compile(r"^(?!static)\w[^\n;={}()]*\n(plus_\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
C_VARIABLES = re.compile(
    r"^(?!extern|typedef|static|return)\w[\w *]*?\bplus_[^\n(){}]*[=;]", re.MULTILINE
)
C_NAME = re.compile(r"\bplus_\w+")
C_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def c_needs(room: Path) -> dict[str, set[str]]:
    """Which others each x.c with its x.h needs: whose header it includes, whose names it uses.

    Files are told by their paths in the room, without a suffix.
    """
    texts = {path: COMMENT.sub("", path.read_text()) for path in sorted(room.rglob("*.[ch]"))}
    unit = {path: path.relative_to(room).with_suffix("").as_posix() for path in texts}
    defined: dict[str, set[str]] = {name: set() for name in unit.values()}
    for path, text in texts.items():
        if path.suffix == ".c":
            defined[unit[path]] |= set(C_DEFINITION.findall(text))
            for match in C_VARIABLES.finditer(text):
                # In `struct plus_x *plus_a, *plus_b = ...` the type is nobody's name here.
                names = re.sub(r"\b(?:struct|enum|union)\s+\w+", "", match[0].partition("=")[0])
                defined[unit[path]] |= set(C_NAME.findall(names))
    needs: dict[str, set[str]] = {name: set() for name in defined}
    for path, text in texts.items():
        headers = re.findall(r'#include "([\w./]+\.h)"', text)
        included = {unit.get((path.parent / name).resolve(), "") for name in headers} - {""}
        used = set(C_NAME.findall(C_STRING.sub("", text))) - defined[unit[path]]
        called = {name for name in defined if path.suffix == ".c" and used & defined[name]}
        needs[unit[path]] |= (included | called) - {unit[path]}
    return needs


def python_needs(room: Path, *, types: bool = False) -> dict[str, set[str]]:
    """Which others each module imports, also within a function; types: also for types alone.

    room: a folder of the package, or the package of another distribution. Modules are told by their
    paths in it, without a suffix.
    """
    parent = "" if room.parent.name == "src" else f"{room.parent.name}."
    modules = {path.relative_to(room).with_suffix("").as_posix() for path in room.rglob("*.py")}
    needs: dict[str, set[str]] = {module: set() for module in modules}
    for path in room.rglob("*.py"):
        user = path.relative_to(room).with_suffix("").as_posix()
        tree = ast.parse(path.read_text())
        for_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or (id(node) in for_types and not types):
                continue
            source, own, within = (node.module or "").partition(f"{parent}{room.name}")
            if source or not own or within[:1] not in ("", "."):
                continue
            folder = within.replace(".", "/")
            for alias in node.names:
                name = f"{folder}/{alias.name}"
                found = {name[1:], f"{name[1:]}/__init__"} & modules
                needs[user] |= found or {folder[1:], f"{folder}/__init__"[1:]} & modules
        needs[user].discard(user)
    return needs


def circle(needs: dict[str, set[str]]) -> list[str]:
    """The files of one circle, in order, the first once more at the end; none: empty."""
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def folder_needs(*graphs: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which other folders each folder of a room needs; "" is the room's own."""
    folders: dict[str, set[str]] = {}
    for user, used in (row for needs in graphs for row in needs.items()):
        own = user.rpartition("/")[0]
        folders.setdefault(own, set()).update(each.rpartition("/")[0] for each in used)
    return {own: used - {own} for own, used in folders.items()}


# ---- the map ------------------------------------------------------------------------------------


def _purpose(folder: Path) -> str:
    """Return what a folder is for: the first line of its meson.build."""
    return (folder / "meson.build").read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _rows(room: Path) -> Iterator[list[str]]:
    for name, used in sorted(folder_needs(c_needs(room), python_needs(room)).items()):
        uses = ", ".join(f"`{each}`" for each in sorted(used - {""}))
        yield [f"`{name or room.name}`", _purpose(room / name), uses]


def map_of(room: str) -> str:
    """Return a table of a room's folders: what each is for, and which others it uses."""
    rows = [["folder", "what is in it", "uses"], ["---", "---", "---"]]
    rows += _rows(PACKAGE / room)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
