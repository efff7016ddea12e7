"""`python -m benchmarks`: measure an interpreter stock and plus, in one run."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import scenarios
from benchmarks.common import arguments, engine, page, terminal
from benchmarks.common.children import Commands
from benchmarks.common.errors import UsageError
from benchmarks.common.sides import ALL_SIDES, SIDES
from benchmarks.memory.malloc import command as malloc
from benchmarks.memory.reports import command as reports
from benchmarks.scenarios import SUITES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

    from benchmarks.common.catalogue import Suite
    from benchmarks.common.sides import Side

USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
"""128 + SIGINT, as a shell reports it."""
OTHERS = {"malloc": malloc, "reports": reports}
"""Those that have no cases and sides: a script, or the programs of others."""


def main(words: Sequence[str] | None = None) -> int:
    """Carry out `python -m benchmarks WORDS`; returns the exit status.

    0, also when targets are missed; 1 when measurements failed; 2 for a wrong request, which is one
    line; 130 after Ctrl-C.
    """
    args = parser().parse_args(words)
    try:
        return OTHERS[args.benchmark].run(args) if args.benchmark in OTHERS else run(args)
    except UsageError as error:
        return _complain(args, str(error))
    except KeyboardInterrupt:
        _complain(args, "interrupted")
        return INTERRUPTED_STATUS


def _complain(args: argparse.Namespace, message: str) -> int:
    print(f"benchmarks {args.benchmark}: {message}", file=sys.stderr)
    return USAGE_STATUS


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    found = argparse.ArgumentParser(
        prog="benchmarks", description="Measure this Python with cpythonplus and without it."
    )
    kinds = found.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for suite in SUITES.values():
        _add_suite(kinds, suite)
    for name, other in OTHERS.items():
        other.add_arguments(
            kinds.add_parser(name, help=other.SUMMARY, description=_sentence(other.SUMMARY))
        )
    return found


def _add_suite(kinds: argparse._SubParsersAction[Any], suite: Suite) -> None:
    full, quick = suite.full, suite.quick
    parser = kinds.add_parser(suite.name, help=suite.help, description=_sentence(suite.help))
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{quick.rounds} round(s) of {suite.size.format(quick)}: to see that it works",
    )
    parser.add_argument(
        "--rounds", type=arguments.count, metavar="N", help=f"rounds on each side ({full.rounds})"
    )
    if "seconds" in suite.size:
        parser.add_argument(
            "--seconds",
            type=arguments.seconds,
            metavar="S",
            help=f"length of one measurement in seconds ({full.seconds:g})",
        )
    for option, what in suite.counts.items():
        default = getattr(full, option)
        parser.add_argument(
            f"--{option}", type=arguments.count, metavar="N", help=f"{what} ({default})"
        )
    if suite.has_workers:
        parser.add_argument(
            "--workers",
            type=arguments.count,
            metavar="N",
            help="as many workers in all cases (as their names say)",
        )
    parser.add_argument(
        "--only",
        type=arguments.names,
        default=[],
        metavar="NAME,...",
        help="only these scenarios or cases; * matches anything (see --list)",
    )
    sides = _sides_of(suite)
    if sides != SIDES:
        optional = ", ".join(sorted(suite.unless_named))
        parser.add_argument(
            "--sides",
            type=partial(arguments.sides, sides),
            default=[side for side in sides if side not in suite.unless_named],
            metavar="NAME,...",
            help=f"only these sides beside {sides[0]} ({', '.join(sides[1:])})"
            + (f"; all but {optional} unless given" if optional else ""),
        )
    parser.add_argument("--list", action="store_true", help="list the cases and measure nothing")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the raw results of all rounds"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write the tables as a page, with bars"
    )
    if suite.show is not None:
        parser.add_argument("--save", type=Path, metavar="FILE", help="draw it, as an SVG")
    parser.add_argument(
        "--python",
        default=sys.executable,
        metavar="EXE",
        help="the interpreter to measure (this one); cpythonplus must be installed for it",
    )
    # What stands in for `PYTHON -m cpythonplus run`: another build of it, or nothing at all to
    # see how far two equal sides lie apart.
    parser.add_argument("--plus-command", type=shlex.split, help=argparse.SUPPRESS)


def _sides_of(suite: Suite) -> tuple[Side, ...]:
    """Return the sides that any case of a suite has, in the order in which they are shown."""
    found = {side for case in scenarios.cases_of(suite.name) for side in case.sides}
    return tuple(side for side in ALL_SIDES if side in found)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def run(args: argparse.Namespace) -> int:
    """Measure what `args` asks for, print it, write the files; returns the exit status.

    Raises UsageError, before anything is measured, for what cannot be done.
    """
    suite = SUITES[args.benchmark]
    workers = getattr(args, "workers", None)
    cases = scenarios.cases_of(suite.name, **({"workers": workers} if workers else {}))
    cases = engine.select(cases, args.only)
    if args.quick:
        cases = engine.quick(cases)
    if args.list:
        return _list(cases)
    for path in (args.json, args.html, getattr(args, "save", None)):
        terminal.check_writable(path)
    suite.check()
    own = args.plus_command is not None
    plus = args.plus_command if own else ["-m", "cpythonplus", suite.plus]
    commands = Commands.of(args.python, plus if own and plus else [args.python, *plus])
    engine.check_interpreter(commands, cases, own_command=own)
    sides = getattr(args, "sides", SIDES)  # most suites have no others
    cases = engine.with_sides(cases, commands, sides, own_command=own)
    return _measure(args, cases, commands)


def _measure(args: argparse.Namespace, cases: list[engine.Case], commands: Commands) -> int:
    settings = _settings(args)
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        report = engine.run(args.benchmark, cases, commands, settings, terminal.progress())
    finally:
        signal.signal(signal.SIGTERM, previous)
    report.targets = [verdict.as_dict() for verdict in scenarios.verdicts(report)]
    # First what took minutes to get, then what a reader may have turned away from.
    if args.json:
        report.write_json(args.json)
    if args.html:
        page.write(report, args.html)
    suite = SUITES[args.benchmark]
    if suite.show is None:
        terminal.show_report(report, terminal.console())
    else:
        terminal.show_summary(suite.show(report), args.save)
    files = (args.json, args.html, getattr(args, "save", None))
    for what, path in zip(("raw results", "page", "picture"), files, strict=True):
        if path:
            print(f"{what}: {path.resolve()}")
    return 1 if report.failures() else 0


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    # Leaves all `with` blocks, which end the children.
    raise SystemExit(128 + signal.SIGTERM)


def _settings(args: argparse.Namespace) -> engine.Settings:
    suite = SUITES[args.benchmark]
    chosen = suite.quick if args.quick else suite.full
    names = ("rounds", "seconds", *suite.counts)
    given = {name: value for name in names if (value := getattr(args, name, None))}
    return replace(chosen, startup_rounds=max(chosen.startup_rounds, args.rounds or 0), **given)


def _list(cases: Sequence[engine.Case]) -> int:
    width = max(len(c.name) for c in cases) + 2
    for case in cases:
        print(f"{case.scenario:<12}{case.name:<{width}}{case.title}")
    return 0
