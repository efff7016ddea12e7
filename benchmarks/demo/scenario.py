"""The cases that only the demonstration has: four workers, and a leak."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.common import memory
from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Child, Children, Commands, environment, loopback_listener
from benchmarks.common.engine import Case, Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import SIDES, Side
from benchmarks.demo import leak

WORKERS = 4
REQUESTS = 40
"""Enough that each worker answers some."""
LOOK_S = 1.5


def cases() -> list[Case]:
    """Return them; one round is enough, since other programs do not change memory."""
    plain = Case(
        f"plain-{WORKERS}",
        "demo",
        f"{WORKERS} workers, gunicorn",
        "MiB",
        partial(_workers, ("gunicorn",)),
        better="lower",
        needs=("gunicorn",),
        sides=("stock",),
        own="stock",
        once=True,
    )
    return [
        plain,
        replace(
            plain,
            name=f"workers-{WORKERS}",
            title=f"{WORKERS} workers, gunicorn --preload or serve",
            measure=partial(_workers, ("gunicorn", "--preload")),
            sides=SIDES,
            own="plus",
        ),
        Case(
            "leak",
            "demo",
            "A program whose memory grows",
            "MiB",
            _leak,
            sides=("plus",),
            base="plus",
            once=True,
        ),
    ]


def _workers(stock: tuple[str, ...], commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return the memory of a server and its workers, after some requests."""
    listener = loopback_listener()
    port: int = listener.getsockname()[1]
    server = stock if side == "stock" else ("cpythonplus", "serve")
    with Children() as children:
        child = children.start(
            [
                *(commands.python, "-m", *server, "benchmarks.demo.shop:app"),
                *("--bind", f"fd://{listener.fileno()}", "--workers", str(WORKERS)),
                *("--log-level", "error"),
            ],
            server[0],
            listener=listener,
            env={"GUNICORN_CMD_ARGS": ""},
        )
        _await_workers(child, settings)
        for _ in range(REQUESTS):
            _ask(child, port, settings)
        pids = memory.tree(child.process.pid)
        return Outcome(rate=memory.total(pids).proportional_bytes / memory.MIB)


def _await_workers(child: Child, settings: Settings) -> None:
    end = time.monotonic() + settings.limit_s
    while len(memory.tree(child.process.pid)) <= WORKERS:
        child.check()
        if time.monotonic() > end:
            raise MeasurementError(f"there were no {WORKERS} workers")
        time.sleep(0.02)


def _ask(child: Child, port: int, settings: Settings) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=settings.limit_s)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except OSError as error:
        child.check()
        raise MeasurementError(f"no answer: {error}") from error
    finally:
        connection.close()


def _leak(commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return what `doctor growth` says: its sentences as notes, its pause as a figure."""
    limit_s = LOOK_S + settings.limit_s
    with Children() as children:
        words = [*commands.prefix(side), str(Path(leak.__file__)), str(limit_s)]
        child = children.start(words, "the program that leaks")
        report = _growth(commands, child, limit_s)
        pause_ns = json.loads(_growth(commands, child, limit_s, "--format", "json"))["growth"][
            "pause_ns"
        ]
    verdict = report.partition("What has grown")[0]
    sentences = re.findall(r"^- (.*(?:\n  .*)*)", verdict, re.MULTILINE)
    grown = re.search(r"^RSS (\+\S+ \S+)", report, re.MULTILINE)
    if not sentences or grown is None:
        raise MeasurementError("the doctor has said nothing of growth")
    return Outcome(
        rate=0.0,
        notes=(grown[1], *(" ".join(each.split()) for each in sentences)),
        figures={"pause_ms": pause_ns / 1e6},
    )


def _growth(commands: Commands, child: Child, limit_s: float, *options: str) -> str:
    words = [commands.python, "-m", "cpythonplus", "doctor", "growth", str(child.process.pid)]
    end = time.monotonic() + limit_s
    while True:
        done = subprocess.run(
            [*words, "--seconds", str(LOOK_S), *options],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        child.check()  # it does not listen yet
        if time.monotonic() > end:
            raise MeasurementError(done.stderr.strip())
        time.sleep(0.1)


SCENARIO = Scenario(
    cases={"demo": cases},
    tables={"demo": Table("Memory: four workers, and a leak")},
    place=8,
)
