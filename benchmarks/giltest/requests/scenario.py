"""Requests that compute 0.3 to 50 ms each, in an open loop, beside 0, 1, 2 and 8 CPU threads.

Beside a CPU-bound process there is no GIL to wait for: what cores and kernel give, the floor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands, loopback_listener
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.percentiles import nearest_rank, summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target

_WORKER = Path(__file__).with_name("worker.py")
_CLIENT = Path(__file__).with_name("client.py")

LOAD = 0.3
"""Part of a core that all requests together need."""

CONNECTIONS = 4
"""Of all cases that do not say otherwise."""


LONG_MS = 50
"""Requests of which a round takes half a minute: one has to do."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a server has to do."""

    work_ms: float
    """CPU time that each request computes for."""
    cpu_threads: int
    connections: int = CONNECTIONS
    process: bool = False
    """Whether a process computes beside the server."""

    @property
    def name(self) -> str:
        """Name of the case."""
        over = "" if self.connections == CONNECTIONS else f"-over-{self.connections}"
        beside = "process" if self.process else self.cpu_threads
        return f"requests-{self.work_ms:g}ms-beside-{beside}{over}"

    @property
    def title(self) -> str:
        """Title of the case."""
        n, over = self.cpu_threads, ""
        if self.connections != CONNECTIONS:
            over = f", {self.connections} connection{'s' * (self.connections != 1)}"
        beside = f"{n or 'no'} CPU thread{'s' * (n != 1)}"
        if self.process:
            beside = "a CPU-bound process"
        return f"{self.work_ms:g} ms requests beside {beside}{over}"

    def seconds(self, settings: Settings) -> float:
        """Return the length of a measurement: long enough for `Settings.arrivals` requests."""
        return max(settings.seconds, settings.arrivals * self.work_ms / 1e3 / LOAD)


WORK_MS = (0.3, 1, 2, 5, 15, 50)

LOADS = (
    *(Load(work_ms, n) for work_ms in WORK_MS for n in (0, 1, 2, 8)),
    *(Load(work_ms, 0, process=True) for work_ms in WORK_MS),
    *(Load(5, n, connections) for connections in (1, 16, 64) for n in (0, 1)),
)


def cases() -> list[Case]:
    """Return the cases of this scenario; the round with the median p99 speaks for a side."""
    return [
        Case(
            load.name,
            "requests",
            load.title,
            "p99, ms",
            partial(_measure, load),
            statistic="median",
            better="lower",
            alone="" if load == _alone(load) else _alone(load).name,
            once=load.work_ms >= LONG_MS,
        )
        for load in LOADS
    ]


def _alone(load: Load) -> Load:
    return replace(load, cpu_threads=0, process=False)


def _measure(load: Load, commands: Commands, side: Side, settings: Settings) -> Outcome:
    listener = loopback_listener()
    port = listener.getsockname()[1]
    seconds = load.seconds(settings)
    limit_s = settings.limit_s + seconds
    shared = {"connections": load.connections, "work_ms": load.work_ms}
    with Children() as children:
        if load.process:
            children.start([sys.executable, "-c", "while True: pass"], "the CPU-bound process")
        server = children.worker(
            commands.prefix(side),
            _WORKER,
            {**shared, "cpu_threads": load.cpu_threads},
            limit_s=limit_s,
            listener=listener,
        )
        client = children.worker(
            commands.prefix("stock"),
            _CLIENT,
            {
                **shared,
                "port": port,
                "load": LOAD,
                "seconds": seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=limit_s,
        )
        measured = client.result_from(server.child)
        served = server.result()
    return outcome(load, measured, served)


def outcome(load: Load, measured: Mapping[str, Any], served: Mapping[str, Any]) -> Outcome:
    """Return what came out, from what client and server left. Raises MeasurementError."""
    latency = summarise(measured["latencies_ns"])
    if latency is None:
        raise MeasurementError("no request was due in so short a time")
    figures = {
        "requests_cpu": served["requests_cpu"],
        "unanswered": float(measured["unanswered"]),
        "sent_late_p99_ms": nearest_rank(sorted(measured["late_ns"]), 99) / 1e6,
    }
    if load.cpu_threads:
        # By what they compute, not by CPU time: one that polls for the GIL would take the more
        # for its own, and leave the less to be kept.
        left = 1 - served["answered_per_s"] * load.work_ms / 1e3
        figures["computing_share"] = served["computing_cpu"]
        if left > 0:
            figures["kept"] = served["computing_cpu"] / left
    return Outcome(
        rate=latency.p99_ms, latency=latency, scheduled=served["scheduled"], figures=figures
    )


def _targets() -> Iterator[Target]:
    """What requests that compute may lose to CPU threads, and those to them."""
    for load in LOADS:
        if load.cpu_threads:
            yield Target(load.name, "p50_to_alone", 1.15, at_least=False)
            yield Target(load.name, "p99_to_alone", 1.3, at_least=False)
            if load.connections == CONNECTIONS:
                floor = replace(load, cpu_threads=0, process=True).name
                yield Target(load.name, "times_case", 1.2, at_least=False, other=floor)
            yield Target(load.name, "figure", 0.95, figure="kept")


SCENARIO = Scenario(
    cases={"giltest": cases},
    tables={
        "requests": Table(
            "Requests that compute, in an open loop (median round by p99)", rated_by_p99=True
        )
    },
    figures={"computing_share": "CPU share", "kept": "kept"},
    targets=tuple(_targets()),
    place=4,
)
