"""Worker: threads that wait and are woken all at once. Parameters: kind, threads.

kind: sleep, event, semaphore, barrier, condition.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.common import worker

STACK_BYTES = 256 * 1024
"""So that ten thousand threads fit."""

LEAD_S, LEAD_EACH_S = 0.5, 0.001
"""How far ahead the instant lies until which all sleep: so much, and so much for each thread."""

LOOK_S, LOOKS = 0.1, 100
"""How often, and how many times at most, it is looked whether all threads wait."""
QUIET_NS = 2_000_000
"""CPU time of the process between two looks that only threads use that wait."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """One way to wait, and to be woken all at once."""

    wait: Callable[[], object]
    """What each thread does."""
    wake: Callable[[], object]
    """What wakes them all."""
    instant: float = 0.0
    """When they wake by themselves, by `time.monotonic`; 0 where they do not."""


def sleepers(count: int) -> Crowd:
    """Return threads that sleep until one instant, and a main thread that does so, too."""
    instant = time.monotonic() + LEAD_S + LEAD_EACH_S * count

    def sleep() -> None:
        time.sleep(max(0.0, instant - time.monotonic()))

    return Crowd(sleep, sleep, instant)


def event(_count: int) -> Crowd:
    """Return threads that wait for an Event."""
    happened = threading.Event()
    return Crowd(happened.wait, happened.set)


def semaphore(count: int) -> Crowd:
    """Return threads that each take one of a Semaphore."""
    taken = threading.Semaphore(0)
    return Crowd(taken.acquire, lambda: taken.release(count))


def barrier(count: int) -> Crowd:
    """Return threads that meet at a Barrier; the main thread comes last."""
    meeting = threading.Barrier(count + 1)
    return Crowd(meeting.wait, meeting.wait)


def condition(_count: int) -> Crowd:
    """Return threads that wait for a flag under a Condition."""
    changed = threading.Condition()
    flag = False

    def wait() -> None:
        with changed:
            while not flag:
                changed.wait()

    def wake() -> None:
        nonlocal flag
        with changed:
            flag = True
            changed.notify_all()

    return Crowd(wait, wake)


KINDS: dict[str, Callable[[int], Crowd]] = {
    "sleep": sleepers,
    "event": event,
    "semaphore": semaphore,
    "barrier": barrier,
    "condition": condition,
}


def started(wait: Callable[[], object], count: int) -> list[threading.Thread]:
    """Return `count` threads that wait; ends this process where the system has not so many."""
    threads = [threading.Thread(target=wait, daemon=True) for _ in range(count)]
    for place, thread in enumerate(threads):
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            raise SystemExit(f"the system started {place} of {count} threads: {error}") from None
    return threads


def settle() -> None:
    """Return when the threads of this process wait: it uses no CPU time any more."""
    before = time.process_time_ns()
    for _ in range(LOOKS):
        time.sleep(LOOK_S)
        now = time.process_time_ns()
        if now - before < QUIET_NS:
            return
        before = now


def cpu_ms() -> float:
    """Return the CPU time of this process up to now, of all threads, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1e3


def measured(crowd: Crowd, threads: list[threading.Thread]) -> dict[str, float]:
    """Wake the threads and wait for their end; return what it took, from the wake-up on."""
    cpu_before, begin = cpu_ms(), time.monotonic()
    crowd.wake()
    for thread in threads:
        thread.join()
    end, cpu_after = time.monotonic(), cpu_ms()
    # Until the instant nobody did anything.
    return {
        "cpu_ms": cpu_after - cpu_before,
        "joined_ms": (end - max(begin, crowd.instant)) * 1e3,
    }


def main() -> None:
    """Let the threads wait, wake them, report."""
    parameters = worker.begin()
    threading.stack_size(STACK_BYTES)
    crowd = KINDS[parameters["kind"]](parameters["threads"])
    threads = started(crowd.wait, parameters["threads"])
    settle()
    if crowd.instant and time.monotonic() >= crowd.instant:
        raise SystemExit(f"{len(threads)} threads took too long to start: some never slept")
    worker.finish(parameters, measured(crowd, threads))


if __name__ == "__main__":
    main()
