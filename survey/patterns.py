"""Measures what common patterns leave for the garbage collector, on several interpreters.

    python -m survey.patterns --python python2.7 --python 'chroot /srv/sid python3.15' ...
    python -m survey.patterns              writes tables and pictures anew, measures nothing

Each COMMAND starts an interpreter that reads its program from standard input, 2.7 or later. Results
go into survey/results/cycle-patterns.json, in the place of those of the same version (3.13),
and from there into docs/explanation/cycles-in-cpython.md and the pictures beside it. The patterns
are in survey/patterns.txt, what counts them is in survey/patterns_worker.txt.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey import pictures as drawing
from tools import results_page

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results" / "cycle-patterns.json"
PAGE = FOLDER.parent / "docs" / "explanation" / "cycles-in-cpython.md"
TIMEOUT_S = 120
WORKER_OPTIONS: dict[str, int] = {}
"""Constants of the worker that are to be others: it is small in the tests."""


class PatternsError(Exception):
    """One line on what is wrong with an interpreter or a file."""


@dataclass(frozen=True)
class Pattern:
    """One function `leak` that is called, and what stands in the table about it."""

    kind: str
    title: str
    source: str


def patterns() -> list[Pattern]:
    """Return the patterns, in the order of the file."""
    return [Pattern(*each) for each in sections("patterns.txt", r"\[(\w+)\] (.*)")]


def sections(file: str, heading: str) -> list[tuple[str, str, str]]:
    """Return the two groups of each heading in a file of this folder, and what is below it."""
    text = (FOLDER / file).read_text("utf-8")
    parts = re.split(rf"^=== {heading}\n", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))


# ---- measuring ----------------------------------------------------------------------------------


def measured(command: str) -> dict[str, Any]:
    """Return what the interpreter that `command` starts has counted; or raise PatternsError."""
    sources = json.dumps([pattern.source for pattern in patterns()])
    worker = (FOLDER / "patterns_worker.txt").read_text("utf-8")
    options = "".join(f"{name} = {value}\n" for name, value in WORKER_OPTIONS.items())
    head = f"import json\nPATTERNS = json.loads({sources!r})\n"
    program = f"{head}{worker}{options}main()\n"
    try:
        done = subprocess.run(
            [*shlex.split(command), "-"],
            input=program,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        result: dict[str, Any] = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or [f"status {error.returncode}"]
        raise PatternsError(f"{command}: {last[0]}") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise PatternsError(f"{command}: {error}") from None
    titles = [pattern.title for pattern in patterns()]
    result["objects"] = dict(zip(titles, result["objects"], strict=True))
    return result


def minor(version: str) -> tuple[int, ...]:
    """Return (3, 13) for 3.13.0."""
    return tuple(int(part) for part in version.split(".")[:2])


def merged(old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results by version; new ones replace old ones of the same minor version."""
    by_version = {minor(result["python"]): result for result in (*old, *new)}
    return [by_version[version] for version in sorted(by_version)]


def stored() -> list[dict[str, Any]]:
    """Return the results in the repository."""
    try:
        results: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))
    except FileNotFoundError:
        return []
    return results


# ---- the tables ---------------------------------------------------------------------------------


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(count: float | None) -> str:
    return "-" if count is None else f"{count:g}"


def objects_table(results: list[dict[str, Any]]) -> str:
    """Return the table of objects a call, a row for each pattern."""
    lines = [
        _row(["objects a call", *(result["python"] for result in results)]),
        _row(["---", *("--:" for _ in results)]),
    ]
    kind = ""
    for pattern in patterns():
        if pattern.kind != kind:
            kind = pattern.kind
            lines.append(_row([f"**{kind}**", *("" for _ in results)]))
        counts = [result["objects"].get(pattern.title) for result in results]
        lines.append(_row([pattern.title, *map(_number, counts)]))
    return "\n".join(lines)


def steps_table(results: list[dict[str, Any]]) -> str:
    """Return the table of jobs in memory, a column for each version that counted them."""
    columns = [result for result in results if result["steps"]]
    steps = [result["steps"] for result in columns]
    rows = {
        "jobs in memory at most, error not kept": [max(s["clean"]) for s in steps],
        "jobs in memory at most, `self.error = e`": [max(s["kept"]) for s in steps],
        "on average": [round(sum(s["kept"]) / len(s["kept"])) for s in steps],
        "collections of the young generation": [s["collections"][0] for s in steps],
        "full collections": [s["collections"][2] for s in steps],
    }
    lines = [
        _row(["20,000 jobs, 100 at a time", *(result["python"] for result in columns)]),
        _row(["---", *("--:" for _ in columns)]),
    ]
    lines += [_row([name, *(f"{n:,}" for n in numbers)]) for name, numbers in rows.items()]
    return "\n".join(lines)


TABLES = {"cycle-patterns": objects_table, "cycle-steps": steps_table}


def filled(page: str, results: list[dict[str, Any]]) -> str:
    """Return the page's text with both tables between their marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        try:
            page = results_page.filled(page, table(results), begin, end)
        except results_page.PageError as error:
            raise PatternsError(f"{PAGE.name}: {error}") from None
    return page


def pictures(results: list[dict[str, Any]]) -> dict[str, str]:
    """Return the pictures of the page, by their names."""
    series = {r["python"]: r["steps"]["kept"] for r in results if r["steps"]}
    clean = [r["steps"]["clean"] for r in results if r["steps"]][-1]
    return {
        "cycle-exception.svg": drawing.exception(),
        "cycle-steps.svg": drawing.steps(series, clean),
    }


def main() -> int:
    """Measure, and write all files; return the exit status."""
    parser = argparse.ArgumentParser(prog="survey.patterns", description=__doc__.split("\n")[0])
    parser.add_argument("--python", action="append", default=[], metavar="COMMAND")
    given = parser.parse_args()
    try:
        results = merged(stored(), [measured(command) for command in given.python])
        page = filled(PAGE.read_text("utf-8"), results)
    except PatternsError as error:
        print(f"patterns: {error}", file=sys.stderr)
        return 1
    if given.python:
        lines = ",\n".join(json.dumps(result) for result in results)
        RESULTS.write_text(f"[\n{lines}\n]\n", "utf-8")
    PAGE.write_text(page, "utf-8")
    for name, text in pictures(results).items():
        PAGE.with_name(name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
