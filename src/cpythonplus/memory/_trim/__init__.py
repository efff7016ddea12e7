"""Gives memory back to the kernel: the steps of trim(), and the memory that each freed."""

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cpythonplus import _native
from cpythonplus._base.modules import imported
from cpythonplus.memory._examined import Examined

__all__ = ["TrimStep", "Trimmed", "trim"]

_STATM_RESIDENT = 1
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_WHY_NO_POOLS = {
    "no-pools": "skipped: Python's small objects do not come from pymalloc's pools here",
    "unreadable": "skipped: process_vm_readv and pipe2 are refused here",
    "large-pages": "skipped: a page of this kernel is as large as a pool",
    "sub-interpreter": "skipped: only the main interpreter can do it",
}


@dataclass(frozen=True, slots=True)
class TrimStep:
    """One step of a trim."""

    name: str
    """`collect`, `caches`, `modules`, `pools` or `c_heap`."""
    freed_bytes: int
    """The decrease of resident memory; negative if other threads took more meanwhile."""
    took_ns: int
    note: str
    """The action, or the reason why there was none."""
    left_bytes: int = 0
    """Memory that stays free between blocks in use."""


@dataclass(frozen=True, slots=True)
class Trimmed(Examined):
    """The result of a trim."""

    examination = "trim"

    before_bytes: int
    """Resident memory of the process before the step."""
    after_bytes: int
    steps: tuple[TrimStep, ...]

    @property
    def freed_bytes(self) -> int:
        """The decrease of resident memory."""
        return self.before_bytes - self.after_bytes


def trim(
    *,
    collect: bool = True,
    caches: bool = True,
    modules: bool = False,
    pools: bool = True,
    c_heap: bool = True,
) -> Trimmed:
    """Give memory that this process does not use back to the kernel.

    Nothing that the program can reach is freed or moved: only garbage, caches and free memory.  May
    be called at any time, from any thread; in the order of the arguments:

    collect: garbage in cycles, by one full collection, which empties the free lists as well;
        `gc.freeze()`d objects stay out of it.  It may run finalizers, as any collection may.
    caches: the interpreter's cache of attributes found in classes, which fills again at once.
    modules: the compiled patterns of `re` and the source lines of `linecache`, where these are
        imported: worth it after thousands of different patterns or tracebacks only.
    pools: the pages of pymalloc's empty pools (objects of up to 512 bytes), but for the first page
        of each.  Without it one object keeps the 1 MiB arena around it.  The GIL is held meanwhile,
        5 to 10 ms for 100 MiB.
    c_heap: free memory inside the heap of the C library (`malloc_trim`), or of a jemalloc,
        mimalloc or tcmalloc in its place.  Without the GIL.

    Objects in use keep some free memory: parts of pages, and pages of pools that have any object;
    `memory.resident()` names those objects.  A page that was given back costs a page fault when it
    is used again: a service that needs as much for each request gains nothing.
    """
    wanted: list[tuple[str, bool, Callable[[], str | tuple[str, int]]]] = [
        ("collect", collect, _collect),
        ("caches", caches, _clear_caches),
        ("modules", modules, _clear_modules),
        ("pools", pools, _release_pools),
        ("c_heap", c_heap, _release_c_heap),
    ]
    before = resident = resident_bytes()
    steps = []
    for name, asked_for, action in wanted:
        if not asked_for:
            continue
        began = time.perf_counter_ns()
        done = action()
        took_ns = time.perf_counter_ns() - began
        now = resident_bytes()
        note, left_bytes = (done, 0) if isinstance(done, str) else done
        steps.append(TrimStep(name, resident - now, took_ns, note, left_bytes))
        resident = now
    return Trimmed(before, resident, tuple(steps))


def resident_bytes() -> int:
    """Return the resident memory of this process, exactly where the kernel reports it."""
    # statm may be some hundred KiB behind: each processor counts for itself, and adds up later.
    try:
        with Path("/proc/self/smaps_rollup").open("rb") as file:
            for line in file:
                if line.startswith(b"Rss:"):
                    return int(line.split()[1]) * 1024
    except OSError:  # a kernel without this file
        pass
    words = Path("/proc/self/statm").read_bytes().split()
    return int(words[_STATM_RESIDENT]) * _PAGE_BYTES


def _collect() -> str:
    return f"{gc.collect():,} unreachable objects; free lists"


def _clear_caches() -> str:
    # Deprecated from 3.13 on, which has its successor.
    name = "_clear_internal_caches" if sys.version_info >= (3, 13) else "_clear_type_cache"
    getattr(sys, name)()
    return "attributes found in classes"


def _clear_modules() -> str:
    cleared = []
    for name, function in (("re", "purge"), ("linecache", "clearcache")):
        module = imported(name)
        if module is not None:
            getattr(module, function)()
            cleared.append(name)
    return ", ".join(cleared) or "neither re nor linecache is imported"


def _release_pools() -> str:
    result, pools, arenas = _native.memory_trim_pools()
    if result != "done":
        return _WHY_NO_POOLS[result]
    return f"{pools:,} empty pools, all but the first page of each; {arenas:,} whole arenas"


def _release_c_heap() -> tuple[str, int]:
    allocator, told, free_bytes = _native.memory_trim_c_heap()
    if allocator == "other":
        return "skipped: this malloc has no call for it (musl's returns memory by itself)", 0
    if not told:
        return f"{allocator} refused", 0
    return allocator, free_bytes
