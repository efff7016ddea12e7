"""The data in /proc about other processes: descendants, CPU time, memory.

Only reads: no process is attached to or stopped.
"""

# Not pathlib: it interns each part of a path, and the numbers of processes are always new ones.
# ruff: noqa: PTH110, PTH123, PTH208

import errno
import os
from collections.abc import Iterator
from contextlib import suppress

from cpythonplus._base.errors import UnsupportedPlatform

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_CPU_TIMES = slice(11, 15)
"""The fields of /proc/PID/stat behind the name: utime, stime, cutime, cstime."""


def read_bytes(path: str, size: int = -1) -> bytes:
    """Return the beginning of a file, or all of it.  Raises OSError."""
    with open(path, "rb") as file:
        return file.read(size)


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the third on, the state.  Raises OSError."""
    # The second one, a name in parentheses, may contain any character.
    return read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def mapping_fields(line: str) -> tuple[int, int, str, int, str, int, str]:
    """Return the parts of a line of /proc/PID/maps or smaps.

    Start, end, permissions, offset, device, inode and path; addresses and offset in bytes.
    """
    addresses, permissions, offset, device, inode, *path = line.split(maxsplit=5)
    start, _, end = addresses.partition("-")
    name = path[0] if path else ""
    return int(start, 16), int(end, 16), permissions, int(offset, 16), device, int(inode), name


def resident_bytes(pid: int) -> int:
    """Return the resident memory of the process, with shared pages; 0 if it does not exist."""
    try:
        return int(read_bytes(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def memory_sums(pid: int) -> dict[str, int]:
    """Return the fields of a process's ``smaps_rollup`` (Rss, Pss, Private_Dirty, ...), in bytes.

    Raises ProcessLookupError if there is no process `pid`, PermissionError if it may not be read,
    and UnsupportedPlatform if the kernel does not have the file (before Linux 4.14).
    """
    try:
        text = read_bytes(f"/proc/{pid}/smaps_rollup").decode()
    except PermissionError as error:
        raise _another_users(pid) from error
    except FileNotFoundError as error:
        if is_hidden(pid):
            raise _another_users(pid) from error
        if os.path.exists(f"/proc/{pid}/smaps"):
            raise UnsupportedPlatform("this kernel has no /proc/PID/smaps_rollup") from error
        text = ""
    except ProcessLookupError:
        text = ""
    if not text:  # also for a process that has ended and was not waited for
        raise ProcessLookupError(f"there is no running process {pid}")
    lines = (line.split() for line in text.splitlines()[1:])
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines}


def _another_users(pid: int) -> PermissionError:
    return PermissionError(
        errno.EACCES, f"cannot read the memory of process {pid}: it belongs to another user"
    )


def is_hidden(pid: int) -> bool:
    """Whether the process exists, but `/proc` hides it: another user's, under hidepid=2."""
    return pid > 0 and not os.path.exists(f"/proc/{pid}") and can_be_signalled(pid)


def can_be_signalled(pid: int) -> bool:
    """Whether the process exists, of any user."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process, each parent before its children."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def children(pid: int) -> list[int]:
    """Return the children of all of the process's threads; none if it has ended."""
    tasks: list[str] = []
    with suppress(OSError):
        tasks = os.listdir(f"/proc/{pid}/task")
    found: list[int] = []
    for task in tasks:
        with suppress(OSError):
            found += map(int, read_bytes(f"/proc/{pid}/task/{task}/children").split())
    return sorted(found)


def tree_pss_bytes(pid: int) -> int:
    """Return the proportional memory (Pss) of a process and its descendants; 0 if it has ended.

    A page that several of them map counts once in the sum. Processes of other users are left out.
    """
    total = 0
    for each in (pid, *descendants(pid)):
        with suppress(ProcessLookupError, PermissionError):
            total += memory_sums(each).get("Pss", 0)
    return total


def tree_cpu_s(pid: int) -> float:
    """Return the CPU seconds, user and system, of a process and its descendants.

    Ended ones count if their parent has waited for them.
    """
    ticks = 0
    for each in (pid, *descendants(pid)):
        with suppress(OSError):
            ticks += sum(map(int, stat_fields(each)[_CPU_TIMES]))
    return ticks / _TICKS
