"""Draws hits of `cpythonplus-lint` at random, with their surroundings, to be reviewed by hand.

    python tools/lint_review.py FOLDER... [--count 40] [--seed 6] [--lines 45] [--table]

Each FOLDER is one that packages are installed into (`pip install --target`), or the standard
library's. The same folders and seed give the same hits. `--table` prints the rows that
lint/docs/explanation/lint-precision.md has, with the verdict left open.
"""

import argparse
import ast
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import cpythonplus_lint as lint

STANDARD_LIBRARY = (
    "ast.py",
    "asyncio",
    "contextlib.py",
    "functools.py",
    "json",
    "logging",
    "multiprocessing",
    "unittest",
)
"""What is looked at of a folder that has `asyncio` in it."""


@dataclass(frozen=True)
class Hit:
    """One line of the report."""

    path: Path
    inside: str
    violation: lint.Violation


def hits(folder: Path) -> list[Hit]:
    """Return all hits in the files of a folder, in the order of their places."""
    is_library = (folder / "asyncio").is_dir()
    parts = [folder / name for name in STANDARD_LIBRARY] if is_library else [folder]
    files = lint.find([str(part) for part in parts], ["test", "tests"])
    return [
        Hit(Path(result.path), str(Path(result.path).relative_to(folder)), violation)
        for result in lint.check_files(files, lint.Selection())
        for violation in result.violations
    ]


def drawn(found: list[Hit], count: int, seed: int) -> list[Hit]:
    """Return `count` of the hits, in the order of their places."""
    chosen = random.Random(seed).sample(found, min(count, len(found)))  # noqa: S311  # no secret
    return sorted(chosen, key=lambda hit: (hit.inside, hit.violation))


def surroundings(hit: Hit, lines: int) -> str:
    """Return the function that a hit is in, `lines` around the hit at most, with their numbers."""
    text = hit.path.read_text("utf-8").splitlines()
    row = hit.violation.row
    around = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse("\n".join(text)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= row <= (node.end_lineno or row)
    ]
    first, last = max(around, default=(row, row))
    first, last = max(first, row - lines), min(last, row + lines)
    return "\n".join(
        f"{'>' if number == row else ' '}{number:5} {line}"
        for number, line in enumerate(text[first - 1 : last], first)
    )


def main() -> None:
    """Print what was drawn."""
    parser = argparse.ArgumentParser(description="Draw hits of the linter at random.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--lines", type=int, default=45)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    found = [hit for folder in args.folders for hit in hits(folder)]
    for hit in drawn(found, args.count, args.seed):
        violation = hit.violation
        if args.table:
            print(f"| {hit.inside}:{violation.row} | {violation.code} | | |")
        else:
            print(f"==== {hit.inside}:{violation.row}: {violation.code} {violation.message}")
            print(surroundings(hit, args.lines))
    counts = Counter(hit.violation.code for hit in found)
    print(f"{len(found)} hits:", ", ".join(f"{code} {n}" for code, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
