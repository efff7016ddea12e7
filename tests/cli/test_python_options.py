"""The tables of docs/reference/python-options.md: each command under `python` and under `run`."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import pytest

from tests.cli.programs import assert_same, write_programs
from tests.cli.support import (
    NOTHING,
    PYTHON,
    RUNNER,
    Result,
    assert_refused,
    environment,
    execute,
    run,
    wait_until_asleep,
)

pytestmark = pytest.mark.slow  # all together

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "python-options.md"
ROW = re.compile(r"^\| (?P<what>.+?) \| (?P<tried>`.+`) \| (?P<under>.+?) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
MARKS = re.compile(rb"^ +[~^]+\r?\n", re.MULTILINE)  # below a line of a traceback


@dataclass(frozen=True)
class Row:
    """A row of a table: what it is about, what is tried, and the words on what comes of it."""

    what: str
    tried: tuple[str, ...]
    under: str


def rows(*, at_a_terminal: bool) -> list[Row]:
    """Return the rows of the page's last table, or of all others."""
    before, _, terminal = PAGE.read_text().partition("## At a terminal")
    found = ROW.finditer(terminal if at_a_terminal else before)
    return [Row(row["what"], tuple(CODE.findall(row["tried"])), row["under"]) for row in found]


ROWS = rows(at_a_terminal=False)
SESSIONS = rows(at_a_terminal=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_programs(tmp_path)
    return tmp_path


def start(command: str, words: Sequence[str], folder: Path) -> Result:
    """Run a command of a table with `words` in the place of `python`."""
    line = re.sub(r"\bpython\b", '"$@"', command, count=1)
    return execute(["/bin/sh", "-c", line, "sh", *words], cwd=folder, env={"HOME": str(folder)})


# ---- what may come of a command -----------------------------------------------------------------

IMPORT_LINE = re.compile(
    rb"import time: .*\| *(?P<timed>\S+)$|import '(?P<named>[^']+)' #|import |# |\S+\.pyc? matches"
)


def assert_more_imports(command: str, ours: Result, stock: Result) -> None:
    """The lines about imports aside, both are the same; and of those, ours has stock's."""
    modules, rest = [], []
    for result in (ours, stock):
        lines = [(IMPORT_LINE.match(line), line) for line in result.stderr.splitlines()]
        modules.append({match["timed"] or match["named"] for match, _ in lines if match})
        # Once each: what -v prints at the start may come from the runner, too.
        others = dict.fromkeys(line for match, line in lines if not match)
        rest.append(Result(result.status, result.stdout, b"\n".join(others)))
    assert_same(*rest)
    assert len(modules[1]) > 1 or "=2" in command
    assert modules[1] <= modules[0]
    assert any(name.startswith(b"cpythonplus") for name in modules[0] - {None})


def assert_refused_by_run(command: str, ours: Result, stock: Result) -> None:
    assert_refused(ours, "cpythonplus run: ")


def assert_help_of_run(command: str, ours: Result, stock: Result) -> None:
    assert ours == run("--help")
    assert ours.stdout != stock.stdout


def assert_twice(command: str, ours: Result, stock: Result) -> None:
    assert stock.stderr
    warning = stock.stderr.splitlines(keepends=True)[0]
    assert_same(ours, Result(stock.status, stock.stdout, warning + stock.stderr))


def assert_other_figures(command: str, ours: Result, stock: Result) -> None:
    kinds = [
        {re.sub(rb"[\d,]+| +", b"", line) for line in each.stderr.splitlines()}
        for each in (ours, stock)
    ]
    assert kinds[1] <= kinds[0]
    assert (ours.status, ours.stdout) == (stock.status, stock.stdout)


def assert_all_the_same(command: str, ours: Result, stock: Result) -> None:
    assert_same(ours, stock)


OUTCOMES = {
    "same": assert_all_the_same,
    "more imports": assert_more_imports,
    "refused": assert_refused_by_run,
    "the help of `run`": assert_help_of_run,
    "printed twice": assert_twice,
    "other figures": assert_other_figures,
}
"""What a table's last column begins with, and how that is held."""


@pytest.mark.parametrize(
    ("command", "under"),
    [(command, row.under) for row in ROWS for command in row.tried],
    ids=[command for row in ROWS for command in row.tried],
)
def test_each_command(command: str, under: str, folder: Path) -> None:
    ours, stock = (start(command, words, folder) for words in (RUNNER, [PYTHON]))
    OUTCOMES[re.split("[:;]", under)[0]](command, ours, stock)


def test_the_way_around_a_refusal(folder: Path) -> None:
    [row] = [row for row in ROWS if row.what == "`-S`"]
    assert " ".join((*NOTHING, "-S")) in row.under
    results = [start("python -S facts.py", x, folder) for x in ([*RUNNER, *NOTHING], [PYTHON])]
    assert_same(*results)


def test_all_that_python_has_is_on_the_page() -> None:
    told = execute([PYTHON, "--help-all"]).out
    names = {
        *re.findall(r"^(-X [\w-]+|--?\w[\w-]*)", told, re.MULTILINE),
        *re.findall(r"\b(?:-X [a-z][\w-]+|PYTHON_?[A-Z]\w+)", told),
    }
    listed = {name for row in ROWS for name in CODE.findall(row.what)}
    assert len(names) > 60
    assert sorted(names - listed - {"-X opt", "-X"}) == []


# ---- at a terminal ------------------------------------------------------------------------------

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[=>])|[\r\a\x08]")
PROMPTS = (b">>> ", b"... ", b"(Pdb) ")
KEYS = {"^C": b"\x03", "^D": b"\x04", "^M": b"\r"}
LIMIT_S = 60
SILENT_S = 2


class Session:
    """A program at a terminal of its own; leaving the context kills one that has not ended."""

    def __init__(self, command: str, words: Sequence[str], folder: Path) -> None:
        line = re.sub(r"\bpython\b", 'exec "$@"', command, count=1)
        # Assignments in front of `exec` do not reach the program in every shell.
        line = re.sub(r"^(\S+=\S+) exec", r"export \1; exec", line)
        self._master, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        # The first terminal that the leader of a session opens is the one that its ^C comes from.
        self._child = subprocess.Popen(
            ["/bin/sh", "-c", f': <"$0"; {line}', os.ttyname(terminal), *words],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            cwd=folder,
            env=environment({"HOME": str(folder), "TERM": "xterm", "NO_COLOR": "1"}),
            start_new_session=True,
        )
        os.close(terminal)
        self._written = b""
        self._read_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._master)
        self._child.kill()
        self._child.wait()

    def replay(self, lines: Sequence[str]) -> Result:
        """Type the lines, each as soon as the program is ready; returns what it left behind.

        Standard output of the result is what was printed. Lines with a prompt are left out: they
        are drawn anew with each key, or with several.
        """
        if "asyncio" in lines[0]:
            self._wait_for(b"import asyncio")  # which is no prompt
        self._wait_for(*PROMPTS)
        for line in lines[:-1]:
            if line == "^C" and "count()" not in lines[0]:
                # A signal just before a system call does not interrupt it.
                wait_until_asleep(self._child.pid)
            self._type(line)
            if "^C" in line:
                self._wait_for(b"KeyboardInterrupt")
            self._wait_for(b"\n")
            self._wait_for(*([b"busy\r\n"] if "'busy'" in line else PROMPTS))
        self._type(lines[-1])
        while self._read():
            # After an exception 3.13.18 itself goes on with a second prompt, and waits.
            if lines[-1] == "^D" and not select.select([self._master], [], [], SILENT_S)[0]:
                self._type("^D")
        status = self._child.wait(LIMIT_S)
        text = ESCAPES.sub(b"", self._written).splitlines()
        drawn = (*PROMPTS, b"~", b"^^")  # and what marks the place of an interrupt
        kept = [line for line in text if not any(mark in line for mark in drawn)]
        return Result(status, b"\n".join(kept), b"")

    def _type(self, line: str) -> None:
        """Type a line, or text and a key."""
        text, key = (line[:-2], line[-2:]) if line[-2:] in KEYS else (line, "^M")
        os.write(self._master, text.encode() + KEYS[key])

    def _wait_for(self, *wanted: bytes) -> None:
        """Read on to behind the first of the texts."""
        while True:
            places = [(self._written.find(text, self._read_to), len(text)) for text in wanted]
            if found := [place for place in places if place[0] >= 0]:
                self._read_to = sum(min(found))
                return
            assert self._read(), (wanted, self._written)

    def _read(self) -> bool:
        """Read what has been printed; False at the end."""
        assert select.select([self._master], [], [], LIMIT_S)[0], self._written
        try:
            text = os.read(self._master, 65536)
        except OSError:  # EIO: no process has the terminal open any more
            return False
        self._written += text
        return bool(text)


@pytest.mark.parametrize("row", SESSIONS, ids=[f"{row.what} {row.tried}" for row in SESSIONS])
def test_at_a_terminal(row: Row, folder: Path) -> None:
    assert row.under == "same"
    [command] = CODE.findall(row.what)
    results, histories = [], []
    for words in (RUNNER, [PYTHON]):
        with Session(command, words, folder) as session:
            results.append(session.replay(row.tried))
        written = list(folder.glob("*history"))
        histories.append({path.name: path.read_bytes() for path in written})
        for path in written:
            path.unlink()
    assert results[1].stdout
    if "^C" in row.tried:  # who says where in its line an endless loop is interrupted?
        results = [replace(each, stdout=MARKS.sub(b"", each.stdout)) for each in results]
    assert_same(*results)
    assert histories[0] == histories[1]
    if "kept" in row.tried[0]:
        assert b"kept" in b"".join(histories[1].values())
