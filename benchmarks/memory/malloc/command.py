"""`python -m benchmarks malloc`: one script under each allocator, time and memory in a table."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

from benchmarks.common import arguments, terminal
from benchmarks.common.errors import UsageError
from benchmarks.memory.malloc import comparing

SUMMARY = "run a script under several allocators: its time, and the memory that stays"


def add_arguments(found: argparse.ArgumentParser) -> None:
    """Give a parser the command's own arguments."""
    found.add_argument(
        "--rounds", type=arguments.count, default=3, metavar="N", help="on each side (3)"
    )
    found.add_argument(
        "--idle",
        type=arguments.seconds,
        default=5.0,
        metavar="S",
        help="seconds between the script's end and the last look (5)",
    )
    found.add_argument(
        "--limit",
        type=arguments.seconds,
        default=600.0,
        metavar="S",
        help="most seconds of a run (600)",
    )
    found.add_argument(
        "--only",
        type=partial(arguments.sides, comparing.SIDES),
        default=list(comparing.SIDES),
        metavar="NAME,...",
        help=f"only these of {', '.join(comparing.SIDES)}",
    )
    found.add_argument("--json", type=Path, metavar="FILE", help="write all rounds")
    found.add_argument("script", metavar="SCRIPT", help="a Python program; its output is not shown")
    found.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="the program's own"
    )


def run(args: argparse.Namespace) -> int:
    """Measure what `args` asks for and print it; returns the exit status.

    0, or 1 where a side failed that is there; an allocator that is not installed is no failure.
    """
    if not Path(args.script).is_file():
        raise UsageError(f"the script {args.script!r} does not exist")
    terminal.check_writable(args.json)
    progress = terminal.progress()
    progress.begin(args.rounds * len(args.only))
    try:
        found = comparing.compare(
            [args.script, *args.arguments],
            sides=args.only,
            rounds=args.rounds,
            idle_s=args.idle,
            limit_s=args.limit,
            step=progress.step,
        )
    finally:
        progress.end()
    if args.json:
        args.json.write_text(json.dumps(found.to_json(), indent=2) + "\n", encoding="utf-8")
    print(table(found), end="")
    failed = [side for side in found.notes if not found.notes[side].startswith(f"{side} is not ")]
    return 1 if failed else 0


def table(found: comparing.Comparison) -> str:
    """Return the table as text."""
    rows = found.rows()
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:5], widths[1:], strict=True)]
        line = "  ".join(cells) if row[1] else cells[0]
        lines.append(f"{line}  {row[5]}".rstrip())
    return "\n".join(lines) + "\n"
