"""What breaks between two sites, how many packets that costs, and how long until it has healed.

Needs root, network namespaces, and the programs of WireGuard and OpenSSH.  Beside cpythonplus-sites
as it is here stands wg-quick, set up as its manual shows, and with --before an older
cpythonplus-sites: what that interpreter has installed, beside pytest.  Each figure comes from a
process and machines of its own; the sides of a situation follow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

from benchmarks.common import arguments, machine
from benchmarks.common.errors import MeasurementError
from benchmarks.common.storing import stored
from benchmarks.sites.healing.results import LIMIT_S, SIDES, TITLES, Found, table

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """Measure all that is asked for; print the table."""
    parser = _parser()
    options = parser.parse_args()
    if options.before and not shutil.which(options.before):
        parser.error(f"no program {options.before}")
    if options.output and not options.output.parent.is_dir():
        parser.error(f"no folder {options.output.parent}")
    sides = [side for side in SIDES if side != "before" or options.before]
    names = [name for name in TITLES if not options.only or name in options.only]
    results: dict[str, dict[str, list[Found | None]]] = {name: defaultdict(list) for name in names}
    failed = False
    for number in range(options.rounds):
        for name in names:
            for side in sides if number % 2 == 0 else sides[::-1]:
                print(f"{name}, {side}, round {number + 1}", file=sys.stderr)
                python = options.before if side == "before" else sys.executable
                try:
                    results[name][side].append(_measured(python, name, side))
                except MeasurementError as error:
                    failed = True
                    print(f"  no result: {error}", file=sys.stderr)
    print(table(results, sides), end="")
    if options.output:
        raw = {
            name: {side: [each and asdict(each) for each in found] for side, found in row.items()}
            for name, row in results.items()
        }
        kept = {"machine": machine.describe(sys.executable), "situations": raw}
        options.output.write_text(stored(kept), encoding="utf-8")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sites.healing",
        description=(__doc__ or "").partition("\n")[0],
    )
    add = parser.add_argument
    add("--before", metavar="PYTHON", help="an interpreter with an older cpythonplus-sites")
    add("--only", metavar="NAME", action="append", choices=TITLES, help=f"of {', '.join(TITLES)}")
    add(
        "--rounds",
        type=arguments.count,
        default=1,
        metavar="N",
        help="how often each is measured (1)",
    )
    add("--output", type=Path, metavar="FILE", help="write all results as JSON")
    return parser


def _measured(python: str, name: str, side: str) -> Found | None:
    """Raises MeasurementError."""
    command = [python, "-m", "benchmarks.sites.healing.measure", name, side]
    # Which cpythonplus-sites is measured is a matter of the interpreter.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=3 * LIMIT_S,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasurementError(str(error)) from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise MeasurementError(last[0])
    found = json.loads(done.stdout)
    return None if found is None else Found(**found)


if __name__ == "__main__":
    raise SystemExit(main())
