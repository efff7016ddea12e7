"""Worker: one kind of work over one package.

Parameters: side, kind (channel, schedule, spawn, depth, parked, million, pickle), seconds, python
and c (frames for `depth`), count (how many are parked, or pickled at once), collector (whether the
garbage collector is on).
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any

from benchmarks.common import worker
from benchmarks.tasklets.sides.protocol import BATCH, Depth, Parked, Peer

SAMPLE_NS = 20_000_000
"""How long one sample takes at least: starting the two, and reading the clock, do not count."""

PARKED_AT_ONCE = 50_000
"""How many of a million are begun before they run."""

KB, GB = 1e3, 1e9

Sample = Callable[[int], int]
"""Does something so many times and returns the ns that it took."""


def calibrated(sample: Sample, seconds: float) -> int:
    """Return how many repetitions make a sample; also warms up."""
    wanted_ns = min(SAMPLE_NS, seconds * 1e9 / 4)
    count = BATCH
    while sample(count) < wanted_ns:
        count *= 2
    return count


def fastest_ns(samples: list[Sample], seconds: float) -> list[float]:
    """Return what one repetition takes in the fastest sample of each, taken in turns."""
    counts = [calibrated(sample, seconds) for sample in samples]
    fastest = [float("inf")] * len(samples)
    deadline = time.perf_counter_ns() + int(seconds * 1e9)
    while True:
        for place, sample in enumerate(samples):
            taken = sample(counts[place]) / counts[place]
            fastest[place] = min(fastest[place], taken)
        if time.perf_counter_ns() >= deadline:
            return fastest


def memory_bytes(name: str) -> int:
    """Return what the kernel says: `Rss`, `VmPTE` (page tables) now, `VmHWM`, the most so far."""
    where = "smaps_rollup" if name == "Rss" else "status"
    for line in Path(f"/proc/self/{where}").read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/{where} says nothing of {name}")


def fastest(sample: Sample, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure one kind of switch or start."""
    (taken_ns,) = fastest_ns([sample], parameters["seconds"])
    return {"rate": taken_ns}


def deep(peer: Peer, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure a switch between two deep ones beside one between two shallow ones."""
    depth = Depth(parameters["python"], parameters["c"])
    shallow_ns, deep_ns = fastest_ns(
        [lambda n: peer.schedule_ns(n, Depth()), lambda n: peer.schedule_ns(n, depth)],
        parameters["seconds"],
    )
    figures = {"shallow_ns": shallow_ns, "to_shallow": deep_ns / shallow_ns}
    return {"rate": deep_ns, "figures": figures}


def does(parked: Parked, what: str) -> bool:
    """Have the side do what only some can, and return whether it can."""
    found = getattr(parked, what, None)
    if found is not None:
        found()
    return found is not None


def held_bytes() -> int:
    """Return what this process holds: its pages and its page tables."""
    return memory_bytes("Rss") + memory_bytes("VmPTE")


def sizes(parked: Parked, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure the memory of parked ones."""
    count = parameters["count"]
    parked.park(1)  # what the first one loads
    before = held_bytes()
    parked.park(count)
    rate = (held_bytes() - before) / count / KB
    figures = {}
    if does(parked, "trim"):
        figures["cold_kb"] = (held_bytes() - before) / count / KB
    if does(parked, "small"):
        parked.park(1)
        before = held_bytes()
        parked.park(count)
        figures["small_kb"] = (held_bytes() - before) / count / KB
    return {"rate": rate, "figures": figures}


def many(parked: Parked, parameters: dict[str, Any]) -> dict[str, Any]:
    """Park very many, wake each of them once, and see that each was woken.

    Nobody asks for memory back: whoever can give some does so by itself.
    """
    count = parameters["count"]
    start = time.perf_counter()
    tables = 0
    for first in range(0, count, PARKED_AT_ONCE):
        parked.park(min(PARKED_AT_ONCE, count - first))
        tables = max(tables, memory_bytes("VmPTE"))
    waking = time.perf_counter()
    parked.wake()
    end = time.perf_counter()
    if parked.woken != count:
        raise SystemExit(f"{parked.woken} of {count} were woken")
    figures = {"wake_s": end - waking, "peak_gb": (memory_bytes("VmHWM") + tables) / GB}
    return {"rate": end - start, "figures": figures}


def timed_ns(call: Callable[[], object]) -> Sample:
    """Return what calls it so many times."""

    def sample(count: int) -> int:
        start = time.perf_counter_ns()
        for _ in repeat(None, count):
            call()
        return time.perf_counter_ns() - start

    return sample


def pickled(peer: Peer, parameters: dict[str, Any]) -> dict[str, Any]:
    """Measure writing and reading one job, and very many in one pickle."""
    count = parameters["count"]
    it = peer.pickling(count)
    data = it.dumps(it.one)
    samples = [timed_ns(lambda: it.dumps(it.one)), timed_ns(lambda: it.loads(data))]
    dumps_ns, loads_ns = fastest_ns(samples, parameters["seconds"])
    start = time.perf_counter()
    all_of_them = it.dumps(it.many)
    middle = time.perf_counter()
    loaded = it.loads(all_of_them)
    end = time.perf_counter()
    if not isinstance(loaded, list) or len(loaded) != count:
        raise SystemExit("not all came back")
    figures = {
        "dumps_us": dumps_ns / 1e3,
        "loads_us": loads_ns / 1e3,
        "bytes": len(data),
        "many_dumps_per_s": count / (middle - start),
        "many_loads_per_s": count / (end - middle),
    }
    return {"rate": (dumps_ns + loads_ns) / 1e3, "figures": figures}


KINDS: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {
    "channel": lambda peer, parameters: fastest(peer.channel_ns, parameters),
    "schedule": lambda peer, parameters: fastest(
        lambda switches: peer.schedule_ns(switches, Depth()), parameters
    ),
    "spawn": lambda peer, parameters: fastest(peer.spawn_ns, parameters),
    "depth": deep,
    "pickle": pickled,
    "parked": lambda peer, parameters: sizes(peer.parked(), parameters),
    "million": lambda peer, parameters: many(peer.parked(), parameters),
}


def main() -> None:
    """Measure and end at once: nothing is to be learnt from the end of those still parked."""
    parameters = worker.begin()
    if parameters.get("collector"):
        gc.enable()
    module = f"benchmarks.tasklets.sides.over_{parameters['side']}"
    peer: Any = import_module(module)
    worker.finish(parameters, KINDS[parameters["kind"]](peer, parameters))
    os._exit(0)


if __name__ == "__main__":
    main()
