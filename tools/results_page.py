"""What pages made from recorded results have in common: reading, columns, the block in the page."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "reference"
BEGIN = "<!-- tests:begin -->"
END = "<!-- tests:end -->"
NOT_RUN = "(Not run yet for this version of the package.)"


class PageError(Exception):
    """One line that says what does not fit together."""


def read(folder: Path, prefix: str) -> list[dict[str, Any]]:
    """Return the results of each version, the oldest version first."""
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob(f"{prefix}-3.*.json")]
    return sorted(found, key=lambda one: [int(part) for part in one["python"].split(".")[:2]])


def minor(version: str) -> str:
    """Return `3.13` of `3.13.0`."""
    return ".".join(version.split(".")[:2])


def heading(first: str, results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the first two lines of a table with a column for each version."""
    columns = [first, *(one["python"] for one in results)]
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def where(versions: Sequence[str], results: Sequence[dict[str, Any]]) -> str:
    """Return on which of the versions something is so."""
    return "all" if len(versions) == len(results) else ", ".join(map(minor, versions))


def block(lines: Sequence[str]) -> str:
    """Return lines between the marks; none means that nothing has been recorded."""
    return "\n".join([BEGIN, *(lines or [NOT_RUN]), END])


def main(title: str, page: Path, make: Callable[[], str], arguments: Sequence[str] | None) -> int:
    """Rewrite the block of a page, or with --check tell by status 1 whether it would change."""
    parser = argparse.ArgumentParser(prog=title, description="A page made from recorded results")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    text = page.read_text("utf-8")
    try:
        made = make()
    except PageError as error:
        print(f"{title}: {error}", file=sys.stderr)
        return 1
    head, foot = text.split(BEGIN)[0], text.split(END)[1]
    fresh = head + made + foot
    if fresh == text:
        return 0
    if options.check:
        print(f"{page.name} is not up to date: make docs", file=sys.stderr)
        return 1
    page.write_text(fresh, "utf-8")
    return 0
