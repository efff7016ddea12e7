"""Lists of tests that the whole suite treats alike: the same on any version, or unsteady."""

import datetime as dt
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

TESTS = Path(__file__).resolve().parent
LINT_TESTS = TESTS.parent / "lint" / "tests"
UNSTEADY = TESTS / "unsteady.toml"
MOST_UNSTEADY = 10

ANY_VERSION = (
    "benchmarks/*",
    "cli/test_command_line.py",
    "cli/test_compare.py",
    "cli/test_help_texts.py",
    "cli/test_planted.py",
    "cli/test_terminal.py",
    "compare/*",
    "docs/*",
    "memory/attribution/test_attribute_report.py",
    "memory/attribution/test_attribute_routes.py",
    "memory/cycles/test_pytest_plugin.py",
    "survey/*",
)
"""Patterns of files, relative to tests/, whose tests say the same on any version of Python.

Other files mark single tests.
"""


@dataclass(frozen=True)
class Unsteady:
    """Why a test is left out, and since when."""

    since: dt.date
    reason: str

    def __str__(self) -> str:
        return f"unsteady since {self.since}: {self.reason}"


def unsteady(path: Path = UNSTEADY) -> Mapping[str, Unsteady]:
    """Read the list of unsteady tests, by the identifiers that pytest gives them."""
    entries = tomllib.loads(path.read_text("utf-8")).get("test", [])
    return {entry.pop("id"): Unsteady(**entry) for entry in entries}


def is_any_version(path: Path) -> bool:
    """Whether the tests of a file are to run on one version only."""
    if not path.is_relative_to(TESTS):
        return path.is_relative_to(LINT_TESTS)  # those of sites/ mark their own files
    name = path.relative_to(TESTS).as_posix()
    return any(fnmatchcase(name, pattern) for pattern in ANY_VERSION)
