"""The suite `tasklet-io`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "tasklet-io",
    "sockets, sleep, locks and channels of tasklets beside gevent, uvloop, asyncio",
    full=Settings(5, 1.0),
    quick=Settings(1, 0.2, connections=50, sleepers=500, longest_sleep_s=0.2),
    counts={
        "connections": "connections of the echo servers",
        "sleepers": "those that sleep at once",
    },
)
