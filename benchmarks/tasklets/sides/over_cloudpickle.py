"""cloudpickle, and a state that somebody has written by hand: it pickles no functions that run."""

from __future__ import annotations

import cloudpickle

from benchmarks.tasklets.sides.jobs import State
from benchmarks.tasklets.sides.protocol import Pickling


def pickling(count: int) -> Pickling:
    """Return one state, and `count` more."""
    return Pickling(cloudpickle.dumps, cloudpickle.loads, State(), [State() for _ in range(count)])
