"""Warns, in one line, before the program becomes a Python in which nothing is activated.

PEX files are an example: they run themselves again by `exec` with the interpreter that a venv was
made of, or with a venv of their own, and nothing there reads CPYTHONPLUS_RUN. The options of `run`
would have no effect, and `--stats` would print nothing. The new interpreter cannot report that, so
the old one does, before the exec: _base/process/exec_watch.py calls this with the arguments of
`os.exec*`.

Only certain cases are reported. There is no line for a program that becomes something else than
Python, for a Python in which everything is activated, for one that cannot be started, and in any
process but the program itself: its children may become anything (docs/reference/command-line.md).

Rejected: looking for PEX files in the runner, before anything is started (other programs do the
same, and a PEX file does it or not by its options and its surroundings); asking the other
interpreter by starting it twice (its start-up would have its effects twice, and the program would
have another child); activating nevertheless, by PYTHONPATH (an interpreter with -I or -E reads
none, and the others may not fit the extension).
"""

# The program may have changed the standard library, and nothing may be raised here.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH119, PTH120
# ruff: noqa: PTH121

import os
import site
import sys

from cpythonplus._base.contents import contents, opened
from cpythonplus._cli import interpreter_options
from cpythonplus._cli.features import COMMAND, OUTSIDE_SITE, VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpythonplus._cli.features import Run

    Words = list[str]

NOT_INSTALLED = "the package is not in a site-packages folder of that Python"
LONGEST_FIRST_LINE = 512
"""The bytes of a script that may name its interpreter; Linux reads 256."""
_LIBRARY = f"python{sys.version_info[0]}.{sys.version_info[1]}" + ("t" * ("t" in sys.abiflags))


def line(run: "Run", path: object, argv: object, env: object) -> str | None:
    """Return the line about `os.execve(path, argv, env)`, None for none.

    run: the run that started the program; env: None for os.environ.
    """
    if not isinstance(argv, (list, tuple)) or not argv:
        return None
    given = os.environ if env is None else env
    environment = {os.fsdecode(name): os.fsdecode(given[name]) for name in given}  # type: ignore[attr-defined, index]
    words = python_command(os.fsdecode(path), [os.fsdecode(word) for word in argv], environment)  # type: ignore[arg-type]
    if words is None:
        return None
    options = interpreter_options.of_this_process(words)
    if is_ours(options, words):
        return None
    why = why_not(run, words[0], options.letters, environment)
    if not why:
        return None
    way = ""
    if "PEX" in environment:  # PEX sets it to the file's name before it starts itself again
        way = "; with PEX_VENV=0 PEX_INHERIT_PATH=fallback set, a PEX file stays with this Python"
    elif why == NOT_INSTALLED:
        way = f"; once it is, `{words[0]} -m {COMMAND}` starts a program with it"
    return f"{COMMAND}: the program continues in {words[0]} without cpythonplus: {why}{way}"


# ---- the started program ------------------------------------------------------------------------


def python_command(path: str, argv: "Words", environment: "Mapping[str, str]") -> "Words | None":
    """Return the command line of the Python that an exec starts, None if it starts none.

    Its first word is the path by which that Python finds its own folder: not always `path`.
    """
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        return None
    if is_python(path):
        name = argv[0] if os.sep in argv[0] else find(argv[0], environment) or path
        return [os.path.abspath(name), *argv[1:]]
    interpreter = of_first_line(path, environment)
    if interpreter is None or not is_python(interpreter[0]):
        return None
    return [*interpreter, path, *argv[1:]]


def is_python(path: str) -> bool:
    """Whether a file is a Python, by its name or because it is this one."""
    if is_this_python(path):
        return True
    names = {os.path.basename(path), os.path.basename(os.path.realpath(path))}
    if {name.removesuffix("-dbg").rstrip("0123456789.td") for name in names}.isdisjoint(
        {"python", "pypy"}
    ):
        return False
    return first_bytes(path).startswith(b"\x7fELF")  # and no shell script of that name


def is_this_python(path: str) -> bool:
    """Whether a file is the running binary, under any name."""
    try:
        return os.path.samefile(path, "/proc/self/exe")
    except OSError:
        return os.path.realpath(path) == os.path.realpath(sys.executable)


def of_first_line(path: str, environment: "Mapping[str, str]") -> "Words | None":
    """Return the interpreter in a script's first line, with its options."""
    first = first_bytes(path).partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        del words[0]
        while words and (words[0].startswith("-") or "=" in words[0]):
            del words[0]
        if words:
            words[0] = find(words[0], environment) or ""
    return words or None


def first_bytes(path: str) -> bytes:
    """Return the beginning of a file, nothing if it cannot be read."""
    try:
        with opened(path) as file:
            return file.read(LONGEST_FIRST_LINE)
    except OSError:
        return b""


def find(name: str, environment: "Mapping[str, str]") -> str | None:
    """Return the program that a name means, by PATH."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def is_ours(options: interpreter_options.Options, words: "Words") -> bool:
    """Whether a `cpythonplus` of its own is started, which reports for itself."""
    if options.kind:
        return options.kind == "-m" and options.name.partition(".")[0] == "cpythonplus"
    rest = words[1 + len(options.words) :]
    return bool(rest) and os.path.basename(rest[0]) in ("cpythonplus", "cpythonplus.exe")


# ---- activation in the other Python -------------------------------------------------------------


def why_not(run: "Run", python: str, letters: set[str], environment: "Mapping[str, str]") -> str:
    """Return the reason why nothing will be activated in a Python; "" if it will or may be.

    letters: its options without a value.
    """
    if VARIABLE not in environment:
        if not run.children:
            return "it was started with --no-children"
        return f"its environment has no {VARIABLE}"
    if letters & {"S", "E", "I"}:
        not_read = f"with -I or -E it ignores {VARIABLE}"
        return "with -S it reads no site-packages folder" if "S" in letters else not_read
    same = is_this_python(python)
    prefixes, user_site = prefixes_of(python, environment, same_python=same)
    if OUTSIDE_SITE in environment.get("PYTHONPATH", "").split(os.pathsep):
        return "" if same or prefixes else "it is another implementation or build of Python"
    folders = site.getsitepackages(prefixes) if prefixes else []
    if user_site and "s" not in letters and not environment.get("PYTHONNOUSERSITE"):
        folders.append(site.getusersitepackages())
    if any(has_package(folder, run.home) for folder in folders):
        return ""
    return NOT_INSTALLED


def prefixes_of(
    python: str, environment: "Mapping[str, str]", *, same_python: bool
) -> tuple[list[str], bool]:
    """Return the prefixes whose site folders a Python reads, and whether it reads the user's, too.

    None for a Python of another version. The rules are those of CPython's Modules/getpath.py.
    """
    base = base_prefix_of(python, environment, same_python=same_python)
    folder = os.path.dirname(python)
    for place in (folder, os.path.dirname(folder)):
        try:
            text = contents(os.path.join(place, "pyvenv.cfg")).decode()
        except (OSError, ValueError):
            continue
        settings = [line.partition("=") for line in text.splitlines()]
        values = {key.strip().lower(): value.strip().lower() for key, _, value in settings}
        with_base = values.get("include-system-site-packages") == "true"
        own = os.path.dirname(folder)
        return ([own, *base] if with_base else [own]) if base else [], with_base and bool(base)
    return base, bool(base)


def base_prefix_of(
    python: str, environment: "Mapping[str, str]", *, same_python: bool
) -> list[str]:
    """Return the prefix of the standard library of a Python of this version, else nothing."""
    if environment.get("PYTHONHOME"):
        return [environment["PYTHONHOME"].partition(os.pathsep)[0]]
    if same_python:
        return [sys.base_prefix]
    folder = os.path.dirname(os.path.realpath(python))
    while True:
        if os.path.isfile(os.path.join(folder, sys.platlibdir, _LIBRARY, "os.py")):
            # Other versions may be installed in the same folder, each with its version in its name.
            name = os.path.basename(os.path.realpath(python)).removesuffix("-dbg")
            return [folder] if name in ("python", "python3", _LIBRARY) else []
        if folder == os.path.dirname(folder):
            return []
        folder = os.path.dirname(folder)


def has_package(folder: str, home: str) -> bool:
    """Whether a site folder activates the package whose folder is `home`."""
    package = os.path.join(folder, "cpythonplus")
    return (
        os.path.isfile(os.path.join(folder, "cpythonplus.pth"))
        and os.path.isdir(package)
        and os.path.samefile(package, home)
    )
