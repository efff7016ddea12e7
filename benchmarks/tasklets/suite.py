"""The suite `tasklets`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "tasklets",
    "tasklets beside greenlet, gevent, asyncio, Go and threads: switches, memory",
    full=Settings(5, 0.5),
    quick=Settings(1, 0.1, parked=2000, many=20_000),
    counts={
        "parked": "parked ones whose memory is measured",
        "many": "parked ones that are each woken once",
    },
)
