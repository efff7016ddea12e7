"""The two command lines to compare: the program as given, and under cpythonplus."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from cpythonplus._base.contents import opened
from cpythonplus._compare.errors import ComparisonError

Side = Literal["stock", "plus"]
SIDES: tuple[Side, Side] = ("stock", "plus")

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?[dt]?")
# The form that pip and uv write if the path is too long for a `#!` line, or has a space.
_LONG_PATH = re.compile(rb"""'''exec' (?:"([^"\n]+)"|'([^'\n]+)'|(\S+)) "\$0" "\$@\"""")
_HEAD_BYTES = 1024


def sides(words: Sequence[str], plus: str = "run") -> dict[Side, list[str]]:
    """Return the command line of each side.

    words: a Python with its arguments, or a console script with its arguments. plus: `run` or
    `serve` with their options, or `stock`, which runs the same twice. Raises ComparisonError if
    there is no such program, or if cpythonplus cannot run it.
    """
    found = shutil.which(words[0])
    if found is None:
        raise ComparisonError(f"program {words[0]!r} was not found")
    how = shlex.split(plus)
    stock = [found, *words[1:]]
    if how == ["stock"]:
        return {"stock": stock, "plus": stock}
    if not how or how[0] not in ("run", "serve"):
        raise ComparisonError(f"--plus: expected run or serve with options, or stock, got {plus!r}")
    if _PYTHON.fullmatch(Path(found).name):
        python, program = found, list(words[1:])
    else:
        python, program = _of_script(found)
        program += words[1:]
    if not program:
        raise ComparisonError(f"{words[0]}: expected a script, -m MODULE or -c CODE")
    if how[0] == "serve":
        program = _arguments_of_gunicorn(program)
    _check(python)
    return {"stock": stock, "plus": [python, "-m", "cpythonplus", *how, *program]}


def _of_script(path: str) -> tuple[str, list[str]]:
    """Return the interpreter of a console script, and the interpreter's arguments."""
    try:
        with opened(path) as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ComparisonError(f"cannot read {path!r}: {error.strerror}") from None
    long_path = _LONG_PATH.search(head)
    if long_path is not None:
        words = [next(filter(None, long_path.groups())).decode(errors="surrogateescape")]
    else:
        first = head.partition(b"\n")[0].decode(errors="surrogateescape")
        words = first.removeprefix("#!").split() if first.startswith("#!") else []
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if word != "-S"]
    python = shutil.which(words[0]) if words else None
    if python is None or not _PYTHON.fullmatch(Path(python).name):
        raise ComparisonError(
            f"{path!r} is not a Python program: give `python SCRIPT` or `python -m MODULE`"
        )
    if Path(path).name == "cpythonplus":
        raise ComparisonError("give the program as it runs without cpythonplus")
    return python, [*words[1:], path]


def _arguments_of_gunicorn(program: list[str]) -> list[str]:
    if program[:2] == ["-m", "gunicorn"]:
        return program[2:]
    if Path(program[0]).name == "gunicorn":
        return program[1:]
    raise ComparisonError("--plus serve compares with gunicorn: give `gunicorn APP`")


def _check(python: str) -> None:
    command = [python, "-m", "cpythonplus", "--version"]
    try:
        done = subprocess.run(command, check=False, capture_output=True)
    except OSError as error:
        raise ComparisonError(f"cannot start {python!r}: {error.strerror}") from None
    if done.returncode:
        raise ComparisonError(f"cpythonplus is not installed for {python}")
