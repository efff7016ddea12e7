"""Servers are started, waited for, loaded and stopped."""

import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cpythonplus._base.requests import written
from cpythonplus._compare import load, service
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.load import Settings
from cpythonplus._compare.processes import started
from cpythonplus._compare.service import parse_url
from tests.servers import free_port

SERVER = """
import http.server, signal, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    requests = 0

    def do_GET(self):
        Handler.requests += 1
        if self.path == "/missing":
            return self.send_error(404)
        if self.path == "/dies" and Handler.requests > 1:
            sys.stderr.write("out of luck\\n")
            sys.stderr.flush()
            import os
            os._exit(7)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_):
        pass

if sys.argv[2:] == ["stubborn"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def settings() -> Settings:
    return Settings("127.0.0.1", free_port(), "/x", 50, duration_s=0.2, connections=4)


def command(settings: Settings, *words: str) -> list[str]:
    return [sys.executable, "-c", SERVER, str(settings.port), *words]


def test_a_server(settings: Settings) -> None:
    found = service.measure("plus", 3, command(settings), settings)
    assert (found.side, found.round, found.status) == ("plus", 3, -15)
    keys = ("p50_s", "p99_s", "p999_s", "max_s", "rate", "cpu_s")
    loops = {f"{loop}_{key}" for loop in ("open", "closed") for key in keys}
    assert found.values.keys() == loops | {"pss_bytes", "start_s", "stop_s"}
    assert found.values["pss_bytes"] > 1 << 20
    assert found.errors == {"open": {}, "closed": {}}
    assert found.curves.keys() == {"open", "closed"}
    service.check_port_is_free(settings)


def test_each_kind_of_requests_has_its_latencies(settings: Settings) -> None:
    requests = [written({"path": path, "weight": n}) for path, n in (("/a", 3), ("/b?c", 1))]
    mixed = replace(settings, requests=load.sent(requests, settings))
    found = service.measure("plus", 0, command(mixed), mixed)
    kinds = {f"open_{each}_s GET {path}" for each in ("p50", "p99") for path in ("/a", "/b")}
    assert kinds < found.values.keys()
    assert found.errors == {"open": {}, "closed": {}}


def test_one_that_does_not_stop(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "STOP_S", 0.2)
    found = service.measure("stock", 0, command(settings, "stubborn"), settings)
    assert found.errors["stop"] == {"killed after 0.2 s": 1}
    assert found.status == -9
    assert "stop_s" not in found.values


def test_a_port_that_is_taken(settings: Settings, tmp_path: Path) -> None:
    program = [sys.executable, "-c", f"open({str(tmp_path / 'started')!r}, 'w')"]
    with (
        socket.create_server(("127.0.0.1", settings.port)),
        pytest.raises(ComparisonError, match=f"127.0.0.1:{settings.port} is already in use"),
    ):
        service.measure("stock", 0, program, settings)
    assert not (tmp_path / "started").exists()


def test_one_that_never_answers(settings: Settings) -> None:
    code = "import time; print('no configuration', flush=True); time.sleep(600)"
    quick = replace(settings, wait_s=0.1)
    message = f"did not answer within {quick.wait_s} s; the server printed: no configuration"
    with started([sys.executable, "-c", code], stdout=True) as server:
        while not server.output():
            time.sleep(0.01)
        with pytest.raises(ComparisonError, match=message):
            service._wait_for_answer("stock", server, quick)


def test_one_that_has_no_such_page(settings: Settings) -> None:
    missing = replace(settings, path="/missing", wait_s=2)
    message = r"stock: .*/missing answered with status 404 within"
    with started(command(settings), stdout=True) as server:
        service._wait_for_answer("stock", server, settings)
        with pytest.raises(ComparisonError, match=message):
            service._wait_for_answer("stock", server, missing)


def test_one_that_ends_at_once(settings: Settings) -> None:
    code = "import sys; sys.exit('no such application')"
    with pytest.raises(ComparisonError, match="plus ended with status 1: no such application"):
        service.measure("plus", 0, [sys.executable, "-c", code], settings)


def test_one_that_ends_under_load(settings: Settings) -> None:
    dying = replace(settings, path="/dies")
    with pytest.raises(ComparisonError, match="stock ended with status 7: out of luck"):
        service.measure("stock", 0, command(settings), dying)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/x?a=b#c", ("127.0.0.1", 8000, "/x?a=b")),
        ("http://localhost", ("localhost", 80, "/")),
        ("http://[::1]:8000/", ("::1", 8000, "/")),
        ("http://127.8.9.10:1/", ("127.8.9.10", 1, "/")),
    ],
)
def test_urls(url: str, expected: tuple[str, int, str]) -> None:
    assert parse_url(url) == expected


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://127.0.0.1/", "expected a URL that begins with http://"),
        ("127.0.0.1:8000", "expected a URL"),
        ("http:///x", "expected a URL"),
        ("http://127.0.0.1:99999/", "expected a URL"),
        ("http://127.0.0.1:0x1/", "expected a URL"),
        ("http://127.0.0.1/a b", "percent-encoded"),
        ("http://127.0.0.1/\xe4", "percent-encoded"),
        ("http://192.0.2.1/", "192.0.2.1 is not loopback; --any-host"),
        ("http://nowhere.invalid/", "nowhere.invalid is not loopback"),
        ("http://[::1/", "expected a URL"),
        ("http://a..b/", "a..b is not loopback"),
    ],
)
def test_urls_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        parse_url(url)


def test_any_host() -> None:
    assert parse_url("http://192.0.2.1/", any_host=True) == ("192.0.2.1", 80, "/")
