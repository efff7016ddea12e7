"""Worker: the client of the echo server, always run by the stock interpreter.

Parameters: port, seconds, warmup_s. Sends one message, waits for the answer, and so on: a closed
loop with one message under way.
"""

from __future__ import annotations

import socket
import time
from array import array

from benchmarks.common import worker

MESSAGE = bytes(range(64))


def exchange(port: int, seconds: float) -> tuple[array[int], int]:
    """Exchange messages over one connection for `seconds`.

    Returns the latency of each exchange and the time from the first one's begin to the last
    one's end, in nanoseconds. The first exchange on the connection is not counted: it waits for
    the server's accept as well.
    """
    latencies_ns = array("q")
    keep, now = latencies_ns.append, time.perf_counter_ns
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send, receive = connection.sendall, connection.recv
        begin = deadline = 0
        while True:
            start = now()
            send(MESSAGE)
            missing = len(MESSAGE)
            while missing:
                part = receive(missing)
                if not part:
                    raise ConnectionError("the echo server closed the connection")
                missing -= len(part)
            end = now()
            if not begin:
                begin, deadline = end, end + int(seconds * 1e9)
                continue
            keep(end - start)
            if end >= deadline:
                return latencies_ns, end - begin


def main() -> None:
    """Warm up, measure, report."""
    parameters = worker.begin()
    exchange(parameters["port"], parameters["warmup_s"])
    latencies_ns, elapsed_ns = exchange(parameters["port"], parameters["seconds"])
    worker.finish(
        parameters,
        {"rate": len(latencies_ns) * 1e9 / elapsed_ns, "latencies_ns": latencies_ns.tolist()},
    )


if __name__ == "__main__":
    main()
