"""Applications of real life under gunicorn, stock beside `cpythonplus serve`.

    python -m tools.compat_serve [--record FOLDER] [APPLICATION...]

Each application is started, put under load, reloaded, given more and fewer workers, robbed of one,
made to recycle them, upgraded and stopped, while a client counts.  What fails on plus and not on
stock is run with stock's --preload, which is what `serve` always does, and repeated: status 1 for
what then fails only with us.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.compat_serve import environments, processes
from tools.compat_serve.applications import APPLICATIONS, Application
from tools.compat_serve.judging import Verdict, judge
from tools.compat_serve.report import describe, record, row
from tools.compat_serve.scenario import SIDES, Phases, go_through, phase_names

ROOT = Path(__file__).resolve().parent.parent.parent
TITLE = "compat-serve"
PASSED, FAILED, WRONG_USE = 0, 1, 2


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; a name that is none ends it with status 2."""
    parser = argparse.ArgumentParser(prog=TITLE, description="Applications under cpythonplus serve")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="where results are kept")
    parser.add_argument("--list", action="store_true", help="name the applications, and end")
    parser.add_argument("applications", nargs="*", metavar="APPLICATION", help="only these")
    return parser.parse_args(arguments)


def examine(name: str, application: Application, environment: Path) -> Verdict:
    """Run one application on both sides."""
    folder = ROOT / "build" / TITLE / sys.version.split()[0]

    def run(side: str) -> Phases:
        return go_through(application, side, environment, folder / f"{name}-{SIDES[side]}")

    return judge(run, phase_names(application))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; status 1 for what fails only with us, 2 for bad use."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    unknown = [name for name in options.applications if name not in APPLICATIONS]
    if unknown:
        known = ", ".join(APPLICATIONS)
        print(f"{TITLE}: no application {unknown[0]!r}; there are {known}", file=sys.stderr)
        return WRONG_USE
    if options.list:
        print("\n".join(APPLICATIONS))
        return PASSED
    try:
        if options.record is not None:
            options.record.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"{TITLE}: {error}", file=sys.stderr)
        return WRONG_USE
    # A background job has it ignored, and servers would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A limit of time ends it so; the servers then end with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    processes.adopt_orphans()
    title = f"{TITLE} {sys.version.split()[0]}"
    rows, bad = {}, 0
    for name in options.applications or APPLICATIONS:
        application = APPLICATIONS[name]
        try:
            environment = environments.ready(application.group)
        except environments.NoEnvironmentError as error:
            print(f"{title}: {name}: {error}", flush=True)
            rows[name] = {"absent": str(error)}
            continue
        verdict = examine(name, application, environment)
        for line in describe(verdict):
            print(f"{title}: {name}: {line}", flush=True)
        rows[name] = row(verdict, environments.versions(environment, application.group))
        bad += bool(verdict.ours)
    if options.record is not None:
        record(rows, options.record)
    ran = sum("passed" in found for found in rows.values())
    print(f"{title}: {ran} applications; {bad} fail only with us")
    return FAILED if bad or not ran else PASSED


if __name__ == "__main__":
    sys.exit(main())
