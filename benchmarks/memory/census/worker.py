"""Worker: makes a heap, counts its objects. Parameters: objects, side."""

import gc
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import worker
from benchmarks.common.worker import field

_ROUNDS = 3
_OBJECTS_OF_ONE = 9
"""A record, its number and text, a dict with a key and a number, a list with a tuple and texts."""
_CHECKED = 1_000_000


class Record:
    """An instance, as programs have them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = f"record {number}"


def make(objects: int) -> list[object]:
    """Return about as many objects, of the kinds that heaps are made of."""
    kept: list[object] = []
    for number in range(1000, 1000 + objects // _OBJECTS_OF_ONE):
        kept.append(Record(number))
        kept.append({"key": number * 1000, "value": number / 3})
        kept.append([str(number), (number + 10**9, None)])
    return kept


def collection_ms() -> float:
    """Return how long a full collection of the heap takes."""
    return min(timed_ms(gc.collect) for _ in range(_ROUNDS))


def timed_ms(call: Callable[[], object]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def extra_mib(call: Callable[[], object]) -> float:
    """Return how much more memory is resident while it runs than before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = field("/proc/self/status", "VmHWM:")
    call()
    return (field("/proc/self/status", "VmHWM:") - before) / 2**20


def counting(side: str) -> Callable[[], object]:
    """Return what a side makes its table of types with, everything imported."""
    if side == "plus":
        from cpythonplus import memory

        census = memory.census
        return lambda: str(census())
    if side == "peer":
        from guppy import hpy

        heap = hpy()
        # Its heap() only collects the objects; types and sizes are found when they are shown.
        return lambda: str(heap.heap())
    return lambda: str(by_hand().most_common(10))


def by_hand() -> Counter[type]:
    """Count what the collector tells, as one would without a tool."""
    found: Counter[type] = Counter()
    for each in gc.get_objects():
        found[type(each)] += sys.getsizeof(each)
    return found


def difference_percent() -> float:
    """Return how far the bytes of a known heap are from what tracemalloc says."""
    from cpythonplus import memory

    memory.census()
    before_bytes = memory.census().size_bytes
    tracemalloc.start()
    kept = make(_CHECKED)
    traced_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    counted_bytes = memory.census().size_bytes - before_bytes
    del kept
    return 100 * abs(counted_bytes - traced_bytes) / traced_bytes


def main() -> None:
    """Measure one side; the rate is milliseconds for a table of the whole heap."""
    parameters: dict[str, Any] = worker.begin()
    figures: dict[str, float] = {}
    count = counting(parameters["side"])
    if parameters["side"] == "plus":
        figures["off_percent"] = difference_percent()
    gc.disable()
    kept = make(parameters["objects"])
    gc.enable()
    resident_mib = field("/proc/self/smaps_rollup", "Rss:") / 2**20
    figures["collect_ms"] = collection_ms()
    # The first count of a process, for all: one of the peers leaves a dict at each instance.
    took_ms: list[float] = []
    extra = extra_mib(lambda: took_ms.append(timed_ms(count)))
    figures["extra_percent"] = 100 * extra / resident_mib
    rate = took_ms[0]
    if parameters["side"] == "plus":
        from cpythonplus import memory

        pause_ms = min(memory.census().pause_ns for _ in range(_ROUNDS)) / 1e6
        figures["to_collect"] = pause_ms / figures["collect_ms"]
        found: list[Any] = []
        figures["owners_s"] = timed_ms(lambda: found.append(memory.owners())) / 1e3
        figures["owners_to_collect"] = found[0].pause_ns / 1e6 / figures["collect_ms"]
    del kept
    worker.finish(parameters, {"rate": rate, "figures": figures})


if __name__ == "__main__":
    main()
