"""The report on all caches, one row for each, and clearing them."""

import os
from dataclasses import dataclass

from cpythonplus.memory._caches.clearing import clear_rows
from cpythonplus.memory._caches.finding import find_rows, fixed_costs
from cpythonplus.memory._caches.model import Cache, FixedCost
from cpythonplus.memory._examined import Examined


@dataclass(frozen=True, slots=True)
class Caches(Examined):
    """The caches of a process.

    rows, fixed: the largest first. left_out: one sentence for each cache that could not be counted.
    pid: of the process.
    """

    examination = "caches"

    rows: tuple[Cache, ...]
    fixed: tuple[FixedCost, ...]
    left_out: tuple[str, ...]
    pid: int

    @property
    def size_bytes(self) -> int:
        """The bytes that clearing all caches would free."""
        return sum(row.size_bytes for row in self.rows)

    def clear(self, *names: str) -> dict[str, int]:
        """Clear the named caches; without names those that are worth it.

        Returns by name the bytes that each has given back, as it is counted here; free lists are
        cleared all together, by a collection. Clearing destroys the contents of the caches, which
        may run any code.

        Raises ValueError for a name that is not among the rows, or cannot be cleared; RuntimeError
        if the rows are of another process.
        """
        if self.pid != os.getpid():
            raise RuntimeError(f"these are the caches of process {self.pid}, not of this one")
        return clear_rows(self.rows, names)


def caches() -> Caches:
    """Return the contents of the interpreter's and the standard library's caches in this process.

    The caches are free lists, functions under lru_cache, the caches of re, linecache, the import
    system, warnings and some others. The memory of the program's text (code, docstrings) is
    counted, too.

    size_bytes is the number of bytes that clearing would free: objects that only the cache refers
    to. Runs no code of the program and changes nothing. Other threads wait meanwhile, about as long
    as for two or three collections.

    Raises UnsupportedPlatform on a free-threaded build.
    """
    rows, left_out = find_rows()
    fixed = sorted(fixed_costs(left_out), key=lambda cost: -cost.size_bytes)
    return Caches(rows=tuple(rows), fixed=tuple(fixed), left_out=tuple(left_out), pid=os.getpid())
