"""What a run of somebody's tests said, read from its JUnit file."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# Parameters that are objects without a name of their own have their address in the test's name.
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class Outcome:
    """How many tests one run has, and the names of those that failed, were skipped, passed."""

    ran: int
    failed: frozenset[str]
    skipped: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()


def read_report(report: Path, title: str) -> Outcome:
    """Read a JUnit file; one that is not there or not whole counts as nothing run.

    A test that pytest says may fail, and which fails, passed: it did what it is expected to.

    title: the name of a test that has none.
    """
    try:
        cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314  # our own run wrote it
    except (OSError, ET.ParseError):
        return Outcome(0, frozenset())

    def names(*kinds: str) -> frozenset[str]:
        found = (case for case in cases if any(_has(case, kind) for kind in kinds))
        return frozenset(name_of(case, title) for case in found)

    failed, skipped = names("failure", "error"), names("skipped")
    passed = frozenset(name_of(case, title) for case in cases) - failed - skipped
    return Outcome(len(cases), failed, skipped - failed, passed)


def _has(case: ET.Element, kind: str) -> bool:
    child = case.find(kind)
    return child is not None and child.get("type") != "pytest.xfail"


def name_of(case: ET.Element, title: str) -> str:
    """Return `class.test`, or what there is of it."""
    place, name = case.get("classname"), case.get("name", title)
    return _ADDRESS.sub("0x...", f"{place}.{name}" if place else name)


def key_of(name: str, known: Mapping[str, str]) -> str | None:
    """Return the name or the pattern under which a test is known to fail, or None."""
    # A name may have brackets, which mean something else in a pattern.
    if name in known:
        return name
    return next((key for key in known if fnmatchcase(name, key)), None)


def reason(name: str, known: Mapping[str, str]) -> str:
    """Return why a test is known to fail, or an empty text."""
    key = key_of(name, known)
    return "" if key is None else known[key]
