"""A client that sends steadily, a connection for each request, and counts what comes back."""

import contextlib
import http.client
import json
import socket
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SENDERS = 2
PAUSE_S = 0.01
LIMIT_S = 15.0
NOBODY_THERE = ("ConnectionRefusedError", "FileNotFoundError")
"""Errors of a connection to a port, or a unix socket, at which nobody listens."""

Address = int | Path
"""A port of the loopback interface, or the path of a unix socket."""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=LIMIT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(str(self._path))


def connection(address: Address) -> http.client.HTTPConnection:
    """Return a connection that is not open yet."""
    if isinstance(address, Path):
        return _UnixConnection(address)
    return http.client.HTTPConnection("127.0.0.1", address, timeout=LIMIT_S)


def get(address: Address, path: str) -> tuple[int, str]:
    """GET `path` on a connection of its own; status and body."""
    with contextlib.closing(connection(address)) as link:
        link.request("GET", path)
        response = link.getresponse()
        return response.status, response.read().decode()


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Counts:
    """What came back: right answers by worker, refused connections, errors by kind."""

    pids: Counter[int] = field(default_factory=Counter)
    refused: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def ok(self) -> int:
        """Right answers of all workers."""
        return self.pids.total()

    def add(self, more: "Counts") -> None:
        """Add what another period counted."""
        self.pids += more.pids
        self.refused += more.refused
        self.errors += more.errors


class Client:
    """Threads that send one request after the other while the `with` block lasts.

    An answer is right when it is 200 and a JSON object with the worker's `pid`, without a false
    `right`.
    """

    def __init__(self, address: Address) -> None:
        self.total = Counts()
        """Of all periods that were taken."""
        self._address = address
        self._now = Counts()
        self._answered: set[int] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send_on) for _ in range(SENDERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Send no more, and wait for what is on its way."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def take(self) -> Counts:
        """Return what was counted since the last call, and count anew."""
        with self._lock:
            counts, self._now = self._now, Counts()
        self.total.add(counts)
        return counts

    def answered(self) -> set[int]:
        """Return the workers that answered since the last `forget`."""
        with self._lock:
            return set(self._answered)

    def forget(self) -> None:
        """Let `answered` begin anew."""
        with self._lock:
            self._answered.clear()

    def _send_on(self) -> None:
        while not self._over.wait(PAUSE_S):
            self._send()

    def _send(self) -> None:
        error, pid = "", 0
        try:
            status, body = get(self._address, "/")
            answer = json.loads(body) if status == http.HTTPStatus.OK else {}
            if not answer:
                error = f"status {status}"
            elif not answer.get("right", True):
                error = "wrong answer"
            else:
                pid = answer["pid"]
        except (OSError, http.client.HTTPException, ValueError) as problem:
            error = type(problem).__name__
        with self._lock:
            if error in NOBODY_THERE:
                self._now.refused += 1
            elif error:
                self._now.errors[error] += 1
            else:
                self._now.pids[pid] += 1
                self._answered.add(pid)
