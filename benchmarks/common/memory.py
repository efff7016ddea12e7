"""What the kernel says of a process's memory, read from /proc.

Deliberately not `cpythonplus.prefork.sharing`: a benchmark does not let what it measures do the
measuring. Works for one's own processes, without privileges.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

KIB = 1024
MIB = 1024 * 1024

_GONE = (FileNotFoundError, ProcessLookupError)
_MINOR, _MAJOR = 7, 9
"""Places of minflt and majflt in /proc/PID/stat, counted from the state on."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of one process, or of several together."""

    proportional_bytes: int = 0
    """Each page divided by the number of processes that have it mapped (Pss)."""
    private_bytes: int = 0
    """Pages that no other process has."""

    def __add__(self, other: Self) -> Memory:
        """Return the sum of both."""
        return Memory(
            self.proportional_bytes + other.proportional_bytes,
            self.private_bytes + other.private_bytes,
        )


def of(pid: int) -> Memory:
    """Return the memory of `pid`; nothing for a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except _GONE:
        return Memory()
    kib: dict[str, int] = {}
    for line in text.splitlines()[1:]:
        name, _, amount = line.partition(":")
        kib[name] = int(amount.split()[0])
    private = kib.get("Private_Clean", 0) + kib.get("Private_Dirty", 0)
    return Memory(kib.get("Pss", 0) * KIB, private * KIB)


def total(pids: list[int]) -> Memory:
    """Return the memory of all `pids` together."""
    return sum(map(of, pids), Memory())


def tree(pid: int) -> list[int]:
    """Return `pid` and all its descendants that have not ended."""
    try:
        found = [pid]
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text("ascii").split():
                found += tree(int(child))
    except _GONE:
        return []
    return found


def faults(pid: int) -> int:
    """Return how many page faults `pid` has had, minor and major; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except _GONE:
        return 0
    # The name before the last parenthesis may hold spaces and parentheses of its own.
    fields = text.rpartition(")")[2].split()
    return int(fields[_MINOR]) + int(fields[_MAJOR])
