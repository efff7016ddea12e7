"""The suite `testserver`."""

from benchmarks.common.catalogue import Suite
from benchmarks.common.engine import Settings

SUITE = Suite(
    "testserver",
    "threaded HTTP servers under load: http.server, Flask under gunicorn",
    full=Settings(3, 2.0),
    quick=Settings(1, 0.5),
)
