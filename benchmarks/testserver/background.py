"""The CPU-bound background job of a test server, and how its progress is asked for over HTTP."""

import json

from benchmarks.common import cpu, worker

WORK_PATH = "/work"
"""Where a server answers with the progress of its background threads, as JSON."""

CPU_THREADS_VARIABLE = "CPYTHONPLUS_BENCH_CPU_THREADS"
CALIBRATION_VARIABLE = "CPYTHONPLUS_BENCH_CALIBRATION_S"


class Background:
    """CPU-bound threads in a server process."""

    def __init__(self, count: int, calibration_s: float) -> None:
        """Measure one thread alone for `calibration_s` seconds, then start `count` of them."""
        self._solo = cpu.solo_rate(calibration_s) if count else 0.0
        self._threads = cpu.CpuThreads(count)
        self._threads.start()

    def progress(self) -> bytes:
        """Return a snapshot, the rate of one thread alone, and which features are on."""
        found = self._threads.snapshot()
        found["solo"] = self._solo
        found["scheduled"] = worker.scheduled()
        found["patched"] = worker.patched()
        return json.dumps(found).encode()
