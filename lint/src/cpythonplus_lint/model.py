"""What the rules hand on: hits, and edits that would put them right."""

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
    """An edit that keeps what the code does; hits with equal fixes are fixed by the one edit."""

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
    """The function that it is in, as `Client.read`; '' for none."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file could not be checked: one line, without the path."""

    row: int
    column: int
    message: str
