"""The cases: echo servers, sleepers, a channel between two threads, and locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
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


def _targets() -> Iterator[Target]:
    servers: tuple[tuple[str, float, Side], ...] = (
        ("echo-many", 1.5, "gevent"),
        ("echo-many", 0.8, "uvloop"),
        ("echo-tls", 1.0, "gevent"),
    )
    for case, limit, side in servers:
        yield Target(case, "cost_to", limit, side=side)
        # What a client that is slower than a server does not hide.
        yield Target(case, "figure_to", limit, figure="per_cpu_s", side=side)
    yield Target("sleeping", "cost_to", 1.0, at_least=False, side="gevent")
    yield Target("crossing", "cost_to", 5, side="queue.Queue")
    for case in ("lock-with", "lock-calls"):
        yield Target(case, "cost_to", 1.5, at_least=False, side="threads")


SCENARIO = Scenario(
    cases={"tasklet-io": cases},
    tables={
        "server": Table(
            "Echo server on loopback, a core for it and one for its client (median round)"
        ),
        "sleeping": Table("How late sleepers wake (median round)"),
        "crossing": Table("Hand-over between two threads (median round)", latency_unit="us"),
        "free-lock": Table("A lock that nobody else wants (fastest sample)"),
    },
    figures={
        "per_cpu_s": "per CPU s",
        "server_percent": "server %",
        "early_percent": "% too early",
    },
    targets=tuple(_targets()),
)
