"""The problems of a site file, as values; needs nothing but the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Union

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PATH_LIMIT = 4096

Keys = tuple[Union[str, int], ...]
"""The way to a value of the file: ("sites", "paris", "lan", 0)."""


class Problem(NamedTuple):
    """One problem. line: from 1; key: as `sites.paris.lan`; 0 and "" for the whole file."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return ": ".join(str(part) for part in self if part)


class SiteFileError(Exception):
    """A site file that cannot be used, with all of its problems, sorted by line."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line for each problem: `sites.toml:12: sites.paris.lan: ...`."""
        path = printable(str(self.path), limit=PATH_LIMIT)
        return [f"{path}:{' ' * (one.line == 0)}{one}" for one in self.problems]


def dotted(keys: Keys) -> str:
    """The way to a value as text: `sites.paris.lan`, without the indexes of arrays."""
    return ".".join(printable(key) for key in keys if isinstance(key, str))


def printable(text: str, *, limit: int = 60) -> str:
    """The text on one line, with special characters escaped, cut at `limit` characters."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return plain if len(text) <= limit else plain[: limit - 3] + "..."
