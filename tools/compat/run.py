"""Runs a package's tests once: stock, under `run`, with tasklets' patches, with our plugin."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.compat import causes
from tools.compat.judge import PROCESS
from tools.compat.packages import Package
from tools.junit_results import Outcome, read_report

# The script and its arguments follow; what is imported is to be patched before them, and from where
# a script would import it.
_PATCHED = """
import sys
del sys.argv[0]
sys.path[0] = sys.argv[0].rpartition("/")[0]
{patch}
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def patched(patch: str) -> tuple[str, ...]:
    """Return what has the interpreter execute `patch` and then a script."""
    return ("-c", _PATCHED.format(patch=patch))


BY_GEVENT = "from gevent import monkey; monkey.patch_all()"

SIDES = {
    "stock": (),
    "plus": ("-m", "cpythonplus", "run"),
    "tasklets": patched("from cpythonplus.tasklets import io, locks; locks.patch(); io.patch()"),
    "gevent": patched(BY_GEVENT),
    "no-cycles": (),
}
"""What comes between the interpreter and its arguments."""

_PYTEST = ("-p", "cpythonplus_compat", "-p", "no:cacheprovider")
# No configuration of ours in it, and no plugin that the tests do not ask for: the wheel has one.
_NO_PLUGIN = ("-p", "no:cpythonplus")
_MARK = "CPYTHONPLUS_COMPAT_RUN"


@dataclass(frozen=True)
class Run:
    """One run: what it said, how long it took, how the process ended if badly, what leaked."""

    outcome: Outcome
    seconds: float
    ending: str = ""
    causes: frozenset[str] = frozenset()


def run_once(package: Package, side: str, sources: Path, python: Path, log: Path) -> Run:
    """Run the tests in a process group and a folder of their own, both gone afterwards.

    log: the file that keeps what is printed.
    """
    # Sockets have short names, so the folder does.
    with tempfile.TemporaryDirectory(prefix="compat-") as name:
        folder = Path(name)
        report, running = folder / "report.xml", folder / "running"
        for each in ("home", "tmp"):
            (folder / each).mkdir()
        environment = {
            "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(python.parent.parent),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "CPYTHONPLUS_COMPAT_SIDE": side,
            "CPYTHONPLUS_COMPAT_RUNNING": str(running),
            "CPYTHONPLUS_COMPAT_BEFORE": package.before,
            _MARK: f"{os.getpid()} {name}",
            **package.environment,
        }
        # The script, as `-m` would put the sources before what is installed.
        command = [str(python), *SIDES[side], str(python.with_name("pytest")), *_PYTEST]
        if "--pyargs" in {*package.extra, *package.tests}:
            # Else no test has its module's name.
            (site,) = python.parent.parent.glob("lib/python*/site-packages")
            command.append(f"--rootdir={site}")
        command += [f"--junitxml={report}", "-q", "-rN", "--durations=5"]
        command += causes.options(folder) if side == "no-cycles" else _NO_PLUGIN
        command += [*package.extra, *package.tests]
        start = time.monotonic()
        status, output = _execute(command, sources, environment, log, package.limit_s)
        seconds = time.monotonic() - start
        outcome = read_report(report, package.name)
        ending = _ending(status, output, outcome)
        if ending:
            last = running.read_text("utf-8") if running.exists() else "no test"
            ending = f"{ending}; the last test begun: {last}"
            outcome = Outcome(
                outcome.ran, outcome.failed | {PROCESS}, outcome.skipped, outcome.passed
            )
        return Run(outcome, seconds, ending, causes.read(folder))


def _execute(
    command: list[str], folder: Path, environment: dict[str, str], log: Path, limit_s: float
) -> tuple[int | None, str]:
    """Return the exit status, None for a time-out, and what was written last."""
    with log.open("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGABRT)  # prints the stacks, where it can
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        finally:
            _end_all(process.pid, environment[_MARK])
            process.wait()
    return status, log.read_text("utf-8", errors="replace")


def _end_all(group: int, mark: str) -> None:
    """Kill the process group, and what left it but has its mark."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    end_marked(mark)


def end_marked(mark: str) -> None:
    """Kill all processes whose mark begins so; all marks of a farm begin with its process ID."""
    for each in _marked(f"{_MARK}={mark}".encode()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _marked(entry: bytes) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if any(each.startswith(entry) for each in path.read_bytes().split(b"\0")):
                yield int(path.parent.name)


def _ending(status: int | None, output: str, outcome: Outcome) -> str:
    """Return what is wrong with how the process ended, or an empty text.

    pytest ends with 0, or with 1 when tests failed, which are then in its report.
    """
    if status == 0 or (status == 1 and outcome.failed):
        return ""
    lines = [line for line in output.splitlines() if line.strip()] or ["no output"]
    how = "time limit" if status is None else f"status {status}"
    return f"{how}: {lines[-1].strip()[:200]}"
