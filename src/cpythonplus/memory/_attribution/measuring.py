"""Measures the memory that a process has in use, and the cost of measuring.

It adds malloc's bytes and the object allocator's blocks. Resident memory is not used: it changes by
whole pages, and not at all while freed memory is used again. For `smaps_rollup` the kernel walks
all pages, which takes milliseconds. glibc walks its free chunks, which may be many: if that takes
too long, private memory is used instead.
"""

import gc
import os
import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final, NamedTuple

from cpythonplus import _native

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TOO_LONG_NS: Final = 2_000_000
_STRIKES: Final = 3
_YOUNG: Final = 0
"""The generation to collect. Garbage that survives shows in the growth of the whole process."""


class Mark(NamedTuple):
    """One moment: bytes in use without small objects, blocks of these, and the time."""

    used_bytes: int
    blocks: int
    time_ns: int


class Meter:
    """Reads marks, and measures their cost.

    uses_malloc: whether bytes are malloc's; else they are private memory, which includes small
    objects. managed: returns bytes that other code accounts for; they are left out.
    """

    __slots__ = ("_strikes", "cost_ns", "managed", "marks", "uses_malloc")

    def __init__(self) -> None:
        """Ask whether malloc's sums are available."""
        self.uses_malloc = _native.memory_malloc_bytes() >= 0
        self.managed: Callable[[], int] | None = None
        self.cost_ns = 0
        self.marks = 0
        self._strikes = 0

    def read(self, *, collect: bool = True) -> Mark:
        """Return the memory in use; if the collector is on, young garbage is collected first.

        The program's finalizers may run here.
        """
        began = perf_counter_ns()
        if collect and gc.isenabled():
            gc.collect(_YOUNG)
        used = self._used() - (self.managed() if self.managed is not None else 0)
        blocks = sys.getallocatedblocks()
        ended = perf_counter_ns()
        self.cost_ns += ended - began
        self.marks += 1
        return Mark(used, blocks, ended)

    def _used(self) -> int:
        if not self.uses_malloc:
            return private_bytes()
        began = perf_counter_ns()
        used = _native.memory_malloc_bytes()
        slow = perf_counter_ns() - began > _TOO_LONG_NS
        self._strikes = self._strikes + 1 if slow else 0
        return used

    def changes(self) -> bool:
        """Return True once, when malloc's counts are too slow: earlier marks no longer compare."""
        if self.uses_malloc and self._strikes >= _STRIKES:
            self.uses_malloc = False
            return True
        return False


def private_bytes() -> int:
    """Return the memory that no file and no other process shares, 0 if unknown."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        _, resident, shared, *_ = os.read(file, 200).split()
    finally:
        os.close(file)
    return (int(resident) - int(shared)) * _PAGE
