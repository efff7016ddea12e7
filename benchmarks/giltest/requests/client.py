"""Worker: the client of the computing server, always run by the stock interpreter.

Parameters: port, connections, work_ms, load, seconds, warmup_s. An open loop: when a request is due
was settled before the first one was sent, and no answer, however late, puts another request off. A
latency begins when its request was due, so that what waits behind a slow one, on the wire or here,
is counted (there is no 'coordinated omission').
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import random
import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence

from benchmarks.common import worker
from benchmarks.giltest.requests import protocol

SEED = 10_752
"""One with which in all cases the requests need 30 % of a core, give or take 1 % of that.

At 1 ms it is 3 %. With two hundred requests, others are off by 10 %, and a queue is very sensitive
to its load.
"""

LEAD_NS = 10_000_000
"""How long after it was settled a schedule begins."""


def arrivals(seed: int, mean_ns: float, length_ns: float) -> Iterator[int]:
    """Yield when requests are due, in ns from the beginning: a Poisson process of `length_ns`.

    Times between arrivals are exponentially distributed with `mean_ns`, each independent of all
    others. The same seed gives the same pattern, stretched by `mean_ns`.
    """
    chosen = random.Random(seed)  # noqa: S311 - the same every time is what is wanted
    due = chosen.expovariate(1.0) * mean_ns
    while due < length_ns:
        yield int(due)
        due += chosen.expovariate(1.0) * mean_ns


def schedule(connections: int, mean_ns: float, length_ns: float) -> list[tuple[int, int]]:
    """Return (when due, on which connection) of all requests, in order.

    Each connection is a Poisson process of its own. The plan is the same for both sides and beside
    any number of CPU threads: what is due at once is due at once in all of them.
    """

    def plan(place: int) -> Iterator[tuple[int, int]]:
        return ((due, place) for due in arrivals(SEED + place, mean_ns, length_ns))

    return list(heapq.merge(*map(plan, range(connections))))


class OpenLoop:
    """Sends requests when they are due and keeps what the answers took."""

    def __init__(
        self, connections: Sequence[socket.socket], planned: Sequence[tuple[int, int]]
    ) -> None:
        """Take what to send: `planned`, as of `schedule`, but in ns of `time.perf_counter_ns`."""
        self.latencies_ns = array("q")
        """Of the requests that were due from `measured_from_ns` on."""
        self.late_ns = array("q")
        """How long after they were due those requests were sent."""
        self.measured_from_ns = 0
        self._connections = connections
        self._places = {connection: place for place, connection in enumerate(connections)}
        self._planned = planned
        self._next = 0
        # Answers come in the order of the requests, on each connection.
        self._under_way: list[deque[int]] = [deque() for _ in connections]

    def run(self, until_ns: int) -> None:
        """Send and receive until the given time. Raises ConnectionError."""
        while (now := time.perf_counter_ns()) < until_ns:
            self._send_what_is_due(now)
            wake_ns = until_ns
            if self._next < len(self._planned):
                wake_ns = min(wake_ns, self._planned[self._next][0])
            # Not epoll, whose time-outs are whole milliseconds: longer than a request takes.
            left_s = max(0, wake_ns - time.perf_counter_ns()) / 1e9
            for connection in select.select(self._connections, (), (), left_s)[0]:
                self._receive(connection)

    def unanswered(self, until_ns: int) -> list[int]:
        """Return when the requests that were due by then and have no answer were due."""
        under_way = (due for queue in self._under_way for due in queue)
        # A wake-up that comes late may leave one that was due at the very end.
        unsent = (due for due, _ in self._planned[self._next :])
        dues = itertools.chain(under_way, unsent)
        return [due for due in dues if self.measured_from_ns <= due < until_ns]

    def _send_what_is_due(self, now: int) -> None:
        while self._next < len(self._planned) and self._planned[self._next][0] <= now:
            due, place = self._planned[self._next]
            self._next += 1
            self._connections[place].sendall(protocol.REQUEST)
            self._under_way[place].append(due)
            if due >= self.measured_from_ns:
                self.late_ns.append(time.perf_counter_ns() - due)

    def _receive(self, connection: socket.socket) -> None:
        answers = connection.recv(4096)
        now = time.perf_counter_ns()
        if not answers:
            raise ConnectionError("the server closed a connection")
        queue = self._under_way[self._places[connection]]
        for _ in answers:
            due = queue.popleft()
            if due >= self.measured_from_ns:
                self.latencies_ns.append(now - due)


def connect(port: int) -> socket.socket:
    """Return a connection to `port` on loopback that does not hold small messages back."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def go_first() -> None:
    """Let this process go before others that want its core, where the system allows it.

    The kernel likes to have a handler on the core of the client that woke it, and lets it compute
    there for some milliseconds though the client's next request is due. A client on a machine of
    its own would not wait. Pinning client and server to a core each was rejected: with one core,
    the kernel's choice among the server's threads would be measured as well as the GIL's.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def await_word(control: socket.socket, word: bytes) -> None:
    """Wait until the server says `word`; ends this process where it says anything else."""
    if control.recv(1) != word:
        raise SystemExit("the server went away")


def main() -> None:
    """Warm up, measure, report."""
    parameters = worker.begin()
    count, port = parameters["connections"], parameters["port"]
    warmup_ns, length_ns = parameters["warmup_s"] * 1e9, parameters["seconds"] * 1e9
    mean_ns = parameters["work_ms"] * 1e6 * count / parameters["load"]
    control = connect(port)  # the first one that the server accepts
    connections = [connect(port) for _ in range(count)]
    await_word(control, protocol.READY)
    planned = schedule(count, mean_ns, warmup_ns + length_ns)
    go_first()
    start_ns = time.perf_counter_ns() + LEAD_NS
    loop = OpenLoop(connections, [(start_ns + due, place) for due, place in planned])
    begin_ns = loop.measured_from_ns = start_ns + int(warmup_ns)
    end_ns = begin_ns + int(length_ns)
    loop.run(begin_ns)
    control.sendall(protocol.BEGIN)
    loop.run(end_ns)
    control.sendall(protocol.END)
    unanswered = loop.unanswered(end_ns)
    # They have waited so long at least. To leave them out would hide just the longest waits.
    loop.latencies_ns.extend(end_ns - due for due in unanswered)
    await_word(control, protocol.NOTED)
    for connection in (*connections, control):
        connection.close()
    worker.finish(
        parameters,
        {
            "latencies_ns": loop.latencies_ns.tolist(),
            "late_ns": loop.late_ns.tolist(),
            "unanswered": len(unanswered),
        },
    )


if __name__ == "__main__":
    main()
