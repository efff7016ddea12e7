#!/usr/bin/env python3
"""Other people's tests under `cpythonplus run`, or with tasklets' patches, stock beside plus.

For each package of packages.toml: its sources are fetched, an environment gets the package, what
its tests need and our wheel, and the tests run in it stock and plus in turn.  Where a test differs
both run again, three times at most: what is worse than stock in two runs or more fails only with
us, and ends the whole with status 1; what does not come back is unsteady and listed.

    farm.py [--quick] [--tasklets | --no-cycles] [--record FOLDER] [--jobs N] [PACKAGE...]

With `--tasklets` plus is a process that called `tasklets.locks.patch()` and `tasklets.io.patch()`
before anything else was imported, and only the packages for that run; one that called
`gevent.monkey.patch_all()` runs once beside them.

With `--no-cycles` plus is pytest with our plugin, which finds what causes reference cycles; each
suite also runs beside four busy loops, and a cause that depends on these is an error.

COMPAT=quick does the same as --quick.  Sources and environments are kept in
~/.cache/cpythonplus/compat, or where CPYTHONPLUS_COMPAT_CACHE says; what the runs print is in
build/compat/VERSION.
"""

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from tools.compat import causes, fetch, packages, report, run  # found by the path above
from tools.compat.judge import judge, open_questions
from tools.compat.packages import Package
from tools.compat.report import Finding
from tools.junit_results import Outcome

LOGS = Path(__file__).resolve().parent.parent.parent / "build" / "compat"


def examine(package: Package, wheel: Path, cache: Path, plus: str = "plus") -> Finding:
    """Fetch, install and run one package, as often as it takes to say what fails only with us."""
    version = platform.python_version()
    if package.left_out:
        return Finding(package, not_run=package.left_out)
    if not package.supports(version):
        return Finding(package, not_run=f"{package.version} is for Python {package.python}")
    try:
        environment = fetch.environment(package, wheel, cache)
        with tempfile.TemporaryDirectory(prefix="compat-sources-") as folder:
            sources = fetch.unpacked(package, cache, Path(folder))
            return _compare(package, sources, environment / "bin" / "python", plus)
    except (fetch.FetchError, OSError) as error:
        return Finding(package, broken=str(error))


def _compare(package: Package, sources: Path, python: Path, plus_side: str = "plus") -> Finding:
    """Run stock and one of the other sides in turn, until another run could say no more."""
    logs = LOGS / platform.python_version()
    logs.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[run.Run]] = {"stock": [], "plus": []}
    outcomes: dict[str, list[Outcome]] = {"stock": [], "plus": []}
    while True:
        for name, done in runs.items():
            side = plus_side if name == "plus" else name
            log = logs / f"{package.name}-{side}-{len(done) + 1}.txt"
            done.append(run.run_once(package, side, sources, python, log))
            outcomes[name].append(done[-1].outcome)
            if not any(outcome.passed for outcome in outcomes["stock"]):
                why = done[-1].ending or "none was found"
                return Finding(package, broken=f"no test passes on stock: {why}")
        stock, plus = outcomes["stock"], outcomes["plus"]
        if not open_questions(stock, plus, package.known):
            break
    if (
        any(python.parent.parent.glob("lib/python*/site-packages/gevent"))
        and plus_side == "tasklets"
    ):
        log = logs / f"{package.name}-gevent.txt"  # shown beside, not judged
        runs["gevent"] = [run.run_once(package, "gevent", sources, python, log)]
    verdict = judge(stock, plus, package.known)
    if plus_side != "no-cycles":
        return Finding(package, verdict, runs)
    found = _causes(package, sources, python, logs, runs)
    told = ", ".join(sorted(found.by_load))
    broken = f"found only idle, or only beside busy loops: {told}" if told else ""
    return Finding(package, verdict, runs, broken=broken, causes=found)


def _causes(
    package: Package, sources: Path, python: Path, logs: Path, runs: dict[str, list[run.Run]]
) -> causes.Causes:
    """Run beside busy loops too, and both ways again while they do not find the same."""
    runs["busy"] = []
    for number in range(1, causes.ROUNDS + 1):
        with causes.busy_loops():
            log = logs / f"{package.name}-busy-{number}.txt"
            runs["busy"].append(run.run_once(package, "no-cycles", sources, python, log))
        idle = [each.causes for each in runs["plus"]]
        found = causes.compared(idle, [each.causes for each in runs["busy"]])
        if not found.unsteady | found.by_load or number == causes.ROUNDS:
            return found
        if len(runs["plus"]) <= number:
            log = logs / f"{package.name}-no-cycles-{len(idle) + 1}.txt"
            runs["plus"].append(run.run_once(package, "no-cycles", sources, python, log))
    raise AssertionError


def our_wheel() -> Path:
    """Return the wheel that tools/in_env.sh built for this interpreter."""
    folder = Path(os.environ.get("CPYTHONPLUS_BUILD_DIR", "."))
    found = sorted((folder / "wheel").glob("cpythonplus-*.whl"))
    if not found:
        raise packages.ListError("there is no wheel of cpythonplus: use `make compat`")
    return found[-1]


def _end(number: int, _frame: object) -> NoReturn:
    """End with all that was begun: it is in sessions of its own, which no terminal ends."""
    run.end_marked(f"{os.getpid()} ")
    os._exit(128 + number)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="compat", description="Other people's tests on ours")
    parser.add_argument("--quick", action="store_true", help="the short list only")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--tasklets", action="store_true", help="with tasklets' patches instead")
    instead.add_argument(
        "--no-cycles", action="store_true", help="with our plugin of pytest instead"
    )
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="where results are kept")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="packages at once (2)")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="instead of the list")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; status 1 when something fails only with us, 2 for bad use."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    quick = options.quick or os.environ.get("COMPAT") == "quick"
    try:
        listed = packages.read()
        chosen = packages.for_tasklets if options.tasklets else packages.for_run
        listed = (packages.for_no_cycles if options.no_cycles else chosen)(listed)
        asked = packages.chosen(listed, options.packages, quick=quick)
        wheel = our_wheel()
        if options.record is not None:
            options.record.mkdir(parents=True, exist_ok=True)
    except (packages.ListError, OSError) as error:
        print(f"compat: {error}", file=sys.stderr)
        return 2
    kept = os.environ.get("CPYTHONPLUS_COMPAT_CACHE", "~/.cache/cpythonplus/compat")
    plus, kind = ("tasklets", "compat-tasklets") if options.tasklets else ("plus", "compat")
    plus, kind = ("no-cycles", "compat-no-cycles") if options.no_cycles else (plus, kind)
    task = partial(examine, wheel=wheel, cache=Path(kept).expanduser(), plus=plus)
    title, start, findings = f"{kind} {platform.python_version()}", time.monotonic(), []
    with ThreadPoolExecutor(options.jobs) as pool:
        for finding in pool.map(task, asked):
            findings.append(finding)
            print(f"{title}: {finding.package.name}: {report.described(finding)}", flush=True)
            if options.record is not None:
                report.record([finding], options.record, kind)
    ran = [finding for finding in findings if finding.runs]
    tests = sum(finding.runs["plus"][0].outcome.ran for finding in ran)
    bad = sum(len(finding.verdict.ours) for finding in findings)
    broken = sum(bool(finding.broken) for finding in findings)
    print(
        f"{title}: {tests} tests of {len(ran)} packages in {time.monotonic() - start:.0f} s;"
        f" {bad} fail only with us{f', {broken} packages are broken' if broken else ''}"
    )
    return 1 if bad or broken or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
