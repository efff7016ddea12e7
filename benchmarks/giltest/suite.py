"""The suite `giltest`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "giltest",
    "how threads hand the GIL to each other: echo, pairs, requests, crowds, start-up",
    full=Settings(5, 1.0, 25),
    quick=Settings(2, 0.3, 5, arrivals=10),
)
