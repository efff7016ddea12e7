"""The standard library's threaded HTTP server."""

from functools import partial
from pathlib import Path

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Child, Children, Commands, loopback_listener
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.testserver.load import LOADS, Load, measure_server

_WORKER = Path(__file__).with_name("worker.py")


def cases() -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            load.case_name("http"),
            "http",
            f"http.server, {load.words()}",
            "requests/s",
            partial(_measure, load),
            alone=load.undisturbed("http"),
        )
        for load in LOADS
    ]


def _measure(load: Load, commands: Commands, side: Side, settings: Settings) -> Outcome:
    def start(children: Children) -> tuple[Child, int]:
        listener = loopback_listener()
        port: int = listener.getsockname()[1]
        server = children.worker(
            commands.prefix(side),
            _WORKER,
            {"cpu_threads": load.cpu_threads, "warmup_s": settings.warmup_s},
            limit_s=2 * settings.limit_s,
            listener=listener,
        )
        return server.child, port

    return measure_server(start, load, commands, settings)


SCENARIO = Scenario(
    cases={"testserver": cases},
    tables={"http": Table("Threaded HTTP server of the standard library")},
    place=6,
)
