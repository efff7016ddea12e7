"""Worker: the client of an echo server, always run by the stock interpreter.

Parameters: port, server (its process), kind (echo, churn), connections, folder (of the certificate;
"" without TLS), seconds, warmup_s.

It shares two cores with the server, so it does as little as it can: one thread, fixed bytes, and
edge-triggered epoll, which looks at a connection again only when something has come. Each
connection has one request under way.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import ssl
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import worker
from benchmarks.tasklet_io.workers import CHAIN, HOST, allow_descriptors

MESSAGE = bytes(range(64))

READY_S = 30.0
"""How long a server may take for its first answer, and for a handshake."""
ANSWER_S = 20.0
"""How long nothing at all may come while answers are waited for."""

SOURCES = [(f"127.0.0.{last}", 0) for last in range(2, 202)]
"""Where connections that come and go are from.

A closed one keeps its port for a time. From one address the kernel would soon look for a free one
longer than for anything else.
"""
BIND_ADDRESS_NO_PORT = 24
"""Linux's option to choose a port when it connects; `socket` has a name for it from 3.12 on."""

Calls = tuple[Callable[[bytearray], int], Callable[[bytes], int]]
"""A connection's `recv_into` and `send`."""


def cpu_ns(process: int) -> int:
    """Return the CPU time of all threads of `process` so far, in nanoseconds.

    The clock's number is made as clock_getcpuclockid(3) makes it on Linux.
    """
    return time.clock_gettime_ns(~process << 3 | 2)


# ---- connections that stay ----------------------------------------------------------------------


class Connections:
    """Connections that each send the message again as soon as it has come back."""

    def __init__(self, port: int, count: int, context: ssl.SSLContext | None) -> None:
        """Connect and shake hands. Raises OSError."""
        self._epoll = select.epoll()
        self._sockets = [connect(port, context) for _ in range(count)]
        self._calls: dict[int, Calls] = {}
        self._sent_ns: dict[int, int] = {}
        self._missing: dict[int, int] = {}
        self._buffer = bytearray(2 * len(MESSAGE))
        for connection in self._sockets:
            connection.settimeout(0)
            self._calls[connection.fileno()] = connection.recv_into, connection.send
            self._epoll.register(connection, select.EPOLLIN | select.EPOLLET)

    def begin(self) -> None:
        """See that each connection is answered, and send a request over each. Raises OSError."""
        self._send()
        self.drain()
        self._send()

    def _send(self) -> None:
        for descriptor, (_, send) in self._calls.items():
            self._sent_ns[descriptor] = time.perf_counter_ns()
            send(MESSAGE)

    def exchange(self, seconds: float) -> array[int]:
        """Answer each answer with the next request for so long; return the latencies in ns."""
        latencies_ns = array("q")
        poll, calls, sent_ns, buffer = self._epoll.poll, self._calls, self._sent_ns, self._buffer
        keep, now, message, size = latencies_ns.append, time.perf_counter_ns, MESSAGE, len(MESSAGE)
        end = now()
        deadline = end + int(seconds * 1e9)
        while end < deadline:
            events = poll(ANSWER_S)
            end = now()
            for descriptor, _ in events or unanswered():
                receive, send = calls[descriptor]
                try:
                    got = receive(buffer)
                except (BlockingIOError, ssl.SSLWantReadError):
                    continue  # a session ticket, or a piece of a record
                if got != size and not self._is_last_piece(descriptor, got):
                    continue
                end = now()
                keep(end - sent_ns[descriptor])
                sent_ns[descriptor] = end
                send(message)
        return latencies_ns

    def drain(self) -> array[int]:
        """Wait for what is under way and send no more; return the latencies in ns."""
        latencies_ns = array("q")
        waiting = set(self._calls)
        while waiting:
            for descriptor, _ in self._epoll.poll(ANSWER_S) or unanswered():
                with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
                    got = self._calls[descriptor][0](self._buffer)
                    if got == len(MESSAGE) or self._is_last_piece(descriptor, got):
                        latencies_ns.append(time.perf_counter_ns() - self._sent_ns[descriptor])
                        waiting.discard(descriptor)
        return latencies_ns

    def close(self) -> None:
        """Close all connections."""
        for connection in self._sockets:
            connection.close()
        self._epoll.close()

    def _is_last_piece(self, descriptor: int, got: int) -> bool:
        """Note that so many bytes have come; return whether the answer is complete."""
        if not got:
            raise SystemExit("the server closed a connection")
        left = self._missing.pop(descriptor, len(MESSAGE)) - got
        if left > 0:
            self._missing[descriptor] = left
        return left <= 0


def connect(port: int, context: ssl.SSLContext | None) -> socket.socket:
    """Return a connection to the server, which has shaken hands; raises OSError."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=READY_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is None:
        return connection
    return context.wrap_socket(connection, server_hostname=HOST)


def unanswered() -> list[tuple[int, int]]:
    """End the process."""
    raise SystemExit(f"no answer came for {ANSWER_S:.0f} s")


# ---- connections that come and go ---------------------------------------------------------------


class Churn:
    """Connections that are closed after one answer, and replaced."""

    def __init__(self, port: int, count: int) -> None:
        """Have `count` connections at a time."""
        self._address = ("127.0.0.1", port)
        self._count = count
        self._epoll = select.epoll()
        self._open: dict[int, tuple[socket.socket, int]] = {}
        self._sources = itertools.cycle(SOURCES)

    def begin(self) -> None:
        """Open the connections and send a request over each. Raises OSError."""
        for _ in range(self._count):
            self._begin_one()

    def exchange(self, seconds: float) -> array[int]:
        """Replace each connection that is answered for so long; return the latencies in ns."""
        latencies_ns = array("q")
        deadline = time.perf_counter_ns() + int(seconds * 1e9)
        while time.perf_counter_ns() < deadline:
            for descriptor, _ in self._epoll.poll(ANSWER_S) or unanswered():
                latencies_ns.append(self._end_one(descriptor))
                self._begin_one()
        return latencies_ns

    def drain(self) -> array[int]:
        """Wait for what is under way and begin no more; return the latencies in ns."""
        latencies_ns = array("q")
        while self._open:
            for descriptor, _ in self._epoll.poll(ANSWER_S) or unanswered():
                latencies_ns.append(self._end_one(descriptor))
        return latencies_ns

    def close(self) -> None:
        """Close what is still open."""
        for connection, _ in self._open.values():
            connection.close()
        self._epoll.close()

    def _begin_one(self) -> None:
        start = time.perf_counter_ns()
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_IP, BIND_ADDRESS_NO_PORT, 1)
        connection.bind(next(self._sources))
        # Over loopback it does not wait: the kernel shakes hands with itself.
        connection.connect(self._address)
        connection.send(MESSAGE)
        self._open[connection.fileno()] = connection, start
        self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _end_one(self, descriptor: int) -> int:
        connection, start = self._open.pop(descriptor)
        left = len(MESSAGE)
        with connection:
            while left:
                piece = connection.recv(left)
                if not piece:
                    raise SystemExit("the server closed a connection")
                left -= len(piece)
        return time.perf_counter_ns() - start


# ---- the measurement ----------------------------------------------------------------------------


def trusting(folder: str) -> ssl.SSLContext | None:
    """Return a context that trusts the certificate in `folder`; None without TLS."""
    return ssl.create_default_context(cafile=str(Path(folder) / CHAIN)) if folder else None


def await_server(port: int, context: ssl.SSLContext | None) -> None:
    """Wait until one request is answered. Raises OSError."""
    with connect(port, context) as connection:
        connection.sendall(MESSAGE)
        if not connection.recv(len(MESSAGE)):
            raise SystemExit("the server closed the first connection")


def measured(parameters: dict[str, Any]) -> dict[str, Any]:
    """Warm up, measure, and return rate, latencies, and what it took of which processor."""
    port, process = parameters["port"], parameters["server"]
    context = trusting(parameters["folder"])
    await_server(port, context)
    count = parameters["connections"]
    churns = parameters["kind"] == "churn"
    load = Churn(port, count) if churns else Connections(port, count, context)
    load.begin()
    load.exchange(parameters["warmup_s"])
    start, own_ns, servers_ns = time.perf_counter_ns(), time.process_time_ns(), cpu_ns(process)
    latencies_ns = load.exchange(parameters["seconds"])
    elapsed_ns = time.perf_counter_ns() - start
    own_ns, servers_ns = time.process_time_ns() - own_ns, cpu_ns(process) - servers_ns
    completed = len(latencies_ns)
    # The longest waits may be among those under way; they did not end inside the window.
    latencies_ns += load.drain()
    load.close()
    return {
        "rate": completed * 1e9 / elapsed_ns,
        "latencies_ns": latencies_ns.tolist(),
        "figures": {
            "per_cpu_s": completed * 1e9 / max(servers_ns, 1),  # 0 of 0 where it never ran
            "server_percent": 100 * servers_ns / elapsed_ns,
            "client_percent": 100 * own_ns / elapsed_ns,
        },
    }


def main() -> None:
    """Measure and report."""
    parameters = worker.begin()
    allow_descriptors(parameters["connections"])
    worker.finish(parameters, measured(parameters))


if __name__ == "__main__":
    main()
