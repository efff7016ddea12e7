"""The load generator, against a server that answers as its path says."""

import asyncio
import re
import shutil
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cpythonplus._base.requests import Request, written
from cpythonplus._compare import generator, load
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.load import Load, Sent, Settings

ANSWERS = {
    "/ok": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "/empty": b"HTTP/1.1 204 No Content\r\n\r\n",
    "/early": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
    "/chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2;x=y\r\nhi\r\na\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
    ),
    "/no-body": b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n",
    "/moved": b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
    "/broken": b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\nno",
    "/nonsense": b"SSH-2.0-x\r\n\r\n",
    "/bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
}
LAST_ANSWERS = {
    "/close": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
    "/old": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "/to-the-end": b"HTTP/1.1 200 OK\r\n\r\nall of it",
    "/quiet-close": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi",
    "/cut-head": b"HTTP/1.1 200 OK\r\nContent-",
    "/nothing": b"",
}


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.stall_s = 0.0
        """How long the first request is not answered."""


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        while line := self.rfile.readline():
            head = line
            while line.strip():
                line = self.rfile.readline()
                head += line
            path = head.split()[1].decode().partition("?")[0]
            length = re.search(rb"Content-Length: (\d+)", head)
            self.server.bodies.append(self.rfile.read(int(length[1])) if length else b"")
            self.server.heads.append(head)
            if len(self.server.heads) == 1:
                time.sleep(self.server.stall_s)
            if path == "/never":
                self.rfile.read()
            answer = ANSWERS.get(path)
            self.wfile.write(LAST_ANSWERS.get(path, b"") if answer is None else answer)
            if answer is None:
                return


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as found:
        yield found


def run(
    server: Server,
    path: str,
    loop: load.Loop = "open",
    *,
    connections: int = 2,
    rate: float = 200,
) -> Load:
    port = server.server_address[1]
    settings = Settings("127.0.0.1", port, path, rate, 0.05, connections, loop=loop)
    with asyncio.Runner(loop_factory=generator._loop) as runner:
        return runner.run(generator._Run(settings).run())


GOOD = ["/ok", "/empty", "/early", "/chunked", "/moved", "/close", "/old", "/to-the-end"]


@pytest.mark.parametrize("path", [*GOOD, "/quiet-close"])
def test_each_request_of_an_open_loop_is_answered(server: Server, path: str) -> None:
    found = run(server, path)
    assert len(found.latencies_ns) == 10
    assert found.errors == {}
    assert min(found.latencies_ns) > 0


@pytest.mark.parametrize("path", GOOD)
def test_a_closed_loop_goes_on(server: Server, path: str) -> None:
    found = run(server, path, "closed")
    assert found.errors == {}
    assert 0 <= found.answered <= len(found.latencies_ns) == len(server.heads)
    assert len(server.heads) >= 2


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/broken", "status 500"),
        ("/nonsense", "no HTTP answer"),
        ("/bad-chunk", "no HTTP answer"),
        ("/cut", "connection closed"),
        ("/cut-head", "connection closed"),
        ("/nothing", "connection closed"),
    ],
)
def test_failures_by_kind(server: Server, path: str, kind: str) -> None:
    found = run(server, path)
    assert found.errors == {kind: 10}
    assert (found.latencies_ns, found.answered) == ([], 0)


def test_a_refused_connection() -> None:
    with serving() as server:
        pass
    assert run(server, "/ok").errors == {"cannot connect: Connection refused": 10}
    assert set(run(server, "/ok", "closed").errors) == {"cannot connect: Connection refused"}


def test_a_request_without_an_answer_counts_as_a_wait(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "TIMEOUT_S", 0.5)
    found = run(server, "/never", rate=40)
    assert found.errors == {"timeout": 2}
    assert min(found.latencies_ns) >= 0.5e9


def test_a_stall_is_not_hidden(server: Server) -> None:
    """One connection: the requests behind the one that is held up wait, and that is counted."""
    server.stall_s = 0.5
    found = run(server, "/ok", connections=1)
    assert len(found.latencies_ns) == 10
    # All were due within 0.05 s, and none could be answered before 0.5 s.
    assert min(found.latencies_ns) >= 0.45e9
    assert found.errors == {}
    assert found.answered == 0


def test_what_cannot_be_sent_is_counted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "TIMEOUT_S", 0.2)
    found = run(server, "/never", connections=1)
    # Given up 0.25 s after the start: no more than two time-outs go before.
    unsent = found.errors["not sent: all connections were busy"]
    assert unsent >= 8
    assert found.errors.get("timeout", 0) == 10 - unsent
    assert len(found.latencies_ns) == 10


def test_the_request(server: Server) -> None:
    run(server, "/ok?a=b", rate=1)
    line, host, *_ = server.heads[0].split(b"\r\n")
    assert line == b"GET /ok?a=b HTTP/1.1"
    assert host == b"Host: 127.0.0.1:%d" % server.server_address[1]
    assert b"Host: [::1]:80\r\n" in generator.request_of(Settings("::1", 80, "/", 1, 1.0, 1))


def test_several_requests_by_their_weights(server: Server) -> None:
    port = server.server_address[1]
    settings = Settings("127.0.0.1", port, "/", 200, 0.05, 1)
    entries: list[dict[str, object]] = [
        {"path": "/ok", "weight": 8},
        {"path": "/empty?key=secret", "method": "POST", "body": {"a": "\u20ac"}},
        {"path": "http://example.com/no-body", "method": "HEAD", "headers": {"X-Y": "z"}},
    ]
    requests = load.sent([written(each) for each in entries], settings)
    assert [each.title for each in requests] == ["GET /ok", "POST /empty", "HEAD /no-body"]
    found = load.run(replace(settings, requests=requests))
    assert found.errors == {}
    assert sorted(found.which) == [0] * 8 + [1, 2]
    assert len(found.latencies_ns) == 10
    heads = dict(zip(server.heads, server.bodies, strict=True))
    (post,) = (head for head in heads if head.startswith(b"POST /empty?key=secret "))
    assert heads[post] == b'{"a": "\\u20ac"}'
    assert b"Content-Type: application/json\r\n" in post
    (head,) = (head for head in heads if head.startswith(b"HEAD /no-body "))
    assert b"Host: example.com\r\n" in head
    assert b"X-Y: z\r\n" in head


def test_weights_are_spread() -> None:
    requests = [Sent("a", "", 4), Sent("b", "", 2), Sent("c", "")]
    assert generator.order_of(requests) == [0, 1, 0, 2, 0, 1, 0]


def test_requests_that_are_too_many_or_too_long() -> None:
    settings = Settings("127.0.0.1", 9, "/", 1.0)
    many = [Request("/", weight=1000)] * 101
    with pytest.raises(ComparisonError, match="up to 100,000"):
        load.sent(many, settings)
    with pytest.raises(ComparisonError, match="up to 1,024 KiB"):
        load.sent([Request("/", body=b"x" * (1 << 20))], settings)


def test_in_a_process_of_its_own(server: Server) -> None:
    port = server.server_address[1]
    found = load.run(Settings("localhost", port, "/ok", 100, 0.05, 3))
    assert len(found.latencies_ns) == 5
    assert found.errors == {}


def test_a_generator_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("true"))
    with pytest.raises(ComparisonError, match="gave no result: it printed nothing"):
        load.run(Settings("127.0.0.1", 9, "/", 1.0))
