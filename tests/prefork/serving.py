"""A gunicorn that is really started, on a free loopback port, and clients that count failures."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Self, TypeVar

import pytest

from tests.support import child_environment

T = TypeVar("T")

DEADLINE_S = 180.0
"""For everything that is waited for: far more than it takes."""

APP = """
    import os, time
    kept = []
    def app(environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/grow":
            kept.append(bytearray(os.urandom(4_000_000)))
        if path == "/missing":
            start_response("404 Not Found", [("Content-Length", "0")])
            return [b""]
        if path == "/raises":
            raise LookupError("on purpose")
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
    def warm():
        print("warmed in", os.getpid(), flush=True)
    def fails():
        raise ZeroDivisionError("nothing to divide by")
"""

ASGI_APP = """
    import os
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": kind + ".complete"})
                if kind == "lifespan.shutdown":
                    return
        body = str(os.getpid()).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
"""

AIOHTTP_APP = """
    import os
    from aiohttp import web
    served_by = []
    async def answer(request):
        served_by.append(os.getpid())
        return web.Response(text=str(served_by[0] if request.path == "/first" else os.getpid()))
    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
"""


def until(condition: Callable[[], T], what: str) -> T:
    """Return the first true value of `condition`; fails the test when there is none."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"waited in vain for {what}")


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)

    def get(self, path: str = "/") -> str:
        """GET `path` on a connection of its own; the body."""
        with contextlib.closing(self.connection()) as connection:
            connection.request("GET", path)
            return connection.getresponse().read().decode()

    def output(self) -> str:
        return self.log.read_text()

    def metric(self, name: str, **labels: str) -> float:
        return metric(self.get("/metrics"), name, **labels)

    def workers(self) -> set[int]:
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return set(map(int, found.split()))

    def ready(self, count: int) -> None:
        """Wait until `count` workers serve, and nobody else is there."""
        until(
            lambda: self.metric("workers_ready") == count and len(self.workers()) == count,
            f"{count} workers",
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """Stop it as a service manager does; the exit status."""
        self.signal(signal.SIGTERM)
        return self.process.wait(DEADLINE_S)

    def nothing_left(self) -> bool:
        """Whether no process of the server is there."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False


def metric(text: str, name: str, **labels: str) -> float:
    """The value of one sample of the metrics."""
    wanted = ",".join(f'{key}="{value}"' for key, value in labels.items())
    sample = re.search(
        rf"^cpythonplus_{name}{re.escape('{' + wanted + '}') if wanted else ''} (\S+)$",
        text,
        re.MULTILINE,
    )
    assert sample, f"no {name} {labels} in\n{text}"
    return float(sample[1])


@contextlib.contextmanager
def running(
    folder: Path,
    *words: str,
    command: Sequence[str] = ("cpythonplus", "serve"),
    app: str = APP,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    port: int | None = None,
    binds: bool = True,
) -> Iterator[Server]:
    """Start a server with the application `app:app` and wait until it answers.

    Listens on a socket that is bound already: so no other test can have taken its port.  Or at
    `port`, for USR2, with which gunicorn does not have such a socket.  binds: false where a
    configuration file says so.
    """
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    for name, text in {"app.py": app, **(files or {})}.items():
        (folder / name).write_text(dedent(text))
    log = folder / "log"
    with socket.socket() as listener, log.open("wb") as output:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        bind = f"fd://{listener.fileno()}" if port is None else f"127.0.0.1:{port}"
        where = ("--bind", bind) if binds else ()
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "app:app", *where, *words],
            cwd=folder,
            env=child_environment({"PYTHONPATH": python_path(folder), **(env or {})}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        server = Server(process, port or listener.getsockname()[1], log)
    try:
        until(lambda: process.poll() is not None or answers(server), "an answer")
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}\n{server.output()}")
        yield server
    except BaseException:
        print(server.output())
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(server: Server) -> bool:
    try:
        return bool(server.get())
    except OSError:
        return False


def python_path(folder: Path) -> str:
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(folder), *([inherited] if inherited else [])])


@dataclass
class Clients:
    """Threads that send requests one after the other, until told to stop or the first failure.

    goes_on: also behind failures, on a new connection.
    """

    server: Server
    path: str = "/"
    keep_alive: bool = False
    goes_on: bool = False
    count: int = 2
    pids: set[int] = field(default_factory=set)
    closed: int = 0
    """Answers that said `Connection: close`."""
    served: int = 0
    failures: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._run) for _ in range(self.count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        connection = self.server.connection()
        while not self._over.is_set():
            try:
                self._send(connection)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection.close()
                if not self.goes_on:
                    return
        connection.close()

    def _send(self, connection: http.client.HTTPConnection) -> None:
        connection.request("GET", self.path)
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            self.failures.append(f"{response.status}: {body!r}")
        elif body.isdigit():
            self.pids.add(int(body))
        self.closed += response.getheader("Connection", "").lower() == "close"
        self.served += 1
        if not self.keep_alive:
            connection.close()
