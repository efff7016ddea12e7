"""The cases: echo servers, sleepers, a channel between two threads, and locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome, Side
from benchmarks.tasklet_io.measure import (
    Load,
    measure_crossing,
    measure_lock,
    measure_server,
    measure_sleep,
)

Measure = Callable[[Commands, Side, Settings], Outcome]

SERVERS: tuple[Side, ...] = ("tasklets", "gevent", "uvloop", "asyncio", "streams", "threads")
SLEEPERS: tuple[Side, ...] = ("tasklets", "gevent", "uvloop", "asyncio")
CROSSINGS: tuple[Side, ...] = ("tasklets", "scheduled", "queue.Queue", "SimpleQueue")
LOCKS: tuple[Side, ...] = ("tasklets", "gevent", "threads")

PACKAGES: Mapping[Side, str] = {"gevent": "gevent", "uvloop": "uvloop"}

AT_ONCE = 50
"""Connections that come and go at the same time."""


def cases() -> list[Case]:
    """Return the cases; the first side of each is what the others are compared with."""
    return [
        _server("echo-many", "Echo, many connections", Load()),
        _server("echo-tls", "Echo over TLS, many connections", Load(tls=True)),
        _server("echo-one", "Echo, one connection", Load(connections=1)),
        _server("echo-churn", "Connect, one request, close", Load("churn", AT_ONCE)),
        _case(
            "sleeping",
            "sleeping",
            "Very many that sleep and wake",
            "p99 late, ms",
            measure_sleep,
            sides=SLEEPERS,
            better="lower",
        ),
        _crossing("crossing", "Channel between two threads", "all"),
        _crossing("crossing-pinned", "Channel between two threads, one core", "one"),
        _lock("lock-with", "with lock:", "lock", calls=False),
        _lock("lock-calls", "lock.acquire(), lock.release()", "lock", calls=True),
        _lock("rlock-with", "with rlock:", "rlock", calls=False),
    ]


def _server(name: str, title: str, load: Load) -> Case:
    needs = ("cryptography",) if load.tls else ()
    measure = partial(measure_server, load)
    return _case(name, "server", title, "requests/s", measure, sides=SERVERS, needs=needs)


def _crossing(name: str, title: str, cores: str) -> Case:
    measure = partial(measure_crossing, cores)
    return _case(name, "crossing", title, "round trips/s", measure, sides=CROSSINGS)


def _lock(name: str, title: str, kind: str, *, calls: bool) -> Case:
    measure = partial(measure_lock, {"kind": kind, "calls": calls})
    return _case(
        name, "free-lock", title, "ns", measure, sides=LOCKS, better="lower", statistic="best"
    )


def _case(
    name: str,
    scenario: str,
    title: str,
    unit: str,
    measure: Measure,
    *,
    sides: tuple[Side, ...],
    better: Literal["higher", "lower"] = "higher",
    statistic: Literal["best", "median"] = "median",
    needs: tuple[str, ...] = (),
) -> Case:
    return Case(
        name,
        scenario,
        title,
        unit,
        measure,
        statistic=statistic,
        better=better,
        needs=needs,
        sides=sides,
        base="tasklets",
        own="tasklets",
        packages=PACKAGES,
    )
