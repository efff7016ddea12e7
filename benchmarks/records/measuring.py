"""What the workers of this suite measure with: the kernel's memory, the fastest of many loops."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from operator import mul
from pathlib import Path

from benchmarks.common.worker import field

TURNS = 3
"""How often each loop runs at least."""


SMALL = range(48, 513, 16)
"""What Python's own allocator has free lists for; a bytes object is no smaller."""
LARGE = (700, 1500, 3000, 6000, 12_000)
"""What malloc has."""
SOAKED = 2**16
"""How much is taken at a time."""


def soaked_up() -> list[object]:
    """Return objects that take what memory is free in this process, of each size.

    Without it rows lie in what imports and the making of keys have left, which differs from side to
    side: the process seems to grow less than it does elsewhere.  To be kept while it is measured.
    """
    empty = sys.getsizeof(b"")
    makers: list[Callable[[], object]] = [object, time.perf_counter]  # of 16 and 32 bytes
    makers += [partial(mul, b"x", size - empty) for size in (*SMALL, *LARGE)]
    return [_soaked(make) for make in makers]


def _soaked(make: Callable[[], object]) -> list[object]:
    kept: list[object] = []
    count = SOAKED // sys.getsizeof(make())
    while True:
        some: list[object] = [None] * count
        before = private_bytes()
        for place in range(count):
            some[place] = make()
        kept.append(some)
        if private_bytes() - before > SOAKED // 2:
            return kept


def private_bytes() -> int:
    """Return the memory that only this process has, by the kernel."""
    names = ("Private_Clean:", "Private_Dirty:")
    return sum(field("/proc/self/smaps_rollup", name) for name in names)


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return field("/proc/self/smaps_rollup", "Rss:")


def forget_peak() -> None:
    """Let `peak_bytes` begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """Return the most resident memory since `forget_peak`."""
    return field("/proc/self/status", "VmHWM:")


def taken_ns(call: Callable[[], object]) -> int:
    """Return how long one call takes; what it returns is freed afterwards."""
    began = time.perf_counter_ns()
    kept = call()
    taken = time.perf_counter_ns() - began
    del kept
    return taken


def fastest_ns(calls: Sequence[Callable[[], object]], seconds: float) -> list[int]:
    """Return what the fastest run of each call takes; they run in turns, for `seconds` in all.

    In turns: a machine that is disturbed for a while, or warms up, favours none of them.
    """
    fastest = [taken_ns(call) for call in calls]  # also warms up
    deadline = time.perf_counter_ns() + int(seconds * 1e9)
    turns = 1
    while turns < TURNS or time.perf_counter_ns() < deadline:
        fastest = [min(least, taken_ns(call)) for least, call in zip(fastest, calls, strict=True)]
        turns += 1
    return fastest
