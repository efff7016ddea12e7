"""The reasons why workers ended, as far as they are known, and the processes that still exist."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from cpythonplus._base.proc import can_be_signalled, stat_fields

REASONS = (
    "exit",
    "max_requests",
    "private_memory",
    "lifetime",
    "request_timeout",
    "hard_private_memory",
    "killed",
    "out_of_memory",
    "timeout",
    "boot_error",
    "reload",
    "refork",
)
"""The reasons under which restarts are counted.

exit: it left, or was asked to (SIGTERM, SIGINT, SIGQUIT), without giving a reason. killed: any
other signal, a crash too. boot_error: it left with a status other than 0 before it was ready.  The
worker or the server gives the others.
"""

_ASKED_TO = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP})
_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def reason_of_status(
    status: int, *, noted: str | None, ready: bool, out_of_memory: Callable[[], bool]
) -> str:
    """Return the one of REASONS for a wait status, as `os.waitpid` gives it.

    noted: the reason that the worker gave before it left, which wins. ready: whether it had booted.
    out_of_memory: called if the signal was SIGKILL.
    """
    if noted is not None:
        return noted
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in _ASKED_TO:
            return "exit"
        return "out_of_memory" if number == signal.SIGKILL and out_of_memory() else "killed"
    return "boot_error" if status != 0 and not ready else "exit"


class OutOfMemoryKills:
    """Whether the kernel has killed for want of memory since the last look.

    The kills in our control group are counted (version 2: `memory.events`) or, without such a file,
    those of the whole machine (`/proc/vmstat`).  The kernel does not tell *which* process: if it
    killed another one of the same group since the last look, a SIGKILL by hand passes for a kill of
    the kernel's.  Without either counter the answer is always no.
    """

    # Several workers may be killed at once; the second is reported this much later at most.
    SAME_EVENT_S = 5.0

    def __init__(
        self, sources: tuple[Path, ...] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sources = _sources() if sources is None else sources
        self._clock = clock
        self._seen = self._count()
        self._left = 0
        self._left_until_s = 0.0

    def look(self) -> bool:
        """Return whether a kill can be ascribed to the kernel; each of its kills counts once."""
        count, now_s = self._count(), self._clock()
        if now_s > self._left_until_s:
            self._left = 0
        if count > self._seen:
            self._left += count - self._seen
            self._left_until_s = now_s + self.SAME_EVENT_S
        self._seen = count
        if self._left == 0:
            return False
        self._left -= 1
        return True

    def _count(self) -> int:
        for path in self._sources:
            try:
                lines = path.read_bytes().decode(errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                name, _, value = line.partition(" ")
                if name == "oom_kill" and value.isdecimal():
                    return int(value)
        return 0


def _sources() -> tuple[Path, ...]:
    vmstat = _PROC / "vmstat"
    try:
        groups = os.fsdecode((_PROC / "self/cgroup").read_bytes()).split("\n")
    except OSError:
        return (vmstat,)
    own = [line[len("0::/") :] for line in groups if line.startswith("0::/")]
    return (*(_CGROUPS / path / "memory.events" for path in own), vmstat)


def start_ticks(pid: int) -> int | None:
    """Return the start time of process `pid`, in clock ticks since boot; None: it has ended.

    Together with the pid this identifies a process: pids are used again.  A zombie has ended.  0:
    it exists, but /proc does not tell more.
    """
    try:
        fields = stat_fields(pid)
    except OSError:
        return 0 if can_be_signalled(pid) else None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def exists(pid: int, ticks: int) -> bool:
    """Return whether the process `pid` that was started at `ticks` (0: unknown) still runs."""
    now = start_ticks(pid)
    return now is not None and (0 in (now, ticks) or now == ticks)
