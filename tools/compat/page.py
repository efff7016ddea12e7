"""Writes what other people's tests say of ours into docs/reference/compat.md.

    python -m tools.compat.page           rewrites the blocks of the page
    python -m tools.compat.page --check   changes nothing; exit status 1 when it is outdated

Made from benchmarks/results/compat-3.*.json, compat-tasklets-3.*.json and
compat-no-cycles-3.*.json, which `farm.py --record` writes, one for each version of the interpreter,
and from packages.toml.  A failure without a reason is an error, and so is a package that was not
run, or in another version than the list has.  A reason without a failure is listed: a race that
somebody saw need not come back in recorded runs.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools import results_page
from tools.compat import packages
from tools.compat.packages import Package
from tools.junit_results import key_of
from tools.results_page import PageError

PAGE = results_page.PAGES / "compat.md"
Results = Sequence[dict[str, Any]]


def check(results: Results, listed: Sequence[Package]) -> None:
    """Raise PageError for what was not run as the list has it, or fails for no reason."""
    for one in results:
        for package in listed:
            found = one["packages"].get(package.name)
            if found is None or found["version"] != package.version:
                wanted = f"{package.name} {package.version}"
                raise PageError(f"{one['python']}: not recorded: {wanted}")
            for name in found.get("only with us", ()):
                if key_of(name, package.known) is None:
                    raise PageError(f"{one['python']}: {package.name}: {name}: for no reason")
        strange = one["packages"].keys() - {package.name for package in listed}
        if strange:
            raise PageError(f"{one['python']}: not in the list: {', '.join(sorted(strange))}")


def totals(results: Results, listed: Sequence[Package]) -> Iterator[str]:
    """Yield the table of packages: a cell is `tests: failed only with us`, and how gevent does."""
    yield from results_page.heading("package", results)
    for package in listed:
        cells = [_cell(one["packages"][package.name]) for one in results]
        if any(cell != "-" for cell in cells):
            yield f"| {package.name} {package.version} | {' | '.join(cells)} |"
    tests, differing = [], []
    for one in results:
        ran = [found for found in one["packages"].values() if "plus" in found]
        tests.append(sum(_ran(found) for found in ran))
        differing.append(sum(len(found["only with us"]) for found in ran))
    sums = [f"{number:,}: {bad}" for number, bad in zip(tests, differing, strict=True)]
    yield f"| together | {' | '.join(sums)} |"


def _ran(found: dict[str, Any]) -> int:
    return int(found["plus"]["passed"]) + int(found["plus"]["failed"])


def _cell(found: dict[str, Any]) -> str:
    if "plus" not in found:
        return "-"
    text = f"{_ran(found):,}: {len(found['only with us'])}"
    both = len(found["fail on both"])
    text = f"{text} (and {both})" if both else text
    return f"{text}; gevent passes {found['gevent']['passed']:,}" if "gevent" in found else text


def differences(results: Results, listed: Sequence[Package]) -> Iterator[str]:
    """Yield the table of the tests that fail only with us, with their reasons."""
    on: dict[tuple[str, str], list[str]] = {}
    for one in results:
        for name, found in one["packages"].items():
            for test in found.get("only with us", ()):
                on.setdefault((name, test), []).append(one["python"])
    known = {package.name: package.known for package in listed}
    rows = {}
    idle = {(name, key) for name, reasons in known.items() for key in reasons}
    for (name, test), versions in on.items():
        key = key_of(test, known[name]) or ""
        idle.discard((name, key))
        where = results_page.where(versions, results)
        rows[name, test] = f"{where} | {known[name][key]}"
    rows |= {(name, key): f"in other runs | {known[name][key]}" for name, key in idle}
    if not rows:
        yield "None."
        return
    yield from ("| package | test | on | why |", "|---|---|---|---|")
    for (name, test), row in sorted(rows.items()):
        yield f"| {name} | `{test}` | {row} |"


def unsteady(results: Results) -> Iterator[str]:
    """Yield the table of what failed now and then."""
    rows = []
    for one in results:
        for name, found in one["packages"].items():
            for test, counts in found.get("unsteady", {}).items():
                seen = f"{counts['stock']} | {counts['plus']} | {counts['rounds']}"
                rows.append(f"| {name} | `{test}` | {results_page.minor(one['python'])} | {seen} |")
    if not rows:
        yield "None."
        return
    yield from (
        "| package | test | on | stock | plus | runs of each |",
        "|---|---|---|--:|--:|--:|",
    )
    yield from rows


def not_run(results: Results) -> Iterator[str]:
    """Yield why a package has no number somewhere, one line for each reason."""
    on: dict[tuple[str, str], list[str]] = {}
    for one in results:
        for name, found in one["packages"].items():
            if "not run" in found:
                on.setdefault((name, found["not run"]), []).append(one["python"])
    for (name, why), versions in sorted(on.items()):
        yield f"- {name}, on {results_page.where(versions, results)}: {why}"


def rendered(results: Results, listed: Sequence[Package], under: str) -> list[str]:
    """Return the lines of one part of the page.

    under: what is not stock there.
    """
    if not results:
        return [results_page.NOT_RUN]
    lines = [*totals(results, listed), "", f"Fail only {under}, and why:", ""]
    lines += [*differences(results, listed), "", "Failed now and then:", "", *unsteady(results)]
    absent = list(not_run(results))
    lines += ["", "Not run:", "", *absent] if absent else []
    return [*lines, "", *(f"{one['python']}: {one['machine']}." for one in results)]


def made() -> dict[Path, str]:
    """Return the page of what is recorded; PageError where that does not fit together."""
    listed = packages.read()
    lines = _part("compat", packages.for_run(listed), "under `run`")
    lines += ["", "### With tasklets' patches", ""]
    lines += _part("compat-tasklets", packages.for_tasklets(listed), "with the patches")
    return results_page.page(PAGE, run="\n".join(lines), cycles=_cycles(listed))


def _cycles(listed: Sequence[Package]) -> str:
    """Return the block of the page on reference cycles."""
    own = packages.for_no_cycles(listed)
    results = results_page.read(results_page.RESULTS, "compat-no-cycles")
    check(results, own)
    return "\n".join(cycles(results, own)) if results else results_page.NOT_RUN


def cycles(results: Results, listed: Sequence[Package]) -> Iterator[str]:
    """Yield the table of suites, and a table of causes for each."""
    yield from results_page.heading("package", results)
    for package in listed:
        found = [one["packages"][package.name] for one in results]
        cells = [f"{_ran(one):,}: {len(one['causes'])}" if "plus" in one else "-" for one in found]
        yield f"| {package.name} {package.version} | {' | '.join(cells)} |"
    for package in listed:
        rows = list(_causes(results, package.name))
        if rows:
            yield from ("", f"#### {package.name}", "", "| cause | on |", "|---|---|", *rows)
    yield ""
    yield from (f"{one['python']}: {one['machine']}." for one in results)


def _causes(results: Results, name: str) -> Iterator[str]:
    for key, said in (("causes", ""), ("causes in some runs", ", in some runs")):
        on: dict[str, list[str]] = {}
        for one in results:
            for cause in one["packages"][name].get(key, ()):
                on.setdefault(cause, []).append(one["python"])
        for cause, versions in sorted(on.items()):
            yield f"| `{cause}` | {results_page.where(versions, results)}{said} |"


def _part(title: str, listed: Sequence[Package], under: str) -> list[str]:
    results = results_page.read(results_page.RESULTS, title)
    check(results, listed)
    return rendered(results, listed, under)


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite the page, or tell whether it would change."""
    return results_page.main("compat/page", made, arguments)


if __name__ == "__main__":
    sys.exit(main())
