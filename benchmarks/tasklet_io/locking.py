"""Worker: a lock that nobody else wants. Parameters: side, kind, calls, seconds.

kind: lock or rlock; calls: whether its methods are called, and not `with` used.
"""

from __future__ import annotations

import time
from importlib import import_module
from itertools import repeat
from typing import Any

from benchmarks.common import worker
from benchmarks.threads.uncontended.worker import fastest_ns, hold


def call(lock: Any, passes: int) -> int:  # noqa: ANN401 - a lock of one package or another
    """Acquire and release `lock` 10 times, as `hold` does, in each of `passes`; return the ns."""
    acquire, release = lock.acquire, lock.release
    start = time.perf_counter_ns()
    for _ in repeat(None, passes):
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
        acquire()
        release()
    return time.perf_counter_ns() - start


def measured(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return what holding the lock once takes in the fastest sample, in ns."""
    peer: Any = import_module(f"benchmarks.tasklet_io.sides.over_{parameters['side']}")
    lock = peer.LOCKS[parameters["kind"]]()
    return {"rate": fastest_ns(call if parameters["calls"] else hold, lock, parameters["seconds"])}


def main() -> None:
    """Measure and report."""
    parameters = worker.begin()
    worker.finish(parameters, measured(parameters))


if __name__ == "__main__":
    main()
