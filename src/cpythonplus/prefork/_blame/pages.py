"""The memory of another process, read from the kernel: mappings, pages, contents.

Only reads: no process is attached to or stopped.  The memory may change meanwhile.
"""

import errno
import os
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from cpythonplus._base.proc import is_hidden, mapping_fields, stat_fields

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Bits of an entry of /proc/PID/pagemap; all of them can be seen without any privilege.
_PRESENT = 1 << 63
_SWAPPED = 1 << 62
_FILE = 1 << 61  # of a file, or shared memory
_EXCLUSIVE = 1 << 56  # mapped by this process only

_ENTRIES_AT_ONCE = 1 << 16
_NO_ENTRIES = bytes(8 * _ENTRIES_AT_ONCE)
_AT_RANDOM = 25  # in /proc/PID/auxv: where 16 random bytes are
_ADDRESS_LIMIT = 1 << 56  # user space ends far below; beyond it a "pointer" is none


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of ``/proc/PID/maps``.  start, end: addresses in bytes; offset: in the file."""

    start: int
    end: int
    permissions: str
    offset: int
    device: str
    inode: int
    path: str

    @property
    def file(self) -> tuple[str, int]:
        """The identity of the file, which does not depend on its name."""
        return self.device, self.inode


def mappings(pid: int) -> list[Mapping]:
    """Return the mappings of a process by rising address; the heap is one.

    Raises ProcessLookupError and PermissionError with a sentence that says so.
    """
    lines = _lines(pid, "maps")
    if not lines:  # ended and not waited for, or a thread of the kernel
        raise ProcessLookupError(f"there is no running process {pid}")
    found: list[Mapping] = []
    for line in lines:
        each = Mapping(*mapping_fields(line))
        before = found[-1] if found else each
        if each.path == before.path == "[heap]" and each.start == before.end:
            # The kernel does not join what a forked process adds to the heap with what was there.
            found[-1] = replace(before, end=each.end)
        else:
            found.append(each)
    return found


def parent_of(pid: int) -> int:
    """Return the parent's pid, 0 for none that can be seen; raises ProcessLookupError."""
    lines = _lines(pid, "status")
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def _lines(pid: int, name: str) -> list[str]:
    """Return the lines of a file of ``/proc/PID``, which may quote names that are any bytes."""
    try:
        text = Path(f"/proc/{pid}/{name}").read_bytes().decode("utf-8", errors="backslashreplace")
    except OSError as error:
        raise _explained(error, pid) from error
    # Split at "\n" only: the other line ends of splitlines() may be part of a name.
    return text.removesuffix("\n").split("\n") if text else []


def stack_pointers(pid: int) -> list[int]:
    """Return the stack pointers of the process's sleeping threads, as far as they are readable."""
    threads: list[Path] = []
    with suppress(OSError):  # glob() would raise it only in some versions
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    found = []
    for thread in threads:
        with suppress(OSError, ValueError, IndexError):  # "running" has no second word
            found.append(int((thread / "syscall").read_text().split()[-2], 16))
    return found


def _is_zombie(pid: int) -> bool:
    """Whether the process has ended, and was not waited for."""
    try:
        return stat_fields(pid)[0] == b"Z"
    except (OSError, IndexError):
        return False


def _explained(error: OSError, pid: int) -> OSError:
    """Return the error with a sentence about its cause and its remedy."""
    ended = _is_zombie(pid)  # the kernel lets only root open the memory that it had
    gone = ended or isinstance(error, FileNotFoundError | ProcessLookupError)
    if (isinstance(error, PermissionError) and not ended) or (gone and is_hidden(pid)):
        return PermissionError(
            errno.EACCES,
            f"cannot read the memory of process {pid}: it must belong to the same user, must not "
            "have changed its user since its program was started, and must descend from this "
            "process if kernel.yama.ptrace_scope is 1",
        )
    if gone:
        return ProcessLookupError(f"there is no running process {pid}")
    return error


class Memory:
    """Contents and pages of one process; a context manager that closes the two files it reads."""

    __slots__ = ("_contents", "_pagemap", "pid")

    def __init__(self, pid: int) -> None:
        """Open the memory of process ``pid``; raises as `mappings` does."""
        self.pid = pid
        self._contents = self._pagemap = -1
        try:
            self._contents = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            self._pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self.close()
            raise _explained(error, pid) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; may be called again."""
        for file in (self._contents, self._pagemap):
            if file >= 0:
                os.close(file)
        self._contents = self._pagemap = -1

    def is_there(self) -> bool:
        """Return whether the process still runs the program that it ran when this was opened."""
        return bool(os.pread(self._pagemap, 8, 0))

    def program_start(self) -> bytes:
        """Return an identity of the program's start, unique and inherited by forks.

        Raises as `mappings` does.
        """
        try:
            words = memoryview(Path(f"/proc/{self.pid}/auxv").read_bytes()).cast("Q")
        except OSError as error:
            raise _explained(error, self.pid) from error
        where = dict(zip(words[::2], words[1::2], strict=False)).get(_AT_RANDOM, 0)
        return self.read(where, 16)

    def read(self, address: int, count_bytes: int) -> bytes:
        """Return exactly that many bytes, or none if they are not all there."""
        if not 0 < address < _ADDRESS_LIMIT:
            return b""
        try:
            found = os.pread(self._contents, count_bytes, address)
        except OSError:
            return b""
        return found if len(found) == count_bytes else b""

    def words(self, address: int, count: int) -> Sequence[int]:
        """Return that many 8-byte words, or none."""
        return memoryview(self.read(address, 8 * count)).cast("Q")

    def string(self, address: int, limit_bytes: int = 256) -> str:
        """Return the C string there; empty if there is none that can be printed."""
        text = self.read(address, limit_bytes)
        if not text:  # near the end of a mapping
            text = self.read(address, PAGE_BYTES - address % PAGE_BYTES)
        raw, end, _ = text[:limit_bytes].partition(b"\0")
        decoded = raw.decode("utf-8", errors="replace")
        return decoded if end and decoded.isprintable() and "\ufffd" not in decoded else ""

    def present_pages(self, start: int, end: int) -> list[int]:
        """Return the addresses of pages that have contents, in memory or swapped out."""
        return [page for page, entry in self._entries(start, end) if entry & (_PRESENT | _SWAPPED)]

    def own_pages(self, start: int, end: int) -> tuple[list[int], int]:
        """Return the addresses of anonymous pages that only this process maps.

        The second value is the number of its pages of files that no other process maps: nothing was
        copied for them.
        """
        own = []
        of_files = 0
        for page, entry in self._entries(start, end):
            if entry & _EXCLUSIVE and entry & _PRESENT:
                if entry & _FILE:
                    of_files += 1
                else:
                    own.append(page)
        return own, of_files

    def _entries(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the pages of the range that have an entry."""
        for first in range(start // PAGE_BYTES, end // PAGE_BYTES, _ENTRIES_AT_ONCE):
            count = min(_ENTRIES_AT_ONCE, end // PAGE_BYTES - first)
            try:
                raw = os.pread(self._pagemap, 8 * count, 8 * first)
            except OSError:
                return
            if raw == _NO_ENTRIES[: len(raw)]:  # reserved and never touched: often gigabytes
                continue
            entries = array("Q", raw)
            yield from (
                ((first + i) * PAGE_BYTES, entry) for i, entry in enumerate(entries) if entry
            )
