"""The suite `threads`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "threads",
    "what waiting for another thread costs: locks, queues, executors, idle threads",
    full=Settings(3, 0.5),
    quick=Settings(1, 0.1, idle_s=1.0),
)
