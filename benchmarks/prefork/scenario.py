"""The cases: memory after a load, after a collection, while stopping, and with recycling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.memory import MIB
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.prefork import application, client
from benchmarks.prefork.collecting import collect_everywhere
from benchmarks.prefork.server import Server, running

SIDES: tuple[Side, ...] = ("stock", "plus", "gc.freeze", "gc-off")
NEEDS = ("django", "rest_framework", "gunicorn")

CONNECTIONS = 2
"""For each worker: one is being answered while the next one waits."""
UNMEASURED = 1 / 3
"""Part of the load before requests are timed: until then workers make their copies of pages."""
CLIENT_LIMIT_S = 400.0
MAX_REQUESTS = 500

_CLIENT = Path(client.__file__)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is served, and what happens in the workers."""

    workers: int
    small: bool = False
    """An application without items, which is imports only."""
    collects: bool = False
    """Whether each worker collects its garbage once, after the load."""


def cases(workers: int | None = None) -> list[Case]:
    """Return the cases, with their own numbers of workers or all with `workers`."""
    few, many = workers or 4, workers or 8
    found = [
        _memory("memory", f"Catalogue, {few} workers", Setting(few)),
        _memory("memory", f"Catalogue, {many} workers", Setting(many)),
        _memory(
            "memory-collected",
            f"Catalogue, {few} workers, 1 collection each",
            Setting(few, collects=True),
        ),
        _memory(
            "small",
            f"Small, {few} workers, 1 collection each",
            Setting(few, small=True, collects=True),
        ),
        Case(
            f"stop-{many}",
            "stop",
            f"Catalogue, {many} workers end",
            "s",
            partial(_stop, many),
            better="lower",
        ),
        Case(
            f"max-requests-{few}",
            "recycling",
            f"Catalogue, {few} workers, max_requests={MAX_REQUESTS}",
            "requests/s",
            partial(_recycle, few),
        ),
    ]
    # With one number for all, the first two are the same.
    different = {case.name: case for case in found}.values()
    return [replace(case, statistic="median", needs=NEEDS, sides=SIDES) for case in different]


def _memory(name: str, title: str, setting: Setting) -> Case:
    return Case(
        f"{name}-{setting.workers}",
        "small" if setting.small else "memory",
        title,
        "MiB",
        partial(_measure_memory, setting),
        better="lower",
    )


def _measure_memory(
    setting: Setting, commands: Commands, side: Side, settings: Settings
) -> Outcome:
    """Return the sum of Pss after the load; raises MeasurementError."""
    items = 0 if setting.small else settings.items
    environment = application.environment(items, collects=setting.collects)
    with running(commands, side, setting.workers, environment) as (server, children):
        faults = server.faults()
        load = _load(server, children, commands, items, settings)
        faults = server.faults() - faults
        if setting.collects:
            collect_everywhere(server.port, server.pids())
        return load.outcome(
            server,
            server.memory().proportional_bytes / MIB,
            {
                "private_mib": server.private_bytes() / MIB,
                "faults": faults,
                "requests_per_s": load.requests_per_s,
            },
        )


def _stop(workers: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return the seconds that a server takes to stop after the load; raises MeasurementError."""
    environment = application.environment(settings.items)
    with running(commands, side, workers, environment) as (server, children):
        load = _load(server, children, commands, settings.items, settings)
        stopped = server.stop()
        if stopped.status:
            raise MeasurementError(f"the server ended with status {stopped.status} after SIGTERM")
        figures = {
            "before_mib": stopped.before_bytes / MIB,
            "peak_mib": stopped.peak_bytes / MIB,
        }
        # Latencies of the load are those of the memory cases: not shown once more.
        return load.outcome(server, stopped.seconds, figures, latencies=False)


def _recycle(workers: int, commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return the rate while workers are replaced all the time; raises MeasurementError."""
    options = ("--max-requests", str(MAX_REQUESTS), "--max-requests-jitter", "0")
    environment = application.environment(settings.items)
    with running(commands, side, workers, environment, options) as (server, children):
        load = _load(server, children, commands, settings.items, settings, unmeasured=0)
        return load.outcome(server, load.requests_per_s)


@dataclass(frozen=True, slots=True)
class _Load:
    """What the client measured."""

    latencies_ns: list[int]
    elapsed_ns: int
    errors: dict[str, int]

    @property
    def requests_per_s(self) -> float:
        """Return how many requests were answered in a second of the timed part."""
        return len(self.latencies_ns) * 1e9 / self.elapsed_ns

    def outcome(
        self,
        server: Server,
        rate: float,
        figures: Mapping[str, float] | None = None,
        *,
        latencies: bool = True,
    ) -> Outcome:
        """Return what becomes of a measurement with this load."""
        scheduled, patched = server.features()
        notes = [f"{count} x {reason}" for reason, count in self.errors.items()]
        if replaced := server.replaced():
            notes.append(f"{replaced} workers replaced")
        return Outcome(
            rate=rate,
            latency=summarise(self.latencies_ns) if latencies else None,
            errors=sum(self.errors.values()),
            scheduled=scheduled,
            patched=patched,
            notes=tuple(notes),
            figures=figures or {},
        )


def _load(
    server: Server,
    children: Children,
    commands: Commands,
    items: int,
    settings: Settings,
    *,
    unmeasured: float = UNMEASURED,
) -> _Load:
    """Send the requests and return what came of them. Raises MeasurementError."""
    count = settings.requests * server.workers
    worker = children.worker(
        commands.prefix("stock"),
        _CLIENT,
        {
            "port": server.port,
            "items": items,
            "requests": count,
            "unmeasured": int(count * unmeasured),
            "connections": CONNECTIONS * server.workers,
        },
        limit_s=CLIENT_LIMIT_S,
    )
    found = worker.result_from(server.child)
    return _Load(found["latencies_ns"], found["elapsed_ns"], found["errors"])


def _targets() -> Iterator[Target]:
    # Before 3.12 there are no immortal objects: nothing is demanded of memory there.
    immortal = (3, 12)
    for case, limit in (("memory-4", 0.46), ("memory-8", 0.33)):
        yield Target(case, "ratio", limit, at_least=False, since=immortal)
        yield Target(case, "private_mib", 10, at_least=False, since=immortal, before=(3, 14))
        yield Target(case, "private_mib", 13, at_least=False, since=(3, 14))
        yield Target(case, "figure_ratio", 1.0, figure="requests_per_s")
        yield Target(case, "figure_ratio", 1 / 7, at_least=False, figure="faults", since=immortal)
    yield Target("memory-collected-4", "ratio", 0.42, at_least=False, since=immortal)
    yield Target("stop-8", "rate_s", 0.6, at_least=False)
    # Two samples of the same memory differ by some pages: 1 MiB is less than 0.1 % of stock's.
    yield Target("stop-8", "rise_mib", 1, at_least=False)
    yield Target("max-requests-4", "ratio", 4)
    yield Target("max-requests-4", "p99_ms", 20, at_least=False)
    yield Target("small-4", "ratio", 0.55, at_least=False, since=immortal)


SCENARIO = Scenario(
    cases={"prefork": cases},
    tables={
        "memory": Table(
            "Django catalogue: memory of master and workers after the load (sum of Pss)"
        ),
        "small": Table("Small Django application (imports only): memory (sum of Pss)"),
        "stop": Table("Django catalogue: stopping the server"),
        "recycling": Table("Django catalogue: each worker replaced after 500 requests"),
    },
    figures={
        "private_mib": "private MiB",
        "faults": "page faults",
        "requests_per_s": "requests/s",
        "before_mib": "MiB before",
        "peak_mib": "MiB at most",
    },
    targets=tuple(_targets()),
)
