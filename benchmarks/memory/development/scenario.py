"""The cases that are about development: tests under `pytest --no-cycles`, and the linter."""

import subprocess
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands, environment
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.memory.development import corpus

_LIMIT_S = 300.0
_STARTS = 5
"""How often one measurement starts pytest: two equal runs, of less than a second, differ by up to
a tenth, so the quickest counts."""
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
_LINT = ("-m", "cpythonplus", "lint", "--exit-zero")
_NO_CYCLES = ("-p", "cpythonplus.memory._pytest_plugin", "--no-cycles")
# What any linter in Python has to do at least, on as many processes as the linter may use.
_PARSE = """
import ast, gc, multiprocessing, os, sys
from pathlib import Path

def parse(path):
    try:
        ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        pass

if __name__ == "__main__":
    gc.disable()
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        for _ in pool.imap_unordered(parse, sorted(Path(sys.argv[1]).rglob("*.py")), 50):
            pass
"""


def cases() -> list[Case]:
    """Return the cases; stock is pytest without the plugin, and parsing alone."""
    return [
        Case(
            "pytest-1000",
            "development",
            f"pytest --no-cycles, {corpus.TESTS:,} small tests",
            "ms",
            _measure_pytest,
            statistic="median",
            better="lower",
            needs=("pytest",),
        ),
        Case(
            "lint-5000",
            "development",
            f"cpythonplus lint, {corpus.MODULES:,} modules",
            "s",
            _measure_lint,
            statistic="median",
            better="lower",
        ),
    ]


def _measure_pytest(commands: Commands, side: Side, _settings: Settings) -> Outcome:
    options = _NO_CYCLES if side == "plus" else ()
    folder = corpus.suite()
    _compiled(commands.python, folder)
    command = [commands.python, *_PYTEST, *options, str(folder)]
    seconds = min(_run(command, statuses={0}) for _ in range(_STARTS))
    return Outcome(rate=seconds * 1e3)


@cache
def _compiled(python: str, folder: Path) -> None:
    # Rewriting the assertions happens once, whoever runs first.
    _run([python, *_PYTEST, *_NO_CYCLES, str(folder)], statuses={0})


def _measure_lint(commands: Commands, side: Side, _settings: Settings) -> Outcome:
    folder = str(corpus.modules(*_folders(commands.python)))
    if side == "plus":
        # Findings are as good as none, and so is a module for another version of Python.
        return Outcome(rate=_run([commands.python, *_LINT, folder], statuses={0, 1}))
    return Outcome(rate=_run([commands.python, "-c", _PARSE, folder], statuses={0}))


@cache
def _folders(python: str) -> tuple[str, str]:
    code = "import sysconfig as s; print(s.get_path('stdlib'), s.get_path('purelib'), sep='\\n')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    library, installed = done.stdout.splitlines()
    return library, installed


def _run(command: Sequence[str], *, statuses: set[int]) -> float:
    """Run it to its end; return its seconds. Raises MeasurementError."""
    own = {**environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
            env=own,
            cwd=Path(command[-1]).parent,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasurementError(f"{command[2]}: {error}") from error
    seconds = time.perf_counter() - began
    if done.returncode not in statuses:
        last = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise MeasurementError(f"{command[2]} ended with {done.returncode}: {last[-1:]}")
    return seconds


SCENARIO = Scenario(
    cases={"memory": cases},
    tables={"development": Table("Tests without cycles, and the linter (median round)")},
    targets=(
        Target("pytest-1000", "cost_to", 1.10, at_least=False),
        Target("lint-5000", "cost", 10, at_least=False, unit="s"),
    ),
    place=2,
)
