"""The suite `demo`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "demo",
    "Flask under gunicorn beside a CPU-bound job; under a minute",
    full=Settings(2, 1.5),
    quick=Settings(1, 1.0),
)
