"""Starting programs under `python` and under `cpythonplus run`, for the tests of the command line.

Everything runs in child processes, with the installed package.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cpythonplus._cli.features import FEATURES
from tests.support import LOAD

CONSOLE_SCRIPT = Path(sysconfig.get_path("scripts")) / "cpythonplus"
TIMEOUT = 60 * LOAD


def _python() -> str:
    """Return the interpreter as the console script names it, so that paths agree."""
    try:
        first_line, second_line, *_ = CONSOLE_SCRIPT.read_text().splitlines()
    except FileNotFoundError:
        return sys.executable
    if first_line == "#!/bin/sh":  # pip's form for a path with spaces: 'exec' "PYTHON" "$0" "$@"
        words = shlex.split(second_line)[1:2]
    else:
        words = first_line.removeprefix("#!").split()
    return words[0] if len(words) == 1 and Path(words[0]).exists() else sys.executable


PYTHON = _python()
MODULE = (PYTHON, "-m", "cpythonplus")
RUNNER = (*MODULE, "run")
NOTHING = tuple(feature.switch_off for feature in FEATURES if feature.by_default)
"""The options that switch off whatever is on by default."""


@dataclass(frozen=True)
class Result:
    """What a process left behind."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8", "backslashreplace")

    @property
    def err(self) -> str:
        return self.stderr.decode("utf-8", "backslashreplace")


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the environment for a child: this one, without what would make runs differ."""
    result = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PYTEST", "CPYTHONPLUS")) and name not in ("COLUMNS", "_")
    }
    for name, value in (changes or {}).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def execute(
    command: Sequence[str | bytes],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str | None] | None = None,
) -> Result:
    """Run `command` to its end."""
    done = subprocess.run(
        list(command),
        check=False,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env=environment(env),
        timeout=TIMEOUT,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def run(*arguments: str | bytes, cwd: Path | None = None, **env: str | None) -> Result:
    """Run `cpythonplus run ARGUMENTS`."""
    return execute([*RUNNER, *arguments], cwd=cwd, env=env)


def assert_refused(result: Result, *parts: str) -> None:
    """Assert one line on standard error, which has the parts, nothing else, and status 2."""
    assert result.status == 2, result
    assert result.stdout == b""
    assert result.err.count("\n") == 1
    assert result.err.endswith("\n")
    assert result.err.startswith("cpythonplus")
    for part in parts:
        assert part in result.err


def wait_until_asleep(pid: int) -> None:
    """Wait for the main thread to sleep, so that the traceback has always the same place.

    And to sleep on: it may have waited for another thread for a moment.
    """
    limit = time.monotonic() + TIMEOUT
    before = ""
    while True:
        told = Path(f"/proc/{pid}/status").read_text()
        now = told.partition("\nvoluntary_ctxt_switches:")[2] if "\nState:\tS" in told else ""
        if now and now == before:
            return
        before = now
        assert time.monotonic() < limit
        time.sleep(0.05)


@contextmanager
def listening(*command: str, program: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and wait for the line that it is ready; it reads its standard input."""
    process = subprocess.Popen(
        [*command, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(env),
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()
