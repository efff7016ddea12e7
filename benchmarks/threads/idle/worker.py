"""Worker: threads that wait for what never comes. Parameters: kind, idle_s, warmup_s.

kind: `waiting` without a time-out, `polling` with one of a tenth of a second, again and again.
"""

import queue
import threading
import time
from collections.abc import Callable

from benchmarks.common import worker

EACH = 8
"""Threads on each of the four objects."""

POLL_S = 0.1

Wait = Callable[[], object]


def waiting() -> list[Wait]:
    """Return a wait that never ends on each of a lock, a condition, an event and a queue."""
    lock, condition, event = threading.Lock(), threading.Condition(), threading.Event()
    items: queue.Queue[None] = queue.Queue()
    lock.acquire()

    def wait_for_condition() -> None:
        with condition:
            condition.wait()

    return [lock.acquire, wait_for_condition, event.wait, items.get]


def polling() -> list[Wait]:
    """Return the same as loops over waits that time out."""
    lock, condition, event = threading.Lock(), threading.Condition(), threading.Event()
    items: queue.Queue[None] = queue.Queue()
    lock.acquire()

    def poll_lock() -> None:
        while not lock.acquire(timeout=POLL_S):
            pass

    def poll_condition() -> None:
        with condition:
            while not condition.wait(POLL_S):
                pass

    def poll_event() -> None:
        while not event.wait(POLL_S):
            pass

    def poll_queue() -> None:
        while True:
            try:
                items.get(timeout=POLL_S)
            except queue.Empty:
                continue

    return [poll_lock, poll_condition, poll_event, poll_queue]


KINDS = {"waiting": waiting, "polling": polling}


def main() -> None:
    """Let the threads wait for the given time; report the process's CPU time for ten seconds."""
    parameters = worker.begin()
    for wait in KINDS[parameters["kind"]]():
        for _ in range(EACH):
            threading.Thread(target=wait, daemon=True).start()
    time.sleep(parameters["warmup_s"])
    start, cpu_start = time.perf_counter_ns(), time.process_time_ns()
    time.sleep(parameters["idle_s"])
    end, cpu_end = time.perf_counter_ns(), time.process_time_ns()
    worker.finish(parameters, {"rate": (cpu_end - cpu_start) / 1e6 * 10e9 / (end - start)})


if __name__ == "__main__":
    main()
