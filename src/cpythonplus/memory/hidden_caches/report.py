"""What is in the caches: one row for each, and its text and JSON forms."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cpythonplus.base.columns import columns
from cpythonplus.base.sizes import format_size

__all__ = ["WORTH_BYTES", "Cache", "Caches", "FixedCost"]

WORTH_BYTES: Final = 1 << 20
"""Clearing less than this is not worth the trouble."""
_NOT_COUNTED: Final = (
    "Not counted: free lists that the interpreter does not tell of (frames, contexts, asynchronous"
    " generators and the like); together they hold less than 100 KiB."
)


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache.

    size_bytes: what clearing it would free: what nothing else refers to.
    clear: the statement that clears it, "" if nothing does.
    worth_it: whether it is large enough (1 MiB), and its entries are not used all the time.
    note: what else is to be known.
    """

    name: str
    entries: int
    size_bytes: int
    clear: str
    worth_it: bool
    note: str

    @property
    def verdict(self) -> str:
        """Whether to clear it, in a word."""
        if not self.clear:
            return "never"
        return "yes" if self.worth_it else "no"


@dataclass(frozen=True, slots=True)
class FixedCost:
    """What a program's text takes as long as it runs; nothing clears it."""

    name: str
    objects: int
    size_bytes: int
    note: str


@dataclass(frozen=True, slots=True)
class Caches:
    """All that was found in a process.

    rows, fixed: the largest first.  left_out: what could not be counted, and why, a sentence each.
    pid: of the process.
    """

    rows: tuple[Cache, ...]
    fixed: tuple[FixedCost, ...]
    left_out: tuple[str, ...]
    pid: int

    @property
    def size_bytes(self) -> int:
        """What clearing everything would free."""
        return sum(row.size_bytes for row in self.rows)

    def clear(self, *names: str) -> dict[str, int]:
        """Clear the named caches; without names those that are worth it.

        Returns by name the bytes that each has given back, as it is counted here; free lists are
        cleared all together, by a collection.  Clearing destroys what was in the caches, which may
        run any code.

        Raises ValueError for a name that is not among the rows, or cannot be cleared; RuntimeError
        if the rows are of another process.
        """
        from cpythonplus.memory.hidden_caches.clearing import clear_rows

        if self.pid != os.getpid():
            raise RuntimeError(f"these are the caches of process {self.pid}, not of this one")
        return clear_rows(self.rows, names)

    def text(self, top: int = 20) -> str:
        """Return tables of the `top` largest caches and of the fixed costs."""
        parts = [self._caches(top), self._fixed(), *self.left_out, _NOT_COUNTED]
        return "\n\n".join(filter(None, parts))

    def __str__(self) -> str:
        """Return the tables."""
        return self.text()

    def _caches(self, top: int) -> str:
        rows = [("cache", "entries", "size", "worth it", "clear by", "")]
        rows += [
            (
                row.name,
                f"{row.entries:,}",
                format_size(row.size_bytes),
                row.verdict,
                # The name stands in front already.
                row.clear.replace(row.name.removeprefix("lru_cache ") + ".", "its "),
                row.note,
            )
            for row in self.rows[:top]
        ]
        rest = self.rows[top:]
        if rest:
            size = format_size(sum(row.size_bytes for row in rest))
            entries = f"{sum(row.entries for row in rest):,}"
            rows.append((f"{len(rest)} more", entries, size, "", "", ""))
        worth = sum(row.size_bytes for row in self.rows if row.worth_it)
        told = f"{format_size(worth)} of it is" if worth else "nothing of it is"
        heading = f"Caches hold {format_size(self.size_bytes)}; {told} worth clearing."
        return f"{heading}\n\n{columns(rows, right=(1, 2))}"

    def _fixed(self) -> str:
        if not self.fixed:
            return ""
        rows = [("fixed cost", "objects", "size", "")]
        rows += [
            (cost.name, f"{cost.objects:,}", format_size(cost.size_bytes), cost.note)
            for cost in self.fixed
        ]
        return columns(rows, right=(1, 2))

    def to_json(self) -> dict[str, object]:
        """Return the same as dicts, lists, strings and numbers."""
        return {
            "pid": self.pid,
            "rows": [asdict(row) for row in self.rows],
            "fixed": [asdict(cost) for cost in self.fixed],
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Caches":
        """Return what `to_json` was made of."""
        return cls(
            rows=tuple(Cache(**row) for row in found["rows"]),
            fixed=tuple(FixedCost(**cost) for cost in found["fixed"]),
            left_out=tuple(found["left_out"]),
            pid=found["pid"],
        )
