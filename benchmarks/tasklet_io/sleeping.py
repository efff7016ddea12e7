"""Worker: very many that sleep and wake over one package.

Parameters: side, sleepers, longest_s.
"""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

from benchmarks.common import worker
from benchmarks.tasklet_io.sides.protocol import Plan

SEED = 9
SLEEPS = 4
"""Of each; the first one spreads them over time and is not measured."""

EARLY_NS = 1000
"""By how much a sleep is too short to be called early: clocks are read on either side of it."""


def plans(sleepers: int, longest_s: float) -> list[Plan]:
    """Return how long each sleeps each time: the same for every side."""
    chosen = random.Random(SEED)  # noqa: S311 - the same every time is what is wanted
    return [[chosen.uniform(0, longest_s) for _ in range(SLEEPS)] for _ in range(sleepers)]


def measured(parameters: dict[str, Any]) -> dict[str, Any]:
    """Let all of them sleep and return how late they woke."""
    peer: Any = import_module(f"benchmarks.tasklet_io.sides.over_{parameters['side']}")
    late_ns = peer.sleep_all(plans(parameters["sleepers"], parameters["longest_s"]))
    expected = parameters["sleepers"] * (SLEEPS - 1)
    if len(late_ns) != expected:
        raise SystemExit(f"{len(late_ns)} of {expected} sleeps ended")
    early = sum(1 for ns in late_ns if ns < -EARLY_NS)
    return {
        "latencies_ns": late_ns.tolist(),
        "figures": {"early_percent": 100 * early / expected},
    }


def main() -> None:
    """Measure and report."""
    parameters = worker.begin()
    worker.finish(parameters, measured(parameters))


if __name__ == "__main__":
    main()
