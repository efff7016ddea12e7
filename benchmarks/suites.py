"""Which cases belong to which benchmark."""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.common.engine import Case
from benchmarks.giltest.crowds import scenario as crowds
from benchmarks.giltest.echo import scenario as echo
from benchmarks.giltest.efficiency import scenario as efficiency
from benchmarks.giltest.kernels import scenario as kernels
from benchmarks.giltest.pairs import scenario as pairs
from benchmarks.giltest.requests import scenario as requests
from benchmarks.giltest.startup import scenario as startup
from benchmarks.memory import attach, census, classic, development, explaining
from benchmarks.memory import scenario as watching
from benchmarks.prefork import scenario as preforking
from benchmarks.sites import scenario as tunnels
from benchmarks.tasklet_io import scenario as real_world
from benchmarks.tasklets import scenario as microthreads
from benchmarks.testserver.flask_gunicorn import scenario as flask
from benchmarks.testserver.load import USERS, Load
from benchmarks.testserver.stdlib_http import scenario as http
from benchmarks.threads.executor import scenario as executor
from benchmarks.threads.handover import scenario as handover
from benchmarks.threads.idle import scenario as idle
from benchmarks.threads.measure import WITHOUT_PEER
from benchmarks.threads.stream import scenario as stream
from benchmarks.threads.uncontended import scenario as uncontended


def giltest() -> list[Case]:
    """Return the cases of `bench giltest`."""
    return [
        *echo.cases(),
        *pairs.cases(),
        *requests.cases(),
        *crowds.cases(),
        *efficiency.cases(),
        *kernels.cases(),
        *startup.cases(),
    ]


def threads() -> list[Case]:
    """Return the cases of `bench threads`; the last one is the same as in `bench testserver`."""
    return [
        *handover.cases(),
        *stream.cases(),
        *uncontended.cases(),
        *executor.cases(),
        *idle.cases(),
        *(replace(case, sides=WITHOUT_PEER) for case in flask.cases((Load(50, 0),))),
    ]


def testserver() -> list[Case]:
    """Return the cases of `bench testserver`."""
    return [*http.cases(), *flask.cases()]


def prefork(workers: int | None = None) -> list[Case]:
    """Return the cases of `bench prefork`, with their own numbers of workers or with `workers`."""
    return preforking.cases(workers)


def tasklets() -> list[Case]:
    """Return the cases of `bench tasklets`."""
    return microthreads.cases()


def tasklet_io() -> list[Case]:
    """Return the cases of `bench tasklet-io`."""
    return [*real_world.cases(), *flask.worker_cases()]


def memory() -> list[Case]:
    """Return the cases of `bench memory`."""
    return [
        *watching.cases(),
        *development.cases(),
        *classic.cases(),
        *attach.cases(),
        *census.cases(),
        *explaining.cases(),
    ]


def sites() -> list[Case]:
    """Return the cases of `bench sites`."""
    return tunnels.cases()


def demo() -> list[Case]:
    """Return the cases of `bench demo`: the Flask application without and with a job."""
    return flask.cases((*USERS, Load(10, 0), Load(10, 1)))


SUITES: dict[str, Callable[[], list[Case]]] = {
    "giltest": giltest,
    "threads": threads,
    "testserver": testserver,
    "prefork": prefork,
    "tasklets": tasklets,
    "tasklet-io": tasklet_io,
    "memory": memory,
    "sites": sites,
    "demo": demo,
}
