"""CPU-bound threads that count what they get done; used inside the measured processes."""

import threading
import time
from typing import Any

_UNIT_STEPS = 400


def unit() -> int:
    """Do one unit of work: pure Python, no blocking call, some tens of microseconds."""
    value = 1
    for step in range(_UNIT_STEPS):
        value = (value * 31 + step) % 1_000_003
    return value


class CpuThreads:
    """A number of daemon threads that do units of work until they are told to stop."""

    def __init__(self, count: int) -> None:
        """Prepare `count` threads; `start` starts them."""
        self._units = [0] * count
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._work, args=(place,), name=f"cpu-{place}", daemon=True)
            for place in range(count)
        ]

    def _work(self, place: int) -> None:
        units = self._units
        while not self._stopping:
            unit()
            units[place] += 1

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and wait for them."""
        self._stopping = True
        for thread in self._threads:
            thread.join()

    def snapshot(self) -> dict[str, Any]:
        """Return the time, and each thread's units of work and CPU time up to now."""
        clocks = [time.pthread_getcpuclockid(t.ident) for t in self._threads if t.ident is not None]
        return {
            "time_ns": time.perf_counter_ns(),
            "units": list(self._units),
            "cpu_ns": [time.clock_gettime_ns(clock) for clock in clocks],
        }


def solo_rate(seconds: float) -> float:
    """Return the units per second of one CPU thread with nothing beside it in this process."""
    thread = CpuThreads(1)
    thread.start()
    before = thread.snapshot()
    time.sleep(seconds)
    after = thread.snapshot()
    thread.stop()
    return rate(before, after)


def rate(before: dict[str, Any], after: dict[str, Any]) -> float:
    """Return the units per second of all threads together between two snapshots."""
    elapsed_ns: int = after["time_ns"] - before["time_ns"]
    units: int = sum(after["units"]) - sum(before["units"])
    return units * 1e9 / elapsed_ns


def shares(before: dict[str, Any], after: dict[str, Any], solo: float) -> list[dict[str, float]]:
    """Return each thread's share of the GIL between two snapshots.

    `solo` is the rate of a thread alone, in units per second; see `results.Share` for the keys.
    """
    elapsed_ns = after["time_ns"] - before["time_ns"]
    found = []
    for place, units in enumerate(after["units"]):
        work = (units - before["units"][place]) * 1e9 / elapsed_ns / solo
        cpu = (after["cpu_ns"][place] - before["cpu_ns"][place]) / elapsed_ns
        found.append({"work": work, "cpu": cpu})
    return found
