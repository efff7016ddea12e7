"""`cpythonplus bench malloc`: one script under each allocator, time and memory in a table."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path

from cpythonplus.base.files import write_output
from cpythonplus.benchmarks.memory import allocating
from cpythonplus.cli.arguments import UsageError
from cpythonplus.cli.terminal import show

SUMMARY = "run a script under several allocators: its time, and the memory that stays"

_INTERRUPTED_STATUS = 130
_MAX_SECONDS = 3600


def add_arguments(found: argparse.ArgumentParser) -> None:
    """Give a parser the command's own arguments."""
    found.add_argument("--rounds", type=_rounds, default=3, metavar="N", help="on each side (3)")
    found.add_argument(
        "--idle",
        type=_seconds,
        default=5.0,
        metavar="S",
        help="seconds between the script's end and the last look (5)",
    )
    found.add_argument(
        "--limit", type=_seconds, default=600.0, metavar="S", help="most seconds of a run (600)"
    )
    found.add_argument(
        "--only",
        type=_sides,
        default=list(allocating.SIDES),
        metavar="NAME,...",
        help=f"only these of {', '.join(allocating.SIDES)}",
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
    from cpythonplus.cli import render

    if not Path(args.script).is_file():
        raise UsageError(f"malloc: the script {args.script!r} does not exist")
    check_writable(args.json)
    progress = render.progress()
    progress.begin(args.rounds * len(args.only))
    try:
        found = allocating.compare(
            [args.script, *args.arguments],
            sides=args.only,
            rounds=args.rounds,
            idle_s=args.idle,
            limit_s=args.limit,
            step=progress.step,
        )
    except KeyboardInterrupt:
        print("cpythonplus bench malloc: interrupted", file=sys.stderr)
        return _INTERRUPTED_STATUS
    finally:
        progress.end()
    return _tell(found, args.json)


def check_writable(path: Path | None) -> None:
    """Raise UsageError when `path` cannot become a file, without making one."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent} for {path.name}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path} cannot be written")


def _tell(found: allocating.Comparison, json_file: Path | None) -> int:
    if json_file is not None:
        try:
            write_output(json_file, json.dumps(found.to_json(), indent=2) + "\n")
        except OSError as error:
            raise UsageError(f"malloc: {json_file}: {error.strerror}") from None
    show(table(found))
    failed = [side for side in found.notes if not found.notes[side].startswith(f"{side} is not ")]
    return 1 if failed else 0


def table(found: allocating.Comparison) -> str:
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


def _rounds(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to 3600")
    return value


def _sides(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in allocating.SIDES:
            known = ", ".join(allocating.SIDES)
            raise argparse.ArgumentTypeError(f"{name!r} is none of {known}")
    return names
