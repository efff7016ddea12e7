"""Worker: a server whose requests compute, a thread for each connection, beside CPU-bound threads.

Parameters: fd (listening socket), connections, work_ms, cpu_threads. The first connection is the
control connection, on which the client says when its measurement begins and ends.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.common import cpu, worker
from benchmarks.giltest.requests import protocol

_STEPS = 50
"""Between two looks at the clock: about a microsecond."""


def compute(cpu_ns: int) -> None:
    """Compute, in pure Python, until this thread has used `cpu_ns` of CPU time more."""
    end = time.thread_time_ns() + cpu_ns
    while time.thread_time_ns() < end:
        for _ in range(_STEPS):
            pass


class Handler:
    """Serves one connection with blocking calls: receive, compute, send."""

    def __init__(self, connection: socket.socket, work_ns: int) -> None:
        """Serve `connection`; each request on it computes for `work_ns`."""
        self.answered = 0
        self.stopping = False
        self.thread = threading.Thread(target=self._run, name="handler", daemon=True)
        self._connection = connection
        self._work_ns = work_ns

    def _run(self) -> None:
        connection, work_ns = self._connection, self._work_ns
        # A client that measured long enough closes on requests that it sent.
        with connection, contextlib.suppress(ConnectionError):
            while connection.recv(1) and not self.stopping:
                compute(work_ns)
                self.answered += 1
                connection.sendall(protocol.ANSWER)


def snapshot(handlers: Sequence[Handler], threads: cpu.CpuThreads) -> dict[str, Any]:
    """Return the time, what was answered, and the CPU time of both kinds of threads up to now."""
    idents = [h.thread.ident for h in handlers if h.thread.ident is not None]
    clocks = [time.pthread_getcpuclockid(ident) for ident in idents]
    found = threads.snapshot()
    return {
        "time_ns": found["time_ns"],
        "answered": sum(handler.answered for handler in handlers),
        "computing_ns": sum(found["cpu_ns"]),
        "requests_ns": sum(time.clock_gettime_ns(clock) for clock in clocks),
    }


def measured(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """Return what happened between two snapshots, per second or as part of a core."""
    elapsed_ns = after["time_ns"] - before["time_ns"]
    return {
        "answered_per_s": (after["answered"] - before["answered"]) * 1e9 / elapsed_ns,
        "computing_cpu": (after["computing_ns"] - before["computing_ns"]) / elapsed_ns,
        "requests_cpu": (after["requests_ns"] - before["requests_ns"]) / elapsed_ns,
    }


def accept(listener: socket.socket) -> socket.socket:
    """Return the next connection; it does not hold small messages back."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def await_word(control: socket.socket, word: bytes) -> None:
    """Wait until the client says `word`; ends this process where it says anything else."""
    if control.recv(1) != word:
        raise SystemExit("the client went away")


def main() -> None:
    """Serve, and report what the requests and the CPU threads used meanwhile."""
    parameters = worker.begin()
    work_ns = int(parameters["work_ms"] * 1e6)
    threads = cpu.CpuThreads(parameters["cpu_threads"])
    with socket.socket(fileno=parameters["fd"]) as listener:
        control = accept(listener)
        handlers = [Handler(accept(listener), work_ns) for _ in range(parameters["connections"])]
    for handler in handlers:
        handler.thread.start()
    threads.start()
    with control:
        control.sendall(protocol.READY)
        await_word(control, protocol.BEGIN)
        before = snapshot(handlers, threads)
        await_word(control, protocol.END)
        # While their threads run: one that has ended has no clock any more.
        after = snapshot(handlers, threads)
        control.sendall(protocol.NOTED)
    for handler in handlers:
        handler.stopping = True
    threads.stop()
    for handler in handlers:
        handler.thread.join()
    worker.finish(parameters, {**measured(before, after)})


if __name__ == "__main__":
    main()
