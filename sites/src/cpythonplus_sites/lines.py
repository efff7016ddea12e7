"""The positions of the keys in a TOML text: the line of each, and the span of its value.

tomllib keeps no positions; tomlkit does not either. tomllib has accepted the text before, so this
scanner may be lax: it only has to find the ends.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from cpythonplus_sites import toml
from cpythonplus_sites.problems import Keys

_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY_PART = r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^\s=.\[\]{}"'#,]+)"""
_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*")
# A string that ends in four or five quotes ends with one or two of them inside.
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]*[^,\]}#\s]")


class Statement(NamedTuple):
    """One `key = value`, with offsets into the text.

    header: the table whose lines contain it.  inline: it is in an inline table.
    """

    keys: Keys
    header: Keys
    inline: bool
    start: int
    value_start: int
    end: int


@dataclass
class Layout:
    """The statements of a text in their order, the ends of its headers, the line of each key."""

    text: str
    statements: list[Statement] = field(default_factory=list)
    header_ends: dict[Keys, int] = field(default_factory=dict)
    _offsets: dict[Keys, int] = field(default_factory=dict)
    _line_ends: list[int] = field(default_factory=list)

    def line(self, keys: Keys) -> int:
        """The line (from 1) of a key; if it is missing, that of the nearest table around it."""
        while keys and keys not in self._offsets:
            keys = keys[:-1]
        return self.line_at(self._offsets.get(keys, 0))

    def line_at(self, offset: int) -> int:
        """The line of an offset in the text."""
        if not self._line_ends:
            self._line_ends = [m.end() for m in re.finditer("\n|$", self.text)]
        return bisect_right(self._line_ends, offset) + 1

    def note(self, keys: Keys, offset: int) -> None:
        """Remember the offset at which a key, and the tables that it implies, are first named."""
        for length in range(len(keys), 0, -1):
            if keys[:length] in self._offsets:
                break
            self._offsets[keys[:length]] = offset


def scan(text: str) -> Layout:
    """Find the keys of a text that tomllib accepts. Raises RecursionError as tomllib does."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.layout


def _parts(key: str) -> list[str]:
    """The parts of a dotted key as they are written, each read by tomllib."""
    data: object = toml.loads(f"{key}=0")
    parts = []
    while isinstance(data, dict):
        ((part, data),) = data.items()
        parts.append(part)
    return parts


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.layout = Layout(text)
        self.at = int(text.startswith("\ufeff"))
        self.lengths: dict[Keys, int] = {}
        """The lengths of the arrays of tables so far."""

    def document(self) -> None:
        header: Keys = ()
        while self.skip() < len(self.text):
            if self.text[self.at] == "[":
                header = self.header()
            else:
                self.statement(header, header, inline=False)

    def skip(self) -> int:
        self.at = self._end(_BLANKS)
        return self.at

    def header(self) -> Keys:
        start, is_array = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        self.skip()
        names = self.key()
        keys = (*self.resolved(names[:-1], ()), names[-1])
        if is_array:
            index = self.lengths.get(keys, 0)
            self.lengths[keys] = index + 1
            self.layout.note(keys, start)
            keys = (*keys, index)
        self.layout.note(keys, start)
        self.skip()
        self.at += 2 if is_array else 1
        self.layout.header_ends[keys] = self.at
        return keys

    def resolved(self, names: list[str], keys: Keys) -> Keys:
        """The keys of a header, through the newest table of each array on the way."""
        for name in names:
            keys = (*keys, name)
            if keys in self.lengths:
                keys = (*keys, self.lengths[keys] - 1)
        return keys

    def key(self) -> list[str]:
        start, self.at = self.at, self._end(_KEY)
        return _parts(self.text[start : self.at])

    def statement(self, table: Keys, header: Keys, *, inline: bool) -> None:
        start = self.at
        keys = (*table, *self.key())
        self.layout.note(keys, start)
        self.skip()
        self.at += 1  # the equals sign
        self.skip()
        value_start = self.at
        self.value(keys, header)
        self.layout.statements.append(Statement(keys, header, inline, start, value_start, self.at))

    def value(self, keys: Keys, header: Keys) -> None:
        first = self.text[self.at]
        if first == "[":
            self.array(keys, header)
        elif first == "{":
            self.inline_table(keys, header)
        else:
            self.at = self._end(_STRING if first in "\"'" else _SCALAR)

    def array(self, keys: Keys, header: Keys) -> None:
        self.at += 1
        index = 0
        while self.text[self.skip()] != "]":
            self.layout.note((*keys, index), self.at)
            self.value((*keys, index), header)
            self.comma()
            index += 1
        self.at += 1

    def inline_table(self, keys: Keys, header: Keys) -> None:
        self.at += 1
        while self.text[self.skip()] != "}":
            self.statement(keys, header, inline=True)
            self.comma()
        self.at += 1

    def comma(self) -> None:
        if self.text[self.skip()] == ",":
            self.at += 1

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"no {pattern.pattern} at {self.at}")
        return match.end()
