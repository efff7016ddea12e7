"""A Flask application under gunicorn, one worker process: gthread's 16 threads, or tasklets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.common.catalogue import Scenario, Table
from benchmarks.common.children import Child, Children, Commands, loopback_listener
from benchmarks.common.engine import Case, Settings
from benchmarks.common.results import Outcome
from benchmarks.common.sides import Side
from benchmarks.common.targets import Target
from benchmarks.testserver.background import (
    CALIBRATION_VARIABLE,
    CPU_THREADS_VARIABLE,
)
from benchmarks.testserver.flask_gunicorn import configuration
from benchmarks.testserver.load import LOADS, USERS, Load, measure_server

_APP = "benchmarks.testserver.flask_gunicorn.app:app"


def cases(loads: tuple[Load, ...] = LOADS + USERS) -> list[Case]:
    """Return the cases of this scenario."""
    return [
        Case(
            load.case_name("flask"),
            "flask",
            f"Flask, gunicorn gthread, {load.words()}",
            "requests/s",
            partial(_measure, load),
            alone=load.undisturbed("flask"),
            needs=("flask", "gunicorn"),
        )
        for load in loads
    ]


WORKERS: Mapping[Side, Sequence[str]] = {
    "tasklets": ("--worker-class", "cpythonplus.tasklets.gunicorn.Worker"),
    "gevent": ("--worker-class", "gevent"),
    "threads": ("--worker-class", "gthread"),
}
"""What gunicorn is told on each side."""


def worker_cases() -> list[Case]:
    """Return the same application under worker classes, the handler computing or waiting."""
    return [
        Case(
            f"{name}-{load.connections}",
            "worker",
            f"Flask under gunicorn, {load.words()}{what}",
            "requests/s",
            partial(_measure, load),
            statistic="median",
            needs=("flask", "gunicorn"),
            sides=tuple(WORKERS),
            base="tasklets",
            own="tasklets",
            packages={"gevent": "gevent"},
        )
        for name, load, what in (
            ("worker", Load(50, 0), ""),
            ("worker-waiting", Load(200, 0, path="/waiting/50"), " that wait 50 ms"),
        )
    ]


def _measure(load: Load, commands: Commands, side: Side, settings: Settings) -> Outcome:
    def start(children: Children) -> tuple[Child, int]:
        listener = loopback_listener()
        port: int = listener.getsockname()[1]
        command = [
            *commands.prefix(side),
            *("-m", "gunicorn"),
            *("--bind", f"fd://{listener.fileno()}"),
            *("--config", f"python:{configuration.__name__}"),
            *WORKERS.get(side, ()),
            _APP,
        ]
        environment = {
            CPU_THREADS_VARIABLE: str(load.cpu_threads),
            CALIBRATION_VARIABLE: str(settings.warmup_s),
            configuration.LIMIT_VARIABLE: str(round(2 * settings.limit_s)),
            # gunicorn reads options from here too; only the ones above are meant.
            "GUNICORN_CMD_ARGS": "",
        }
        return children.start(command, "gunicorn", listener=listener, env=environment), port

    return measure_server(start, load, commands, settings)


def _as_in_threads() -> list[Case]:
    """Return the case that is in two suites, with the sides of `threads`."""
    sides: tuple[Side, ...] = ("stock", "plus", "threads-only")
    return [replace(case, sides=sides) for case in cases((Load(50, 0),))]


def _demonstration() -> list[Case]:
    """Return the application without and with a job."""
    return [replace(each, statistic="median") for each in cases((Load(10, 0), Load(10, 1)))]


SCENARIO = Scenario(
    cases={
        "testserver": cases,
        "threads": _as_in_threads,
        "tasklet-io": worker_cases,
        "demo": _demonstration,
    },
    tables={
        "flask": Table("Flask under gunicorn's gthread worker"),
        "worker": Table("Flask under gunicorn: worker classes (median round)"),
    },
    targets=(
        Target("flask-50", "ratio", 1.1),
        Target("flask-10-cpu", "p99_to_alone", 1.3, at_least=False),
    ),
    place=7,
)
