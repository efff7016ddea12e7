"""The suite `memory`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "memory",
    "what looking for cycles costs a Flask application; memory that does not come back",
    full=Settings(5, 2.0),
    quick=Settings(1, 0.3, idle_s=4.0, heap_mib=100, many=20_000),
)
