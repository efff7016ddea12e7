"""Which loads the test servers get, and how one of them is measured under one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.common import cpu, loadgen
from benchmarks.common.children import Child, Children, Commands
from benchmarks.common.engine import Settings, shares_of
from benchmarks.common.errors import MeasurementError
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.testserver.background import WORK_PATH

_GENERATOR = Path(loadgen.__file__)


@dataclass(frozen=True, slots=True)
class Load:
    """How many connections ask, and how many CPU-bound threads are in the server."""

    connections: int
    cpu_threads: int
    think_s: float = 0
    """How long the user behind a connection thinks before a request, on the average."""
    path: str = "/orders/7"

    def case_name(self, server: str) -> str:
        """Return the name of the case that puts this load on `server`."""
        users = "-users" if self.think_s else ""
        return f"{server}{users}-{self.connections}" + ("-cpu" if self.cpu_threads else "")

    def undisturbed(self, server: str) -> str:
        """Return the name of the case without the CPU-bound threads; empty for itself."""
        return replace(self, cpu_threads=0).case_name(server) if self.cpu_threads else ""

    def words(self) -> str:
        """Return the load in words."""
        plural = "s" * (self.connections != 1)
        job = ", CPU-bound job" if self.cpu_threads else ""
        if self.think_s:
            return f"{self.connections} user{plural}, reports{job}"
        return f"{self.connections} connection{plural}{job}"


LOADS = tuple(Load(connections, n) for n in (0, 1) for connections in (1, 10, 50))

USERS = tuple(Load(10, n, think_s=0.16, path="/reports/7") for n in (0, 1))
"""Users who ask for what takes the server some milliseconds: a third of a core, or less."""


def measure_server(
    start: Callable[[Children], tuple[Child, int]],
    load: Load,
    commands: Commands,
    settings: Settings,
) -> Outcome:
    """Start a server, put `load` on it, and return what came out.

    `start` starts it and returns the child and its port on loopback. The load generator always
    runs stock. Raises MeasurementError.
    """
    with Children() as children:
        server, port = start(children)
        generator = children.worker(
            commands.prefix("stock"),
            _GENERATOR,
            {
                "port": port,
                "path": load.path,
                "think_s": load.think_s,
                "work_path": WORK_PATH,
                "connections": load.connections,
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=settings.limit_s,
        )
        measured = generator.result_from(server)
    return _outcome(measured, settings)


def _outcome(measured: dict[str, Any], settings: Settings) -> Outcome:
    try:
        before, after = measured["reports"]
    except ValueError:
        raise MeasurementError("the server did not report on its background job") from None
    return Outcome(
        rate=measured["completed"] / settings.seconds,
        latency=summarise(measured["latencies_ns"]),
        shares=shares_of(cpu.shares(before, after, before["solo"])),
        errors=sum(measured["errors"].values()),
        scheduled=before["scheduled"],
        patched=before["patched"],
        notes=tuple(f"{count} x {what}" for what, count in measured["errors"].items()),
    )
