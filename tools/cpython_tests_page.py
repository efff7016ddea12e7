"""Writes what CPython's own tests say of tasklets' patches into docs/reference/.

    python tools/cpython_tests_page.py           rewrites the block of the page
    python tools/cpython_tests_page.py --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/cpython-tests-*.json, which `cpython_tests.py --tasklets --record`
writes, one for each version of the interpreter, and from the reasons in cpython_known.py.  A
failure without a reason and a reason without a failure are errors.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path[0] = str(ROOT)

from tools.cpython_known import KNOWN_TASKLETS, TASKLETS_ALL  # noqa: E402  # found by the path above

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "cpython-tests-under-patch.md"
BEGIN = "<!-- tests:begin -->"
END = "<!-- tests:end -->"


class PageError(Exception):
    """One line that says what does not fit together."""


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the results of each version, the oldest version first."""
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("cpython-tests-*.json")]
    return sorted(found, key=lambda one: [int(part) for part in one["python"].split(".")[:2]])


def check(results: Sequence[dict[str, Any]]) -> None:
    """Raise PageError for a module that was not run, a failure or a reason that stands alone."""
    matched = set()
    for one in results:
        missing = set(TASKLETS_ALL) - one["modules"].keys()
        if missing:
            raise PageError(f"{one['python']}: not recorded: {', '.join(sorted(missing))}")
        for found in one["modules"].values():
            for name in found["failed"]:
                pattern = next((key for key in KNOWN_TASKLETS if fnmatchcase(name, key)), None)
                if pattern is None:
                    raise PageError(f"{one['python']}: {name} fails for no known reason")
                matched.add(pattern)
    idle = KNOWN_TASKLETS.keys() - matched
    if idle and results:
        raise PageError(f"a reason that no failure has: {', '.join(sorted(idle))}")


def minor(version: str) -> str:
    """Return `3.13` of `3.13.0`."""
    return ".".join(version.split(".")[:2])


def totals(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table of modules: a cell is `tests: failed here only`."""
    rows = ["| module | " + " | ".join(one["python"] for one in results) + " |"]
    rows.append("|---" * (len(results) + 1) + "|")
    for module in sorted(TASKLETS_ALL):
        cells = []
        for one in results:
            found = one["modules"][module]
            text = f"{found['tests'] - found['skipped']}: {len(found['failed'])}"
            theirs = len(found["failed in plain Python too"])
            cells.append(f"{text} (and {theirs})" if theirs else text)
        rows.append(f"| `{module}` | {' | '.join(cells)} |")
    return rows


def reasons(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table of the tests that fail here only."""
    rows = ["| test | on | why |", "|---|---|---|"]
    versions: dict[str, list[str]] = {}
    for one in results:
        for found in one["modules"].values():
            for name in found["failed"]:
                versions.setdefault(name, []).append(minor(one["python"]))
    for name, on in sorted(versions.items()):
        why = next(KNOWN_TASKLETS[key] for key in KNOWN_TASKLETS if fnmatchcase(name, key))
        where = "all" if len(on) == len(results) else ", ".join(on)
        rows.append(f"| `{name.removeprefix('test.')}` | {where} | {why} |")
    return rows


def rendered(results: Sequence[dict[str, Any]]) -> str:
    """Return the block of the page."""
    if not results:
        return f"{BEGIN}\n(Not run yet for this version of the package.)\n{END}"
    lines = [BEGIN, *totals(results), "", "What fails, and why:", "", *reasons(results), END]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    parser = argparse.ArgumentParser(description="The page of CPython's tests under patch()")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    text = PAGE.read_text("utf-8")
    try:
        results = read(RESULTS)
        check(results)
    except PageError as error:
        print(f"cpython_tests_page: {error}", file=sys.stderr)
        return 1
    head, foot = text.split(BEGIN)[0], text.split(END)[1]
    fresh = head + rendered(results) + foot
    if fresh == text:
        return 0
    if options.check:
        print(f"{PAGE.relative_to(ROOT)} is not up to date: make docs", file=sys.stderr)
        return 1
    PAGE.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
