"""The metrics of one process with a server of its own, for `run --metrics`.

The application is counted where a server takes it: uvicorn, waitress, Werkzeug (`flask run`) and
wsgiref (Django's `runserver`).  The port is opened then, so a reloader or a supervisor does not
take it.
"""

import os
import sys
from contextlib import suppress
from functools import partial, wraps
from importlib import import_module
from typing import Any

from cpythonplus._base.replacing import when_loaded
from cpythonplus.prefork._activation import count_stalls, gil_statistics, thread_use
from cpythonplus.prefork._board import metrics
from cpythonplus.prefork._board.board import Board, BoardBusy, Slot
from cpythonplus.prefork._routes.counting import Routes
from cpythonplus.prefork._routes.pools import count_in_pools


def count_requests(address: str) -> None:
    """Serve metrics at this address as soon as a server has an application."""
    process = _Process(address)
    for module, replace in (
        ("uvicorn.config", _replace_uvicorn),
        ("waitress.server", _replace_waitress),
        ("werkzeug.serving", _replace_werkzeug),
        ("wsgiref.simple_server", _replace_wsgiref),
    ):
        when_loaded(module, partial(replace, process))


class _Process:
    """This process as the only one on its board."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._board: Board | None = None
        self._slot: Slot | None = None
        self._routes: Routes | None = None

    def around(self, application: Any, *, asgi: bool = False) -> Any:  # noqa: ANN401  # any
        """Return an application whose requests are counted."""
        routes = self._routes or self._begin()
        if routes is None or hasattr(application, "_of_routes"):
            return application
        counted = routes.around(application, asgi=asgi)
        counted._of_routes = True  # noqa: SLF001
        return counted

    def _begin(self) -> Routes | None:
        try:
            port = metrics.listen(self._address)
        except OSError as error:
            sys.stderr.write(f"cpythonplus run: no metrics: {error.strerror}\n")
            return None
        self._board = Board(1)
        self._slot = self._board.claim(os.getpid())
        self._slot.ready()
        limit_ms = count_stalls(self._count_stall)
        self._routes = Routes(thread_use(), int(limit_ms * 1e6))
        count_in_pools()
        metrics.serve_in_thread(port, self._render)
        return self._routes

    def _count_stall(self, kind: str, at: str, length_ns: int) -> None:
        with suppress(BoardBusy):
            if self._board is not None:
                self._board.count_stall(kind, at, length_ns)

    def _render(self) -> str:
        if self._board is None or self._slot is None or self._routes is None:
            return ""
        waits, wait_ns = gil_statistics()
        requests = sum(row[0] for row in list(self._routes.rows.values()))
        self._slot.write(gil_waits=waits, gil_wait_ns=wait_ns, requests=requests)
        with suppress(BoardBusy):  # it is in the next answer
            self._routes.give(self._board.count_routes)
        return metrics.render(self._board, master_pid=os.getpid())


def _replace_uvicorn(process: _Process) -> None:
    config: Any = import_module("uvicorn.config").Config
    inner = config.load

    @wraps(inner)
    def load(self: Any) -> None:  # noqa: ANN401
        inner(self)
        self.loaded_app = process.around(self.loaded_app, asgi=True)

    config.load = load


def _replace_waitress(process: _Process) -> None:
    server: Any = import_module("waitress.server").BaseWSGIServer
    inner = server.__init__

    @wraps(inner)
    def begin(self: Any, application: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        inner(self, process.around(application), *args, **kwargs)

    server.__init__ = begin


def _replace_werkzeug(process: _Process) -> None:
    # Not where it is made: the process that reloads makes one, too.
    server: Any = import_module("werkzeug.serving").BaseWSGIServer
    inner = server.serve_forever

    @wraps(inner)
    def serve_forever(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        self.app = process.around(self.app)
        return inner(self, *args, **kwargs)

    server.serve_forever = serve_forever


def _replace_wsgiref(process: _Process) -> None:
    server: Any = import_module("wsgiref.simple_server").WSGIServer
    inner = server.set_app

    @wraps(inner)
    def set_app(self: Any, application: Any) -> None:  # noqa: ANN401
        inner(self, process.around(application))

    server.set_app = set_app
