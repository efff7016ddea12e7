"""A small HTTP load generator: closed loop, keep-alive, every latency kept.

One thread and one epoll object drive all connections; each has one request under way and sends
the next as soon as the answer is complete, or after the user behind it has thought for a while.
It understands just what the test servers speak:
HTTP/1.1 answers with Content-Length. Everything else counts as an error and is never retried
silently. Why it exists is in the README of `benchmarks`.

Run as a script it is a worker (see `worker`). Parameters: port, path, work_path, connections,
seconds, warmup_s, think_s.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import random
import re
import select
import socket
import time
from array import array
from collections import Counter
from typing import Any

from benchmarks.common import worker

READY_S = 30.0
"""How long a server may take to give its first answer."""
DRAIN_S = 20.0
"""How long requests that are under way at the end of the window are waited for."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n", re.IGNORECASE)


class AnswerError(Exception):
    """The server answered something that is not understood here, or not what was asked for."""


class Answer:
    """Puts one answer together from the pieces that arrive."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._data = bytearray()
        self._head = 0
        self._total = 0
        self.closes = False
        """Whether the server said that it closes the connection after this answer."""

    def feed(self, piece: bytes) -> bool:
        """Add `piece`; return whether the answer is complete. Raises AnswerError."""
        self._data += piece
        if not self._total and not self._parse_head():
            return False
        if len(self._data) > self._total:
            raise AnswerError("more data than announced")
        return len(self._data) == self._total

    def body(self) -> bytes:
        """Return the body of a complete answer."""
        return bytes(self._data[self._head :])

    def _parse_head(self) -> bool:
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._data[: end + 2])
        status = head[9:12]
        if not head.startswith(b"HTTP/1.") or not status.isdigit():
            raise AnswerError("no HTTP answer")
        if not status.startswith(b"2"):
            raise AnswerError(f"status {status.decode()}")
        length = _LENGTH.search(head)
        if length is None:
            raise AnswerError("no Content-Length")
        self._head = end + 4
        self._total = self._head + int(length.group(1))
        self.closes = _CLOSE.search(head) is not None
        return True


class Connection:
    """One connection with at most one request under way."""

    def __init__(self, port: int, *, reports: bool = False) -> None:
        """Connect to `port` on loopback. Raises OSError.

        `reports` marks the connection as one that asks for the server's own figures, which is
        not part of the load.
        """
        self.reports = reports
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=READY_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(0)
        self.sent_ns = 0
        """When the request under way was sent; 0 when there is none."""
        self._answer = Answer()

    def send(self, request: bytes) -> None:
        """Send `request`; it is small enough for an empty socket buffer. Raises OSError."""
        self._answer = Answer()
        self.sent_ns = time.perf_counter_ns()
        self.socket.send(request)

    def receive(self) -> Answer | None:
        """Take what has arrived; return the answer when complete. Raises OSError, AnswerError."""
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionResetError("closed by the server")
        return self._answer if self._answer.feed(piece) else None


class Load:
    """The requests of all connections and what became of them."""

    def __init__(self, port: int, path: str, connections: int, think_s: float = 0) -> None:
        """Prepare `connections` connections to `port` that ask for `path`.

        With `think_s` each user thinks for so long on the average, exponentially distributed,
        before a request. The seed is fixed: both sides meet the same users.
        """
        self._port = port
        self._think_s = think_s
        self._chosen = random.Random(1)  # noqa: S311 - the same every time is what is wanted
        self._thinking: list[tuple[int, int, Connection]] = []
        self._thoughts = itertools.count()
        self._request = request_for(path)
        self._count = connections
        self._connections: dict[int, Connection] = {}
        self._epoll = select.epoll()
        self._sending = True
        self._measuring_from = 0
        self.latencies_ns = array("q")
        """Of the requests that were sent inside the window."""
        self.completed = 0
        """Answers that were complete inside the window."""
        self.errors: Counter[str] = Counter()
        """Requests of the window that failed, by reason."""
        self.reports: list[Any] = []
        """The JSON documents that `ask` was answered with."""

    def open(self) -> None:
        """Connect and send, or think about, the first requests. Raises OSError."""
        for _ in range(self._count):
            self._open_one()

    def run(self, seconds: float) -> None:
        """Keep the load up for `seconds`."""
        deadline = time.perf_counter_ns() + int(seconds * 1e9)
        while (now := time.perf_counter_ns()) < deadline:
            while self._thinking and self._thinking[0][0] <= now:
                connection = heapq.heappop(self._thinking)[2]
                # One that the server has closed is noticed, and counted, where answers are.
                with contextlib.suppress(OSError):
                    connection.send(self._request)
            wake = deadline
            if self._thinking:
                wake = min(wake, self._thinking[0][0])
            self._handle((wake - now) / 1e9)

    def begin_window(self) -> None:
        """Count from now on."""
        self.completed = 0
        self._measuring_from = time.perf_counter_ns()

    def ask(self, path: str) -> None:
        """Ask for the JSON document at `path` beside the load; it comes to `reports`.

        Not waited for, so that the answers of the load are not left lying meanwhile. Raises
        OSError.
        """
        self._connect(reports=True).send(request_for(path))

    def drain(self, limit_s: float) -> None:
        """Send nothing more, wait for the requests under way; late ones count as errors.

        They are latencies like all others, and the longest are among them: to drop them would
        hide just the waits that matter. They are not counted as completed in the window.
        """
        self._sending = False
        self._thinking.clear()
        completed = self.completed
        deadline = time.perf_counter() + limit_s
        while self._under_way() and (left := deadline - time.perf_counter()) > 0:
            self._handle(left)
        self.completed = completed
        if late := self._under_way():
            self.errors["no answer"] += late

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.socket.close()
        self._connections.clear()
        self._epoll.close()

    def _under_way(self) -> int:
        return sum(1 for c in self._connections.values() if c.sent_ns)

    def _connect(self, *, reports: bool = False) -> Connection:
        connection = Connection(self._port, reports=reports)
        self._connections[connection.socket.fileno()] = connection
        self._epoll.register(connection.socket.fileno(), select.EPOLLIN)
        return connection

    def _open_one(self) -> None:
        self._ask_next(self._connect())

    def _ask_next(self, connection: Connection) -> None:
        """Send the next request, at once or once its user has thought."""
        if not self._think_s:
            connection.send(self._request)
            return
        thought_ns = int(self._chosen.expovariate(1 / self._think_s) * 1e9)
        due = time.perf_counter_ns() + thought_ns
        heapq.heappush(self._thinking, (due, next(self._thoughts), connection))

    def _handle(self, timeout: float) -> None:
        for descriptor, _ in self._epoll.poll(timeout):
            connection = self._connections[descriptor]
            try:
                answer = connection.receive()
                if answer is not None:
                    self._complete(connection, answer)
            except (OSError, AnswerError, ValueError) as error:
                self._fail(descriptor, connection, str(error) or type(error).__name__)

    def _complete(self, connection: Connection, answer: Answer) -> None:
        now = time.perf_counter_ns()
        if connection.reports:
            self.reports.append(json.loads(answer.body()))
            connection.sent_ns = 0
            return
        self.completed += 1
        if self._measuring_from and connection.sent_ns >= self._measuring_from:
            self.latencies_ns.append(now - connection.sent_ns)
        connection.sent_ns = 0
        if answer.closes:
            self._replace(connection.socket.fileno(), connection)
        elif self._sending:
            self._ask_next(connection)

    def _fail(self, descriptor: int, connection: Connection, reason: str) -> None:
        if self._measuring_from and connection.sent_ns:
            self.errors[reason] += 1
        connection.sent_ns = 0
        self._replace(descriptor, connection)

    def _replace(self, descriptor: int, connection: Connection) -> None:
        self._epoll.unregister(descriptor)
        del self._connections[descriptor]
        connection.socket.close()
        if self._sending and not connection.reports:
            try:
                self._open_one()
            except OSError as error:
                self.errors[f"cannot connect: {error}"] += 1


def request_for(path: str) -> bytes:
    """Return the request for `path`."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode()


def await_first_answer(port: int, path: str, timeout: float) -> None:
    """Ask for `path` and wait at most `timeout` seconds. Raises OSError, AnswerError."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(request_for(path))
        answer = Answer()
        while not answer.feed(piece := connection.recv(65536)):
            if not piece:
                raise ConnectionResetError("closed by the server")


def main() -> None:
    """Wait for the server, warm up, measure, report."""
    parameters = worker.begin()
    port, work_path = parameters["port"], parameters["work_path"]
    await_first_answer(port, work_path, READY_S)
    load = Load(port, parameters["path"], parameters["connections"], parameters["think_s"])
    load.open()
    load.run(parameters["warmup_s"])
    load.begin_window()
    load.ask(work_path)
    load.run(parameters["seconds"])
    load.ask(work_path)
    load.drain(DRAIN_S)
    load.close()
    worker.finish(
        parameters,
        {
            "completed": load.completed,
            "latencies_ns": load.latencies_ns.tolist(),
            "errors": dict(load.errors),
            "reports": load.reports,
        },
    )


if __name__ == "__main__":
    main()
