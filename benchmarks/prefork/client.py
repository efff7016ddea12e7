"""Worker: a fixed number of mixed requests over several connections, every latency kept.

Parameters: port, items, requests, unmeasured, connections. The first `unmeasured` requests count
for errors only. Closed loop: a connection sends its next request when the one before is answered.
A request that fails is counted with its reason and not repeated.
"""

from __future__ import annotations

import select
import time
from array import array
from collections import Counter
from collections.abc import Iterator

from benchmarks.common import loadgen, worker
from benchmarks.prefork import mix

SILENCE_S = 60.0
"""After so long without any answer nothing more is waited for."""


class Load:
    """The requests of all connections and what became of them."""

    def __init__(self, port: int, paths: Iterator[str], unmeasured: int) -> None:
        """Prepare to send `paths` to `port`; the first `unmeasured` are not timed."""
        self._port = port
        self._paths = paths
        self._unmeasured = unmeasured
        self._connections: dict[int, loadgen.Connection] = {}
        self._poll = select.epoll()
        self._ended = 0
        self.latencies_ns = array("q")
        self.errors: Counter[str] = Counter()
        self.began_ns = 0
        """When the first measured request was sent."""

    def run(self, connections: int) -> None:
        """Send everything and wait for the answers."""
        for _ in range(connections):
            self._next()
        while self._connections:
            events = self._poll.poll(SILENCE_S)
            if not events:
                self.errors["no answer"] += len(self._connections)
                break
            for descriptor, _ in events:
                self._receive(descriptor)
        self._poll.close()

    def _receive(self, descriptor: int) -> None:
        connection = self._connections[descriptor]
        try:
            answer = connection.receive()
        except (OSError, loadgen.AnswerError) as error:
            self._over(descriptor, connection, str(error) or type(error).__name__)
            return
        if answer is None:
            return
        if self._ended >= self._unmeasured:
            self.latencies_ns.append(time.perf_counter_ns() - connection.sent_ns)
        self._over(descriptor, connection)

    def _over(self, descriptor: int, connection: loadgen.Connection, reason: str = "") -> None:
        """Note that a request has ended, and how; begin another one."""
        if reason:
            self.errors[reason] += 1
        self._poll.unregister(descriptor)
        del self._connections[descriptor]
        # gunicorn's sync worker closes after each answer: there is nothing to be kept.
        connection.socket.close()
        self._ended += 1
        self._next()

    def _next(self) -> None:
        """Send the next request on a connection of its own; those that cannot be sent failed."""
        if not self.began_ns and self._ended >= self._unmeasured:
            self.began_ns = time.perf_counter_ns()
        for path in self._paths:
            try:
                connection = loadgen.Connection(self._port)
                connection.send(loadgen.request_for(path))
            except OSError as error:
                self.errors[f"cannot connect: {error}"] += 1
                self._ended += 1
                continue
            self._connections[connection.socket.fileno()] = connection
            self._poll.register(connection.socket.fileno(), select.EPOLLIN)
            return


def main() -> None:
    """Send the load; report the latencies, how long it took, and what failed."""
    parameters = worker.begin()
    paths = mix.paths(parameters["items"], parameters["requests"])
    load = Load(parameters["port"], paths, parameters["unmeasured"])
    load.run(parameters["connections"])
    worker.finish(
        parameters,
        {
            "latencies_ns": load.latencies_ns.tolist(),
            "elapsed_ns": time.perf_counter_ns() - load.began_ns,
            "errors": dict(load.errors),
        },
    )


if __name__ == "__main__":
    main()
