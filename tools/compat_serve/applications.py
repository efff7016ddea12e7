"""The applications, how they are served, and what else each of them has to show."""

from collections.abc import Callable
from dataclasses import dataclass
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
    """Stands before `-m gunicorn` and `-m cpythonplus serve`; none: the commands themselves."""
    unix: bool = False
    """Listens on a unix socket instead of a port."""
    up: Check | None = None
    """Asked while the server is under load."""
    end: Check | None = None
    """Asked when it has been stopped."""


UVICORN = "uvicorn_worker.UvicornWorker"

APPLICATIONS = {
    "flask-sqlalchemy": Application(
        "Flask, SQLAlchemy", "flask", "flask_sqlalchemy.py", unix=True, end=checks.rows
    ),
    "django-drf": Application(
        "Django, REST framework", "django", "django_drf.py", "sync", end=checks.rows
    ),
    "fastapi": Application(
        "FastAPI, uvicorn", "asgi", "fastapi_app.py", UVICORN, end=checks.lifespans
    ),
}
