"""How one measurement of this suite goes: a worker in a fresh process, in Python or in Go."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from benchmarks.common.children import Children, Commands, environment
from benchmarks.common.engine import Settings
from benchmarks.common.errors import MeasurementError
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side

_WORKER = Path(__file__).with_name("worker.py")
_GO = Path(__file__).with_name("go") / "main.go"

COMPILER_LIMIT_S = 240.0
"""The first time the standard library is compiled, too."""
MANY_LIMIT_S = 600.0
PICKLED = 100_000

_NEEDED_BYTES: dict[Side, int] = {"tasklets": 9_000, "greenlet": 10_000, "gevent": 12_000}
"""Memory of a parked one, with much to spare: a machine without it would begin to swap."""
_NEEDED_OTHERWISE = 4_000


@cache
def go_program() -> Path:
    """Compile the worker in Go and return the program, which is there until this process ends.

    Uses nothing but the standard library and the network not at all. Raises MeasurementError.
    """
    folder = Path(tempfile.mkdtemp(prefix="cpythonplus-bench-go-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "worker"
    alone = {"GO111MODULE": "off", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            ["go", "build", "-o", str(program), str(_GO)],
            capture_output=True,
            text=True,
            timeout=COMPILER_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment(), **alone},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MeasurementError(f"go build: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise MeasurementError(f"go build ended with status {done.returncode}: {last}")
    return program


def measure(
    parameters: Mapping[str, object],
    commands: Commands,
    side: Side,
    settings: Settings,
    *,
    extra_s: float = 0.0,
) -> Outcome:
    """Run the worker of `side` once and return what it measured. Raises MeasurementError.

    extra_s: how many seconds it may take beyond what `settings` allow.
    """
    full = {"python": 0, "c": 0, "count": 0, **parameters, "seconds": settings.seconds}
    with Children() as children:
        in_go = side == "go"
        result = children.worker(
            [] if in_go else commands.prefix(side),
            go_program() if in_go else _WORKER,
            {**full, "side": side},
            limit_s=settings.limit_s + extra_s,
        ).result()
    return Outcome(
        rate=result["rate"],
        figures=result.get("figures", {}),
        scheduled=result.get("scheduled"),
        patched=result.get("patched"),
    )


def measure_parked(commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return the memory of a parked one, in KB; raises MeasurementError."""
    parameters = {"kind": "parked", "count": settings.parked}
    check_memory(side, settings.parked)
    return measure(parameters, commands, side, settings, extra_s=MANY_LIMIT_S)


def measure_many(
    commands: Commands, side: Side, settings: Settings, *, collector: bool = False
) -> Outcome:
    """Return how long parking and waking very many take, in seconds; raises MeasurementError."""
    parameters = {"kind": "million", "count": settings.many, "collector": collector}
    check_memory(side, settings.many)
    return measure(parameters, commands, side, settings, extra_s=MANY_LIMIT_S)


def measure_pickles(commands: Commands, side: Side, settings: Settings) -> Outcome:
    """Return how long writing and reading take together, in us; raises MeasurementError."""
    parameters = {"kind": "pickle", "count": PICKLED}
    check_memory(side, PICKLED)
    return measure(parameters, commands, side, settings, extra_s=MANY_LIMIT_S)


def check_memory(side: Side, count: int) -> None:
    """Raise MeasurementError when the machine has no room for `count` parked ones of `side`."""
    needed = count * _NEEDED_BYTES.get(side, _NEEDED_OTHERWISE)
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    if needed > free:
        raise MeasurementError(
            f"{count:,} parked ones may need {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
        )
