"""Where the example application is that is served, and what its environment says."""

from __future__ import annotations

import os
from pathlib import Path

from cpythonplus.benchmarks.common.errors import MeasurementError

APP = "examples.django_catalogue.wsgi:application"
WARM_UP = "examples.django_catalogue.warm_up:warm_up"

COLLECT_PATH = "/debug/collect/"
"""Where a worker collects its garbage; there with `collects` only."""

_INSIDE = Path("examples", "django_catalogue", "wsgi.py")


def folder() -> Path:
    """Return the folder that has to be on `sys.path` for APP.

    That is `app` beside this file in an installed package, and the current folder in a checkout of
    the source. Raises MeasurementError where neither has it.
    """
    # Not this file's own folder: its modules would become importable under their bare names.
    for place in (Path(__file__).resolve().with_name("app"), Path.cwd()):
        if (place / _INSIDE).is_file():
            return place
    raise MeasurementError("the example application is not installed (examples/django_catalogue)")


def environment(items: int, *, collects: bool = False) -> dict[str, str]:
    """Return what the server's environment has to have; all sides get the same.

    items: size of the catalogue; 0 leaves nothing but imports.  collects: whether COLLECT_PATH is
    there.  Raises MeasurementError when the application is not found.
    """
    others = os.environ.get("PYTHONPATH")
    path = str(folder())
    return {
        "PYTHONPATH": f"{path}{os.pathsep}{others}" if others else path,
        "DJANGO_SETTINGS_MODULE": "examples.django_catalogue.settings",
        "CATALOGUE_ITEMS": str(items),
        "CATALOGUE_COLLECT": "1" if collects else "0",
    }
