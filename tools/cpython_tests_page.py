"""Writes what CPython's own tests say of `run` and of tasklets' patches into docs/reference/.

    python -m tools.cpython_tests_page           rewrites the blocks of the two pages
    python -m tools.cpython_tests_page --check   changes nothing; exit status 1 for outdated ones

Made from benchmarks/results/cpython-whole-*.json, which `cpython_tests.py --whole --record` writes,
and cpython-tests-*.json, of `--tasklets --record`, one for each version of the interpreter, and
from the reasons in cpython_known.py.  A failure without a reason and a reason without a failure
are errors.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools import results_page
from tools.cpython_known import KNOWN_TASKLETS, KNOWN_WHOLE, TASKLETS_ALL
from tools.junit_results import key_of, reason
from tools.results_page import PageError

PAGE = results_page.PAGES / "cpython-tests.md"


def check(
    results: Sequence[dict[str, Any]], known: Mapping[str, str], modules: Sequence[str] = ()
) -> None:
    """Raise PageError for a module that was not run, a failure or a reason that stands alone."""
    matched = set()
    for one in results:
        missing = set(modules) - one["modules"].keys()
        if missing:
            raise PageError(f"{one['python']}: not recorded: {', '.join(sorted(missing))}")
        for found in one["modules"].values():
            for name in found["failed"]:
                pattern = key_of(name, known)
                if pattern is None:
                    raise PageError(f"{one['python']}: {name} fails for no known reason")
                matched.add(pattern)
    idle = known.keys() - matched
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


def sums(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table of all modules together."""

    def row(title: str, *counts: int) -> str:
        return f"| {title} | {' | '.join(f'{count:,}' for count in counts)} |"

    whole = [one["modules"].values() for one in results]
    failed_too = "failed in plain Python too"
    return [
        *results_page.heading("", results),
        row("modules", *(len(modules) for modules in whole)),
        row("tests", *(sum(m["tests"] - m["skipped"] for m in modules) for modules in whole)),
        row("fail, also in plain Python", *(sum(len(m[failed_too]) for m in ms) for ms in whole)),
        row("fail only under `run`", *(sum(len(m["failed"]) for m in ms) for ms in whole)),
        row("failed once, not again", *(sum(len(m["unsteady"]) for m in ms) for ms in whole)),
    ]


def reasons(results: Sequence[dict[str, Any]], known: Mapping[str, str]) -> list[str]:
    """Return the table of the tests that fail here only."""
    rows = ["| test | on | why |", "|---|---|---|"]
    versions: dict[str, list[str]] = {}
    for one in results:
        for found in one["modules"].values():
            for name in found["failed"]:
                versions.setdefault(name, []).append(one["python"])
    for name, on in sorted(versions.items()):
        where = results_page.where(on, results)
        rows.append(f"| `{name.removeprefix('test.')}` | {where} | {reason(name, known)} |")
    return rows


def rendered(results: Sequence[dict[str, Any]]) -> str:
    """Return the block of the page about tasklets."""
    if not results:
        return results_page.NOT_RUN
    lines = [*totals(results), "", "What fails, and why:", "", *reasons(results, KNOWN_TASKLETS)]
    return "\n".join(lines)


def rendered_whole(results: Sequence[dict[str, Any]]) -> str:
    """Return the block of the page about `run`."""
    if not results:
        return results_page.NOT_RUN
    lines = sums(results)
    if KNOWN_WHOLE:
        lines += ["", "What fails only under `run`, and why:", "", *reasons(results, KNOWN_WHOLE)]
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """Return the pages of what is recorded; PageError where that does not fit together."""
    tasklets, whole = (
        results_page.read(results_page.RESULTS, f"cpython-{kind}") for kind in ("tests", "whole")
    )
    check(tasklets, KNOWN_TASKLETS, TASKLETS_ALL)
    check(whole, KNOWN_WHOLE)
    return results_page.page(PAGE, run=rendered_whole(whole), patch=rendered(tasklets))


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    return results_page.main("cpython_tests_page", made, arguments)


if __name__ == "__main__":
    sys.exit(main())
