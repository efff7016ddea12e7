"""The Python processes of this machine, and whether they can be looked at."""

import os
from dataclasses import dataclass

from cpythonplus._base.data import Data
from cpythonplus._base.proc import resident_bytes
from cpythonplus._doctor.agent.client import reach
from cpythonplus._doctor.agent.finding import (
    Process,
    Unreachable,
    command_of,
    find,
    parent_of,
    started_s,
)


@dataclass(frozen=True, slots=True)
class Candidate(Data):
    """A Python process.

    started_s: seconds since 1970; reached_by: "socket" if it listens, "sys.remote_exec" if it can
    be asked to listen, "" if neither; why_not: then the reason, in one line. parent: its process
    id. resident_bytes: includes shared pages.
    """

    pid: int
    command: str
    started_s: float
    reached_by: str
    why_not: str = ""
    parent: int = 0
    resident_bytes: int = 0


def candidates() -> list[Candidate]:
    """Return all processes that are known to be Python 3.11 or later, except this one.

    Processes of other users are left out unless root asks: their programs cannot be seen.
    """
    numbers = sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208
    found = []
    for pid in numbers:
        try:
            if pid != os.getpid():
                found.append(_candidate(find(pid)))
        except Unreachable:
            continue
    return found


def _candidate(process: Process) -> Candidate:
    pid, way, why_not = process.pid, "sys.remote_exec", ""
    try:
        if reach(process):
            way = "socket"
    except Unreachable as error:
        way, why_not = "", str(error)
    return Candidate(
        pid=pid,
        command=command_of(pid),
        started_s=started_s(pid),
        reached_by=way,
        why_not=why_not,
        parent=parent_of(pid),
        resident_bytes=resident_bytes(pid),
    )
