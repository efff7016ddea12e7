"""What several drivers need: expected failures, a server on loopback, a port that refuses.

Nothing here may make a cycle itself: what gc finds has to be the driven package's.
"""

import gzip
import socket
import threading
from collections.abc import Awaitable, Callable

Reply = Callable[[bytes], bytes | None]

# How a client begins that takes this for a server of HTTPS; it would wait for an answer.
_TLS_RECORD = b"\x16"
_NOT_GZIP = b"this is not what gzip wrote"


def fails(
    kind: type[BaseException] | tuple[type[BaseException], ...], call: Callable[[], object]
) -> None:
    """Call it; AssertionError when it does not raise what it should."""
    try:
        call()
    except kind:
        return
    raise AssertionError("no exception where one was expected")


async def awaits_failing(
    kind: type[BaseException] | tuple[type[BaseException], ...], work: Awaitable[object]
) -> None:
    """The same of what is awaited; the exception ends here, so that no task keeps it."""
    try:
        await work
    except kind:
        return
    raise AssertionError("no exception where one was expected")


class Refused:
    """A port of loopback that nobody listens on, kept from being given to somebody else."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"


class Server:
    """Threads that answer each request of each connection as `reply` says.

    `reply` is given a request (head and body) and returns what is sent; nothing sent, and the
    connection closed, for b"", and for None nothing is sent until the client closes.
    """

    def __init__(self, reply: Reply, read: Callable[["Connection"], bytes] | None = None) -> None:
        self._reply = reply
        self._read = read or read_http
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(Connection(client),), daemon=True).start()

    def _serve(self, connection: "Connection") -> None:
        with connection.socket:
            try:
                while request := self._read(connection):
                    answer = self._reply(request)
                    if answer is None:
                        connection.socket.recv(1)
                    if not answer:
                        return
                    connection.socket.sendall(answer)
                    if b"connection: close" in answer.lower():
                        return
            except OSError:
                return  # the client has gone


class Connection:
    """A server's end of a connection, and what came in but was not read yet."""

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self._buffer = b""

    def until(self, mark: bytes) -> bytes:
        """Everything up to and with the mark; b"" when the peer closed before."""
        while mark not in self._buffer:
            more = self.socket.recv(65536)
            if not more:
                return b""
            self._buffer += more
            if self._buffer.startswith(_TLS_RECORD):
                return b""
        head, _, self._buffer = self._buffer.partition(mark)
        return head + mark

    def exactly(self, size: int) -> bytes:
        """So many bytes; fewer when the peer closed before."""
        while len(self._buffer) < size:
            more = self.socket.recv(65536)
            if not more:
                break
            self._buffer += more
        body, self._buffer = self._buffer[:size], self._buffer[size:]
        return body


def read_http(connection: Connection) -> bytes:
    """One request with its body; b"" at the end of the connection."""
    head = connection.until(b"\r\n\r\n")
    if b"100-continue" in head:
        connection.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + connection.exactly(int(line.split(b":")[1]))
    return head


def response(status: str = "200 OK", body: bytes = b"", *headers: str) -> bytes:
    """A whole response; Content-Length is added."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


PAGES: dict[bytes, bytes | None] = {
    b"/ok": response("200 OK", b"fine", "Content-Type: text/plain"),
    b"/json": response("200 OK", b'{"a": [1, 2]}', "Content-Type: application/json"),
    b"/cookie": response("200 OK", b"fine", "Set-Cookie: a=b; Path=/"),
    b"/gzip": response("200 OK", gzip.compress(b"x" * 1000), "Content-Encoding: gzip"),
    b"/bad-gzip": response("200 OK", _NOT_GZIP, "Content-Encoding: gzip"),
    b"/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"/bad-chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nzz\r\nabc"
    ),
    b"/redirect": response("302 Found", b"", "Location: /ok"),
    b"/loop": response("302 Found", b"", "Location: /loop"),
    b"/bad-redirect": response("302 Found", b"", "Location: http://[broken"),
    b"/404": response("404 Not Found", b"nothing"),
    b"/401": response("401 Unauthorized", b"who?", 'WWW-Authenticate: Basic realm="x"'),
    b"/503": response("503 Service Unavailable", b"later"),
    b"/garbage": b"this is no HTTP\r\nConnection: close\r\n\r\n",
    b"/short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nabc",
    b"/drop": b"",
    b"/slow": None,
}


def pages(request: bytes) -> bytes | None:
    """What the pages above say; a 404 for others."""
    path = request.split(b" ", 2)[1].partition(b"?")[0]
    return PAGES[path] if path in PAGES else PAGES[b"/404"]
