"""`# noqa` comments, by which a file silences hits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cpythonplus_lint.checks.source import Source
from cpythonplus_lint.model import Violation

_CODES = r"(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)"
_LINE = re.compile(rf"#\s*noqa(?:\s*:\s*{_CODES})?", re.IGNORECASE)
_FILE = re.compile(
    rf"^[ \t]*#\s*(?:flake8|cpythonplus)\s*[:=]\s*noqa(?:\s*:\s*{_CODES})?[ \t]*\r?$",
    re.IGNORECASE | re.MULTILINE,
)


def wanted(source: Source, violations: Iterable[Violation]) -> list[Violation]:
    """Return the hits that no comment of the file silences."""
    found = list(violations)
    if not found or "noqa" not in source.text.lower():
        return found
    left_out: set[str] = set()
    for match in _FILE.finditer(source.text):
        if match["codes"] is None:
            return []
        left_out |= _codes(match["codes"])
    return [
        one for one in found if not _is_one_of(one.code, left_out) and not _silenced(source, one)
    ]


def _silenced(source: Source, violation: Violation) -> bool:
    match = _LINE.search(source.lines[violation.row - 1])
    if match is None or _FILE.search(source.lines[violation.row - 1]):
        return False
    return match["codes"] is None or _is_one_of(violation.code, _codes(match["codes"]))


def _codes(text: str) -> set[str]:
    return set(re.split(r"[,\s]+", text.strip().upper())) - {""}


def _is_one_of(code: str, codes: set[str]) -> bool:
    """Whether a code is listed; `CYC1` stands for all codes with that prefix, as in flake8."""
    return any(code.startswith(one) for one in codes)
