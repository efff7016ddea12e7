"""How one measurement of this suite goes: workers in fresh processes."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Settings
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.tasklet_io.sides.protocol import BACKLOG

_FOLDER = Path(__file__).parent
_SERVER, _CLIENT = _FOLDER / "server.py", _FOLDER / "client.py"
_CERTIFICATE, _SLEEPING = _FOLDER / "certificate.py", _FOLDER / "sleeping.py"
_CROSSING, _LOCKING = _FOLDER / "crossing.py", _FOLDER / "locking.py"

OPENING_S = 0.02
"""How long opening one connection and shaking hands may take, in a measurement's time limit."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a server has to do."""

    kind: str = "echo"
    connections: int | None = None
    """None: as many as the settings say."""
    tls: bool = False


@cache
def certificate(python: str) -> str:
    """Let `python` make a certificate; return its folder, which is there until this process ends.

    Raises MeasurementError.
    """
    folder = tempfile.mkdtemp(prefix="cpythonplus-bench-tls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with Children() as children:
        children.worker([python], _CERTIFICATE, {"folder": folder}, limit_s=60).result()
    return folder


def listener() -> socket.socket:
    """Return a listening TCP socket on loopback, with a port that the kernel chose."""
    return socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)


def measure_server(load: Load, commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Start a server, put `load` on it, and return what came out. Raises MeasurementError.

    Server and client have a core each, so that what the kernel does for one of them is not
    counted as the other's, and no run is lucky to have them on one.
    """
    listening = listener()
    count = load.connections or settings.connections
    cores = sorted(os.sched_getaffinity(0))
    shared = {
        "connections": count,
        "folder": certificate(commands.python) if load.tls else "",
    }
    limit_s = settings.limit_s + OPENING_S * count
    with Children() as children:
        port = listening.getsockname()[1]
        server = children.worker(
            commands.prefix(side),
            _SERVER,
            {**shared, "side": side},
            limit_s=2 * limit_s,
            listener=listening,
            cpu=cores[-1],
        )
        client = children.worker(
            commands.prefix("stock"),
            _CLIENT,
            {
                **shared,
                "port": port,
                "server": server.child.process.pid,
                "kind": load.kind,
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=limit_s,
            cpu=cores[0],
        )
        measured = client.result_from(server.child)
        server.child.check()
    return _outcome(measured)


def measure_sleep(commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return how late very many sleepers woke; the rate is p99 in ms. Raises MeasurementError."""
    parameters = {"sleepers": settings.sleepers, "longest_s": settings.longest_sleep_s}
    measured = _alone(_SLEEPING, parameters, commands, side, settings)
    found = summarise(measured["latencies_ns"])
    return _outcome({**measured, "rate": found.p99_ms if found else 0.0})


def measure_crossing(pinned: str, commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return the rate of round trips between two threads. Raises MeasurementError.

    pinned: "one" puts both on one core, from before the interpreter starts.
    """
    return _outcome(_alone(_CROSSING, {}, commands, side, settings, pinned=pinned == "one"))


def measure_lock(
    parameters: Mapping[str, object], commands: Commands, side: Side, settings: Settings
) -> Outcome:
    """Return what holding a lock once costs, in ns. Raises MeasurementError."""
    return _outcome(_alone(_LOCKING, parameters, commands, side, settings))


def _alone(
    script: Path,
    parameters: Mapping[str, object],
    commands: Commands,
    side: Side,
    settings: Settings,
    *,
    pinned: bool = False,
) -> dict[str, Any]:
    """Run one worker to its end and return what it left."""
    with Children() as children:
        return children.worker(
            commands.prefix(side),
            script,
            {
                **parameters,
                "side": side,
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=settings.limit_s,
            cpu=max(os.sched_getaffinity(0)) if pinned else None,
        ).result()


def _outcome(measured: Mapping[str, Any]) -> Outcome:
    return Outcome(
        rate=measured["rate"],
        latency=summarise(measured.get("latencies_ns", ())),
        scheduled=measured["scheduled"],
        patched=measured["patched"],
        figures=measured.get("figures", {}),
    )
