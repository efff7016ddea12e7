"""The suite `demo`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings
from benchmarks.demo.summary import summary

SUITE = Suite(
    "demo",
    "what cpythonplus is for, in a minute: requests beside a job, four workers, a leak",
    full=Settings(3, 1.5),
    quick=Settings(1, 1.0),
    show=summary,
)
