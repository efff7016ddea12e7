"""Hits that a project already has, in a file of its own, so that only new ones fail.

An entry has what stays when lines move or code is reformatted: file, rule, function, and the
line's text without its blanks. Equal entries are counted. Line numbers are not kept: they would
change with every edit above them.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, NamedTuple

from cpythonplus_lint.contents import contents
from cpythonplus_lint.model import Violation
from cpythonplus_lint.running import FileResult

_VERSION = 1
_MOST = 1_000_000
_FIELDS = ("file", "code", "function", "line")


class BaselineError(Exception):
    """One line on why a baseline cannot be used."""


class Entry(NamedTuple):
    """A hit, whatever line it is in."""

    file: str
    """The path relative to the baseline's folder, with slashes."""
    code: str
    function: str
    line: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The results of a run, compared with a baseline."""

    results: list[FileResult]
    """The results without the hits that are in the baseline."""
    left_out: int
    gone: list[Entry]
    """Entries without a matching hit, of files that were checked or no longer exist."""


class Baseline:
    """The entries of one baseline file, each with its count."""

    def __init__(self, path: str, counts: Counter[Entry] | None = None) -> None:
        self.path = path
        self.counts: Counter[Entry] = Counter() if counts is None else counts
        self._folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120

    def compared(self, results: Iterable[FileResult], codes: Collection[str]) -> Compared:
        """Leave out the hits that are in the baseline: of n equal entries, the first n hits.

        codes: the rules that were asked for; entries of others are not gone.
        """
        left = Counter(self.counts)
        kept: list[FileResult] = []
        checked: list[FileResult] = []
        for result in results:
            checked.append(result)
            new: list[tuple[Violation, str]] = []
            for hit, line in zip(result.violations, result.lines, strict=True):
                entry = self._entry(result.path, hit, line)
                if left[entry] > 0:
                    left[entry] -= 1
                else:
                    new.append((hit, line))
            hits, lines = tuple(hit for hit, _ in new), tuple(line for _, line in new)
            kept.append(replace(result, violations=hits, lines=lines))
        left_out = sum(self.counts.values()) - sum(left.values())
        stays = self._unjudged(checked, codes)
        return Compared(kept, left_out, sorted(e for e in left.elements() if not stays(e)))

    def updated(self, results: Sequence[FileResult], codes: Collection[str]) -> Baseline:
        """Return a baseline with the hits of a run, and the entries that the run did not judge."""
        stays = self._unjudged(results, codes)
        counts = Counter({entry: n for entry, n in self.counts.items() if stays(entry)})
        for result in results:
            for hit, line in zip(result.violations, result.lines, strict=True):
                counts[self._entry(result.path, hit, line)] += 1
        return Baseline(self.path, counts)

    def text(self) -> str:
        """The file's text: JSON, with a line for each entry, so that it can be merged."""
        rows = [
            json.dumps({**entry._asdict(), "count": count}, ensure_ascii=False)
            for entry, count in sorted(self.counts.items())
            if count > 0
        ]
        inner = "\n    " + ",\n    ".join(rows) + "\n  " if rows else ""
        return f'{{\n  "version": {_VERSION},\n  "findings": [{inner}]\n}}\n'

    def _entry(self, path: str, hit: Violation, line: str) -> Entry:
        return Entry(self._relative(path), *identity(hit, line))

    def _relative(self, path: str) -> str:
        return PurePath(os.path.relpath(path, self._folder)).as_posix()

    def _unjudged(self, results: Sequence[FileResult], codes: Collection[str]) -> _Unjudged:
        read = frozenset(self._relative(one.path) for one in results if one.problem is None)
        return _Unjudged(self._folder, read, frozenset(codes))


@dataclass(frozen=True, slots=True)
class _Unjudged:
    """Whether a run did not judge an entry: its rule, or its existing file, was not checked."""

    folder: str
    read: frozenset[str]
    codes: frozenset[str]

    def __call__(self, entry: Entry) -> bool:
        is_there = entry.file in self.read or not os.path.exists(  # noqa: PTH110  # False also if permission is denied
            os.path.join(self.folder, entry.file)  # noqa: PTH118
        )
        return entry.code not in self.codes or not is_there


def identity(hit: Violation, line: str) -> tuple[str, str, str]:
    """Rule, function and line of a hit, without what a reformatting changes."""
    return hit.code, hit.inside, "".join(line.split())


def load(path: str) -> Baseline:
    """Return the baseline in a file. Raises BaselineError."""
    try:
        found: Any = json.loads(contents(path).decode())
    except OSError as error:
        raise BaselineError(f"cannot read {path!r}: {error.strerror}") from None
    except (ValueError, RecursionError, MemoryError):
        raise BaselineError(f"{path!r} is not a baseline: no JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("findings"), list):
        raise BaselineError(f"{path!r} is not a baseline: it has no 'findings'")
    version = found.get("version")
    if version != _VERSION:
        shown = version if isinstance(version, int | str) else None
        raise BaselineError(f"{path!r} has version {shown!r:.40}, expected {_VERSION}")
    counts: Counter[Entry] = Counter()
    for number, row in enumerate(found["findings"], 1):
        fields = [row.get(name) for name in _FIELDS] if isinstance(row, dict) else [None]
        count: Any = row.get("count") if isinstance(row, dict) else None
        is_count = type(count) is int and 0 < count <= _MOST
        if not is_count or not all(isinstance(one, str) for one in fields):
            raise BaselineError(f"{path!r}: finding {number} is not one")
        counts[Entry(*fields)] += count
    if counts.total() > _MOST:
        raise BaselineError(f"{path!r} has more than {_MOST:,} findings")
    return Baseline(path, counts)
