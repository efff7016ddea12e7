"""How one measurement of this suite goes: a worker in a fresh process, on one of the four sides."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from benchmarks.common.children import Children, Commands
from benchmarks.common.engine import Settings
from benchmarks.common.percentiles import summarise
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side

WITHOUT_PEER: tuple[Side, ...] = ("stock", "plus", "threads-only")
WITH_PEER: tuple[Side, ...] = (*WITHOUT_PEER, "peer")

_COMPUTING = """
import signal
signal.alarm({limit_s})
while True:
    pass
"""


def measure(
    script: Path,
    parameters: Mapping[str, object],
    commands: Commands,
    side: Side,
    settings: Settings,
    *,
    pinned: bool = False,
    beside_process: bool = False,
    extra_s: float = 0.0,
) -> Outcome:
    """Run the worker `script` once and return what it measured. Raises MeasurementError.

    It gets the `parameters`, the lengths of the measurement, and as `peer` whether it is to use the
    package of the peer side. pinned: on one core, from before the interpreter starts.
    beside_process: while another process computes. extra_s: how many seconds it may take beyond
    what `settings` allow.
    """
    limit_s = settings.limit_s + extra_s
    with Children() as children:
        if beside_process:
            computing = _COMPUTING.format(limit_s=math.ceil(limit_s))
            children.start([commands.python, "-c", computing], "the computing process")
        result = children.worker(
            commands.prefix(side),
            script,
            {
                **parameters,
                "peer": side == "peer",
                "seconds": settings.seconds,
                "warmup_s": settings.warmup_s,
            },
            limit_s=limit_s,
            cpu=max(os.sched_getaffinity(0)) if pinned else None,
        ).result()
    return Outcome(
        rate=result["rate"],
        latency=summarise(result.get("latencies_ns", ())),
        scheduled=result["scheduled"],
        patched=result["patched"],
    )
