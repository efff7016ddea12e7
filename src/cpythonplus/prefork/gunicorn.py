"""For a gunicorn configuration file: `from cpythonplus.prefork.gunicorn import *`.

That line loads the application in the master, prepares the memory before the workers are forked,
and has them end fast.  It defines `preload_app` and `control_socket_disable`, and no hooks: those
of the file are called as ever, ours beside them.  It takes effect when gunicorn starts, not on HUP.

All other options are chosen by calling `configure`, which the same line imports.

Importing this module replaces the locks and queues of `threading` by the native ones, before
the application is imported; `configure(threads=False)` takes that back.  With CPYTHONPLUS_DISABLE
set the line defines `configure` alone, which then only checks its arguments.
"""

from dataclasses import replace
from typing import Any

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.switch import skipped
from cpythonplus.prefork._options import Options, read

__all__ = ["configure"]

_OFF = skipped(__name__)


def configure(**options: Any) -> None:  # noqa: ANN401  # each of its field's type
    """Choose what the server does beside sharing its memory: the fields of `prefork.Options`.

    A field that is not given is what the environment says.  Raises ValueError for a wrong value,
    TypeError for an unknown option.
    """
    if _OFF:
        replace(read("gunicorn"), **options)
    else:
        _use(options)


def _use(options: dict[str, Any]) -> None:
    # Other versions of gunicorn may lack names that this imports.
    from cpythonplus.prefork._gunicorn.service import SERVICE

    chosen: Options = replace(SERVICE.defaults, **options)
    SERVICE.options = chosen
    SERVICE.patch_threads()


def _begin() -> None:
    from cpythonplus.prefork._gunicorn.versions import require

    try:
        require()
    except UnsupportedPlatform as error:
        # gunicorn shows any other exception of a configuration file with its traceback.
        raise SystemExit(f"cpythonplus.prefork.gunicorn: {error}") from None
    from cpythonplus.prefork._gunicorn.master import install

    install()
    _use({})


if not _OFF:
    preload_app = True
    # The thread of the control socket runs in the master while it forks, and can hold a lock then.
    control_socket_disable = True
    __all__ += ["control_socket_disable", "preload_app"]
    _begin()
