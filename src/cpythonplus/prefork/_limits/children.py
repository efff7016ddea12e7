"""The children of a process: those that have ended, and their statuses, without waiting."""

import os
import signal
from collections.abc import Set as AbstractSet
from contextlib import suppress


def reap_strangers(known: AbstractSet[int]) -> None:
    """Reap ended children, up to the first whose PID is in `known`."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in known:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)


def exited(pid: int) -> int:
    """Return the status of a child that has ended by itself; 0 for any other."""
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_code == os.CLD_EXITED:
            return ended.si_status
    return 0


def is_child(pid: int) -> bool:
    """Whether a process is a child that was not reaped yet, running or not."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False


def terminate(pid: int, number: int = signal.SIGTERM) -> None:
    """Send a signal to a process, if it exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def reap(pid: int) -> int | None:
    """Return the exit code of a child that has ended; None if it still runs.

    -1 if it was reaped elsewhere.
    """
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -1
    return os.waitstatus_to_exitcode(status) if found else None
