"""The applications, how they are served, and what else each of them has to show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.compat_serve import checks
from tools.compat_serve.run import Run

APPS = Path(__file__).parent / "apps"

Check = Callable[[Run], list[str]]
"""Returns complaints."""


@dataclass(frozen=True)
class Application:
    """One application of real life."""

    title: str
    group: str
    """Which environment it runs in."""
    file: str
    """Below apps/; becomes app.py, and `app:app` is served."""
    worker_class: str = "gthread"
    settings: str = ""
    """More lines of gunicorn's configuration file, of both sides."""
    files: tuple[str, ...] = ()
    """Other files of apps/ that it needs."""
    plus: tuple[str, ...] = ()
    """Options of `cpythonplus serve` that its documentation asks for."""
    launcher: tuple[str, ...] = ()
    """Stands before the command: a program of the environment that runs the other one."""
    unix: bool = False
    """Listens on a unix socket instead of a port."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What it finds in its environment."""
    sentry: bool = False
    """Is given the address of what stands for Sentry's server."""
    up: Check | None = None
    """Asked while the server is under load."""
    end: Check | None = None
    """Asked when it has been stopped."""


UVICORN = "uvicorn_worker.UvicornWorker"

_SCHEDULER_HOOKS = """
def post_worker_init(worker):
    from app import scheduler
    scheduler.start()

def worker_exit(server, worker):
    from app import scheduler
    if scheduler.running:
        scheduler.shutdown()
"""
_SENTRY_HOOK = """
def post_fork(server, worker):
    import app
    app.start()
"""
_PROMETHEUS_HOOKS = """
import os
os.makedirs("metrics", exist_ok=True)

def child_exit(server, worker):
    from prometheus_client import multiprocess
    multiprocess.mark_process_dead(worker.pid, "metrics")
"""
_GRPC_HOOKS = """
def post_worker_init(worker):
    import app
    app.start()

def worker_exit(server, worker):
    import app
    app.stop()
"""
_COVERAGE = ("coverage", "run", "--parallel-mode")

APPLICATIONS = {
    "flask-sqlalchemy": Application(
        "Flask, SQLAlchemy", "flask", "flask_sqlalchemy.py", unix=True, end=checks.rows
    ),
    "django-drf": Application(
        "Django, REST framework", "django", "django_drf.py", "sync", end=checks.rows
    ),
    "channels": Application(
        "Django Channels, uvicorn", "django", "channels_app.py", UVICORN, up=checks.room
    ),
    "fastapi": Application(
        "FastAPI, uvicorn", "asgi", "fastapi_app.py", UVICORN, end=checks.lifespans
    ),
    "starlette": Application(
        "Starlette, uvicorn", "asgi", "starlette_app.py", UVICORN, end=checks.tasks
    ),
    "sentry": Application(
        "Sentry, Flask",
        "flask",
        "sentry_flask.py",
        sentry=True,
        up=checks.an_error_arrives,
        end=checks.events,
    ),
    "sentry-hook": Application(
        "Sentry, started by a hook; Flask",
        "flask",
        "sentry_hook.py",
        settings=_SENTRY_HOOK,
        sentry=True,
        up=checks.an_error_arrives,
        end=checks.events,
    ),
    "sentry-beside-django": Application(
        "Sentry, Flask; Django installed",
        "django",
        "sentry_flask.py",
        sentry=True,
        up=checks.an_error_arrives,
        end=checks.events,
    ),
    "sentry-django": Application(
        "Sentry, Django",
        "django",
        "sentry_django.py",
        sentry=True,
        up=checks.an_error_arrives,
        end=checks.events,
    ),
    "opentelemetry": Application(
        "OpenTelemetry, Flask", "opentelemetry", "opentelemetry_app.py", end=checks.spans
    ),
    "prometheus": Application(
        "prometheus_client, multiprocess",
        "flask",
        "prometheus_app.py",
        settings=_PROMETHEUS_HOOKS,
        variables={"PROMETHEUS_MULTIPROC_DIR": "metrics"},
        up=checks.live_workers,
        end=checks.metrics,
    ),
    "apscheduler": Application(
        "APScheduler, started by a hook",
        "flask",
        "apscheduler_app.py",
        settings=_SCHEDULER_HOOKS,
        end=checks.jobs_of_workers_only,
    ),
    "apscheduler-import": Application(
        "APScheduler, started at import", "flask", "apscheduler_import.py", end=checks.jobs
    ),
    "gevent": Application(
        "Flask, gevent's worker", "gevent", "gevent_app.py", "gevent", plus=("--no-threads",)
    ),
    "grpc": Application("gRPC, Flask", "grpc", "grpc_app.py", settings=_GRPC_HOOKS),
    "data": Application("NumPy, pandas, pyarrow", "data", "data_app.py"),
    "coverage": Application(
        "coverage, Flask", "flask", "coverage_app.py", launcher=_COVERAGE, end=checks.covered
    ),
}
