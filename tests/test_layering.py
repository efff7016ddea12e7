"""The rooms depend one way, and every shared file keeps to its one job.

    _base <- gil <- threads <- tasklets     prefork, _compact, _compare: none of these but _base
    _base <- _interp: what is known of the interpreter's insides
    _base <- _interp <- _heap <- memory: the walk over all objects, and what is asked of it
    _doctor: the one room that may know all that can be examined
    _cli: the public Python API only
    the distributions in lint/ and sites/: nothing of this package
    (MORE_ARROWS has the files that use more than their room)

Read from the sources as text and syntax trees, so it holds without the package being built.
"""

import ast
import graphlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.arrows import COMMENT, c_needs, circle, folder_needs, python_needs

pytestmark = pytest.mark.any_version

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "cpythonplus"
LINT = ROOT / "lint" / "src" / "cpythonplus_lint"
SITES = ROOT / "sites" / "src" / "cpythonplus_sites"

EVERYTHING = frozenset(
    {"_base", "_interp", "gil", "threads", "tasklets", "_heap", "_compact", "memory", "prefork"}
    | {"_doctor", "_compare", "_cli"}
)
# Which other rooms a room may use.
ARROWS = {
    "_base": frozenset[str](),
    "_interp": frozenset({"_base"}),
    "gil": frozenset({"_base", "_interp"}),
    "threads": frozenset({"_base", "_interp", "gil"}),
    "tasklets": frozenset({"_base", "_interp", "gil", "threads"}),
    "_heap": frozenset({"_base", "_interp"}),
    "_compact": frozenset({"_base", "_interp"}),
    "memory": frozenset({"_base", "_interp", "_heap"}),
    "prefork": frozenset({"_base", "_interp"}),
    "_doctor": frozenset(
        {"_base", "_interp", "_heap", "gil", "threads", "tasklets", "memory", "prefork"}
    ),
    "_compare": frozenset({"_base"}),
    "_cli": EVERYTHING,
}
# Other rooms that single files use, and why.
MORE_ARROWS = {
    "_doctor/top/answering.py": frozenset({"tasklets"}),  # in a process that has tasklets
    "memory/__init__.py": frozenset({"_compact"}),  # public names of memory
    "memory/_examined.py": frozenset({"_doctor"}),  # what an examination returns prints itself
    "memory/report.py": frozenset({"_doctor"}),  # public names of what the doctor writes
    "prefork/_activation.py": frozenset({"gil", "threads"}),  # what a server's workers get
}
# Files beside the rooms.
LOOSE_FILES = {
    "__init__.py": EVERYTHING - {"_cli", "_compare"},
    "__main__.py": frozenset({"_cli"}),
    "_start.py": frozenset({"_cli"}),
    "dask.py": frozenset({"_base", "gil", "memory", "threads"}),
    "stackless.py": frozenset({"tasklets"}),
    "_native.c": EVERYTHING - {"_cli", "_compare"},
    "_native.pyi": EVERYTHING - {"_cli", "_compare"},
}
WITHOUT_C = frozenset({"_cli", "_compare"})
# What the command line uses of other rooms beside their public names, and why that is not public.
DOORS_OF_CLI = {
    "gil._control": "the start-up installs by numbers: the data class costs more than that",
    "gil._limits": "likewise",
    "gil._stall_watch": "an option of `run`; a program asks gil.stalls()",
    "prefork._gunicorn": "has no other face than `serve`",
    "prefork._routes": "an option of `run`",
    "prefork._options": "which options gunicorn itself does not have",
    "threads._deadlock_watch": "an option of `run`; a program asks threads.waits()",
    "threads._patching": "the start-up does without the loading of names on demand",
    "threads._primitives": "an uncaught exception's words name natives, if they are loaded",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


@dataclass(frozen=True)
class Use:
    """Line `line` of `path` uses `target`: a path inside the package, without a suffix."""

    path: Path
    line: int
    target: tuple[str, ...]


# ---- what a file uses ---------------------------------------------------------------------------


def python_uses(package: Path, path: Path) -> Iterator[Use]:
    """Imports of the package's own modules, wherever they stand, also under TYPE_CHECKING."""
    own = ("cpythonplus", *path.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = [*own[: len(own) - node.level + 1]] if node.level else []
            source = ".".join([*parts, *filter(None, [node.module])])
            names = [f"{source}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Modules named in strings: import_module(), -m and the like.
            names = [node.value] if re.fullmatch(r"cpythonplus(\.\w+)+", node.value) else []
        for name in names:
            first, *rest = name.split(".")
            if first == "cpythonplus" and rest:
                yield Use(path, getattr(node, "lineno", 0), tuple(rest))


def c_uses(package: Path, path: Path) -> Iterator[Use]:
    """Quoted includes, found as the compiler finds them: beside the file, then in the package."""
    for number, text in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(text)
        if match is None:
            continue
        beside = (path.parent / match[1]).resolve()
        if not beside.exists() or not beside.is_relative_to(package):
            beside = (package / match[1]).resolve()
        if beside.is_relative_to(package):
            yield Use(path, number, beside.relative_to(package).with_suffix("").parts)


def uses(package: Path) -> Iterator[Use]:
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", ".pyi"}:
            yield from python_uses(package, path)
        elif path.suffix in {".c", ".h"}:
            yield from c_uses(package, path)


# ---- what it may use ----------------------------------------------------------------------------


def complaint(package: Path, use: Use) -> str | None:
    """Why this use is forbidden, or None."""
    inside = use.path.relative_to(package).parts
    room = inside[0]
    target = use.target[0]
    allowed = LOOSE_FILES.get(room) if len(inside) == 1 else ARROWS.get(room)
    more = MORE_ARROWS.get("/".join(inside), frozenset())
    if target == room:
        return None
    if target == "_native" and room in WITHOUT_C:
        return f"{room} -> _native: it uses none of the C"
    if room == "_cli" and target in ARROWS:
        within = use.target[1:]
        hidden = [part for part in within if part.startswith("_") and not part.endswith("__")]
        if hidden and ".".join(use.target[:2]) not in DOORS_OF_CLI:
            return f"{room} -> {'.'.join(use.target)}: only the public API"
    if target in ARROWS and target not in (allowed or ()) and target not in more:
        return f"{room} -> {target}"
    return None


def violations(package: Path) -> list[str]:
    package = package.resolve()
    found = []
    for use in uses(package):
        reason = complaint(package, use)
        if reason is not None:
            found.append(f"{use.path.relative_to(package.parent)}:{use.line}: {reason}")
    found += (
        f"{path.relative_to(package.parent)}:1: a room that no rule names"
        for path in sorted(package.iterdir())
        if path.is_dir() and path.name not in {*ARROWS, "__pycache__"}
    )
    for room in sorted(WITHOUT_C):
        found += (
            f"{path.relative_to(package.parent)}:1: {room} has no C"
            for path in sorted((package / room).rglob("*.[ch]"))
        )
    return found


def test_the_rooms_depend_one_way() -> None:
    assert violations(PACKAGE) == []


def test_the_command_line_goes_through_each_of_its_doors() -> None:
    used = {".".join(use.target[:2]) for use in uses(PACKAGE) if "_cli" in use.path.parts}
    assert set(DOORS_OF_CLI) - used == set()


def test_no_module_of_cli_is_needed_by_one_that_it_needs() -> None:
    """Nor is the entry point by any: commands lie above what they share, and below it."""
    package = PACKAGE / "_cli"
    modules = {
        ("_cli", *path.relative_to(package).with_suffix("").parts) for path in package.rglob("*.py")
    }
    needs: dict[tuple[str, ...], set[tuple[str, ...]]] = {module: set() for module in modules}
    for use in (use for path in package.rglob("*.py") for use in python_uses(PACKAGE, path)):
        user = use.path.relative_to(PACKAGE).with_suffix("").parts
        needs[user] |= {use.target, use.target[:-1]} & (modules - {user})
    assert [module for module in modules if ("_cli", "main") in needs[module]] == []
    graphlib.TopologicalSorter(needs).prepare()  # CycleError names the circle


@pytest.mark.parametrize("package", [LINT, SITES], ids=["lint", "sites"])
def test_a_distribution_of_its_own_uses_none_of_them(package: Path) -> None:
    assert len(list(package.rglob("*.py"))) > 20
    assert list(uses(package)) == []


@pytest.mark.parametrize(
    ("package", "module", "needed"),
    [(LINT, "checking", {"checks/source", "model"}), (SITES, "watching", {"live", "model"})],
    ids=["lint", "sites"],
)
def test_no_file_of_the_distribution_is_needed_by_one_that_it_needs(
    package: Path, module: str, needed: set[str]
) -> None:
    """Also not for types alone, or within a function."""
    needs = python_needs(package, types=True)
    assert circle(needs) == []
    assert needed <= needs[module]


# ---- the test would catch it --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("_base/a.py", "import os\nfrom cpythonplus.gil import install\n", ":2: _base -> gil"),
        ("_base/a.py", "from cpythonplus import gil\n", ":1: _base -> gil"),
        ("_base/a.py", "from ..gil import install\n", ":1: _base -> gil"),
        ("_base/a.py", "def f():\n    import cpythonplus.gil\n", ":2: _base -> gil"),
        ("_base/a.py", "import_module('cpythonplus.gil._policy')\n", ":1: _base -> gil"),
        ("gil/a.py", "from cpythonplus.threads import Lock\n", ":1: gil -> threads"),
        ("memory/a.py", "from cpythonplus.gil import install\n", ":1: memory -> gil"),
        ("prefork/a.py", "import cpythonplus.memory\n", ":1: prefork -> memory"),
        ("_cli/a.py", "from cpythonplus._native import f\n", ":1: _cli -> _native"),
        ("_cli/a.py", "from cpythonplus.gil._x import f\n", ":1: _cli -> gil._x.f"),
        ("memory/deep/er/a.py", "from cpythonplus._cli import main\n", ":1: memory -> _cli"),
        ("_base/a.h", '\n#include "../gil/queue.h"\n', ":2: _base -> gil"),
        ("_base/a.c", '#include "gil/queue.h"\n', ":1: _base -> gil"),
        ("memory/a.c", '#  include "../gil/queue.h"\n', ":1: memory -> gil"),
        ("_cli/a.c", "int x;\n", ":1: _cli has no C"),
        ("attic/a.py", "", ":1: a room that no rule names"),
    ],
)
def test_a_forbidden_arrow_is_found(tmp_path: Path, file: str, text: str, expected: str) -> None:
    package = tmp_path / "cpythonplus"
    (package / "gil").mkdir(parents=True)
    (package / "gil" / "queue.h").write_text("")
    path = package / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (found,) = violations(package)
    where = file if "attic" not in file else "attic"
    assert found.startswith(f"cpythonplus/{where}{expected}")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("gil/a.py", "from cpythonplus._base import UnsupportedPlatform\n"),
        ("gil/a.py", "from cpythonplus import _native\n"),
        ("_cli/a.py", "from cpythonplus import __version__, gil\nimport cpythonplus.memory\n"),
        ("_cli/a.py", "import gil, base\nfrom cpythonplus._cli._private import x\n"),
        ("gil/a.c", '#include "queue.h"\n#include "../_base/futex.h"\n#include <gil/none.h>\n'),
        ("_native.c", '#include "gil/queue.h"\n#include "_base/futex.h"\n'),
    ],
)
def test_an_allowed_arrow_is_not(tmp_path: Path, file: str, text: str) -> None:
    package = tmp_path / "cpythonplus"
    for header in ("gil/queue.h", "_base/futex.h"):
        (package / header).parent.mkdir(parents=True)
        (package / header).write_text("")
    (package / file).parent.mkdir(exist_ok=True)
    (package / file).write_text(text)
    assert violations(package) == []


# ---- one room knows the interpreter's insides ---------------------------------------------------

# What only _interp may write: internal headers, and fields and words that no public function gives.
PRIVATE = re.compile(
    r"\bPy_BUILD_CORE\b|\bpycore_|\b_co_\w+|\bob_flags\b|\bma_version_tag\b|\bf_frame\b|->interp\b"
    r"|\btstate->\w|\)\[-\d\]|\bwords\[-|_PyInterpreterFrame \*\w+->"
)


def private_uses(package: Path) -> list[str]:
    found = []
    for path in sorted(package.rglob("*.[ch]")):
        if path.relative_to(package).parts[0] == "_interp":
            continue
        code = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), path.read_text())
        found += [
            f"{path.relative_to(package)}:{number}: {match[0]}"
            for number, line in enumerate(code.splitlines(), 1)
            for match in PRIVATE.finditer(line)
        ]
    return found


def test_one_room_knows_the_interpreters_insides() -> None:
    assert private_uses(PACKAGE) == []


@pytest.mark.parametrize(
    "line",
    [
        "#define Py_BUILD_CORE 1",
        '#include "internal/pycore_frame.h"',
        "return ((uintptr_t *)op)[-2] != 0;",
        "return tstate->current_frame;",
        "return code->_co_firsttraceable;",
        "op->ob_flags |= 1;",
    ],
)
def test_other_knowledge_of_them_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "gil").mkdir()
    (tmp_path / "_interp").mkdir()
    (tmp_path / "_interp" / "a.c").write_text(line + "\n")
    (tmp_path / "gil" / "a.c").write_text(f"/* pycore_\n */\n{line}\n")
    (found,) = private_uses(tmp_path)
    assert found.startswith("gil/a.c:3: ")


# ---- no circle of files in a room ----------------------------------------------------------------


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_no_files_of_a_room_need_each_other(room: str) -> None:
    """Neither by includes nor by calls; what lies below reaches up through a table of functions."""
    assert circle(c_needs(PACKAGE / room)) == []
    assert circle(python_needs(PACKAGE / room)) == []


@pytest.mark.parametrize("room", sorted(ARROWS))
def test_no_folders_of_a_room_need_each_other(room: str) -> None:
    needs = folder_needs(c_needs(PACKAGE / room))
    assert circle({own: used - {""} for own, used in needs.items() if own}) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.c": '#include "b.h"\n', "b.h": '#include "a.h"\n', "a.h": ""}, {"a", "b"}),
        (
            {
                "a.c": "int\nplus_a(void)\n{\n    return plus_b();\n}\n",
                "b.c": "int\nplus_b(void)\n{\n    return plus_a();\n}\n",
            },
            {"a", "b"},
        ),
        (
            {
                "a.c": "struct plus_s *plus_x, *plus_a = NULL;\n",
                "b.c": "int\nplus_b(int x,\n       int y)\n{\n    return plus_a == NULL;\n}\n",
                "c.c": "int plus_c;\nint use = plus_b(0, 1);\n",
                "a.h": '#include "c.h"\n',
                "c.h": "",
            },
            {"a", "b", "c"},
        ),
        (
            {
                "a.c": 'char plus_a[] = "plus_b";\nint\nplus_same(void)\n{\n    return 0;\n}\n',
                "b.c": "int\nplus_b(void)\n{\n    return plus_a[0]; /* plus_c */\n}\n",
                "other.c": "int\nplus_same(void)\n{\n    return plus_a[0];\n}\n",
                "c.c": "int plus_c = plus_b();\nvoid\nplus_d(void)\n{\n    plus_a[0] = 1;\n}\n",
            },
            set(),
        ),
    ],
    ids=["includes", "calls", "three", "none"],
)
def test_files_that_need_each_other_are_found(
    tmp_path: Path, files: dict[str, str], expected: set[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert set(circle(c_needs(tmp_path))) == expected


def test_modules_that_need_each_other_are_found(tmp_path: Path) -> None:
    room = tmp_path / "cpythonplus" / "gil"
    room.mkdir(parents=True)
    (room / "a.py").write_text("from cpythonplus.gil.b import x\n")
    (room / "b.py").write_text("def x():\n    from cpythonplus.gil import a\n")
    (room / "c.py").write_text("if TYPE_CHECKING:\n    from cpythonplus.gil.a import x\n")
    assert set(circle(python_needs(room))) == {"a", "b"}


# ---- one job per file ---------------------------------------------------------------------------

# A definition at the left margin, its name on a line of its own or after its type.
C_FUNCTION = re.compile(r"^(?:\w[\w\s*]*[\s*])?(\w+)\([^;]*?\)\s*\{", re.MULTILINE)
CONTROL_FLOW = re.compile(r"^\s+(?:\}\s*else\s+)?(for|while|do|switch|goto)\b", re.MULTILINE)


def not_a_table(text: str) -> list[str]:
    """What in a module's own C file is more than tables and the order of initialisation."""
    found = [f"it defines {name}()" for name in C_FUNCTION.findall(text) if not is_init(name)]
    found += [f"it has control flow: {word}" for word in CONTROL_FLOW.findall(text)]
    lines = text.count("\n")
    if lines > 160:
        found.append(f"it has {lines} lines")
    return found


def is_init(name: str) -> bool:
    """A module's entry point and its slots: exec, traverse, clear, free."""
    return name.startswith("PyInit_") or name.endswith(("_exec", "_traverse", "_clear", "_free"))


def test_the_native_module_is_a_table() -> None:
    assert not_a_table((PACKAGE / "_native.c").read_text()) == []


def test_work_in_the_native_module_is_found() -> None:
    good = "static int\nnative_exec(PyObject *module)\n{\n    return plus_gil_exec(module);\n}\n"
    bad = "static PyObject *\nhelp(PyObject *self)\n{\n    for (;;) {\n    }\n}\n"
    assert not_a_table(good) == []
    assert not_a_table(good + bad) == ["it defines help()", "it has control flow: for"]


def not_a_re_export(source: str) -> list[str]:
    """What in a room's __init__ is more than imports, __all__ and loading on demand."""
    found = []
    for node in ast.parse(source).body:
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]) if all(
                isinstance(inner, ast.Import | ast.ImportFrom) for inner in body
            ):
                continue
            case ast.Assign(targets=[ast.Name(id="__all__" | "_HOMES")]):
                continue
            case ast.Assign(value=ast.Call(func=ast.Name(id="_on_demand"))):  # PEP 562
                continue
            case ast.If(
                test=ast.UnaryOp(operand=ast.Name(id="TYPE_CHECKING")),
                body=[ast.Assign(value=ast.Call(func=ast.Name(id="_on_demand")))],
                orelse=[],
            ):
                continue
            case ast.Assign(
                targets=[ast.Name(id="TYPE_CHECKING")], value=ast.Constant(value=False)
            ):
                continue
            case ast.FunctionDef(name="__getattr__" | "__dir__"):  # PEP 562
                continue
            case _:
                found.append(f"{node.lineno}: {ast.unparse(node).splitlines()[0]}")
    return found


ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS, ids=[room.name for room in ROOMS])
def test_a_rooms_init_only_re_exports(room: Path) -> None:
    assert not_a_re_export((room / "__init__.py").read_text()) == []


def test_work_in_an_init_is_found() -> None:
    good = '"""Doc."""\nfrom cpythonplus._base.errors import X\n__all__ = ["X"]\n'
    assert not_a_re_export(good) == []
    assert not_a_re_export(good + "def f():\n    pass\n") == ["4: def f():"]


# ---- what is written gets built -----------------------------------------------------------------


def unlisted(package: Path) -> list[str]:
    """Files that no meson.build of their folder names, so that they would be left out silently."""
    found = []
    for path in sorted(package.rglob("*")):
        inside = path.relative_to(package)
        if path.is_dir() or "__pycache__" in inside.parts:
            continue
        if path.suffix in {".h", ".md", ".build"}:
            continue
        names = [
            re.findall(r"'([^'\n]+)'", (folder / "meson.build").read_text())
            for folder in (package / each for each in inside.parents)
            if (folder / "meson.build").exists()
        ]
        # In its own folder's file, or in one above that names the folder.
        own = (path.parent / "meson.build").exists()
        if not (path.name in names[0] if own else inside.name in names[0]):
            found.append(f"{inside} is in no meson.build")
        found += [
            f"{folder.relative_to(package)} is no subdir"
            for folder in (path.parent,)
            if own and folder != package and folder.name not in names[1]
        ]
    return sorted(set(found))


def test_every_file_is_listed_in_a_meson_build() -> None:
    assert unlisted(PACKAGE) == []


def test_a_file_that_is_not_listed_is_found(tmp_path: Path) -> None:
    (tmp_path / "gil").mkdir()
    (tmp_path / "gil" / "meson.build").write_text("py.install_sources('a.py')")
    (tmp_path / "gil" / "a.py").touch()
    (tmp_path / "gil" / "b.py").touch()
    (tmp_path / "meson.build").touch()
    assert unlisted(tmp_path) == ["gil is no subdir", "gil/b.py is in no meson.build"]


# ---- calls that take a tuple apart --------------------------------------------------------------

# With the format "O" alone, an argument that is a tuple is spread over the parameters.
SPREADS = re.compile(r'PyObject_Call(?:Method|Function)\s*\([^;]*?"O"\s*,', re.DOTALL)


def spreading_calls(text: str) -> list[str]:
    return [match.group(0) for match in SPREADS.finditer(text)]


def test_no_call_spreads_a_tuple() -> None:
    found = {path: spreading_calls(path.read_text()) for path in PACKAGE.rglob("*.c")}
    assert {path: calls for path, calls in found.items() if calls} == {}


def test_a_call_that_spreads_is_found() -> None:
    assert spreading_calls('x = PyObject_CallMethod(op, "put",\n    "O", item);')
    assert spreading_calls('PyObject_CallFunction(f, "O", item)')
    assert not spreading_calls('PyObject_CallMethod(op, "put", "(O)", item); f("O", x);')


# ---- one writer of files ------------------------------------------------------------------------

# Whatever makes, fills, renames or links a file by its name. A name that others can reach is
# written by _base/files.py alone, which does not follow what somebody else has put there.
WRITING_METHODS = frozenset(
    {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "symlink", "link", "mknod"}
    | {"rename", "renames", "mkdir", "makedirs", "mkfifo", "mkstemp", "NamedTemporaryFile"}
    | {"copy", "copy2", "copyfile", "copytree", "move", "truncate", "O_CREAT", "O_TRUNC"}
)
OTHER_WRITERS = {
    "_base/files.py": "the writer",
    "gil/_background.py": "the name of its own thread, in /proc",
    "_doctor/agent/remote.py": "in a folder that it has just made for itself (mkdtemp, 0700)",
}
WRITERS_OF_LINT = {"files.py": "the writer, as a copy"}
WRITERS_OF_SITES = {
    "files.py": "the writer, as a copy",
    "clock.py": "works as a file alone, without the package",
    "applying.py": "opens a lock in the folder of the keys, which nobody else can change",
    "key_change.py": "renames a key in the folder of the keys",
}


def writes(source: str) -> list[str]:
    """Where a file is made or filled by name, `LINE: WHAT`; `a.copy()` of anything is none."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="O_CREAT" | "O_TRUNC" | "O_TMPFILE" as name):
                found.append(f"{node.lineno}: {name}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="replace")):
                found.append(f"{node.lineno}: os.replace")
            case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
                found.append(f"{node.lineno}: replace")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="shutil" | "os"), attr=name)) if (
                name in WRITING_METHODS
            ):
                found.append(f"{node.lineno}: {name}")
            case ast.Call(func=ast.Attribute(attr=name)) if name in WRITING_METHODS - {
                "copy",
                "move",
                "link",
                "truncate",
            }:
                found.append(f"{node.lineno}: {name}")
            case ast.Call(func=ast.Name(id="open") | ast.Attribute(attr="open")) if opens_anew(
                node
            ):
                found.append(f"{node.lineno}: open")
    return found


def opens_anew(call: ast.Call) -> bool:
    modes = [*call.args[:2], *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [each.value for each in modes if isinstance(each, ast.Constant)]
    return any(isinstance(t, str) and re.fullmatch(r"[rbt]*[wax+][wbt+]*", t) for t in texts)


@pytest.mark.parametrize(
    ("package", "writers"),
    [(PACKAGE, OTHER_WRITERS), (LINT, WRITERS_OF_LINT), (SITES, WRITERS_OF_SITES)],
)
def test_nothing_bypasses_the_writer_of_files(package: Path, writers: dict[str, str]) -> None:
    found = {
        path.relative_to(package).as_posix(): where
        for path in sorted(package.rglob("*.py"))
        if (where := writes(path.read_text()))
    }
    assert {name: found[name] for name in found if name not in writers} == {}
    assert set(writers) - set(found) == set(), "these write no more: take them off the list"


@pytest.mark.parametrize(
    "line",
    [
        *("Path(x).write_text('')", "path.write_bytes(b'')", "open(x, 'w')", "path.open('ab')"),
        *("open(x, mode='x')", "path.open(mode='r+')", "os.open(x, os.O_CREAT)", "path.touch()"),
        *(
            "os.rename(a, b)",
            "path.rename(b)",
            "os.replace(a, b)",
            "path.replace(b)",
            "os.mkdir(x)",
        ),
        *("path.mkdir(parents=True)", "shutil.copyfile(a, b)", "a.symlink_to(b)", "os.link(a, b)"),
        *("tempfile.NamedTemporaryFile()", "tempfile.mkstemp()", "shutil.move(a, b)"),
    ],
)
def test_what_bypasses_it_is_found(line: str) -> None:
    assert len(writes(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        *("open(x)", "path.open('rb')", "open(x, 'r')", "text.replace(a, b)", "replace(data, a=1)"),
        *("known.copy()", "os.open(x, os.O_RDONLY)", "loop.move(x)", "tempfile.TemporaryFile()"),
    ],
)
def test_what_only_reads_does_not(line: str) -> None:
    assert writes(line) == []
