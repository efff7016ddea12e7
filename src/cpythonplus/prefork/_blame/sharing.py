"""How much memory a process and its descendants share, and how much each has for itself.

From ``/proc/PID/smaps_rollup``: the kernel's own sums over all mappings, one read per process.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpythonplus._base.data import Data
from cpythonplus._base.proc import descendants, memory_sums

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessMemory(Data):
    """The memory of one process, in bytes.

    resident_bytes: all pages in memory, shared or not (Rss). proportional_bytes: each page divided
    by the number of processes that map it (Pss); the only one of these whose sum over processes is
    the memory that they use together. shared_bytes: pages that another process maps too.
    private_bytes: pages that no other process maps.
    """

    pid: int
    name: str
    resident_bytes: int
    proportional_bytes: int
    shared_bytes: int
    private_bytes: int


@dataclass(frozen=True, slots=True)
class Sharing(Data):
    """The memory of a process and its descendants; printed, it is a table.

    processes: the process that was asked for, then its descendants, each parent before its
    children.
    """

    processes: tuple[ProcessMemory, ...]

    @property
    def total(self) -> ProcessMemory:
        """The sums over all processes, as a ProcessMemory with pid 0.

        In ``resident_bytes`` and ``shared_bytes`` a shared page counts once per process.
        """
        return ProcessMemory(
            pid=0,
            name="total",
            resident_bytes=sum(each.resident_bytes for each in self.processes),
            proportional_bytes=sum(each.proportional_bytes for each in self.processes),
            shared_bytes=sum(each.shared_bytes for each in self.processes),
            private_bytes=sum(each.private_bytes for each in self.processes),
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it by name, and the total."""
        return {**Data.as_json(self), "total": self.total.as_json()}

    def __str__(self) -> str:
        from cpythonplus.prefork._blame.tables import sharing_layout, text

        return text(sharing_layout(self.as_json(), len(self.processes)))


def sharing(pid: int | None = None) -> Sharing:
    """Return the memory of the process ``pid`` (None: this one) and of all its descendants.

    A descendant that ends meanwhile, or that belongs to another user, is left out.  Raises
    ProcessLookupError if there is no process ``pid``, PermissionError if its memory may not be
    read, and UnsupportedPlatform if the kernel does not have ``smaps_rollup`` (before Linux 4.14).
    """
    first = os.getpid() if pid is None else pid
    found = [process_memory(first)]
    for descendant in descendants(first):
        with suppress(ProcessLookupError, PermissionError):
            found.append(process_memory(descendant))
    return Sharing(tuple(found))


def private_bytes(pid: int | None = None) -> int:
    """Return the bytes that only the process ``pid`` (None: this one) maps.

    One read of one file; raises what `sharing` raises.
    """
    return _private(memory_sums(os.getpid() if pid is None else pid))


def process_memory(pid: int) -> ProcessMemory:
    """Return the memory of one process; raises as `sharing` does."""
    sums = memory_sums(pid)
    try:
        name = (_PROC / str(pid) / "comm").read_text(errors="replace").rstrip("\n")
    except OSError:
        name = "?"  # ended between the two reads
    return ProcessMemory(
        pid=pid,
        name=name,
        resident_bytes=sums.get("Rss", 0),
        proportional_bytes=sums.get("Pss", 0),
        shared_bytes=sums.get("Shared_Clean", 0) + sums.get("Shared_Dirty", 0),
        private_bytes=_private(sums),
    )


def _private(sums: dict[str, int]) -> int:
    return sums.get("Private_Clean", 0) + sums.get("Private_Dirty", 0)
