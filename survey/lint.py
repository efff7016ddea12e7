"""Runs `cpythonplus-lint` over well-known packages, and writes what it finds as a page.

    python -m survey.lint           downloads, checks, prints the table
    python -m survey.lint --write   the same, and writes lint/docs/reference/lint-survey.md

The packages and their versions are in survey/lint_packages.txt. Their files come from PyPI, by
`pip download` without dependencies, into build/lint-survey; what is there is not asked for again.
Nothing of them is installed or run. Folders named test, tests and testing are left out.
"""

import argparse
import os
import platform
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import cpythonplus_lint as lint
from tools.results_page import PageError, filled
from tools.setup_env import LINT

FOLDER = Path(__file__).resolve().parent
PACKAGES = FOLDER / "lint_packages.txt"
WORK = FOLDER.parent / "build" / "lint-survey"
PAGE = LINT / "docs" / "reference" / "lint-survey.md"
BEGIN, END = "<!-- lint-survey:begin -->", "<!-- lint-survey:end -->"
LEFT_OUT = ("test", "tests", "testing")
CODES = [rule.code for rule in lint.RULES.values() if rule.on_by_default]


class SurveyError(Exception):
    """One line on what could not be done."""


@dataclass(frozen=True)
class Row:
    """What was found in one package."""

    package: str
    lines: int
    counts: Counter[str] = field(default_factory=Counter)
    fixable: int = 0
    unread: tuple[str, ...] = ()
    """Files that do not parse, with the reason."""
    broken: int = 0
    """Files in which the linter itself failed."""


def packages() -> list[str]:
    """Return the packages with their versions, as `requests==2.34.2`."""
    return [one for one in PACKAGES.read_text("utf-8").split("\n") if one]


def fetched(packages: list[str], work: Path) -> list[Path]:
    """Return a folder with the Python files of each package. Raises SurveyError."""
    work.mkdir(parents=True, exist_ok=True)
    return [_fetched(package, work) for package in packages]


def _fetched(package: str, work: Path) -> Path:
    folder = work / package
    if folder.is_dir():
        return folder
    archives = work / "archives" / package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--prefer-binary"]
    done = subprocess.run(
        [*command, "--dest", str(archives), package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise SurveyError(f"{package}: {last[0]}")
    (archive,) = archives.iterdir()
    half = work / f"{package}.new"
    _unpack(archive, half)
    half.rename(folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    """The Python files of a wheel or a source archive."""
    folder.mkdir(exist_ok=True)
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    wheel.extract(name, folder)
        return
    with tarfile.open(archive) as source:
        for member in source:
            target = (folder / member.name).resolve()
            # By hand: extractall() has no filter before 3.11.4.
            if member.name.endswith(".py") and folder.resolve() in target.parents:
                file = source.extractfile(member)
                if file is not None:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(file.read())


def surveyed(package: str, folder: Path) -> Row:
    """Check the files of one package."""
    files = lint.find([str(folder)], LEFT_OUT)
    lines = sum(Path(file).read_bytes().count(b"\n") for file in files)
    counts: Counter[str] = Counter()
    fixable = broken = 0
    unread = []
    for result in lint.check_files(files, lint.Selection()):
        counts.update(hit.code for hit in result.violations)
        fixable += sum(hit.fix is not None for hit in result.violations)
        if result.problem is not None:
            broken += "internal error" in result.problem.message
            unread.append(f"{Path(result.path).relative_to(folder)}: {result.problem.message}")
    return Row(package, lines, counts, fixable, tuple(unread), broken)


def _table(rows: list[Row], seconds: float) -> Iterator[str]:
    """The page's table, line by line."""
    total = Counter[str]()
    for row in rows:
        total.update(row.counts)
    lines = sum(row.lines for row in rows)
    unread = sum(len(row.unread) for row in rows)
    processors = len(os.sched_getaffinity(0))
    yield (
        f"{len(rows)} packages, {lines / 1e6:.1f} million lines: {total.total()} hits, of which"
        f" `--fix` mends {sum(row.fixable for row in rows)}, in {seconds:.0f} s with CPython"
        f" {platform.python_version()} on {processors} processors. The linter failed in"
        f" {sum(row.broken for row in rows)} files; {unread} do not parse."
    )
    yield ""
    yield f"| package | lines | {' | '.join(CODES)} | hits |"
    yield f"|---|--:|{'--:|' * (len(CODES) + 1)}"
    for row in rows:
        cells = [str(row.counts[code] or "") for code in CODES]
        yield f"| {row.package} | {row.lines:,} | {' | '.join(cells)} | {row.counts.total()} |"
    cells = [str(total[code]) for code in CODES]
    yield f"| **all** | {lines:,} | {' | '.join(cells)} | {total.total()} |"


def written(page: str, table: str) -> str:
    """Return the page's text with the table between its marks. Raises SurveyError."""
    try:
        return filled(page, table, BEGIN, END)
    except PageError as error:
        raise SurveyError(f"{PAGE.name}: {error}") from None


def main() -> int:
    """Run the survey; return the exit status."""
    parser = argparse.ArgumentParser(prog="survey.lint", description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the page")
    given = parser.parse_args()
    try:
        names = packages()
        folders = fetched(names, WORK)
        begin = time.monotonic()
        rows = [surveyed(name, folder) for name, folder in zip(names, folders, strict=True)]
        table = "\n".join(_table(rows, time.monotonic() - begin))
        for row in rows:
            for line in row.unread:
                print(f"{row.package}: {line}", file=sys.stderr)
        if given.write:
            PAGE.write_text(written(PAGE.read_text("utf-8"), table), "utf-8")
        else:
            print(table)
    except SurveyError as error:
        print(f"survey.lint: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
