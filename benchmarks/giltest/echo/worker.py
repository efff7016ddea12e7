"""Worker: a TCP echo server thread beside CPU-bound threads.

Parameters: fd (listening socket), cpu_threads, warmup_s. Serves two connections, one after the
other: the client's warm-up and its measurement; what the CPU threads did is taken over the second.
"""

import socket
import threading
from typing import Any

from benchmarks.common import cpu, worker

MESSAGE_BYTES = 64


class EchoServer:
    """Answers each message with itself, with blocking calls, as a simple service does."""

    def __init__(self, listener: socket.socket, threads: cpu.CpuThreads) -> None:
        """Serve connections of `listener`; `threads` are observed while the second one lasts."""
        self.thread = threading.Thread(target=self._run, name="echo")
        self.before: dict[str, Any] = {}
        self.after: dict[str, Any] = {}
        self._listener = listener
        self._threads = threads

    def _run(self) -> None:
        self._serve()
        self._serve()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            receive, send = connection.recv, connection.sendall
            self.before = self._threads.snapshot()
            while message := receive(MESSAGE_BYTES):
                send(message)
            self.after = self._threads.snapshot()


def main() -> None:
    """Serve and report the CPU threads' shares."""
    parameters = worker.begin()
    count = parameters["cpu_threads"]
    solo = cpu.solo_rate(parameters["warmup_s"]) if count else 0.0
    threads = cpu.CpuThreads(count)
    with socket.socket(fileno=parameters["fd"]) as listener:
        server = EchoServer(listener, threads)
        threads.start()
        server.thread.start()
        server.thread.join()
    threads.stop()
    shares = cpu.shares(server.before, server.after, solo) if count else []
    worker.finish(parameters, {"shares": shares})


if __name__ == "__main__":
    main()
