"""The board as Prometheus metrics, at a path of the application or at a port of its own.

The text format, version 0.0.4.  Any worker can answer for all of them, since all see the board.
"""

import errno
import logging
import selectors
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from importlib import import_module
from itertools import islice
from typing import Any

from cpythonplus.prefork._applications import is_aiohttp_application
from cpythonplus.prefork._blame.sharing import ProcessMemory, process_memory
from cpythonplus.prefork._board.board import Board, RouteRow, WorkerRow
from cpythonplus.prefork._board.counts import TASK
from cpythonplus.prefork._options import host_and_port

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Render = Callable[[], str]
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Sample = tuple[Mapping[str, str], float]

_MEMORY = (
    ("private_bytes", "Memory that no other process maps."),
    ("shared_bytes", "Memory that another process maps too."),
    ("proportional_bytes", "Memory, each page divided by the number of processes that map it."),
)
_OF_MASTER = (("resident_bytes", "Memory, shared or not."), *_MEMORY)
_BILLION = 10**9
_OF_ROUTE: tuple[tuple[str, str, Callable[[RouteRow], float]], ...] = (
    ("requests", "Requests that have ended.", lambda row: row.requests),
    ("gil_hold_seconds", "Time with the GIL.", lambda row: row.held_ns / _BILLION),
    ("gil_wait_seconds", "Time spent waiting for the GIL.", lambda row: row.waited_ns / _BILLION),
    ("cpu_seconds", "Processor time of threads.", lambda row: row.cpu_ns / _BILLION),
    ("stalls", "Times that others were blocked for long.", lambda row: row.stalls),
    (
        "new_memory_bytes",
        "Pages of memory touched or copied for the first time.",
        lambda row: row.new_bytes,
    ),
)
_OF_TASK = (("runs", "Runs that have ended.", _OF_ROUTE[0][2]), *_OF_ROUTE[1:])
_BACKLOG = 64
_MOST_CLIENTS = 64
_REQUEST_BYTES = 16_384
_REQUEST_S = 2.0
_RETRY_S = 0.1
_PATHS = ("/", "/metrics")
_METHODS = ("GET", "HEAD")
_OURS = "_of_cpythonplus"

_log = logging.getLogger("cpythonplus.prefork")


# ---- the text -----------------------------------------------------------------------------------


def render(board: Board, *, master_pid: int) -> str:
    """Return the metrics of `board` and of the process `master_pid` as text.

    Memory is read now.  For a process of another user it is the last value on the board; for a
    master without one it is left out.  A reading takes about 1 ms for each 100 MB of a process.
    Metrics with a pid belong to the present workers, and disappear with them; counters without a
    pid never go down while the server runs.
    """
    shown = board.snapshot()
    memory = {row.pid: _memory_of(row) for row in shown.workers}
    lines: list[str] = []

    def add(name: str, text: str, value: float | Iterable[Sample]) -> None:
        samples = [({}, value)] if isinstance(value, int | float) else value
        lines.append(f"# HELP cpythonplus_{name} {text}")
        lines.append(
            f"# TYPE cpythonplus_{name} {'counter' if name.endswith('_total') else 'gauge'}"
        )
        lines.extend(f"cpythonplus_{name}{_labels(of)} {each}" for of, each in samples)

    def of_workers(value: Callable[[WorkerRow], float]) -> list[Sample]:
        return [({"pid": str(row.pid)}, value(row)) for row in shown.workers]

    add("workers", "Worker processes.", len(shown.workers))
    add(
        "workers_ready", "Worker processes that can serve.", sum(row.ready for row in shown.workers)
    )
    for name, text in _MEMORY:
        samples = of_workers(lambda row, name=name: memory[row.pid][name])  # type: ignore[misc]
        add(f"worker_{name}", f"{text} Of each worker.", samples)
    of_master, master = _read(master_pid) or shown.master, shown.master
    for name, text in _OF_MASTER:
        value = getattr(of_master, name) if of_master.resident_bytes else ()
        add(f"master_{name}", f"{text} Of the master.", value)
    add("master_prepares_total", "Preparations of the master.", master.prepares)
    text = "Time spent preparing the master, with its collections of garbage."
    add("master_prepare_seconds_total", text, master.prepare_ns / _BILLION)
    text = "Forks of a master that had grown and was not prepared again."
    add("master_prepares_refused_total", text, master.refused)
    text = "Memory of objects that the master made immortal."
    add("master_immortal_bytes", text, master.immortal_bytes)
    restarts: list[Sample] = [({"reason": r}, n) for r, n in shown.restarts.items()]
    add("worker_restarts_total", "Workers that have ended, by reason.", restarts)
    add("worker_requests_total", "Requests of all workers.", shown.requests)
    text = "Waits for the GIL, of each worker."
    add("gil_waits_total", text, of_workers(lambda row: row.gil_waits))
    text = "Time spent waiting for the GIL, of each worker."
    add("gil_wait_seconds_total", text, of_workers(lambda row: row.gil_wait_ns / _BILLION))
    text = "Waits for the GIL, of all workers, those that have ended too."
    add("workers_gil_waits_total", text, shown.gil_waits)
    text = "Time spent waiting for the GIL, of all workers, those that have ended too."
    add("workers_gil_wait_seconds_total", text, shown.gil_wait_ns / _BILLION)
    stalls = [({"kind": row.kind, "at": row.at}, row) for row in board.stalls()]
    text = "Times that a line kept the GIL, a lock or an event loop for long, of all workers."
    add("stalls_total", text, [(labels, row.times) for labels, row in stalls])
    text = "Time for which it did, of all workers."
    add("stall_seconds_total", text, [(labels, row.total_ns / _BILLION) for labels, row in stalls])
    rows = board.routes()
    # Workers have either tasks or requests.
    tasks = any(row.method == TASK for row in rows)
    kind, metrics = ("task", _OF_TASK) if tasks else ("route", _OF_ROUTE)
    of_each = "Of each task." if tasks else "Of the requests of each route."
    for name, text, value in metrics:
        samples = [(_named(row), value(row)) for row in rows]
        add(f"{kind}_{name}_total", f"{text} {of_each}", samples)
    return "\n".join(lines) + "\n"


def _memory_of(row: WorkerRow) -> dict[str, int]:
    source = _read(row.pid) or row
    return {name: getattr(source, name) for name, _ in _MEMORY}


def _read(pid: int) -> ProcessMemory | None:
    try:
        return process_memory(pid)
    except (OSError, RuntimeError):  # gone, another user's, or a kernel without the file
        return None


def _named(row: RouteRow) -> dict[str, str]:
    """Return the labels of a row of the table of routes, which has the tasks too."""
    if row.method == TASK:
        return {"task": row.route}
    return {"http_request_method": row.method, "http_route": row.route}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items()) + "}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# ---- at a path of the application ---------------------------------------------------------------


def wsgi_middleware(app: WsgiApp, path: str, render: Render) -> WsgiApp:
    """Return `app`, with GET and HEAD of exactly `path` answered by the result of `render`.

    path: as the application sees it (PATH_INFO).  Everything else reaches `app` untouched.
    """
    # PEP 3333: the bytes of the path, decoded as latin-1.
    path_info = path.encode().decode("latin-1")

    def with_metrics(
        environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD")
        if environ.get("PATH_INFO") != path_info or method not in _METHODS:
            return app(environ, start_response)
        body = render().encode()
        start_response("200 OK", list(_headers(body).items()))
        return [body if method == "GET" else b""]

    return with_metrics


def asgi_middleware(app: AsgiApp, path: str, render: Render) -> AsgiApp:
    """Return `app`, with GET and HEAD of exactly `path` answered by the result of `render`.

    path: with or without the `root_path` that the server gives.  Everything else, also websockets
    and lifespan, reaches `app` untouched.  `render` runs in the event loop, for some milliseconds.
    """

    async def with_metrics(scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path") or ""
        if (
            scope["type"] != "http"
            or scope["method"] not in _METHODS
            or scope["path"] not in {path, root + path}
        ):
            await app(scope, receive, send)
            return
        body = render().encode()
        headers = [(k.lower().encode(), v.encode()) for k, v in _headers(body).items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        shown = body if scope["method"] == "GET" else b""
        await send({"type": "http.response.body", "body": shown})

    return with_metrics


def add_to_aiohttp(
    app: Any,  # noqa: ANN401  # aiohttp's, or a coroutine function that makes one
    path: Callable[[], str | None],
    render: Render,
    answer: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]],
) -> Any:  # noqa: ANN401
    """Return `app`, with GET and HEAD of the path that `path` returns answered by `render`.

    All other requests are given to `answer`, with their handler.  An Application is changed,
    once.  Raises RuntimeError for one that has been started: then it takes no middleware.
    """
    if not is_aiohttp_application(app):

        async def made() -> Any:  # noqa: ANN401
            found = await app()
            inner = found if is_aiohttp_application(found) else found.app
            add_to_aiohttp(inner, path, render, answer)
            return found

        return made
    if not any(hasattr(each, _OURS) for each in app.middlewares):
        app.middlewares.insert(0, _aiohttp_middleware(path, render, answer))
    return app


def _aiohttp_middleware(
    path: Callable[[], str | None],
    render: Render,
    answer: Callable[[Any, Callable[[Any], Awaitable[Any]]], Awaitable[Any]],
) -> Callable[..., Awaitable[Any]]:
    web: Any = import_module("aiohttp.web")

    async def with_metrics(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
        if request.path != path() or request.method not in _METHODS:
            return await answer(request, handler)
        body = render().encode()
        return web.Response(body=body, headers=_headers(body))

    setattr(with_metrics, _OURS, True)
    marked: Callable[..., Awaitable[Any]] = web.middleware(with_metrics)
    return marked


def _headers(body: bytes) -> dict[str, str]:
    return {
        "Content-Type": CONTENT_TYPE,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
    }


# ---- at a port of its own -----------------------------------------------------------------------


def listen(address: str) -> socket.socket:
    """Return a socket that listens at `address`: made in the master, used in the workers.

    address: '127.0.0.1:9100', 'localhost:9100', '[::1]:9100', or '9100' alone, which is 127.0.0.1:
    the metrics need no login, so other machines must be allowed explicitly (0.0.0.0:9100).  Port 0
    takes a free one.

    Raises ValueError for another form, OSError, with the address in its message, when it cannot
    listen there.
    """
    host, port = host_and_port(address)
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
        family, _, _, _, name = found[0]
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(name)
            sock.listen(_BACKLOG)
        except BaseException:
            sock.close()
            raise
    except UnicodeError:
        raise ValueError(f"{host!r} is not a host name") from None
    except OSError as error:
        why = error.strerror or str(error)
        # gaierror has numbers of its own.
        number = errno.EADDRNOTAVAIL if isinstance(error, socket.gaierror) else error.errno
        raise OSError(number, f"cannot listen on {address} for metrics: {why}") from None
    return sock


def serve_in_thread(sock: socket.socket, render: Render) -> threading.Thread:
    """Answer HTTP requests on `sock` in a daemon thread of this process, and return the thread.

    Called in each worker with the socket that the master made by `listen`: a free worker answers.
    GET and HEAD of /metrics and / are served, each connection once and for 2 seconds at most.  Up
    to 64 clients are waited for at the same time; of more, the one that came first has to go.  The
    thread ends with the process, or when `sock` is shut down.
    """
    thread = threading.Thread(
        target=_serve, args=(sock, render), name="cpythonplus metrics", daemon=True
    )
    thread.start()
    return thread


def _serve(sock: socket.socket, render: Render) -> None:
    # Every worker polls the same socket, and one of them gets the client.
    sock.setblocking(False)  # noqa: FBT003
    with selectors.DefaultSelector() as selector:
        _Clients(sock, render, selector).serve()


class _Client:
    """A connection: the bytes received, the bytes still to be sent, and the deadline."""

    __slots__ = ("answer", "connection", "last_s", "request")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.request = b""
        self.answer = memoryview(b"")
        self.last_s = time.monotonic() + _REQUEST_S


class _Clients:
    """The connections of one port, all waited for together: a silent one does not block others."""

    def __init__(
        self, sock: socket.socket, render: Render, selector: selectors.BaseSelector
    ) -> None:
        self._sock = sock
        self._render = render
        self._selector = selector
        self._clients: dict[_Client, None] = {}
        """In the order of their arrival, and so of their deadlines."""
        self._again_s: float | None = None
        """The time at which connections are accepted again; None: now."""

    def serve(self) -> None:
        """Answer until the port is shut down."""
        self._selector.register(self._sock, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._wait_s()):
                if key.data is not None:
                    self._go_on(key.data)
                elif not self._accept():
                    return
            now = time.monotonic()
            while self._clients and next(iter(self._clients)).last_s <= now:
                self._drop(next(iter(self._clients)))
            if self._again_s is not None and self._again_s <= now:
                self._again_s = None
                self._selector.register(self._sock, selectors.EVENT_READ)

    def _wait_s(self) -> float | None:
        """Return the time until the next deadline, or None."""
        times = [client.last_s for client in islice(self._clients, 1)]
        if self._again_s is not None:
            times.append(self._again_s)
        return max(min(times) - time.monotonic(), 0.0) if times else None

    def _accept(self) -> bool:
        """Accept a client; False when the port is shut down."""
        try:
            connection, _ = self._sock.accept()
        except BlockingIOError:
            return True  # another worker has accepted the client
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EBADF):
                return False
            # Out of descriptors, mostly: asking at once would spin.
            self._selector.unregister(self._sock)
            self._again_s = time.monotonic() + _RETRY_S
            return True
        connection.setblocking(False)  # noqa: FBT003
        if len(self._clients) >= _MOST_CLIENTS:
            self._drop(next(iter(self._clients)))
        client = _Client(connection)
        self._clients[client] = None
        self._selector.register(connection, selectors.EVENT_READ, client)
        return True

    def _drop(self, client: _Client) -> None:
        del self._clients[client]
        self._selector.unregister(client.connection)
        client.connection.close()

    def _go_on(self, client: _Client) -> None:
        if client not in self._clients:
            return  # the client was dropped just now to make room for another one
        try:
            done = self._send(client) if client.answer else self._receive(client)
        except BlockingIOError:
            return
        except OSError:
            done = True  # it has gone
        if done:
            self._drop(client)

    def _receive(self, client: _Client) -> bool:
        """Read the request, and begin to answer it if it is whole; return whether that is all."""
        received = client.connection.recv(_REQUEST_BYTES)
        client.request += received
        if b"\r\n\r\n" in client.request or b"\n\n" in client.request:
            client.answer = memoryview(_response(client.request, self._render))
            self._selector.modify(client.connection, selectors.EVENT_WRITE, client)
            return self._send(client)
        return not received or len(client.request) > _REQUEST_BYTES

    @staticmethod
    def _send(client: _Client) -> bool:
        client.answer = client.answer[client.connection.send(client.answer) :]
        return not client.answer


def _response(request: bytes, render: Render) -> bytes:
    words = request.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/"):  # noqa: PLR2004
        return _message("400 Bad Request", b"not an HTTP request\n")
    method, target, _ = words
    if method not in _METHODS:
        return _message("405 Method Not Allowed", b"GET or HEAD\n", {"Allow": "GET, HEAD"})
    if target.partition("?")[0] not in _PATHS:
        return _message("404 Not Found", b"the metrics are at /metrics\n")
    try:
        answer = _message("200 OK", render().encode())
    except Exception:  # noqa: BLE001  # any error of the user's function; the thread has to go on
        _log.exception("the metrics could not be rendered")
        answer = _message("500 Internal Server Error", b"see the server's log\n")
    return answer if method == "GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _message(status: str, body: bytes, more: Mapping[str, str] | None = None) -> bytes:
    headers = {**_headers(body), **(more or {}), "Connection": "close"}
    if not status.startswith("200"):
        headers["Content-Type"] = "text/plain; charset=utf-8"
    head = "\r\n".join([f"HTTP/1.1 {status}", *(f"{k}: {v}" for k, v in headers.items())])
    return f"{head}\r\n\r\n".encode() + body
