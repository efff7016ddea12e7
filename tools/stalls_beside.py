"""The same stalls seen by `run --stalls` and by other tools: which of them name the line.

    python -m tools.stalls_beside [TOOL...]

runs each planted stall of tests/gil as a program of its own under each tool, and prints how many
lines were named, and how many were named by the tool's first finding. py-spy is needed in this
environment for its column, gilknocker for its own, and CPython 3.15 for `profiling.sampling`.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.gil import test_late_loops, test_stalls

__all__ = ["CASES", "TOOLS", "main"]

PRELUDE = """\
import asyncio, collections, ctypes, gc, json, pickle, re, select, subprocess, sys, threading, time
usleep = ctypes.PyDLL(None).usleep
def nap(seconds): usleep(int(seconds * 1e6))
def until(function, *arguments): return function(*arguments)
def main(function): asyncio.run(function())
def keep(acquire, release):
    def wants(): acquire(); release()
    threading.Thread(target=wants, name="other").start()
    time.sleep(0.4)
def give_up(acquire):
    def wants(): acquire(timeout=0.2)
    thread = threading.Thread(target=wants, name="other")
    thread.start(); thread.join()
def other():
    while not over: time.sleep(0.0005)
over = []
threading.Thread(target=other, name="other").start()
time.sleep(0.05)
"""
END = "\ntime.sleep(0.05)\nover.append(1)\n"
OFFSET = len(PRELUDE.splitlines())
# They need functions of this package.
_OWN = {"an atomic section"}
_TIMEOUT_S = 120


def _cases() -> Iterator[tuple[str, str]]:
    kinds = ("GIL", test_stalls.PLANTED), ("lock", test_stalls.LOCKS)
    for kind, cases in (*kinds, ("loop", test_late_loops.PLANTED)):
        for name, source in cases.items():
            if name not in _OWN:
                yield f"{kind}: {name}", source


CASES = dict(_cases())


def _run(*command: str) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S, errors="replace"
    )
    return done.stdout + done.stderr


def _lines(stack: str) -> list[int]:
    """Return the lines of the case in a stack as text, without those of the prelude."""
    found = re.findall(r'case\.py"?(?:, line |:)(?:[^:;"]*:)?(\d+)', stack)
    return [int(each) - OFFSET for each in found if int(each) > OFFSET]


# ---- the tools: each returns the innermost lines of the case, the first finding first ------------


def _ours(program: Path) -> list[int]:
    text = _run(sys.executable, "-m", "cpythonplus", "run", "--stalls", str(program))
    found = [_lines(line.partition("; at ")[2]) for line in text.splitlines() if "stall in" in line]
    return [lines[0] for lines in found if lines]


def _faulthandler(program: Path) -> list[int]:
    """As its users do: all threads, each 100 ms. It knows neither the GIL nor who waits."""
    code = (
        "import faulthandler, runpy, sys; faulthandler.dump_traceback_later(0.1, repeat=True);"
        "runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    text = _run(sys.executable, "-c", code, str(program))
    counts: Counter[int] = Counter()
    for stack in re.split(r"\n(?=Thread |Current thread )", text):
        lines = _lines(stack)
        counts.update(lines[:1])
    return [line for line, _ in counts.most_common()]


def _folded(text: str) -> list[int]:
    """Return the lines of folded stacks, the one with most samples first."""
    counts: Counter[int] = Counter()
    for row in text.splitlines():
        stack, _, number = row.rpartition(" ")
        lines = _lines(stack)
        if lines and number.isdigit():
            counts[lines[-1]] += int(number)
    return [line for line, _ in counts.most_common()]


def _py_spy(program: Path, *words: str) -> list[int]:
    output = program.with_suffix(".folded")
    spy = (sys.executable, "-m", "py_spy") if importlib.util.find_spec("py_spy") else ("py-spy",)
    command = Path(sys.executable).with_name("py-spy")
    spy = (str(command),) if command.exists() else spy
    words = ("record", *words, "--format", "raw", "--rate", "200", "--output", str(output))
    _run(*spy, *words, "--", sys.executable, str(program))
    return _folded(output.read_text()) if output.exists() else []


def _py_spy_gil(program: Path) -> list[int]:
    return _py_spy(program, "--gil")


def _py_spy_idle(program: Path) -> list[int]:
    return _py_spy(program, "--idle")


def _sampling(program: Path) -> list[int]:
    output = program.with_suffix(".collapsed")
    words = ("--mode", "gil", "--collapsed", "-o", str(output), str(program))
    _run(sys.executable, "-m", "profiling.sampling", "run", *words)
    return _folded(output.read_text()) if output.exists() else []


def _gilknocker(program: Path) -> list[int]:
    """It measures the contention of the process, and names no line."""
    code = (
        "import runpy, sys; from gilknocker import KnockKnock; k = KnockKnock(1_000); k.start();"
        "runpy.run_path(sys.argv[1], run_name='__main__'); print(k.contention_metric)"
    )
    return _lines(_run(sys.executable, "-c", code, str(program)))


TOOLS: dict[str, Callable[[Path], list[int]]] = {
    "run --stalls": _ours,
    "py-spy --gil": _py_spy_gil,
    "py-spy --idle": _py_spy_idle,
    "faulthandler": _faulthandler,
    "gilknocker": _gilknocker,
}
if sys.version_info >= (3, 15):
    TOOLS["profiling.sampling"] = _sampling


def main(names: list[str]) -> int:
    """Print a row for each case, and the sums."""
    tools = {name: TOOLS[name] for name in names or TOOLS}
    sums: Counter[tuple[str, str, str]] = Counter()
    for case, source in CASES.items():
        marked = test_stalls.marked(source)
        told = []
        for tool, look in tools.items():
            with tempfile.TemporaryDirectory() as folder:
                program = Path(folder, "case.py")
                program.write_text(PRELUDE + source + END)
                found = look(program)
            kind = case.partition(":")[0]
            first, named = found[:1] != [] and found[0] in marked, bool(marked.intersection(found))
            sums[tool, kind, "first"] += first
            sums[tool, kind, "named"] += named
            told.append("first" if first else "among others" if named else "no")
        print(f"| {case} | {' | '.join(told)} |", flush=True)
    for tool in tools:
        words = [
            f"{kind} {sums[tool, kind, 'first']} first, {sums[tool, kind, 'named']} named of"
            f" {sum(each.startswith(kind) for each in CASES)}"
            for kind in ("GIL", "lock", "loop")
        ]
        print(f"{tool}: {'; '.join(words)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
