"""Writes what became of each fact that was made false into docs/reference/facts.md.

    python -m tools.lies_page           rewrites the blocks of the page
    python -m tools.lies_page --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/lies-*.json, one for each version of the interpreter, which
`make test-lies PYTEST_ARGS='--record-lies benchmarks/results'` writes.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools import results_page

PAGE = results_page.PAGES / "facts.md"

Results = Sequence[dict[str, Any]]
ABSENT = "-"


def outcomes(lie: dict[str, Any]) -> Iterator[str]:
    """Yield what a lie led to; `refused` alone is what must be."""
    if lie["crash"]:
        yield "crash"
        return
    if lie["state"] != "refused":
        yield "not noticed"
    if lie["wrong"]:
        yield f"wrong answer: {', '.join(lie['wrong'])}"
    elif lie["state"] == "refused":
        yield "refused"


def rows_of(results: Results) -> list[tuple[str, str]]:
    """Return each fact with each of its lies."""
    pairs = {(lie["fact"], lie["lie"]) for one in results for lie in one["lies"]}
    return sorted(pairs, key=lambda pair: (pair[0], int(pair[1])))


def table(results: Results) -> str:
    """Return the table of outcomes: a row for each fact and lie, a column for each version."""
    if not results:
        return results_page.NOT_RUN
    lines = results_page.heading("fact | bytes further on", results)
    lines[1] += "---|"
    found = [{(lie["fact"], lie["lie"]): lie for lie in one["lies"]} for one in results]
    for fact, offset in rows_of(results):
        cells = [
            "; ".join(outcomes(lies[fact, offset])) if (fact, offset) in lies else ABSENT
            for lies in found
        ]
        lines.append(f"| `{fact}` | {offset} | {' | '.join(cells)} |")
    totals = []
    for one in results:
        said = [word for lie in one["lies"] for word in outcomes(lie)]
        refused = said.count("refused")
        totals.append(f"{refused} refused, {len(said) - refused} else")
    return "\n".join([*lines, f"| all | | {' | '.join(totals)} |"])


def features(results: Results) -> str:
    """Return the table of what refuses with a fact, on any version."""
    lines = ["| fact | what refuses with it |", "|---|---|"]
    refused: dict[str, set[str]] = {}
    for one in results:
        for lie in one["lies"]:
            refused.setdefault(lie["fact"], set()).update(lie.get("refused", ()))
    for fact, names in sorted(refused.items()):
        told = ", ".join(name.replace("_", " ") for name in sorted(names))
        lines.append(f"| `{fact}` | {told or 'nothing: all go on without it'} |")
    return "\n".join(lines)


def made() -> dict[Path, str]:
    """Return the page of what is recorded."""
    results = results_page.read(results_page.RESULTS, "lies")
    return results_page.page(PAGE, lies=table(results), features=features(results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    return results_page.main("lies_page", made, arguments)


if __name__ == "__main__":
    sys.exit(main())
