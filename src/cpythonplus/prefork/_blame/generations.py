"""The processes of a `serve` master for the doctor: their generations, and their private memory."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from cpythonplus._base.data import Data
from cpythonplus._base.reading import Part, entries, size
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import Layout, table
from cpythonplus.prefork._blame.blaming import blame
from cpythonplus.prefork._blame.sharing import process_memory
from cpythonplus.prefork._gunicorn.service import SERVICE

_BLAME_S = 2.0
"""The time for looking at the workers' pages, one worker after the other."""
_CAUSES = 2


@dataclass(frozen=True, slots=True)
class ServerProcess(Data):
    """A process of the server.

    role: master, mold or worker.  generation: for a mold, that of the workers that it forks; for a
    worker, that of its mold, or 0 if the master forked it.  requests: the number answered.
    private_bytes: pages that no other process maps.  causes: the main reasons for them, with their
    bytes; empty if there was no time to look, or nothing to compare with.
    """

    pid: int
    role: str
    generation: int
    requests: int
    resident_bytes: int
    private_bytes: int
    causes: str = ""


@dataclass(frozen=True, slots=True)
class Generations(Data):
    """All processes of a server, as its master sees them; empty in a worker."""

    processes: tuple[ServerProcess, ...]


def generations() -> Generations:
    """Return the processes of the master in which this is called."""
    return Generations(tuple(_processes()) if SERVICE.pid == os.getpid() else ())


def _processes() -> Iterator[ServerProcess]:
    snapshot = SERVICE.board.snapshot().workers if SERVICE.board is not None else ()
    requests = {row.pid: row.requests for row in snapshot}
    parents = SERVICE.molds()
    until = monotonic() + _BLAME_S
    roles = [
        ("master", SERVICE.pid, 0),
        *(("mold", pid, number) for number, pid in parents.items()),
        *(("worker", pid, number) for pid, number in SERVICE.generations()),
    ]
    for role, pid, generation in roles:
        with suppress(OSError, RuntimeError):  # it has ended, or is another user's now
            memory = process_memory(pid)
            is_worker = role == "worker" and monotonic() < until
            yield ServerProcess(
                pid=pid,
                role=role,
                generation=generation,
                requests=requests.get(pid, 0),
                resident_bytes=memory.resident_bytes,
                private_bytes=memory.private_bytes,
                causes=_causes(pid, parents.get(generation, SERVICE.pid)) if is_worker else "",
            )


def _causes(pid: int, parent: int | None) -> str:
    if parent is None:
        return ""
    with suppress(OSError, RuntimeError):
        found = blame(pid, reference=parent, top=0).by_category[:_CAUSES]
        return ", ".join(f"{each.category} {format_size(each.bytes)}" for each in found)
    return ""


def layout(found: Part, top: int) -> Layout:
    """Return a row for each process."""
    rows: list[dict[str, Any]] = [
        {**row, "pid": str(size(row, "pid"))} for row in entries(found, "processes")
    ]
    columns = (
        "process=role|pid|generation:count|requests:count|resident:size=resident_bytes"
        "|private:size=private_bytes|most of it:note=causes"
    )
    return (), tuple(table("", columns, rows, top))
