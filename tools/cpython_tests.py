#!/usr/bin/env python3
"""CPython's own tests on ours: under `cpythonplus run`, or with what tasklets put in its place.

Runs each test module of the interpreter that runs this file under `cpythonplus run`; with
`--tasklets`, in a process that called `tasklets.locks.patch()` and `tasklets.io.patch()` before it
imported the module.  What fails there, but for what is known to (cpython_known.py), is run once
more under plain Python and again under ours: a failure that plain Python has too is its own; one
that does not come back is called unsteady and listed; one that stays ends the run with status 1.

    cpython_tests.py [--tasklets] [--quick] [MODULE...]
    cpython_tests.py --whole [--part K/N] [--record FOLDER] [MODULE...]
    cpython_tests.py --tasklets --record FOLDER [MODULE...]

CPYTHON_TESTS=quick does the same as --quick.  `--whole` runs every module that the interpreter has
tests in.  What needs the internet, a display, gigabytes or minutes is left out by the tests
themselves, as in `python -m test` without `-u`.  `--part 2/8` takes the second of eight parts that
take about equally long, by the times that were recorded.  Without it, the children that tests start
with -E or -I are under `run`, too.

`--record` writes what was seen into FOLDER, where cpython_tests_page.py makes the pages in docs
from it.  With `--tasklets` plain Python always runs too then, and a test that is skipped only here
counts as one that fails.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.common.storing import stored
from tools import cpython_known  # found by the path above
from tools.junit_results import Outcome, read_report, reason

# Servers on the loopback interface count as network in test_socketserver; the others are not given
# it: they would look up names on the internet.  VSOCK's loopback waits for ever, also under plain
# Python, on a machine that is a guest without a peer.
NEEDS = {"test_socketserver": ("-u", "network"), "test_socket": ("-i", "*VSOCK*")}

# A module may take so long; what its process leaves behind may take twice as long again.
MODULE_LIMIT_S = 300
# With --whole: so many times as long as it took when that was recorded, if that is more.
PATIENCE = 6
# What a module costs whose time nobody has recorded: the median of the others is 2 s.
UNKNOWN_COST_S = 4.0

# What `python -m test` ends with where there was nothing to run; and how that is called here.
NO_TESTS_STATUS, NO_TESTS = 4, ": no tests ran"

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results"

# Modules that run beside each other: they wait more than they compute.
AT_ONCE = 2

# Everything that `cpythonplus run` enables by default is what is tested.
_ENABLED = """
import sys
from cpythonplus import gil, threads
has_gil = "t" not in sys.abiflags
sys.exit(0 if gil.active() is has_gil and threads.patched() else 'not everything is enabled')
"""

# Most tests start their children with -E or -I, which are plain Python then, also under `run`.
# This has them believe that their interpreter cannot do without its environment.
_INHERITING_TESTS = """
from test.support import script_helper
vars(script_helper)["__cached_interp_requires_environment"] = True
from test.libregrtest.main import main
main()
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
_RUN = ("-m", "cpythonplus", "run")
RUN = Way(
    (*_RUN, "-c", _INHERITING_TESTS),
    (*_RUN, "-c", _ENABLED),
    cpython_known.RUN_ALL,
    cpython_known.RUN_QUICK,
    cpython_known.KNOWN_RUN,
)
WHOLE = Way((*_RUN, "-m", "test", "-j1"), (*_RUN, "-c", _ENABLED), known=cpython_known.KNOWN_WHOLE)
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


def all_modules() -> list[str]:
    """Return every module that this interpreter has tests in, by name."""
    command = [sys.executable, "-m", "test", "--list-tests"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sorted(listed.split())


def recorded_seconds(folder: Path = RESULTS) -> dict[str, float]:
    """Return how long each module takes: on this version, else on the oldest of the others."""
    own = path_of_record("whole", folder)
    seconds: dict[str, float] = {}
    for path in sorted(folder.glob("cpython-whole-3.*.json")):
        for module, found in json.loads(path.read_text("utf-8"))["modules"].items():
            if path == own or module not in seconds:
                seconds[module] = found["seconds"]
    return seconds


def part_of(
    modules: Iterable[str], number: int, parts: int, seconds: Mapping[str, float]
) -> list[str]:
    """Return the modules of one part of several that cost about the same, the longest first."""
    shares: list[list[str]] = [[] for _ in range(parts)]
    costs = [0.0] * parts
    for cost, module in sorted((-seconds.get(m, UNKNOWN_COST_S), m) for m in modules):
        cheapest = costs.index(min(costs))
        shares[cheapest].append(module)
        costs[cheapest] -= cost
    return shares[number - 1]


def run_module(module: str, way: Way, limit_s: float = MODULE_LIMIT_S) -> Outcome:
    """Run one module in a process of its own and read its report."""
    with tempfile.TemporaryDirectory(prefix="cpython-tests-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, *way.tests, "--timeout", str(limit_s)]
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
                timeout=3 * limit_s,
                check=False,
            )
            status, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as expired:
            status, output = -1, str(expired)
        outcome = read_report(report, module)
    if status != 0 and not outcome.failed:
        # It ended badly without a report that says where: a crash, a hang, a changed environment.
        if status == NO_TESTS_STATUS:
            return Outcome(0, frozenset({f"{module}{NO_TESTS}"}))
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
    seconds: float = 0.0


def judge(
    module: str, way: Way, *, thoroughly: bool = False, limit_s: float = MODULE_LIMIT_S
) -> Verdict:
    """Run a module, and once more on both sides when something fails that is not known to.

    `thoroughly` has plain Python run in any case, and what is skipped only here counts as failed.
    """
    begin = time.monotonic()
    first = run_module(module, way, limit_s)
    seconds = time.monotonic() - begin
    expected = all(reason(name, way.known) for name in first.failed)
    again, stock = first, Outcome(0, frozenset())
    if thoroughly or not expected:
        stock = run_module(module, PLAIN, limit_s)
    if not expected:
        again = run_module(module, way, limit_s)
    theirs = first.failed & stock.failed
    ours = (first.failed & again.failed) - stock.failed
    if thoroughly:
        ours |= first.skipped - stock.skipped
    known = {name: why for name in ours if (why := reason(name, way.known))}
    unsteady = first.failed - theirs - ours
    skipped = len(first.skipped - ours)
    return Verdict(first.ran, ours - known.keys(), known, theirs, unsteady, skipped, seconds)


def describe(verdict: Verdict) -> str:
    """Return one line for a module."""
    parts = [f"{verdict.ran} tests"]
    parts += [f"FAILS ONLY HERE: {name}" for name in sorted(verdict.ours)]
    parts += [f"known to differ: {name} ({why})" for name, why in sorted(verdict.known.items())]
    parts += [f"fails in plain Python too: {name}" for name in sorted(verdict.theirs)]
    parts += [f"failed once, not again: {name}" for name in sorted(verdict.unsteady)]
    return "; ".join(parts)


def path_of_record(kind: str, folder: Path) -> Path:
    """Return the file of this version; kind: `tests` of tasklets' patches, `whole` under `run`."""
    version = ".".join(map(str, sys.version_info[:2]))
    return folder / f"cpython-{kind}-{version}.json"


def record(verdicts: Mapping[str, Verdict], path: Path, *, times: bool = False) -> None:
    """Write what was seen into a file; modules that did not run keep theirs."""
    modules = json.loads(path.read_text("utf-8"))["modules"] if path.exists() else {}
    for module, verdict in verdicts.items():
        modules[module] = {
            "tests": verdict.ran,
            "skipped": verdict.skipped,
            "failed": sorted(verdict.ours | verdict.known.keys()),
            "failed in plain Python too": sorted(
                name for name in verdict.theirs if not name.endswith(NO_TESTS)
            ),
            "unsteady": sorted(verdict.unsteady),
            **({"seconds": round(verdict.seconds, 1)} if times else {}),
        }
    found = {"python": sys.version.split()[0], "modules": dict(sorted(modules.items()))}
    path.write_text(stored(found), "utf-8")


def part(text: str) -> tuple[int, int]:
    """Read `K/N`."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"expected K/N with K from 1 to N, got {text!r}")
    return int(number), int(parts)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="CPython's own tests on ours")
    parser.add_argument("--quick", action="store_true", help="the short list only")
    parser.add_argument("--tasklets", action="store_true", help="with tasklets' patches instead")
    parser.add_argument("--whole", action="store_true", help="all that the interpreter has")
    parser.add_argument("--part", type=part, default=(1, 1), metavar="K/N", help="of --whole")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="where results are kept")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="instead of the list")
    options = parser.parse_args(arguments)
    if options.tasklets and options.whole:
        parser.error("--whole is about `cpythonplus run`: not with --tasklets")
    if options.part != (1, 1) and not options.whole:
        parser.error("--part is of --whole")
    if options.record is not None and not (options.tasklets or options.whole):
        parser.error("--record needs --tasklets or --whole")
    return options


def chosen(options: argparse.Namespace, way: Way, seconds: Mapping[str, float]) -> Sequence[str]:
    """Return the modules that the command line asks for."""
    if options.modules:
        return list(options.modules)
    if options.whole:
        number, parts = options.part
        return part_of(all_modules(), number, parts, seconds)
    quick = options.quick or os.environ.get("CPYTHON_TESTS") == "quick"
    return way.quick if quick else way.all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; status 1 for a failure that plain Python has not, 2 for bad use."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    way = TASKLETS if options.tasklets else WHOLE if options.whole else RUN
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
    seconds = recorded_seconds() if options.whole else {}
    modules = chosen(options, way, seconds)
    kind = "whole" if options.whole else "tests"

    def task(module: str) -> tuple[str, Verdict]:
        limit_s = max(MODULE_LIMIT_S, PATIENCE * seconds.get(module, 0.0))
        thoroughly = options.tasklets and options.record is not None
        return module, judge(module, way, thoroughly=thoroughly, limit_s=limit_s)

    verdicts = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for module, verdict in pool.map(task, modules):
            verdicts[module] = verdict
            print(f"{title} {version}: {module}: {describe(verdict)}", flush=True)
            if options.record is not None:  # at once: the whole takes an hour
                path = path_of_record(kind, options.record)
                record({module: verdict}, path, times=options.whole)
    bad = sum(len(verdict.ours) for verdict in verdicts.values())
    ran = sum(verdict.ran for verdict in verdicts.values())
    print(f"{title} {version}: {ran} tests in {len(verdicts)} modules; {bad} fail only here")
    return 1 if bad or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
