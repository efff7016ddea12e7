"""The Python processes of this machine, and which of them can be looked at."""

import os
from dataclasses import dataclass

from cpythonplus._base.data import Data
from cpythonplus.memory._agent.client import reach
from cpythonplus.memory._agent.finding import Process, Unreachable, command_of, find, started_s

__all__ = ["Candidate", "candidates"]


@dataclass(frozen=True, slots=True)
class Candidate(Data):
    """A Python process.

    started_s: seconds since 1970; reached_by: "socket" if it listens, "sys.remote_exec" if it can
    be asked to, "" if neither; why_not: then the reason, in one line.
    """

    pid: int
    command: str
    started_s: float
    reached_by: str
    why_not: str = ""


def candidates() -> list[Candidate]:
    """Return all processes that are known to be Python 3.11 or later, but for this one.

    Those of other users are not among them, unless root asks: what they run cannot be seen.
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
    pid = process.pid
    command, began_s = command_of(pid), started_s(pid)
    try:
        client = reach(process)
    except Unreachable as error:
        return Candidate(pid, command, began_s, "", str(error))
    return Candidate(pid, command, began_s, "socket" if client else "sys.remote_exec")
