"""Worker: small tasks for a thread pool. Parameters: kind (single, thousand), seconds, warmup_s."""

from __future__ import annotations  # array[int] can be evaluated from 3.12 on

import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from benchmarks.common import worker

POOL = 4
"""Threads in the pool."""


def task() -> int:
    """Do next to nothing: what is left is the pool's own work."""
    return 42


def single(pool: ThreadPoolExecutor) -> None:
    """Give the pool one task and wait for its result."""
    pool.submit(task).result()


def thousand(pool: ThreadPoolExecutor) -> None:
    """Give the pool a thousand tasks, then wait for the result of each."""
    futures = [pool.submit(task) for _ in range(1000)]
    for future in futures:
        future.result()


KINDS = {"single": (single, 1), "thousand": (thousand, 1000)}


def repeat(
    call: Callable[[ThreadPoolExecutor], None], pool: ThreadPoolExecutor, seconds: float
) -> array[int]:
    """Make the call for `seconds`, at least once; return how long each took, in nanoseconds."""
    now = time.perf_counter_ns
    latencies_ns = array("q")
    start = now()
    deadline = start + int(seconds * 1e9)
    while start < deadline or not latencies_ns:
        call(pool)
        end = now()
        latencies_ns.append(end - start)
        start = end
    return latencies_ns


def main() -> None:
    """Use the pool for the given time; report tasks per second and the latency of each call."""
    parameters = worker.begin()
    call, tasks = KINDS[parameters["kind"]]
    with ThreadPoolExecutor(POOL) as pool:
        repeat(call, pool, parameters["warmup_s"])
        latencies_ns = repeat(call, pool, parameters["seconds"])
    worker.finish(
        parameters,
        {
            "rate": len(latencies_ns) * tasks * 1e9 / sum(latencies_ns),
            "latencies_ns": latencies_ns.tolist(),
        },
    )


if __name__ == "__main__":
    main()
