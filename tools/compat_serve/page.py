"""Writes what applications of real life do under `serve` into docs/reference/compat.md.

    python -m tools.compat_serve.page           rewrites the block of the page
    python -m tools.compat_serve.page --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/compat-serve-*.json, one for each version of the interpreter, which
`python -m tools.compat_serve --record` writes.  A failure only with us needs a reason here.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools import results_page
from tools.compat_serve.applications import APPLICATIONS
from tools.compat_serve.report import KINDS
from tools.compat_serve.scenario import PHASES
from tools.results_page import PageError

PAGE = results_page.PAGES / "compat.md"

Result = dict[str, Any]

REASONS: dict[tuple[str, str], str] = {}
"""Why a phase of an application fails only with us."""


def check(results: Sequence[Result]) -> None:
    """Raise PageError for an application that was not run, or a failure without a reason."""
    for one in results:
        for difference in ("not recorded", "not there any more"):
            sets = [APPLICATIONS.keys(), one["applications"].keys()]
            first, second = sets if difference == "not recorded" else reversed(sets)
            if first - second:
                names = ", ".join(sorted(first - second))
                raise PageError(f"{one['python']}: {difference}: {names}")
        for name, found in one["applications"].items():
            for phase in found.get("ours", ()):
                if (name, phase) not in REASONS:
                    raise PageError(f"{one['python']}: {name}, {phase}: fails for no known reason")


def totals(results: Sequence[Result]) -> list[str]:
    """Return the table of applications: a cell is `phases: failures only with us`."""
    rows = results_page.heading("application", results)
    for name, application in APPLICATIONS.items():
        cells = [cell(one["applications"][name]) for one in results]
        rows.append(f"| {application.title} (`{name}`) | {' | '.join(cells)} |")
    return rows


def cell(found: Result) -> str:
    """Return what is said of one application on one version."""
    if "absent" in found:
        return str(found["absent"])
    phases = len(found["passed"]) + sum(len(found[kind]) for kind in KINDS)
    others = len(found["preload"]) + len(found["theirs"])
    return f"{phases}: {len(found['ours'])}" + (f" (and {others})" if others else "")


def differences(results: Sequence[Result], kind: str) -> Iterator[str]:
    """Yield a row for each phase of one kind, with the versions that it was seen on."""
    seen: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in results:
        for name, found in one["applications"].items():
            for phase, complaints in found.get(kind, {}).items():
                seen.setdefault((name, phase), {})[one["python"]] = complaints
    for (name, phase), on in sorted(seen.items()):
        (complaints, *_) = on.values()
        said = "; ".join(complaints).replace("|", "\\|")
        why = REASONS.get((name, phase), "")
        where = results_page.where(list(on), results)
        yield f"| `{name}` | {phase} | {where} | {said}{why and '. '}{why} |"


def counts(results: Sequence[Result]) -> list[str]:
    """Return the table of what the client counted: a cell is `errors in requests` of both sides."""
    rows = results_page.heading("stock → plus", results)
    for phase in PHASES:
        cells = [
            " → ".join(counted(one, phase, side) for side in ("stock", "plus")) for one in results
        ]
        rows.append(f"| {phase} | {' | '.join(cells)} |")
    return rows


def counted(one: Result, phase: str, side: str) -> str:
    """Return how many requests failed in a phase, in all applications, and how many there were."""
    found = [
        row["counts"][side].get(phase) for row in one["applications"].values() if "counts" in row
    ]
    errors = sum(sum(each["errors"].values()) for each in found if each)
    # Before the server listens there is nobody who could answer.
    errors += 0 if phase == "start" else sum(each["refused"] for each in found if each)
    return f"{errors} in {errors + sum(each['ok'] for each in found if each):,}"


def versions(results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each set of versions that was run, with the interpreters that had it."""
    pythons: dict[str, list[str]] = {}
    for one in results:
        found: dict[str, str] = {}
        for row in one["applications"].values():
            found |= row.get("versions", {})
        text = ", ".join(f"{name} {found[name]}" for name in sorted(found))
        pythons.setdefault(text, []).append(one["python"])
    for text, on in pythons.items():
        yield f"- {', '.join(on)}: {text}"


TABLES = (
    ("ours", "What fails only with us:"),
    ("preload", "What fails under `serve`, and under `gunicorn --preload` too, but not without:"),
    ("theirs", "What failed on stock:"),
    ("unsteady", "What failed under `serve`, but not again:"),
)


def rendered(results: Sequence[Result]) -> str:
    """Return the block of the page."""
    if not results:
        return results_page.NOT_RUN
    lines = totals(results)
    for kind, title in TABLES:
        rows = list(differences(results, kind))
        if rows:
            lines += [
                "",
                title,
                "",
                "| application | phase | on | what |",
                "|---|---|---|---|",
                *rows,
            ]
    lines += ["", "What the client counted, all applications together:", "", *counts(results), ""]
    lines += ["What was run:", "", *versions(results)]
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """Return the page from the recorded results."""
    results = results_page.read(results_page.RESULTS, "compat-serve")
    check(results)
    return results_page.page(PAGE, serve=rendered(results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    return results_page.main("compat_serve/page", made, arguments)


if __name__ == "__main__":
    sys.exit(main())
