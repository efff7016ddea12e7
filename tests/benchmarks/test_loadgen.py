import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from benchmarks.common.loadgen import Answer, AnswerError, Load

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Reply = Callable[[int], tuple[bytes, bool]]


class TinyServer:
    """Answers the n-th request (from 0) with what `reply(n)` says: bytes, and whether to close."""

    def __init__(self, reply: Reply) -> None:
        self.closing = False
        self._reply = reply
        self.requests: list[bytes] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self.closing:
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(4096):
                with self._lock:
                    self.requests.append(data)
                    number = len(self.requests) - 1
                    answer, closes = self._reply(number)
                # In two pieces: an answer need not come at once.
                connection.sendall(answer[:20])
                connection.sendall(answer[20:])
                if closes:
                    return

    def close(self) -> None:
        self.closing = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], TinyServer]]:
    servers: list[TinyServer] = []

    def start(reply: Reply) -> TinyServer:
        servers.append(TinyServer(reply))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def run_until(load: Load, server: TinyServer, requests: int) -> None:
    """Keep the load up until the server has got so many requests, not for some time."""
    while len(server.requests) < requests:
        load.run(0.01)


def put_on(server: TinyServer) -> Load:
    load = Load(server.port, "/path", 2)
    load.open()
    load.begin_window()
    run_until(load, server, 20)
    load.drain(5)
    load.close()
    return load


def test_each_answer_is_counted_once_with_its_latency(
    serve: Callable[[Reply], TinyServer],
) -> None:
    server = serve(lambda _: (OK, False))
    load = put_on(server)
    # The two requests of `open` were sent before the window began; up to two ended after it.
    sent = len(server.requests)
    assert sent - 2 == len(load.latencies_ns)
    assert sent - 2 <= load.completed <= sent
    assert not load.errors
    assert server.requests[0].startswith(b"GET /path HTTP/1.1\r\nHost: 127.0.0.1\r\n")


def test_bad_answers_are_errors_and_not_latencies(
    serve: Callable[[Reply], TinyServer],
) -> None:
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    server = serve(lambda number: (busy if number % 10 == 5 else OK, False))
    load = put_on(server)
    failed = sum(1 for number in range(len(server.requests)) if number % 10 == 5)
    assert load.errors["status 503"] == failed > 0
    assert len(load.latencies_ns) == len(server.requests) - failed - 2


def test_a_server_that_hangs_up_is_an_error_and_is_asked_again(
    serve: Callable[[Reply], TinyServer],
) -> None:
    server = serve(lambda number: (b"" if number == 3 else OK, number == 3))
    load = put_on(server)
    assert load.errors == {"closed by the server": 1}
    assert len(server.requests) > 5


def test_an_announced_close_is_no_error(serve: Callable[[Reply], TinyServer]) -> None:
    closing = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    load = put_on(serve(lambda _: (closing, True)))
    assert load.completed > 2
    assert not load.errors


def test_requests_under_way_at_the_end_are_waited_for(
    serve: Callable[[Reply], TinyServer],
) -> None:
    release = threading.Event()

    def reply(number: int) -> tuple[bytes, bool]:
        if number == 4:
            release.wait(10)
        return OK, False

    server = serve(reply)
    load = Load(server.port, "/", 1)
    load.open()
    load.begin_window()
    run_until(load, server, 5)
    load.run(0.02)
    completed = load.completed
    release.set()
    load.drain(5)
    load.close()
    assert load.completed == completed == 4
    # The first was sent before the window; the one that took long is there.
    assert len(load.latencies_ns) == 4
    assert max(load.latencies_ns) > 10_000_000


def test_what_never_comes_is_an_error(serve: Callable[[Reply], TinyServer]) -> None:
    server = serve(lambda number: (OK if number < 2 else b"", False))
    load = Load(server.port, "/", 1)
    load.open()
    load.begin_window()
    run_until(load, server, 3)
    load.drain(0.02)
    load.close()
    assert load.errors == {"no answer": 1}


def test_users_who_think_ask_again_after_that(serve: Callable[[Reply], TinyServer]) -> None:
    server = serve(lambda number: (b"" if number == 3 else OK, number == 3))
    load = Load(server.port, "/", 2, think_s=0.02)
    load.open()
    load.begin_window()
    began = time.perf_counter()
    run_until(load, server, 20)
    took = time.perf_counter() - began
    load.drain(5)
    load.close()
    # Two users think for a fifth of a second each, more or less: without that it is some ms.
    assert took > 0.05
    assert load.errors == {"closed by the server": 1}
    # Nobody thinks of one more while what is under way is waited for.
    assert load.completed <= len(load.latencies_ns) == len(server.requests) - 1


def test_one_who_thinks_may_be_hung_up_on(serve: Callable[[Reply], TinyServer]) -> None:
    server = serve(lambda _: (OK, True))
    load = Load(server.port, "/", 2, think_s=0.01)
    load.open()
    load.begin_window()
    run_until(load, server, 10)
    load.drain(5)
    load.close()
    assert len(load.latencies_ns) == len(server.requests) >= 10


def test_reports_are_not_part_of_the_load(serve: Callable[[Reply], TinyServer]) -> None:
    server = serve(lambda _: (OK, False))
    load = Load(server.port, "/", 1)
    load.open()
    load.begin_window()
    load.ask("/work")
    run_until(load, server, 10)
    load.drain(5)
    load.close()
    assert load.reports == [{}]
    assert sum(1 for request in server.requests if b"GET /work " in request) == 1
    assert len(load.latencies_ns) == len(server.requests) - 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SSH-2.0\r\n\r\n", "no HTTP answer"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "no Content-Length"),
        (OK + b"x", "more data than announced"),
    ],
)
def test_answers_that_are_not_understood(data: bytes, reason: str) -> None:
    with pytest.raises(AnswerError, match=reason):
        Answer().feed(data)


def test_an_answer_byte_by_byte() -> None:
    body = json.dumps({"a": "\r\n\r\n"}).encode()
    head = b"HTTP/1.1 200 OK\r\nCONTENT-length:  %d \r\n\r\n" % len(body)
    answer = Answer()
    pieces = [bytes([byte]) for byte in head + body]
    assert [answer.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert answer.body() == body
