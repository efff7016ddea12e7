"""What stands for Sentry's own server: it keeps the events that a service sends."""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Event = dict[str, Any]


class SentrySink:
    """A server on loopback for the time of a `with` block."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.unreadable: list[str] = []
        """What went wrong with a request, as when two processes write into one connection."""
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # the name that http.server calls
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                sink.events += events(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # their name
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                problem = sys.exception()
                # A client that is killed, or ends, leaves its connection as it is.
                if not isinstance(problem, ConnectionError):
                    sink.unreadable.append(repr(problem))

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def dsn(self) -> str:
        """The address that a service is given."""
        return f"http://key@127.0.0.1:{self._server.server_port}/1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def events(envelope: bytes) -> list[Event]:
    """Return the events of an envelope: lines of JSON, a header before each item."""
    lines = envelope.split(b"\n")
    found = []
    for header, payload in zip(lines[1::2], lines[2::2], strict=False):
        if header and json.loads(header).get("type") == "event":
            found.append(json.loads(payload))
    return found
