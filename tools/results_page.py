"""What the makers of pages have in common: recorded results, the block in a page, writing."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "reference"
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


def page(path: Path, **texts: str) -> dict[Path, str]:
    """Return the page in `path` with each text in the block of its name."""
    found = path.read_text("utf-8")
    for name, text in texts.items():
        found = filled(found, text, *marks(name))
    return {path: found}


def marks(name: str) -> tuple[str, str]:
    """Return the comments around the block of this name."""
    return f"<!-- {name}:begin -->", f"<!-- {name}:end -->"


def filled(page: str, text: str, begin: str, end: str) -> str:
    """Return a page with `text` between its marks; PageError where it has none."""
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise PageError(f"there is no {begin} ... {end} in a page")
    return f"{head}{begin}\n{text}\n{end}{tail}"


def rewrite(title: str, files: Mapping[Path, str], *, check: bool) -> int:
    """Write the files that are not as they should be; or with `check` only name them, status 1."""
    stale = [p for p, text in files.items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        if not check:
            path.write_text(files[path], "utf-8")
        print(f"{title}: {path.name} {'is not up to date: make docs' if check else 'rewritten'}")
    return int(check and bool(stale))


def main(
    title: str, make: Callable[[], Mapping[Path, str]], arguments: Sequence[str] | None = None
) -> int:
    """Rewrite what `make` returns, or with --check only tell; status 2 for a PageError."""
    parser = argparse.ArgumentParser(prog=title, description="Writes generated documentation")
    parser.add_argument("--check", action="store_true", help="change nothing, only tell")
    options = parser.parse_args(arguments)
    try:
        return rewrite(title, make(), check=options.check)
    except PageError as error:
        print(f"{title}: {error}", file=sys.stderr)
        return 2
