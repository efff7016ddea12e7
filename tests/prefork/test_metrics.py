"""The metrics: their text, in an application, and at a port of their own."""

import asyncio
import http.client
import io
import os
import re
import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from cpythonplus.prefork._board import metrics
from cpythonplus.prefork._board.board import REASONS, Board, MasterRow
from tests.prefork.forked_workers import run_program

SAMPLE = re.compile(r'(cpythonplus_[a-z_]+)(?:\{([a-z]+)="([a-z0-9_]+)"\})? ([0-9.e+-]+)')
MEMORY = ("private_bytes", "shared_bytes", "proportional_bytes")


def samples(text: str) -> dict[tuple[str, str], float]:
    """Return the values by name and label; fails for a line that is nothing known."""
    found: dict[tuple[str, str], float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[match[1], match[3] or ""] = float(match[4])
    return found


@pytest.fixture
def board() -> Board:
    board = Board(2)
    slot = board.claim(os.getpid())
    slot.ready()
    slot.write(requests=3, gil_waits=4, gil_wait_ns=1_500_000_000)
    return board


# ---- the text -----------------------------------------------------------------------------------


def test_what_there_is(board: Board) -> None:
    board.ended(os.getppid(), "killed")
    found = samples(metrics.render(board, master_pid=os.getppid()))
    pid = str(os.getpid())
    assert found["cpythonplus_workers", ""] == 1
    assert found["cpythonplus_workers_ready", ""] == 1
    for name in MEMORY:
        assert found[f"cpythonplus_worker_{name}", pid] > 0
    for name in ("resident_bytes", *MEMORY):
        assert found[f"cpythonplus_master_{name}", ""] > 0
    assert found["cpythonplus_worker_requests_total", ""] == 3
    assert found["cpythonplus_gil_waits_total", pid] == 4
    assert found["cpythonplus_gil_wait_seconds_total", pid] == 1.5
    assert found["cpythonplus_workers_gil_waits_total", ""] == 4
    assert found["cpythonplus_workers_gil_wait_seconds_total", ""] == 1.5
    for reason in REASONS:
        assert found["cpythonplus_worker_restarts_total", reason] == (reason == "killed")


def test_stalls_by_line(board: Board) -> None:
    board.count_stall("lock", 'a"b\\c.py:7', 500_000_000)
    board.count_stall("C", "app.py:3", 10**9)
    board.count_stall("C", "app.py:3", 10**9)
    lines = metrics.render(board, master_pid=os.getpid()).splitlines()
    assert [line for line in lines if line.startswith("cpythonplus_stall")] == [
        r'cpythonplus_stalls_total{kind="lock",at="a\"b\\c.py:7"} 1',
        'cpythonplus_stalls_total{kind="C",at="app.py:3"} 2',
        r'cpythonplus_stall_seconds_total{kind="lock",at="a\"b\\c.py:7"} 0.5',
        'cpythonplus_stall_seconds_total{kind="C",at="app.py:3"} 2.0',
    ]


def test_the_form(board: Board) -> None:
    """Each metric has its HELP and TYPE once, in front of its samples; counters end in _total."""
    kinds: dict[str, str] = {}
    name = ""
    lines = metrics.render(board, master_pid=os.getpid())
    assert lines.endswith("\n")
    for line in lines.splitlines():
        if line.startswith("# HELP"):
            name = line.split()[2]
            assert name not in kinds
        elif line.startswith("# TYPE"):
            assert line.split()[2] == name
            kinds[name] = line.split()[3]
        else:
            assert re.split("[ {]", line, maxsplit=1)[0] == name
            assert (kinds[name] == "counter") == name.endswith("_total")


@pytest.mark.any_version
def test_a_parser_of_others_reads_it(board: Board) -> None:
    parser = pytest.importorskip(
        "prometheus_client.parser", reason="prometheus_client is not installed"
    )
    text = metrics.render(board, master_pid=os.getpid())
    families = {f.name: f for f in parser.text_string_to_metric_families(text)}
    # The parser takes _total off the names of counters.
    assert families["cpythonplus_worker_requests"].type == "counter"
    assert families["cpythonplus_workers"].type == "gauge"
    read = {
        (s.name, "".join(s.labels.values())): s.value
        for family in families.values()
        for s in family.samples
    }
    expected = samples(text)
    assert read == expected
    assert set(families) == {
        line.split()[2].removesuffix("_total")
        for line in text.splitlines()
        if line.startswith("# TYPE")
    }


def test_memory_of_processes_that_cannot_be_read(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers': what they said themselves.  The master's: left out."""

    def refuse(_: int) -> None:
        raise PermissionError(13, "another user's")

    monkeypatch.setattr(metrics, "process_memory", refuse)
    board.claim(os.getpid()).write(private_bytes=11, shared_bytes=12, proportional_bytes=13)
    found = samples(metrics.render(board, master_pid=os.getpid()))
    pid = str(os.getpid())
    assert [found[f"cpythonplus_worker_{name}", pid] for name in MEMORY] == [11, 12, 13]
    assert not [name for name, _ in found if name == "cpythonplus_master_private_bytes"]
    board.describe_master(MasterRow(resident_bytes=9, private_bytes=8, proportional_bytes=7))
    found = samples(metrics.render(board, master_pid=os.getpid()))
    names = ("resident_bytes", *MEMORY)
    assert [found[f"cpythonplus_master_{name}", ""] for name in names] == [9, 8, 0, 7]


def test_what_preparing_did(board: Board) -> None:
    found = samples(metrics.render(board, master_pid=os.getpid()))
    assert found["cpythonplus_master_prepares_total", ""] == 0
    row = MasterRow(prepares=2, refused=3, prepare_ns=1_500_000_000, immortal_bytes=10**10)
    board.describe_master(row)
    assert board.snapshot().master == row
    found = samples(metrics.render(board, master_pid=os.getpid()))
    assert found["cpythonplus_master_prepares_total", ""] == 2
    assert found["cpythonplus_master_prepares_refused_total", ""] == 3
    assert found["cpythonplus_master_prepare_seconds_total", ""] == 1.5
    assert found["cpythonplus_master_immortal_bytes", ""] == 10**10


def test_counters_never_go_down_when_workers_are_replaced() -> None:
    run_program("""
    from cpythonplus.prefork._board import metrics
    board = Board(2)
    NAMES = ('worker_requests_total', 'workers_gil_waits_total', 'workers_gil_wait_seconds_total')

    def totals():
        text = metrics.render(board, master_pid=os.getpid())
        lines = dict(line.rsplit(' ', 1) for line in text.splitlines())
        return [float(lines['cpythonplus_' + name]) for name in NAMES]

    def body(worker):
        board.claim(os.getpid()).write(requests=5, gil_waits=6, gil_wait_ns=7 * 10**9)
        worker.say()
        worker.wait()

    for generation in range(1, 5):
        worker = Worker(body)
        assert worker.said()
        assert totals() == [5 * generation, 6 * generation, 7 * generation], totals()
        status = worker.end(signal.SIGKILL)
        assert totals() == [5 * generation, 6 * generation, 7 * generation], totals()
        board.ended(worker.pid, status)
        assert totals() == [5 * generation, 6 * generation, 7 * generation], totals()
    assert restarts(board) == {'killed': 4}
    """)


# ---- at a path ----------------------------------------------------------------------------------


def get_wsgi(app: metrics.WsgiApp, method: str, path: str) -> tuple[str, dict[str, str], bytes]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SCRIPT_NAME": "",
    }
    environ["wsgi.input"] = io.BytesIO()
    setup_testing_defaults(environ)
    answered: list[Any] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _: object = None, /
    ) -> Callable[[bytes], object]:
        answered.extend((status, dict(headers)))
        return lambda _: None

    # The validator judges both sides of the interface.
    result = validator(app)(environ, start_response)
    try:
        body = b"".join(result)
    finally:
        result.close()  # type: ignore[attr-defined]
    return answered[0], answered[1], body


def wsgi_app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"the application's " + environ["PATH_INFO"].encode()]


def test_wsgi() -> None:
    app = metrics.wsgi_middleware(wsgi_app, "/metrics", lambda: "a 1\n")
    status, headers, body = get_wsgi(app, "GET", "/metrics")
    assert (status, body) == ("200 OK", b"a 1\n")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert headers["Content-Length"] == "4"
    assert get_wsgi(app, "HEAD", "/metrics") == (status, headers, b"")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/", "/metrics/", "/a/metrics", "/metricss")),
        ("POST", "/metrics"),
        ("OPTIONS", "/metrics"),
    ],
)
def test_wsgi_of_the_application(method: str, path: str) -> None:
    app = metrics.wsgi_middleware(wsgi_app, "/metrics", lambda: "a 1\n")
    assert get_wsgi(app, method, path)[2] == b"the application's " + path.encode()


def test_wsgi_passes_everything_on_untouched() -> None:
    seen: list[object] = []
    result = iter([b"x"])

    def app(*arguments: object) -> Iterator[bytes]:
        seen.extend(arguments)
        return result

    environ: dict[str, Any] = {"REQUEST_METHOD": "GET", "PATH_INFO": "/"}
    assert metrics.wsgi_middleware(app, "/metrics", str)(environ, print) is result
    assert seen[0] is environ
    assert seen[1] is print


def test_wsgi_path_outside_ascii() -> None:
    app = metrics.wsgi_middleware(wsgi_app, "/métriques", lambda: "a 1\n")
    assert get_wsgi(app, "GET", "/métriques".encode().decode("latin-1"))[2] == b"a 1\n"


class AsgiApp:
    """Keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    async def __call__(self, *arguments: object) -> None:
        self.calls.append(arguments)


def call_asgi(app: AsgiApp, scope: dict[str, Any]) -> list[metrics.Scope]:
    sent: list[metrics.Scope] = []

    async def receive() -> metrics.Scope:
        raise AssertionError("there is nothing to receive")

    async def send(message: metrics.Scope) -> None:
        sent.append(message)

    with_metrics = metrics.asgi_middleware(app, "/metrics", lambda: "a 1\n")
    asyncio.run(with_metrics(scope, receive, send))  # type: ignore[arg-type]
    for call in app.calls:
        assert call[0] is scope
        assert call[1:] == (receive, send)
    return sent


@pytest.mark.parametrize(("method", "body"), [("GET", b"a 1\n"), ("HEAD", b"")])
@pytest.mark.parametrize(
    ("path", "root"), [("/metrics", ""), ("/metrics", "/r"), ("/r/metrics", "/r")]
)
def test_asgi(method: str, body: bytes, path: str, root: str) -> None:
    app = AsgiApp()
    scope = {"type": "http", "method": method, "path": path, "root_path": root}
    start, rest = call_asgi(app, scope)
    assert not app.calls
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    headers = dict(start["headers"])
    assert headers[b"content-type"] == metrics.CONTENT_TYPE.encode()
    assert headers[b"content-length"] == b"4"
    assert rest == {"type": "http.response.body", "body": body}


@pytest.mark.parametrize(
    "scope",
    [
        {"type": "lifespan"},
        {"type": "websocket", "path": "/metrics"},
        {"type": "http", "method": "POST", "path": "/metrics"},
        {"type": "http", "method": "GET", "path": "/metrics/"},
        {"type": "http", "method": "GET", "path": "/"},
    ],
)
def test_asgi_of_the_application(scope: dict[str, Any]) -> None:
    app = AsgiApp()
    assert call_asgi(app, scope) == []
    assert len(app.calls) == 1


# ---- at a port ----------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["0", "127.0.0.1:0", "localhost:0"])
def test_listen(address: str) -> None:
    with metrics.listen(address) as sock:
        assert sock.getsockname()[0] in {"127.0.0.1", "::1"}
        assert sock.getsockname()[1] > 0
        assert not sock.get_inheritable()


def test_listen_on_ipv6() -> None:
    try:
        sock = metrics.listen("[::1]:0")
    except OSError:
        pytest.skip("there is no IPv6 loopback here")
    with sock:
        assert sock.getsockname()[0] == "::1"


@pytest.mark.parametrize(
    "address",
    [
        "",
        *(":", ":9100", "nine", "127.0.0.1:", "127.0.0.1:x", "65536", "-1", "1:2:3", "::1:9100"),
        *("[::1]", "[::1]9100", "[]:9100", "127.0.0.1:9100/metrics", "http://localhost:9100/"),
    ],
)
def test_a_wrong_address(address: str) -> None:
    with pytest.raises(ValueError, match="expected a path like /metrics") as raised:
        metrics.listen(address)
    assert repr(address) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_wrong_name() -> None:
    with pytest.raises(ValueError, match="is not a host name"):
        metrics.listen("a..b:0")


def test_a_port_in_use() -> None:
    with metrics.listen("0") as sock:
        address = f"127.0.0.1:{sock.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {address} for metrics: Address") as it:
            metrics.listen(address)
    assert "\n" not in str(it.value)


def test_an_address_of_another_machine() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0 for metrics: "):
        metrics.listen("192.0.2.1:0")


@contextmanager
def serving(render: metrics.Render) -> Iterator[tuple[str, int]]:
    sock = metrics.listen("0")
    thread = metrics.serve_in_thread(sock, render)
    assert thread.daemon
    try:
        yield sock.getsockname()
    finally:
        sock.shutdown(socket.SHUT_RDWR)  # ends it
        thread.join(60)
        sock.close()
        assert not thread.is_alive()


def ask(address: tuple[str, int], method: str, path: str) -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()
    finally:
        connection.close()


def test_served() -> None:
    with serving(lambda: "a 1\n") as address:
        for path in ("/metrics", "/", "/metrics?x=1"):
            assert ask(address, "GET", path) == (200, metrics.CONTENT_TYPE, b"a 1\n")
        assert ask(address, "HEAD", "/metrics") == (200, metrics.CONTENT_TYPE, b"")
        assert ask(address, "GET", "/else")[0] == 404
        assert ask(address, "POST", "/metrics")[0] == 405


def raw(address: tuple[str, int], request: bytes) -> bytes:
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while received := connection.recv(4096):
            answer += received
        return answer


@pytest.mark.parametrize(
    ("request_bytes", "start"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n"),
        (b"GET /metrics HTTP/1.0\n\n", b"HTTP/1.1 200 OK\r\n"),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET /metrics\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\xff\xfe \x00 HTTP/\r\n\r\n", b"HTTP/1.1 405 "),
        (b"GET /metrics HT", b""),
        (b"", b""),
    ],
)
def test_whatever_is_sent(request_bytes: bytes, start: bytes) -> None:
    with serving(lambda: "a 1\n") as address:
        answer = raw(address, request_bytes)
        assert answer[: len(start)] == start
        assert bool(answer) == bool(start)
        assert ask(address, "GET", "/")[0] == 200


def test_silent_clients_keep_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those that say nothing, nor who says half of it, nor who does not take the answer."""
    monkeypatch.setattr(metrics, "_REQUEST_S", 3600.0)
    long = "a 1\n" * (4 << 20)
    with serving(lambda: long) as address, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address)) for _ in range(8)]
        silent[0].sendall(b"GET /metrics HTTP/1.1\r\nHost")
        silent[1].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert silent[1].recv(9) == b"HTTP/1.1 "
        assert ask(address, "GET", "/metrics")[2] == long.encode()
        # They are answered all the same when they come to it.
        silent[0].sendall(b": x\r\n\r\n")
        assert silent[0].recv(9) == b"HTTP/1.1 "


def test_of_too_many_the_one_that_came_first_has_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_REQUEST_S", 3600.0)
    monkeypatch.setattr(metrics, "_MOST_CLIENTS", 3)
    with serving(lambda: "a 1\n") as address, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(5)]
        assert ask(address, "GET", "/")[0] == 200
        assert [silent[place].recv(1) for place in range(3)] == [b"", b"", b""]
        for client in silent[3:]:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert client.recv(9) == b"HTTP/1.1 "


def test_clients_that_say_nothing_or_too_much_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often they send something; it is one time for the whole."""
    monkeypatch.setattr(metrics, "_REQUEST_S", 0.2)
    with (
        serving(lambda: "a 1\n") as address,
        socket.create_connection(address, 60) as silent,
        socket.create_connection(address, 60) as loud,
        socket.create_connection(address, 60) as slow,
    ):
        with suppress(OSError):
            loud.sendall(b"x" * 100_000)
        with suppress(OSError):
            while True:
                slow.sendall(b"x")
                if select.select([slow], [], [], 0.001)[0]:
                    break
        assert silent.recv(1) == b""
        monkeypatch.setattr(metrics, "_REQUEST_S", 3600.0)  # this client may be slow
        assert ask(address, "GET", "/")[0] == 200


def test_without_descriptors_it_goes_on_later() -> None:
    """Nobody can be accepted for a while; those that are there are served meanwhile."""
    run_program("""
    import http.client, resource, socket
    from cpythonplus.prefork._board import metrics
    metrics._REQUEST_S = 3600.0
    sock = metrics.listen('127.0.0.1:0')
    metrics.serve_in_thread(sock, lambda: 'a 1\\n')
    address = sock.getsockname()
    refused = []
    accept = metrics._Clients._accept

    def counted(self):
        found = accept(self)
        if self._again_s is not None:
            refused.append(1)
        return found

    metrics._Clients._accept = counted
    early = socket.create_connection(address, 60)
    early.sendall(b'GET / HT')
    late = socket.create_connection(address, 60)
    late.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')
    assert late.recv(9) == b'HTTP/1.1 '  # so the early one was accepted before
    late.close()
    last = socket.socket()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    last.connect(address)
    last.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')
    while not refused:
        pass
    early.sendall(b'TP/1.1\\r\\n\\r\\n')
    assert early.recv(9) == b'HTTP/1.1 '
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert last.recv(9) == b'HTTP/1.1 '
    """)


def test_a_rendering_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> str:
        raise OSError(5, "broken")

    with serving(fails) as address:
        assert ask(address, "GET", "/metrics")[0] == 500
        assert ask(address, "GET", "/metrics")[0] == 500
    assert "could not be rendered" in caplog.text


def test_any_worker_answers_for_all() -> None:
    """Also when another one has been killed; the port is free when all have ended."""
    run_program("""
    import urllib.request
    from cpythonplus.prefork._board import metrics
    board = Board(4)
    master_pid = os.getpid()
    sock = metrics.listen('127.0.0.1:0')
    port = sock.getsockname()[1]

    def body(worker):
        slot = board.claim(os.getpid())
        slot.count_request()
        metrics.serve_in_thread(sock, lambda: metrics.render(board, master_pid=master_pid))
        worker.say()
        worker.wait()

    def get():
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/metrics', timeout=60) as answer:
            return answer.read().decode()

    workers = [Worker(body) for _ in range(3)]
    for worker in workers: assert worker.said()
    for _ in range(10):
        text = get()
        assert 'cpythonplus_worker_requests_total 3\\n' in text, text
        for worker in workers:
            assert f'cpythonplus_worker_private_bytes{{pid="{worker.pid}"}}' in text, text
    while len(workers) > 1:
        worker = workers.pop()
        board.ended(worker.pid, worker.end(signal.SIGKILL))
        text = get()
        assert f'cpythonplus_workers {len(workers)}\\n' in text, text
        assert f'restarts_total{{reason="killed"}} {3 - len(workers)}\\n' in text, text
    workers[0].go_on()
    assert workers[0].end() == 0
    sock.close()
    metrics.listen(f'127.0.0.1:{port}').close()
    """)
