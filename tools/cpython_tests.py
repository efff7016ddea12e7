#!/usr/bin/env python3
"""CPython's own tests of threads, signals, sockets and processes, under `cpythonplus run`.

Runs each test module of the interpreter that runs this file under `cpythonplus run`.  What fails
there, but for what is known to, is run once more under plain Python and again under ours: a failure
that plain Python has too is its own; one that does not come back is called unsteady and listed; one
that stays ends the run with status 1.

    cpython_tests.py [--quick] [MODULE...]       CPYTHON_TESTS=quick does the same as --quick
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# The longest first: two run at once.
QUICK = (
    "test_threading",
    "test_faulthandler",
    "test_queue",
    "test_fork1",
    "test_thread",
    "test_threading_local",
)
ALL = (
    *QUICK,
    "test_signal",
    "test_socket",
    "test_socketserver",
    "test_logging",
    "test_asyncio",
    "test_concurrent_futures",
    "test_subprocess",
    "test_multiprocessing_fork",
)

# Servers on the loopback interface count as network in test_socketserver; the others are not given
# it: they would look up names on the internet.  VSOCK's loopback waits for ever, also under plain
# Python, on a machine that is a guest without a peer.
NEEDS = {"test_socketserver": ("-u", "network"), "test_socket": ("-i", "*VSOCK*")}

MODULE_LIMIT_S = 900

# Modules that run beside each other: they wait more than they compute.
AT_ONCE = 2

# Tests of what a C type cannot have, or of what ours have on purpose.  They are named in the output
# all the same.
KNOWN = {
    "test.test_faulthandler.FaultHandlerTests.test_dump_traceback_threads":
        "expects the Python frames inside threading.Event.wait()",
    "test.test_faulthandler.FaultHandlerTests.test_dump_traceback_threads_file":
        "expects the Python frames inside threading.Event.wait()",
    "test.test_queue.CSimpleQueueTest.test_simplequeue_sizeof":
        "compares with the size of CPython's own structure",
    "test.test_threading.ThreadTests.test_disallow_instantiation":
        "before 3.13 the type behind threading.Lock() cannot be called; ours is threading.Lock",
}  # fmt: skip


# Everything that `cpythonplus run` enables by default is what is tested.
ENABLED = """
import sys
from cpythonplus import gil, threads
sys.exit(0 if gil.active() and threads.patched() else 'not everything is enabled')
"""


def complain_of_what_is_off() -> str:
    """Return why the tests would test nothing, or an empty text."""
    command = [sys.executable, "-m", "cpythonplus", "run", "-c", ENABLED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


@dataclass(frozen=True)
class Outcome:
    """What one run of one module said: how many tests ran, and the names of those that failed."""

    ran: int
    failed: frozenset[str]


def run_module(module: str, *, plus: bool) -> Outcome:
    """Run one module in a process of its own and read its report."""
    launcher = ["-m", "cpythonplus", "run"] if plus else []
    with tempfile.TemporaryDirectory(prefix="cpython-tests-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, *launcher, "-m", "test", "-j1", "--timeout", "300"]
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


def read_report(report: Path, module: str) -> Outcome:
    """Read a JUnit file; one that is not there or not whole counts as nothing run."""
    try:
        cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314  # our own run wrote it
    except (OSError, ET.ParseError):
        return Outcome(0, frozenset())
    failed = {
        case.get("name", module)
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    return Outcome(len(cases), frozenset(failed))


@dataclass(frozen=True)
class Verdict:
    """One module: failures that only ours has, known ones, plain Python's own, unsteady ones."""

    ran: int
    ours: frozenset[str]
    known: frozenset[str]
    theirs: frozenset[str]
    unsteady: frozenset[str]


def judge(module: str) -> Verdict:
    """Run a module, and once more on both sides when something fails that is not known to."""
    first = run_module(module, plus=True)
    if first.failed <= KNOWN.keys():
        return Verdict(first.ran, frozenset(), first.failed, frozenset(), frozenset())
    stock = run_module(module, plus=False)
    again = run_module(module, plus=True)
    theirs = first.failed & stock.failed
    ours = (first.failed & again.failed) - stock.failed
    known = ours & KNOWN.keys()
    return Verdict(first.ran, ours - known, known, theirs, first.failed - theirs - ours)


def describe(verdict: Verdict) -> str:
    """Return one line for a module."""
    parts = [f"{verdict.ran} tests"]
    parts += [f"FAILS ONLY HERE: {name}" for name in sorted(verdict.ours)]
    parts += [f"known to differ: {name} ({KNOWN[name]})" for name in sorted(verdict.known)]
    parts += [f"fails in plain Python too: {name}" for name in sorted(verdict.theirs)]
    parts += [f"failed once, not again: {name}" for name in sorted(verdict.unsteady)]
    return "; ".join(parts)


def main() -> int:
    """Run what was asked for; status 1 for a failure that plain Python has not, 2 for bad use."""
    parser = argparse.ArgumentParser(description="CPython's own tests under cpythonplus run")
    parser.add_argument("--quick", action="store_true", help="the short list only")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="instead of the list")
    options = parser.parse_args()
    # A background job has it ignored, and children would inherit that: half of test_signal waits
    # for an interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    version = sys.version.split()[0]
    if find_spec("test.test_threading") is None:
        print(f"cpython-tests: Python {version} comes without its tests; none were run")
        return 0
    complaint = complain_of_what_is_off()
    if complaint:
        print(f"cpython-tests {version}: {complaint}", file=sys.stderr)
        return 1
    quick = options.quick or os.environ.get("CPYTHON_TESTS") == "quick"
    modules = options.modules or (QUICK if quick else ALL)
    verdicts = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for module, verdict in zip(modules, pool.map(judge, modules), strict=True):
            verdicts.append(verdict)
            print(f"cpython-tests {version}: {module}: {describe(verdict)}", flush=True)
    bad = sum(len(verdict.ours) for verdict in verdicts)
    ran = sum(verdict.ran for verdict in verdicts)
    print(f"cpython-tests {version}: {ran} tests in {len(modules)} modules; {bad} fail only here")
    return 1 if bad or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
