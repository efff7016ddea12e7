"""Writes what applications of real life do under `serve` into docs/reference/compat-serve.md.

    python -m tools.compat_serve.page           rewrites the block of the page
    python -m tools.compat_serve.page --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/compat-serve-*.json, one for each version of the interpreter, which
`python -m tools.compat_serve --record` writes.  A failure only with us needs a reason here.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.compat_serve.applications import APPLICATIONS
from tools.compat_serve.report import KINDS
from tools.compat_serve.scenario import PHASES

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "reference" / "compat-serve.md"
BEGIN = "<!-- applications:begin -->"
END = "<!-- applications:end -->"

Result = dict[str, Any]

_FORKED_IN_AN_IMPORT = (
    "The master reports the killed worker from a thread, which is in the middle of an "
    "import when the next worker is forked: a race of everything that is loaded before the fork"
)
REASONS: dict[tuple[str, str], str] = {
    ("sentry-beside-django", "kill -9"): _FORKED_IN_AN_IMPORT,
    ("sentry-beside-django", "recycle"): "What the phase before it has left",
}
"""Why a phase of an application may fail only with us."""


class PageError(Exception):
    """One line that says what does not fit together."""


def read(folder: Path) -> list[Result]:
    """Return the results of each version, the oldest version first."""
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("compat-serve-*.json")]
    return sorted(found, key=lambda one: [int(part) for part in one["python"].split(".")])


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
    rows = ["| application | " + " | ".join(one["python"] for one in results) + " |"]
    rows.append("|---" * (len(results) + 1) + "|")
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
        yield f"| `{name}` | {phase} | {', '.join(on)} | {said}{why and '. '}{why} |"


def counts(results: Sequence[Result]) -> list[str]:
    """Return the table of what the client counted: a cell is `errors in requests` of both sides."""
    rows = ["| stock → plus | " + " | ".join(one["python"] for one in results) + " |"]
    rows.append("|---" * (len(results) + 1) + "|")
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


def versions(one: Result) -> str:
    """Return one line that names what was run."""
    found: dict[str, str] = {}
    for row in one["applications"].values():
        found |= row.get("versions", {})
    return f"{one['python']}: " + ", ".join(f"{name} {found[name]}" for name in sorted(found)) + "."


TABLES = (
    ("ours", "What fails only with us:"),
    ("preload", "What fails under `serve`, and under `gunicorn --preload` too, but not without:"),
    ("theirs", "What failed on stock:"),
    ("unsteady", "What failed under `serve`, but not again:"),
)


def rendered(results: Sequence[Result]) -> str:
    """Return the block of the page."""
    if not results:
        return f"{BEGIN}\n(Not run yet for this version of the package.)\n{END}"
    lines = [BEGIN, *totals(results)]
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
    lines += ["What was run:", "", *(f"- {versions(one)}" for one in results), END]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    parser = argparse.ArgumentParser(description="The page of applications under serve")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(arguments)
    text = PAGE.read_text("utf-8")
    try:
        results = read(RESULTS)
        check(results)
    except PageError as error:
        print(f"compat_serve page: {error}", file=sys.stderr)
        return 1
    fresh = text.split(BEGIN)[0] + rendered(results) + text.split(END)[1]
    if fresh == text:
        return 0
    if options.check:
        print(f"{PAGE.relative_to(ROOT)} is not up to date: make docs", file=sys.stderr)
        return 1
    PAGE.write_text(fresh, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
