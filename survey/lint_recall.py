"""Which of the known ways to leave cycles behind `cpythonplus-lint` finds.

    python -m survey.lint_recall          prints the table
    python -m survey.lint_recall --write  writes it into lint/docs/explanation/lint-precision.md

Each pattern of survey/lint_patterns.txt is called, and what that leaves for the collector is
counted; then its source is checked, with the rules that are on by default and with all of them.
"""

import argparse
import gc
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpythonplus_lint import RULES, Selection, check_text
from survey.patterns import sections
from tools.results_page import PageError, filled
from tools.setup_env import LINT

FOLDER = Path(__file__).resolve().parent
PAGE = LINT / "docs" / "explanation" / "lint-precision.md"
BEGIN, END = "<!-- lint-recall:begin -->", "<!-- lint-recall:end -->"
CALLS = 10


@dataclass(frozen=True)
class Known:
    """A function `leak`, and the rule that should see what it leaves; '' for none."""

    title: str
    code: str
    source: str


def known() -> list[Known]:
    """Return the patterns, in the order of the file."""
    return [
        Known(title, "" if code == "none" else code, source)
        for title, code, source in sections("lint_patterns.txt", r"(.*) \| (\w+)")
    ]


def left_behind(source: str) -> float:
    """Return how many objects a call leaves for the collector."""
    space: dict[str, Any] = {"__name__": "pattern"}
    exec(compile(source, "pattern.py", "exec"), space)  # noqa: S102
    for _ in range(CALLS):
        space["leak"]()
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(CALLS):
            space["leak"]()
        return gc.collect() / CALLS
    finally:
        if collecting:
            gc.enable()
        if "loop" in space:
            space["loop"].close()


def found(source: str, selection: Selection) -> list[str]:
    """Return the codes of the rules that see something in a source."""
    hits = check_text(source, "pattern.py", selection)
    return sorted({hit.code for hit in hits}) if isinstance(hits, list) else []


def table() -> str:
    """Return the table, with a closing line."""
    rows = ["| known pattern | objects left by a call | found by |", "|---|--:|---|"]
    default = every = 0
    patterns = known()
    for one in patterns:
        codes = found(one.source, Selection(select=("ALL",)))
        seen = bool(found(one.source, Selection()))
        default += seen
        every += bool(codes)
        names = [code if RULES[code].on_by_default else f"{code} (opt-in)" for code in codes]
        rows.append(f"| {one.title} | {left_behind(one.source):g} | {', '.join(names) or '-'} |")
    rows += ["", f"Found: {every} of {len(patterns)}, {default} of them by default."]
    return "\n".join(rows)


def main() -> int:
    """Print the table, or write it; return the exit status."""
    parser = argparse.ArgumentParser(prog="survey.lint_recall", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write it into the page")
    given = parser.parse_args()
    text = table()
    if not given.write:
        print(text)
        return 0
    try:
        page = filled(PAGE.read_text("utf-8"), text, BEGIN, END)
    except PageError as error:
        print(f"lint_recall: {PAGE.name}: {error}", file=sys.stderr)
        return 1
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
