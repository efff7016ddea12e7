#!/usr/bin/env python3
"""CPython's own tests on ours: under `cpythonplus run`, or with what tasklets put in its place.

Runs each test module of the interpreter that runs this file under `cpythonplus run`; with
`--tasklets`, in a process that called `tasklets.locks.patch()` and `tasklets.io.patch()` before it
imported the module.  What fails there, but for what is known to (cpython_known.py), is run once
more under plain Python and again under ours: a failure that plain Python has too is its own; one
that does not come back is called unsteady and listed; one that stays ends the run with status 1.

    cpython_tests.py [--tasklets] [--quick] [MODULE...]
    cpython_tests.py --tasklets --record FOLDER [MODULE...]

CPYTHON_TESTS=quick does the same as --quick.  With `--record` plain Python always runs too, a test
that is skipped only here counts as one that fails, and what was seen is written into FOLDER, where
cpython_tests_page.py makes the page in docs from it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools import cpython_known  # found by the path above
from tools.junit_results import Outcome, read_report, reason

# Servers on the loopback interface count as network in test_socketserver; the others are not given
# it: they would look up names on the internet.  VSOCK's loopback waits for ever, also under plain
# Python, on a machine that is a guest without a peer.
NEEDS = {"test_socketserver": ("-u", "network"), "test_socket": ("-i", "*VSOCK*")}

MODULE_LIMIT_S = 900

# Modules that run beside each other: they wait more than they compute.
AT_ONCE = 2

# Everything that `cpythonplus run` enables by default is what is tested.
_ENABLED = """
import sys
from cpythonplus import gil, threads
sys.exit(0 if gil.active() and threads.patched() else 'not everything is enabled')
"""

# In one process: a child would import the modules before it could be patched.
_PATCHED = """
from cpythonplus.tasklets import io, locks
locks.patch()
io.patch()
"""
_PATCHED_CHECK = f"""{_PATCHED}
import sys
sys.exit(0 if io.patched() and locks.patched() else 'not everything is patched')
"""
# Tests wait until no thread is left that they did not find; one of in_thread() waits for more work.
_PATCHED_TESTS = f"""{_PATCHED}
from cpythonplus.tasklets.io import _threadpool as threadpool
threadpool._IDLE_S = 0.0
from test.libregrtest.main import main
main()
"""


@dataclass(frozen=True)
class Way:
    """How tests are run: the interpreter's arguments in front of those for `test`."""

    tests: tuple[str, ...]
    check: tuple[str, ...] = ()
    """A program that says on its standard error why the tests would test nothing."""
    all: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)
    """Reasons of failures, by name or pattern."""


PLAIN = Way(("-m", "test", "-j1"))
RUN = Way(
    ("-m", "cpythonplus", "run", "-m", "test", "-j1"),
    ("-m", "cpythonplus", "run", "-c", _ENABLED),
    cpython_known.RUN_ALL,
    cpython_known.RUN_QUICK,
    cpython_known.KNOWN_RUN,
)
TASKLETS = Way(
    ("-c", _PATCHED_TESTS),
    ("-c", _PATCHED_CHECK),
    cpython_known.TASKLETS_ALL,
    cpython_known.TASKLETS_QUICK,
    cpython_known.KNOWN_TASKLETS,
)


def complain_of_what_is_off(way: Way) -> str:
    """Return why the tests would test nothing, or an empty text."""
    command = [sys.executable, *way.check]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def run_module(module: str, way: Way) -> Outcome:
    """Run one module in a process of its own and read its report."""
    with tempfile.TemporaryDirectory(prefix="cpython-tests-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, *way.tests, "--timeout", "300"]
        command += ["--junit-xml", str(report), *NEEDS.get(module, ()), module]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=MODULE_LIMIT_S,
                check=False,
            )
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as expired:
            status, output = -1, str(expired)
        outcome = read_report(report, module)
    if status != 0 and not outcome.failed:
        # It ended badly without a report that says where: a crash, a hang, a changed environment.
        last = output.strip().splitlines()[-1:] or ["no output"]
        return Outcome(outcome.ran, frozenset({f"{module}: status {status}: {last[0]}"}))
    return outcome


@dataclass(frozen=True)
class Verdict:
    """One module: failures that only ours has, known ones, plain Python's own, unsteady ones."""

    ran: int
    ours: frozenset[str]
    known: Mapping[str, str]
    theirs: frozenset[str] = frozenset()
    unsteady: frozenset[str] = frozenset()
    skipped: int = 0


def judge(module: str, way: Way, *, thoroughly: bool = False) -> Verdict:
    """Run a module, and once more on both sides when something fails that is not known to.

    `thoroughly` has plain Python run in any case, and what is skipped only here counts as failed.
    """
    first = run_module(module, way)
    expected = all(reason(name, way.known) for name in first.failed)
    stock = run_module(module, PLAIN) if thoroughly or not expected else Outcome(0, frozenset())
    again = first if expected else run_module(module, way)
    theirs = first.failed & stock.failed
    ours = (first.failed & again.failed) - stock.failed
    if thoroughly:
        ours |= first.skipped - stock.skipped
    known = {name: why for name in ours if (why := reason(name, way.known))}
    unsteady = first.failed - theirs - ours
    skipped = len(first.skipped - ours)
    return Verdict(first.ran, ours - known.keys(), known, theirs, unsteady, skipped)


def describe(verdict: Verdict) -> str:
    """Return one line for a module."""
    parts = [f"{verdict.ran} tests"]
    parts += [f"FAILS ONLY HERE: {name}" for name in sorted(verdict.ours)]
    parts += [f"known to differ: {name} ({why})" for name, why in sorted(verdict.known.items())]
    parts += [f"fails in plain Python too: {name}" for name in sorted(verdict.theirs)]
    parts += [f"failed once, not again: {name}" for name in sorted(verdict.unsteady)]
    return "; ".join(parts)


def record(verdicts: Mapping[str, Verdict], folder: Path) -> None:
    """Write what was seen into the file of this version; modules that did not run keep theirs."""
    version = ".".join(map(str, sys.version_info[:2]))
    path = folder / f"cpython-tests-{version}.json"
    modules = json.loads(path.read_text("utf-8"))["modules"] if path.exists() else {}
    for module, verdict in verdicts.items():
        modules[module] = {
            "tests": verdict.ran,
            "skipped": verdict.skipped,
            "failed": sorted(verdict.ours | verdict.known.keys()),
            "failed in plain Python too": sorted(verdict.theirs),
        }
    found = {"python": sys.version.split()[0], "modules": dict(sorted(modules.items()))}
    path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="CPython's own tests on ours")
    parser.add_argument("--quick", action="store_true", help="the short list only")
    parser.add_argument("--tasklets", action="store_true", help="with tasklets' patches instead")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="where results are kept")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="instead of the list")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; status 1 for a failure that plain Python has not, 2 for bad use."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    way = TASKLETS if options.tasklets else RUN
    title = "cpython-tests-tasklets" if options.tasklets else "cpython-tests"
    # A background job has it ignored, and children would inherit that: half of test_signal waits
    # for an interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    version = sys.version.split()[0]
    if find_spec("test.test_threading") is None:
        print(f"{title}: Python {version} comes without its tests; none were run")
        return 0
    complaint = complain_of_what_is_off(way)
    if complaint:
        print(f"{title} {version}: {complaint}", file=sys.stderr)
        return 1
    quick = options.quick or os.environ.get("CPYTHON_TESTS") == "quick"
    modules: Iterable[str] = options.modules or (way.quick if quick else way.all)
    task = partial(judge, way=way, thoroughly=options.record is not None)
    verdicts = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for module, verdict in zip(modules, pool.map(task, modules), strict=True):
            verdicts[module] = verdict
            print(f"{title} {version}: {module}: {describe(verdict)}", flush=True)
    if options.record is not None:
        record(verdicts, options.record)
    bad = sum(len(verdict.ours) for verdict in verdicts.values())
    ran = sum(verdict.ran for verdict in verdicts.values())
    print(f"{title} {version}: {ran} tests in {len(verdicts)} modules; {bad} fail only here")
    return 1 if bad or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
