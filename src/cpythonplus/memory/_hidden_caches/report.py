"""What is in the caches: one row for each."""

import os
from dataclasses import dataclass
from typing import Final

from cpythonplus.memory._report.examined import Examined

__all__ = ["WORTH_BYTES", "Cache", "Caches", "FixedCost"]

WORTH_BYTES: Final = 1 << 20
"""Clearing less than this is not worth the trouble."""


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


@dataclass(frozen=True, slots=True)
class FixedCost:
    """What a program's text takes as long as it runs; nothing clears it."""

    name: str
    objects: int
    size_bytes: int
    note: str


@dataclass(frozen=True, slots=True)
class Caches(Examined):
    """All that was found in a process.

    rows, fixed: the largest first.  left_out: what could not be counted, and why, a sentence each.
    pid: of the process.
    """

    examination = "caches"

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
        from cpythonplus.memory._hidden_caches.clearing import clear_rows

        if self.pid != os.getpid():
            raise RuntimeError(f"these are the caches of process {self.pid}, not of this one")
        return clear_rows(self.rows, names)
