"""The loader: with reforking it loads the application, and the master never does.

A master that has loaded the application has that code to its end: only a second master (USR2) has
new code, and as much memory again.  A loader can be replaced.  It is the first mold of its code.

    master                          loader
      | opens the metrics' port, prepares
      | fork ------------------------>|
      |                               | after HUP: reads the configuration again
      |                               | loads the application, warms up, prepares
      |<---------- mold, or refused --|
      | sockets --------------------->|
      | fork AGE -------------------->| forks: see `mold`

At the start the master waits for the loader, and ends with its status if it fails.  After HUP the
workers go on serving meanwhile, and a loader that fails changes nothing.

A loader stays when a worker has become the mold: it is the last one to fall back to, and runs the
parts of the application that run once, a scheduler for example.
"""

# gunicorn's classes differ from version to version.
# ruff: noqa: ANN401

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

from gunicorn.arbiter import Arbiter
from gunicorn.errors import HaltServer
from gunicorn.workers.workertmp import WorkerTmp

from cpythonplus.prefork._guarding import in_one_line
from cpythonplus.prefork._gunicorn.mold import End, RefusedError
from cpythonplus.prefork._gunicorn.reforking import refusal

if TYPE_CHECKING:
    from cpythonplus.prefork._gunicorn.service import Service

_PR_SET_PDEATHSIG = 1
_FAILED_STATUS = 1


def load(service: Service, server: Any, *, rereads: bool = False) -> None:
    """Load the application in this process; RefusedError, which the master logs, if that fails.

    rereads: read the configuration again before.
    """
    # End this loader with the master even while it loads.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != server.pid:
        raise End
    what = "the configuration cannot be used"
    try:
        if rereads:
            _read_again(service, server)
        what = "the application cannot be loaded"
        service.load(server)
    except (End, RefusedError):
        raise
    except SystemExit as error:
        raise _refused(what, error) from None
    except HaltServer as error:
        raise RefusedError(error.reason, error.exit_status) from None
    except BaseException as error:
        server.log.debug("%s; the traceback:", what, exc_info=error)
        why = f"{what}: {in_one_line(error)}"
        raise RefusedError(why, Arbiter.APP_LOAD_ERROR) from None


def _refused(what: str, error: SystemExit) -> RefusedError:
    """Return the reason of a loader whose application has called sys.exit."""
    if error.code is not None and not isinstance(error.code, int):
        return RefusedError(f"{what}: {error.code}", _FAILED_STATUS)
    status = (error.code or 0) & 0xFF or _FAILED_STATUS
    reason = error.__context__  # if it was called for an exception, a line was printed to stderr
    if reason is None:
        return RefusedError(f"{what}: sys.exit({error.code}) was called", status)
    return RefusedError(f"{what}: {in_one_line(reason)}", status, told=True)


def _read_again(service: Service, server: Any) -> None:
    """Read the configuration again, as gunicorn's master does after HUP."""
    before = server.cfg
    for name in before.env:
        if name in before.env_orig:
            os.environ[name] = before.env_orig[name]
        else:
            os.environ.pop(name, None)
    server.app.reload()
    server.app.cfg.set("nworkers_changed", lambda _server, _new, _old: None)  # the master calls it
    server.setup(server.app)
    why = refusal(server.cfg) if service.options.refork else "it is off there"
    if why:
        raise RefusedError(f"reforking ends with a restart only: {why}", _FAILED_STATUS)
    _check_takeover(before, server.cfg)


def _check_takeover(before: Any, after: Any) -> None:
    """Try the steps that would end the master if they failed there; raises OSError."""
    WorkerTmp(after).close()
    if after.pidfile and not os.access(os.path.dirname(after.pidfile) or ".", os.W_OK):  # noqa: PTH120
        raise OSError(errno.EACCES, "the pid file cannot be written", after.pidfile)
    for address in after.address:
        if isinstance(address, tuple) and address not in before.address:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            with socket.socket(family) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(address)
