"""Writes what CPython's own tests say of tasklets' patches into docs/reference/.

    python -m tools.cpython_tests_page           rewrites the block of the page
    python -m tools.cpython_tests_page --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/cpython-tests-*.json, which `cpython_tests.py --tasklets --record`
writes, one for each version of the interpreter, and from the reasons in cpython_known.py.  A
failure without a reason and a reason without a failure are errors.
"""

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tools import results_page
from tools.cpython_known import KNOWN_TASKLETS, TASKLETS_ALL
from tools.results_page import PageError

PAGE = results_page.PAGES / "cpython-tests-under-patch.md"


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


def totals(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table of modules: a cell is `tests: failed here only`."""
    rows = results_page.heading("module", results)
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
                versions.setdefault(name, []).append(one["python"])
    for name, on in sorted(versions.items()):
        why = next(KNOWN_TASKLETS[key] for key in KNOWN_TASKLETS if fnmatchcase(name, key))
        where = results_page.where(on, results)
        rows.append(f"| `{name.removeprefix('test.')}` | {where} | {why} |")
    return rows


def rendered(results: Sequence[dict[str, Any]]) -> str:
    """Return the block of the page."""
    if not results:
        return results_page.NOT_RUN
    lines = [*totals(results), "", "What fails, and why:", "", *reasons(results)]
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """Return the page of what is recorded; PageError where that does not fit together."""
    results = results_page.read(results_page.RESULTS, "cpython-tests")
    check(results)
    return results_page.page(PAGE, rendered(results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    return results_page.main("cpython_tests_page", made, arguments)


if __name__ == "__main__":
    sys.exit(main())
