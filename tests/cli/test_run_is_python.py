"""`cpythonplus run` beside `python`: standard output, standard error and status, byte by byte."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.programs import FACTS, assert_same, write_programs
from tests.cli.support import (
    CONSOLE_SCRIPT,
    PYTHON,
    Result,
    environment,
    execute,
    wait_until_asleep,
)

pytestmark = pytest.mark.slow  # all together


@dataclass(frozen=True)
class Case:
    """One program, its options and its surroundings."""

    name: str
    program: Sequence[str | bytes]
    options: Sequence[str] = ()
    stdin: bytes = b""
    env: dict[str, str | None] = field(default_factory=dict)
    shell: str = 'exec "$@"'
    """How `sh` starts it; for redirections and traps."""


def code(name: str, text: str, *options: str) -> Case:
    return Case(name, ["-c", text], options)


CASES = [
    Case("script", ["facts.py"]),
    Case("arguments", ["facts.py", "a b", "", "-", "--", "--stats", "-m", "-O", "--no-gil"]),
    Case("argument not utf-8", ["facts.py", b"\xff\xfe"]),
    Case("absolute", [b"$PWD/facts.py"], shell='exec "$@"'),
    Case("script by a dash", ["--", "-dash.py", "-x"]),
    Case("dashes, script", ["--", "facts.py", "--", "x"]),
    Case("code", ["-c", FACTS, "x", "-y"]),
    Case("code attached", ["-c" + FACTS, "x", "-y"]),
    Case("stdin", ["-"], stdin=FACTS.encode()),
    Case("stdin, arguments", ["-", "a", "-b"], stdin=FACTS.encode()),
    Case("stdin fails", ["-"], stdin=b"def f():\n    1/0\nf()\n"),
    Case("stdin read by the program", ["-c", "print(input(), input())"], stdin=b"a\nb\n"),
    Case("stdin, no program", ["--"], stdin=FACTS.encode()),
    Case("missing script", ["no.py"]),
    Case("missing module", ["-m", "no"]),
    Case("wrong option", ["-Oz", "facts.py"]),
    Case("option without a value", ["-c"]),
    Case("folder", ["folder", "x"]),
    Case("zip file", ["program.zip", "x"]),
    Case("folder without __main__", ["hollow"]),
    Case("empty file", [os.devnull]),
    Case("module", ["-m", "module", "x", "-y"]),
    Case("module attached", ["-mmodule", "x"]),
    Case("package", ["-m", "package", "x"]),
    Case("sub-module", ["-m", "package.module", "x"]),
    Case("sub-module missing", ["-m", "package.nothing"]),
    Case("package without __main__", ["-m", "bare"]),
    Case("module fails", ["-m", "broken"]),
    Case("sub-module fails", ["-m", "package.broken"]),
    Case("relative module", ["-m", ".module"]),
    Case("library module", ["-m", "json.tool"], stdin=b'{"a": [1, 2]}'),
    Case("library module, its options", ["-m", "json.tool", "--help"]),
    Case("flags before -m", ["-uBm", "module", "x"]),
    Case("traceback", ["fails.py"]),
    Case("chained traceback", ["chained.py"]),
    Case("syntax error", ["syntax.py"]),
    Case("other coding", ["latin.py"]),
    Case("traceback, code", ["-c", "def f():\n    raise ValueError('x\\ny')\nf()"]),
    Case("syntax error, code", ["-c", "a b"]),
    Case("late", ["late.py"], ["-u"]),
    Case("thread fails", ["thread_fails.py"]),
    Case("spawn", ["spawn.py"], ["-O"]),
    Case("children", ["children.py"]),
    Case("becomes another program", ["becomes.py"]),
    code("becomes nothing", "import os; os.execvp('does-not-exist', ['x'])"),
    code("becomes nothing, wrongly", "import os; os.execv('x', 3)"),
    code("exit 7", "import sys; sys.exit(7)"),
    code("exit 300", "import sys; sys.exit(300)"),
    code("exit -1", "import sys; sys.exit(-1)"),
    code("exit text", "import sys; sys.exit('why')"),
    code("exit at once", "import os; print(1, flush=True); os._exit(9)"),
    code("exit in atexit", "import atexit, sys; atexit.register(sys.exit, 5)"),
    code("atexit fails", "import atexit; atexit.register(lambda: 1 / 0)"),
    code("killed", "import os; os.kill(os.getpid(), 9)"),
    code("terminated", "import os; os.kill(os.getpid(), 15)"),
    code("interrupted", "import os; os.kill(os.getpid(), 2)"),
    code("interrupted, raised", "raise KeyboardInterrupt"),
    code(
        "interrupted, handled", "try: raise KeyboardInterrupt\nexcept KeyboardInterrupt: print(1)"
    ),
    code(
        "pipe signal", "import os, signal as s; s.signal(13, s.SIG_DFL); os.kill(os.getpid(), 13)"
    ),
    code("asserts", "assert False, 'x'", "-O"),
    code("bytes warning", "b'' == ''", "-bb"),
    code("warning", "import warnings; warnings.warn('x', UserWarning)", "-W", "error"),
    code("warning, attached", "import warnings; warnings.warn('x')", "-Werror::UserWarning"),
    code("development", "import os; open(os.devnull); None", "-X", "dev"),
    code("malloc", "print(1)", "-X", "tracemalloc=2", "-X", "faulthandler"),
    code("recursion", "def f(): f()\nf()"),
    Case("skip the first line", ["first.py"], ["-x"]),
    Case("go on interactively", ["fails.py"], ["-i", "-q"], stdin=b"print('after', f)\n"),
    Case("missing source folder", ["facts.py"], env={"PYTHONPATH": "/does/not/exist:folder"}),
    Case("warnings by environment", ["facts.py"], env={"PYTHONWARNINGS": "error"}),
    Case("safe path by environment", ["facts.py"], env={"PYTHONSAFEPATH": "1"}),
    Case("safe path, module", ["-m", "json"], env={"PYTHONSAFEPATH": "1"}),
    Case("environment ignored", ["facts.py"], ["-E"], env={"PYTHONOPTIMIZE": "2"}),
    Case("unbuffered by environment", ["facts.py"], env={"PYTHONUNBUFFERED": "1"}),
    Case("no input", ["facts.py"], shell='exec "$@" <&-'),
    Case("no output", ["facts.py"], shell='exec "$@" >&-'),
    Case("no error output", ["fails.py"], shell='exec "$@" 2>&-'),
    Case("none at all", ["facts.py"], shell='exec "$@" <&- >&- 2>&-'),
    Case("output full", ["-c", "print('x' * 10)"], shell='exec "$@" >/dev/full'),
    Case("error output full", ["fails.py"], shell='exec "$@" 2>/dev/full'),
    Case("interrupt ignored", ["facts.py"], shell="trap '' INT; exec \"$@\""),
    Case("more descriptors", ["facts.py"], shell='exec "$@" 5</dev/null 9>/dev/null'),
    *(
        Case(
            f"locale {' '.join(f'{name}={value}' for name, value in env.items())}",
            ["facts.py"],
            env={"LANG": None, "LC_ALL": None, "LC_CTYPE": None, **env},
        )
        for env in (
            {},
            {"LANG": "C"},
            {"LC_ALL": "C"},
            {"LC_ALL": "POSIX"},
            {"LANG": "C", "LC_CTYPE": "C.UTF-8"},
            {"LC_ALL": "C.UTF-8"},
            {"LANG": "C", "PYTHONCOERCECLOCALE": "0"},
            {"LANG": "C", "PYTHONUTF8": "1"},
        )
    ),
    *(
        Case(f"options {' '.join(options)}", ["facts.py", "x"], options)
        for options in (
            ["-O"],
            ["-OO"],
            ["-u"],
            ["-I"],
            ["-E"],
            ["-s"],
            ["-P"],
            ["-B"],
            ["-b"],
            ["-q"],
            ["-R"],
            ["-d"],
            ["-IBu"],
            ["-X", "dev"],
            ["-X", "utf8=0"],
            ["-Xutf8"],
            ["-X", "own=thing", "-X", "no_debug_ranges"],
            ["-X", "int_max_str_digits=5000"],
            ["-W", "ignore", "-W", "error::BytesWarning"],
            ["-uWerror"],
            ["--check-hash-based-pycs", "always"],
        )
    ),
    *(Case(f"module, {option}", ["-m", "json"], [option]) for option in ("-I", "-P", "-E", "-s")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    write_programs(folder)
    return folder


Compare = Callable[[Case, Sequence[str], Sequence[str]], None]


@pytest.fixture(scope="module")
def stock(folder: Path) -> Callable[[Case], Result]:
    """Run a case under plain `python`, once."""
    results: dict[str, Result] = {}

    def run(case: Case) -> Result:
        if case.name not in results:
            results[case.name] = start(case, folder, [PYTHON, *case.options])
        return results[case.name]

    return run


def start(case: Case, folder: Path, words: Sequence[str]) -> Result:
    program = [
        word.replace(b"$PWD", os.fsencode(folder)) if isinstance(word, bytes) else word
        for word in case.program
    ]
    command = ["/bin/sh", "-c", case.shell, "sh", *words, *program]
    return execute(command, cwd=folder, stdin=case.stdin, env={"COLUMNS": "80", **case.env})


each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@each_case
def test_module(case: Case, folder: Path, stock: Callable[[Case], Result]) -> None:
    words = [PYTHON, *case.options, "-m", "cpythonplus", "run"]
    assert_same(start(case, folder, words), stock(case))


@each_case
@pytest.mark.skipif(not CONSOLE_SCRIPT.exists(), reason="no console script installed")
def test_console_script(case: Case, folder: Path, stock: Callable[[Case], Result]) -> None:
    """With the interpreter's options behind `run`, where the script's user can give them."""
    words = [str(CONSOLE_SCRIPT), "run", *case.options]
    assert_same(start(case, folder, words), stock(case))


def test_the_cases_tell_something(folder: Path, stock: Callable[[Case], Result]) -> None:
    """Equal is not enough, if both say nothing."""
    for case in CASES:
        if case.program[0] == "facts.py" and case.shell == Case.shell:
            assert stock(case).status == 0, case
            assert b"argv ['facts.py'" in stock(case).stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("program", ["import time; print(1, flush=True); time.sleep(50)"])
def test_signal_from_outside(number: signal.Signals, program: str, folder: Path) -> None:
    ends = []
    for words in ([PYTHON], [PYTHON, "-m", "cpythonplus", "run"]):
        child = subprocess.Popen(
            [*words, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(),
        )
        assert child.stdout is not None
        with child:
            child.stdout.readline()
            wait_until_asleep(child.pid)
            child.send_signal(number)
            _, stderr = child.communicate(timeout=60)
        ends.append((child.returncode, stderr))
    assert ends[0] == ends[1]
    assert ends[0][0] == (0 if signal.getsignal(number) == signal.SIG_IGN else -number)  # nohup


def test_pid_stays(folder: Path) -> None:
    """The runner becomes the program: no process in between that would have to pass signals on."""
    with subprocess.Popen(
        [PYTHON, "-m", "cpythonplus", "run", "-c", "import os; print(os.getpid(), os.getppid())"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as child:
        stdout, _ = child.communicate(timeout=60)
    assert stdout.split() == [str(child.pid), str(os.getpid())]
