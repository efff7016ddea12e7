"""Worker: the standard library's threaded HTTP server, one thread for each connection.

Parameters: fd (listening socket), cpu_threads, warmup_s. Serves until it is ended.
"""

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.common import worker
from benchmarks.testserver.answers import answer
from benchmarks.testserver.background import WORK_PATH, Background


class Handler(BaseHTTPRequestHandler):
    """Answers GET with JSON and keeps the connection."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet, sent at once. Two small packets meet Nagle's algorithm and
    # delayed acknowledgements, and the benchmark would show 40 ms of TCP and nothing else.
    wbufsize = -1
    disable_nagle_algorithm = True
    background: Background

    def do_GET(self) -> None:
        """Answer with the background job's progress or with a small document."""
        body = self.background.progress() if self.path == WORK_PATH else answer(len(self.path))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Serves on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listener: socket.socket) -> None:
        """Take over `listener`."""
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


def main() -> None:
    """Serve."""
    parameters = worker.begin()
    Handler.background = Background(parameters["cpu_threads"], parameters["warmup_s"])
    with Server(socket.socket(fileno=parameters["fd"])) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
