"""The results of the rules: hits, and edits that would fix them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines `first` to `last` (from 1, both included) are replaced by `text`."""

    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that keeps the code's behaviour; hits with equal fixes are fixed by the one edit."""

    message: str
    edit: Edit


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One hit. Rows count from 1; columns from 0, in UTF-8 bytes as `ast` counts them."""

    row: int
    column: int
    code: str
    message: str
    end_row: int
    end_column: int
    fix: Fix | None = field(default=None, compare=False)
    inside: str = field(default="", compare=False)
    """The function that contains the hit, as `Client.read`; '' for none."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a file could not be checked: one line, without the path."""

    row: int
    column: int
    message: str
