"""Causes of reference cycles that `pytest --no-cycles` finds in a suite, idle and beside others.

The plugin writes them into a baseline (`--no-cycles-write-baseline`), so that no test fails for
them: what goes worse than on stock is then the plugin's doing.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPS = 4
"""Busy processes beside the second kind of runs."""
ROUNDS = 3
"""How often both kinds run where they differ."""
FILE = "causes.txt"


@dataclass(frozen=True)
class Causes:
    """What the runs say together."""

    steady: frozenset[str] = frozenset()
    """In every run."""
    unsteady: frozenset[str] = frozenset()
    """In some, of both kinds or of neither wholly: a race of the suite's own."""
    by_load: frozenset[str] = frozenset()
    """In every run of one kind, and in none of the other, of two runs each or more."""


def options(folder: Path) -> list[str]:
    """Return what has pytest write the causes into a folder."""
    return ["--no-cycles", f"--no-cycles-baseline={folder / FILE}", "--no-cycles-write-baseline"]


def read(folder: Path) -> frozenset[str]:
    """Return what was written there; nothing where pytest did not come to its end."""
    path = folder / FILE
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return frozenset(line for line in lines if not line.startswith("#"))


def compared(idle: Sequence[frozenset[str]], busy: Sequence[frozenset[str]]) -> Causes:
    """Judge what was found in runs of both kinds."""
    runs = [*idle, *busy]
    steady = frozenset.intersection(*runs)
    others = frozenset.union(*runs) - steady
    enough = min(len(idle), len(busy)) > 1
    by_load = frozenset(
        each
        for each in others
        if enough and len({each in run for run in idle}) == len({each in run for run in busy}) == 1
    )
    return Causes(steady, others - by_load, by_load)


@contextlib.contextmanager
def busy_loops(count: int = LOOPS) -> Iterator[None]:
    """Keep so many processes busy meanwhile."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    loops = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
