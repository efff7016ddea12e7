"""The scheduler's statistics."""

import threading
from dataclasses import dataclass, field
from typing import Literal

from cpythonplus._base.data import Data

ThreadClass = Literal["interactive", "batch"]
RawTimes = tuple[int, int, int, int, int]
RawThread = tuple[int, int, int, int, int, int, int, int]
# The C half's tuple: six counters, (waits, holds) of both classes, threads, atomic sections.
RawStatistics = tuple[
    tuple[int, int, int, int, int, int],
    tuple[RawTimes, RawTimes],
    tuple[RawTimes, RawTimes],
    tuple[RawThread, ...],
    tuple[int, int, int, int, int],
]

# A thread at one moment: serial, ident, native_id, level, whether it holds the GIL or did before
# the caller, ns for which it awaits it, serial of the owner of the lock that it waits for, wait_ns,
# hold_ns, waits, and the waits by their longest ns: [ns, count, ns, count, ...].
RawMoment = tuple[int, int, int, int, bool, int, int, int, int, int, list[int]]


@dataclass(frozen=True, slots=True)
class Times:
    """A distribution of durations in nanoseconds; a quantile is at most 1/16 too high."""

    count: int = 0
    total_ns: int = 0
    p50_ns: int = 0
    p99_ns: int = 0
    max_ns: int = 0


@dataclass(frozen=True, slots=True)
class ClassStatistics:
    """How long threads of one class waited for the GIL, and how long they held it."""

    waits: Times = field(default_factory=Times)
    holds: Times = field(default_factory=Times)


@dataclass(frozen=True, slots=True)
class ThreadStatistics:
    """One live thread.

    cpu_ns is the thread's processor time; wait_ns and hold_ns are its times waiting for and holding
    the GIL since the thread was first seen, waits the number of waits.  A thread that was alone in
    the process is not timed.
    """

    name: str
    ident: int
    native_id: int
    thread_class: ThreadClass
    cpu_ns: int
    wait_ns: int
    hold_ns: int
    waits: int
    switches: int


@dataclass(frozen=True, slots=True)
class AtomicStatistics:
    """Atomic sections that have ended.

    contended: a thread waited for the GIL meanwhile.  overlong: longer than the configured limit.
    abandoned: their thread ended inside.  longest_ns is accurate to a tick of the coarse clock.
    """

    sections: int = 0
    contended: int = 0
    overlong: int = 0
    longest_ns: int = 0
    abandoned: int = 0


@dataclass(frozen=True, slots=True)
class Statistics(Data):
    """Counters that run while the GIL is scheduled.

    switches: acquisitions by another thread than the last holder.  forced_switches: releases that
    had been requested.  requests: drop requests made; immediate_requests: of these, at once instead
    of after a wait; repeated_requests: again, because one was not answered within an interval.
    protected_runs: runs granted to batch threads that had waited too long.
    """

    active: bool = False
    switches: int = 0
    forced_switches: int = 0
    requests: int = 0
    immediate_requests: int = 0
    repeated_requests: int = 0
    protected_runs: int = 0
    interactive: ClassStatistics = field(default_factory=ClassStatistics)
    batch: ClassStatistics = field(default_factory=ClassStatistics)
    threads: tuple[ThreadStatistics, ...] = ()
    atomic: AtomicStatistics = field(default_factory=AtomicStatistics)


def _class_statistics(raw: tuple[RawTimes, RawTimes]) -> ClassStatistics:
    waits, holds = raw
    return ClassStatistics(Times(*waits), Times(*holds))


def _thread_statistics(raw: RawThread, names: dict[int, str]) -> ThreadStatistics:
    ident, native_id, batch, *numbers = raw
    thread_class: ThreadClass = "batch" if batch else "interactive"
    name = names.get(ident, "not a Python thread")
    return ThreadStatistics(name, ident, native_id, thread_class, *numbers)


def collect(raw: RawStatistics | None, *, active: bool) -> Statistics:
    """Turn the C half's counts (None: there is none) into a value, with threads' names."""
    if raw is None:
        return Statistics()
    names = {t.ident: t.name for t in threading.enumerate() if t.ident is not None}
    counters, interactive, batch, threads, atomic = raw
    return Statistics(
        active,
        *counters,
        interactive=_class_statistics(interactive),
        batch=_class_statistics(batch),
        threads=tuple(_thread_statistics(t, names) for t in threads),
        atomic=AtomicStatistics(*atomic),
    )
