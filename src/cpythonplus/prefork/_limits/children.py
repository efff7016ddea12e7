"""The children of a process: which have ended, and how, one at a time and without waiting."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

__all__ = ["exited", "is_child", "reap", "reap_strangers", "terminate"]


def reap_strangers(known: AbstractSet[int]) -> None:
    """Reap the children that have ended, up to the first one that is known."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def exited(pid: int) -> int:
    """Return the status of a child that has ended by itself; 0 of any other."""
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_code == os.CLD_EXITED:
            return ended.si_status
    return 0


def is_child(pid: int) -> bool:
    """Whether a process is a child that nobody has reaped, running or not."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def terminate(pid: int, number: int = signal.SIGTERM) -> None:
    """Send a process a signal, if it is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def reap(pid: int) -> int | None:
    """Return the status of a child that has ended, as exit codes are told; None of one that runs.

    -1 where somebody else has reaped it.
    """
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1
    return os.waitstatus_to_exitcode(status) if found else None
