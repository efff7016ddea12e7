"""`cpythonplus bench`: measure this interpreter stock and plus, in one run."""

from __future__ import annotations

import argparse
import math
import shlex
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus.base.visible import visible
from cpythonplus.benchmarks.common import engine, page
from cpythonplus.benchmarks.common.children import Commands
from cpythonplus.benchmarks.common.errors import UsageError as BenchmarkUsageError
from cpythonplus.benchmarks.common.results import ALL_SIDES, SIDES
from cpythonplus.benchmarks.sites import scenario as tunnels
from cpythonplus.benchmarks.suites import SUITES, prefork
from cpythonplus.cli.arguments import UsageError
from cpythonplus.cli.commands import bench_malloc
from cpythonplus.cli.terminal import complain, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

    from cpythonplus.benchmarks.common.results import Report, Side

SUMMARY = "measure this Python with cpythonplus and without it"

MAX_SECONDS = 3600

INTERRUPTED_STATUS = 130
"""128 + SIGINT, as a shell reports it."""

DEFAULTS = {
    # Rounds, seconds and starts of an interpreter; the second of each for --quick.
    "giltest": (engine.Settings(5, 1.0, 25), engine.Settings(2, 0.3, 5, arrivals=10)),
    "threads": (engine.Settings(3, 0.5), engine.Settings(1, 0.1, idle_s=1.0)),
    "testserver": (engine.Settings(3, 2.0), engine.Settings(1, 0.5)),
    # It goes by requests, not by seconds.
    "prefork": (engine.Settings(3, 1.0), engine.Settings(1, 1.0, items=2000, requests=60)),
    "tasklets": (engine.Settings(5, 0.5), engine.Settings(1, 0.1, parked=2000, many=20_000)),
    "tasklet-io": (
        engine.Settings(5, 1.0),
        engine.Settings(1, 0.2, connections=50, sleepers=500, longest_sleep_s=0.2),
    ),
    "memory": (
        engine.Settings(5, 2.0),
        engine.Settings(1, 0.3, idle_s=4.0, heap_mib=100, many=20_000),
    ),
    "sites": (engine.Settings(3, 5.0), engine.Settings(1, 1.0)),
    "demo": (engine.Settings(2, 2.5), engine.Settings(1, 1.0)),
}

_HELP = {
    "giltest": "how threads hand the GIL to each other: echo, pairs, requests, crowds, start-up",
    "threads": "what waiting for another thread costs: locks, queues, executors, idle threads",
    "testserver": "threaded HTTP servers under load: http.server, Flask under gunicorn",
    "prefork": "what preforked workers share: a Django service under gunicorn, its memory, its end",
    "tasklets": "tasklets beside greenlet, gevent, asyncio, Go and threads: switches, memory",
    "tasklet-io": "sockets, sleep, locks and channels of tasklets beside gevent, uvloop, asyncio",
    "memory": "what looking for cycles costs a Flask application; memory that does not come back",
    "sites": "a TCP stream between two sites: WireGuard, ssh, OpenVPN, no tunnel; needs root",
    "demo": "Flask under gunicorn beside a CPU-bound job; under two minutes, writes a page",
}

_OPTIONAL_SIDES = {"prefork": {"gc-off"}}
"""Sides of a benchmark that are measured only when they are named."""

_COUNTS = {
    "tasklets": {
        "parked": "parked ones whose memory is measured",
        "many": "parked ones that are each woken once",
    },
    "tasklet-io": {
        "connections": "connections of the echo servers",
        "sleepers": "those that sleep at once",
    },
}
"""Options that are named as the settings that they change, and what is counted."""

_DEMO_PAGE = Path("cpythonplus-demo.html")


def main(arguments: Sequence[str]) -> int:
    """Carry out `cpythonplus bench ARGUMENTS`. Raises UsageError for wrong ones."""
    parser = _Parser(prog="cpythonplus", add_help=False)
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["bench", *arguments])
    return bench_malloc.run(args) if args.benchmark == "malloc" else run(args)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are the one line that all commands share."""

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("cpythonplus bench").strip()
        raise UsageError(f"{command}: {message}" if command else message)


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of `cpythonplus`."""
    bench = subparsers.add_parser("bench", help=SUMMARY, description=_sentence(SUMMARY))
    kinds = bench.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for name in SUITES:
        _add_benchmark(kinds, name)
    # It has a script, and no cases.
    summary = bench_malloc.SUMMARY
    bench_malloc.add_arguments(
        kinds.add_parser("malloc", help=summary, description=_sentence(summary))
    )


def _add_benchmark(kinds: argparse._SubParsersAction[Any], name: str) -> None:
    full, quick = DEFAULTS[name]
    parser = kinds.add_parser(name, help=_HELP[name], description=_sentence(_HELP[name]))
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{quick.rounds} round(s) of {_size(name, quick)}: to see that it works",
    )
    parser.add_argument(
        "--rounds", type=_count, metavar="N", help=f"rounds on each side ({full.rounds})"
    )
    if name == "prefork":
        _add_prefork_options(parser, full)
    else:
        parser.add_argument(
            "--seconds",
            type=_seconds,
            metavar="S",
            help=f"length of one measurement in seconds ({full.seconds:g})",
        )
    for option, what in _COUNTS.get(name, {}).items():
        default = getattr(full, option)
        parser.add_argument(f"--{option}", type=_count, metavar="N", help=f"{what} ({default})")
    parser.add_argument(
        "--only",
        type=_names,
        default=[],
        metavar="NAME,...",
        help="only these scenarios or cases; * matches anything (see --list)",
    )
    base, *others = _sides_of(name)
    if (base, *others) != SIDES:
        optional = _OPTIONAL_SIDES.get(name, set())
        parser.add_argument(
            "--sides",
            type=partial(_sides, _sides_of(name)),
            default=[side for side in _sides_of(name) if side not in optional],
            metavar="NAME,...",
            help=f"only these sides beside {base} ({', '.join(others)})"
            + (f"; all but {', '.join(sorted(optional))} unless given" if optional else ""),
        )
    parser.add_argument("--list", action="store_true", help="list the cases and measure nothing")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the raw results of all rounds"
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        default=_DEMO_PAGE if name == "demo" else None,
        help="write a self-contained page with charts"
        + (f" ({_DEMO_PAGE})" if name == "demo" else ""),
    )
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="EXE",
        help="the interpreter to measure (this one); cpythonplus must be installed for it",
    )
    # What stands in for `PYTHON -m cpythonplus run`: another build of it, or nothing at all to
    # see how far two equal sides lie apart.
    parser.add_argument("--plus-command", type=shlex.split, help=argparse.SUPPRESS)


def _size(name: str, settings: engine.Settings) -> str:
    """Return how large one measurement is, in words."""
    if name == "prefork":
        return f"{settings.items} items, {settings.requests} requests a worker"
    return f"{settings.seconds:g} s"


def _add_prefork_options(parser: argparse.ArgumentParser, full: engine.Settings) -> None:
    parser.add_argument(
        "--items", type=_count, metavar="N", help=f"items in the catalogue ({full.items})"
    )
    parser.add_argument(
        "--requests",
        type=_count,
        metavar="N",
        help=f"requests for each worker in one measurement ({full.requests})",
    )
    parser.add_argument(
        "--workers",
        type=_count,
        metavar="N",
        help="as many workers in all cases (4 and 8, as their names say)",
    )


def _sides_of(name: str) -> tuple[Side, ...]:
    """Return the sides that any case of a benchmark has, in the order in which they are shown."""
    found = {side for case in SUITES[name]() for side in case.sides}
    return tuple(side for side in ALL_SIDES if side in found)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds above 0, up to {MAX_SECONDS}"
        )
    return value


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name")
    return names


def _sides(known: Sequence[Side], text: str) -> list[str]:
    names = _names(text)
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(
                f"there is no side {name!r}; sides are {', '.join(known)}"
            )
    return names


def run(args: argparse.Namespace) -> int:
    """Measure what `args` asks for, print it, write the files; returns the exit status.

    0, also when targets are missed; 1 when measurements failed; 130 after Ctrl-C. Raises
    UsageError, before anything is measured, for what cannot be done.
    """
    try:
        cases = engine.select(_cases(args), args.only)
        if args.quick:
            cases = engine.quick(cases)
        if args.list:
            return _list(cases)
        for path in (args.json, args.html):
            bench_malloc.check_writable(path)
        if args.html:
            page.require()
        own = args.plus_command is not None
        if args.benchmark == "sites":
            tunnels.check()
        commands = Commands.of(args.python, _plus_command(args))
        engine.check_interpreter(commands, cases, own_command=own)
        sides = getattr(args, "sides", SIDES)  # most benchmarks have no others
        cases = engine.with_sides(cases, commands, sides, own_command=own)
        return _measure(args, cases, commands)
    except BenchmarkUsageError as error:
        raise UsageError(str(error)) from None
    except KeyboardInterrupt:
        print(f"cpythonplus bench {args.benchmark}: interrupted", file=sys.stderr)
        return INTERRUPTED_STATUS


def _cases(args: argparse.Namespace) -> list[engine.Case]:
    if args.benchmark == "prefork":
        return prefork(args.workers)
    return SUITES[args.benchmark]()


def _plus_command(args: argparse.Namespace) -> list[str] | None:
    """Return what starts the plus side; None for `cpythonplus run`."""
    if args.plus_command is not None:
        return args.plus_command or [args.python]
    if args.benchmark == "prefork":
        return [args.python, "-m", "cpythonplus", "serve"]
    return None


def _measure(args: argparse.Namespace, cases: list[engine.Case], commands: Commands) -> int:
    from cpythonplus.cli import render

    settings = _settings(args)
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        report = engine.run(args.benchmark, cases, commands, settings, render.progress())
    finally:
        signal.signal(signal.SIGTERM, previous)
    # First what took minutes to get, then what a reader may have turned away from.
    status = _write(args, report)
    out = render.console()
    with out.capture() as text:
        render.show_report(report, out)
    show(text.get() + _where(args), styled=True)
    return status


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    # Leaves all `with` blocks, which end the children.
    raise SystemExit(128 + signal.SIGTERM)


def _settings(args: argparse.Namespace) -> engine.Settings:
    full, quick = DEFAULTS[args.benchmark]
    chosen = quick if args.quick else full
    return engine.Settings(
        rounds=args.rounds or chosen.rounds,
        seconds=getattr(args, "seconds", None) or chosen.seconds,
        startup_rounds=max(chosen.startup_rounds, args.rounds or 0),
        idle_s=chosen.idle_s,
        heap_mib=chosen.heap_mib,
        arrivals=chosen.arrivals,
        items=getattr(args, "items", None) or chosen.items,
        requests=getattr(args, "requests", None) or chosen.requests,
        parked=getattr(args, "parked", None) or chosen.parked,
        many=getattr(args, "many", None) or chosen.many,
        connections=getattr(args, "connections", None) or chosen.connections,
        sleepers=getattr(args, "sleepers", None) or chosen.sleepers,
        longest_sleep_s=chosen.longest_sleep_s,
    )


def _list(cases: Sequence[engine.Case]) -> int:
    width = max(len(c.name) for c in cases) + 2
    return show("".join(f"{c.scenario:<12}{c.name:<{width}}{c.title}\n" for c in cases))


def _write(args: argparse.Namespace, report: Report) -> int:
    try:
        if args.json:
            report.write_json(args.json)
        if args.html:
            page.write(report, args.html)
    except OSError as error:
        complain(f"cpythonplus bench {args.benchmark}", str(error))
        return 1
    return 1 if report.failures() else 0


def _where(args: argparse.Namespace) -> str:
    named = (("raw results", args.json), ("page", args.html))
    return "".join(
        f"{what}: {visible(str(path.resolve()))}\n"
        for what, path in named
        if path and path.exists()
    )
