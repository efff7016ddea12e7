"""Worker: makes a heap, asks about it, and compares. Parameters: side, heap, mib."""

import ctypes
import gc
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from benchmarks.common import worker

_MIB = 1 << 20
_KEPT: list[Any] = []
_survivors: list[Any] = []
_THREADS = 8


class _Mallinfo2(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class Session:
    """A small object."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        """Keep a number."""
        self.number = number


def fresh(_mib: int) -> None:
    """Do nothing."""


def fragmented(mib: int) -> None:
    """Free every second one of many objects of several sizes."""
    objects: list[Any] = [
        bytes(16 * (number % 60)) if number % 2 else Session(number)
        for number in range(mib * _MIB // 320)
    ]
    _KEPT.extend(each for number, each in enumerate(objects) if number // 7 % 2)


def threads(mib: int) -> None:
    """Have threads allocate, and free most of it."""
    ready = threading.Barrier(_THREADS + 1)

    def work() -> None:
        mine = [bytes(2000) for _ in range(mib * _MIB // _THREADS // 2048)]
        kept = mine[::50]
        del mine
        ready.wait()
        threading.Event().wait(60)
        del kept

    for _ in range(_THREADS):
        threading.Thread(target=work, daemon=True).start()
    ready.wait()


def mappings(mib: int) -> None:
    """Map memory of three kinds, and write to it."""
    with tempfile.TemporaryFile() as file:
        file.truncate(mib * _MIB // 4)
        _KEPT.append(mmap.mmap(file.fileno(), 0))
    _KEPT.append(mmap.mmap(-1, mib * _MIB // 4, flags=mmap.MAP_PRIVATE))
    _KEPT.append(mmap.mmap(-1, mib * _MIB // 4))
    for each in _KEPT:
        for start in range(0, len(each), _MIB):
            each[start : start + _MIB] = b"x" * min(_MIB, len(each) - start)
    _KEPT.append(bytearray(b"x") * (mib * _MIB // 4))


def c_heap(mib: int) -> None:
    """Free every second one of blocks that come from the C library."""
    blocks = [bytearray(1000 + number % 30_000) for number in range(mib * _MIB // 16_000)]
    _KEPT.extend(blocks[::2])


def classic(mib: int) -> None:
    """Allocate small strings, then one small block, and free the strings."""
    strings = [str(number) * 100 for number in range(100_000, 100_000 + mib * _MIB // 656)]
    _KEPT.append(bytes(1500))
    strings.clear()


def survivors(mib: int) -> None:
    """Keep one object in 20,000."""
    everything = []
    for number in range(mib * _MIB // 100):
        everything.append(Session(number + 10**6))
        if number % 20_000 == 0:
            _survivors.append(everything[-1])


HEAPS: dict[str, Callable[[int], None]] = {
    "fresh": fresh,
    "fragmented": fragmented,
    "threads": threads,
    "mmap": mappings,
    "c-heap": c_heap,
    "jemalloc": fragmented,
    "classic": classic,
    "survivors": survivors,
}


def kernel_bytes() -> int:
    """Return resident memory as the kernel adds it up."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123  # no import
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("Rss:"))


def judge(heap: str, found: Any) -> tuple[float, list[str]]:  # noqa: ANN401  # of a lazy module
    """Return the error of the sum in percent, or the share that is named; and what to note."""
    notes = [f"{found.pause_ns / 1e6:.0f} ms standing still"]
    if heap == "classic":
        free = found.part("c_heap_free") + found.part("c_heap_top")
        pins = [pin for pin in found.pins if pin.place == "c_heap_top"]
        notes += [f"{pin.objects} {pin.type} {pin.holder}".rstrip() for pin in pins[:2]]
        return min(100.0, 100 * sum(pin.held_bytes for pin in pins) / max(free, 1)), notes
    if heap == "survivors":
        # An int belongs to each object.
        names = (f"{Session.__module__}.Session", "int")
        pins = [pin for pin in found.pins if pin.type in names]
        notes += [f"{pin.objects} {pin.type}, {pin.holder}" for pin in pins]
        held = sum(pin.held_bytes for pin in pins if "_survivors" in pin.holder)
        return min(100.0, 100 * held / max(found.arenas.free_in_them_bytes, 1)), notes
    whole = kernel_bytes()
    return 100 * abs(sum(part.resident_bytes for part in found.parts) - whole) / whole, notes


def told_bytes() -> int:
    """Return what pymalloc and the C library say that they took from the kernel."""
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()  # noqa: SLF001  # documented
        os.dup2(before, 2)
        file.seek(0)
        lines = file.read().decode().splitlines()
    arenas = next((line for line in lines if "bytes/arena" in line), "= 0")
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    totals = mallinfo2()
    taken: int = totals.arena + totals.hblkhd
    return int(arenas.rpartition("=")[2].replace(",", "")) + taken


def judge_stock(heap: str) -> float:
    """Return the same of what there is without resident(): nothing names a pin."""
    if heap in ("classic", "survivors"):
        return 0.0
    whole = kernel_bytes()
    return 100 * abs(told_bytes() - whole) / whole


def main() -> None:
    """Measure one heap."""
    parameters = worker.begin()
    HEAPS[parameters["heap"]](parameters["mib"])
    gc.collect()
    notes: list[str] = []
    if parameters["side"] == "stock":
        rate = judge_stock(parameters["heap"])
    else:
        from cpythonplus import memory

        rate, notes = judge(parameters["heap"], memory.resident())
    worker.finish(parameters, {"rate": rate, "notes": notes})


if __name__ == "__main__":
    main()
