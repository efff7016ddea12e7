"""The workers of `serve` log the lines that keep the GIL while others wait."""

import re
from pathlib import Path

import pytest

from tests.prefork.serving import running, until
from tests.support import FREE_THREADED

pytest.importorskip("gunicorn", reason="gunicorn is not installed")
pytestmark = pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")

APP = """
    import ctypes, os, threading, time
    usleep = ctypes.PyDLL(None).usleep
    others = []
    def other():
        while True:
            time.sleep(0.001)
    def app(environ, start_response):
        if not others:
            others.append(threading.Thread(target=other, daemon=True))
            others[0].start()
            time.sleep(0.01)
        if environ["PATH_INFO"] == "/stall":
            usleep(400_000)
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""
WORDS = ("--workers", "1", "--worker-class", "gthread", "--threads", "2")
LINE = r"stall in process (\d+).*: C code kept the GIL for .* waited .* at \S+app\.py:14 in app < "


@pytest.mark.parametrize("more", [(), ("--refork", "--refork-after", "2")], ids=["plain", "refork"])
def test_a_stall_is_logged_with_its_line(tmp_path: Path, more: tuple[str, ...]) -> None:
    with running(tmp_path, *WORDS, *more, app=APP) as server:
        if more:
            first = server.get()
            until(lambda: server.get() != first, "a worker that another one has forked")
        pid = server.get("/stall")
        until(lambda: pid in {found[1] for found in re.finditer(LINE, server.output())}, "the line")
        assert server.stop() == 0, server.output()
        assert "WARNING" in server.output()
        assert "has kept the GIL" not in server.output()


def test_stalls_are_counted_in_the_metrics(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, "--metrics", "/metrics", app=APP) as server:
        server.get("/stall")
        line = r'cpythonplus_stalls_total\{kind="C",at="\S+app\.py:14"\} 1\n'
        until(lambda: re.search(line, server.get("/metrics")), "the count")
        time = r'cpythonplus_stall_seconds_total\{kind="C",at="\S+app\.py:14"\} (?:0\.[4-9]|[1-9])'
        assert re.search(time, server.get("/metrics"))
        assert server.stop() == 0, server.output()


def test_a_lock_without_a_scheduled_gil(tmp_path: Path) -> None:
    app = """
        import threading, time
        lock = threading.Lock()
        def app(environ, start_response):
            if environ["PATH_INFO"] == "/stall":
                with lock:
                    thread = threading.Thread(target=lambda: lock.acquire(timeout=0.6))
                    thread.start()
                    thread.join()
            start_response("200 OK", [("Content-Length", "1")])
            return [b"x"]
    """
    with running(tmp_path, *WORDS, "--no-gil", app=app) as server:
        server.get("/stall")
        line = r"had a lock made at \S+app\.py:3 for [\d.]+ m?s; 1 waited .* in app < "
        until(lambda: re.search(line, server.output()), "the line")
        assert server.stop() == 0, server.output()


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, "--stalls", "0", app=APP) as server:
        server.get("/stall")
        assert server.stop() == 0, server.output()
    assert "stall in process" not in server.output()
