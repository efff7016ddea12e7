"""Which cases belong to which benchmark."""

from collections.abc import Callable

from cpythonplus.benchmarks.common.engine import Case
from cpythonplus.benchmarks.giltest.echo import scenario as echo
from cpythonplus.benchmarks.giltest.efficiency import scenario as efficiency
from cpythonplus.benchmarks.giltest.kernels import scenario as kernels
from cpythonplus.benchmarks.giltest.pairs import scenario as pairs
from cpythonplus.benchmarks.giltest.startup import scenario as startup
from cpythonplus.benchmarks.testserver.flask_gunicorn import scenario as flask
from cpythonplus.benchmarks.testserver.load import Load
from cpythonplus.benchmarks.testserver.stdlib_http import scenario as http


def giltest() -> list[Case]:
    """Return the cases of `bench giltest`."""
    return [
        *echo.cases(),
        *pairs.cases(),
        *efficiency.cases(),
        *kernels.cases(),
        *startup.cases(),
    ]


def testserver() -> list[Case]:
    """Return the cases of `bench testserver`."""
    return [*http.cases(), *flask.cases()]


def demo() -> list[Case]:
    """Return the cases of `bench demo`: the Flask application without and with a job."""
    return flask.cases(tuple(Load(connections, job) for connections in (1, 10) for job in (0, 1)))


SUITES: dict[str, Callable[[], list[Case]]] = {
    "giltest": giltest,
    "testserver": testserver,
    "demo": demo,
}
