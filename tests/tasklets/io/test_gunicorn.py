"""The worker class for gunicorn: each connection in a tasklet, errors where they belong."""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers import PATIENCE_S, free_port, sessions, until

pytest.importorskip("gunicorn")
pytest.importorskip("cpythonplus.tasklets.io._patching", exc_type=ImportError)

APPLICATION = """
import os, sys, threading, time
now = most = 0
lock = threading.Lock()
everybody = threading.Event()

def app(environ, start_response):
    global now, most
    path = environ["PATH_INFO"]
    with lock:
        now += 1
        most = max(now, most)
    try:
        if path.startswith("/together/"):  # nobody is answered before so many have come
            if now == int(path.rpartition("/")[2]):
                everybody.set()
            everybody.wait()
        if path == "/slow":
            print("slow", file=sys.stderr, flush=True)
            time.sleep(0.3)
        if path == "/fails":
            raise KeyError("why")
        if path == "/exit":
            sys.exit(3)
    finally:
        now -= 1
    start_response("200 OK", [("Content-Type", "text/plain")])
    if path == "/chunks":
        return (str(number).encode() for number in range(3))
    said = {"/pid": os.getpid(), "/most": most, "/lock": type(lock).__module__}
    return [str(said.get(path, path)).encode()]
"""


class Server:
    """gunicorn in a process of its own."""

    def __init__(
        self, folder: Path, *options: str, source: str = APPLICATION, port: int = 0
    ) -> None:
        (folder / "application.py").write_text(source)
        worker = "cpythonplus.tasklets.gunicorn.Worker"
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "gunicorn", "-k", worker, "-b", f"127.0.0.1:{port}"),
                    *(*options, "application:app"),
                ],
                cwd=folder,
                env={**os.environ, "HOME": str(folder)},
                stderr=log,
            )
        self.port = port
        while self.port == 0 or "Booting worker" not in self.text():
            assert self.process.poll() is None, self.text()
            found = re.search(r"Listening at: http://127\.0\.0\.1:(\d+)", self.text())
            self.port = self.port or int(found[1] if found else 0)
            threading.Event().wait(0.02)

    def text(self) -> str:
        return self.log.read_text()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def get(self, path: str) -> tuple[int, str]:
        connection = self.connect()
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def request_slowly(self, connection: http.client.HTTPConnection) -> None:
        """Ask for /slow; return when the request is under way."""
        before = self.text().count("slow\n")
        connection.request("GET", "/slow")
        until("a slow request", lambda: self.text().count("slow\n") > before)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, "--keep-alive", "2")
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def test_requests_wait_beside_each_other_and_locks_are_of_tasklets(server: Server) -> None:
    answers: list[tuple[int, str]] = []
    path = "/together/20"
    threads = [threading.Thread(target=lambda: answers.append(server.get(path))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(200, path)] * 20
    assert int(server.get("/most")[1]) == 20
    assert server.get("/lock") == (200, "_thread")
    assert server.get("/chunks") == (200, "012")
    assert server.end() == 0


def test_an_error_ends_its_own_request(server: Server) -> None:
    before = server.get("/pid")
    assert server.get("/fails")[0] == 500
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        server.get("/exit")
    assert server.get("/pid") == before
    assert server.end() == 0
    text = server.text()
    assert "KeyError: 'why'" in text
    assert "Exception ignored" not in text


def test_a_connection_is_kept_and_let_go(server: Server) -> None:
    with closing(server.connect()) as connection:
        for path in ("/a", "/b"):
            connection.request("GET", path)
            assert connection.getresponse().read() == path.encode()
        assert connection.sock is not None
        assert connection.sock.recv(1) == b""  # idle for two seconds
    assert server.end() == 0
    assert "rror" not in server.text()


def test_a_request_under_way_is_finished(server: Server) -> None:
    with closing(server.connect()) as connection:
        server.request_slowly(connection)
        assert server.end() == 0
        assert connection.getresponse().read() == b"/slow"


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    source = APPLICATION.replace("time.sleep(0.3)", "time.sleep(1000)")
    server = Server(tmp_path, "--graceful-timeout", "1", "--preload", source=source)
    with closing(server.connect()) as connection:
        server.request_slowly(connection)
        assert server.end() == 0
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            connection.getresponse()


def test_a_master_that_is_gone(server: Server) -> None:
    worker = int(server.get("/pid")[1])
    server.process.kill()
    server.process.wait()
    until("the worker's end", lambda: worker not in {pid for pid, _ in sessions()})


def test_other_errors_end_no_request(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "hooks.py").write_text("def worker_int(worker):\n    raise LookupError('hook')\n")
    source = APPLICATION.replace(
        'if path == "/slow":',
        """if path == "/background":
            from cpythonplus.tasklets import tasklet
            tasklet(int)("no number")
        if path == "/slow":""",
    )
    options = ("--access-logfile", "logs/access.txt", "-c", "hooks.py")
    server = Server(tmp_path, *options, source=source)
    try:
        worker = int(server.get("/pid")[1])

        def reopen_logs() -> None:
            (tmp_path / "logs").rename(tmp_path / "moved")
            os.kill(worker, signal.SIGUSR1)

        def end_at_once() -> None:
            os.kill(worker, signal.SIGINT)

        for end in (lambda: server.get("/background"), reopen_logs, end_at_once):
            with closing(server.connect()) as slow:
                server.request_slowly(slow)
                end()
                assert slow.getresponse().status == 200
    finally:
        server.end()
    for error in ("ValueError: invalid literal", "No such file", "LookupError: hook"):
        assert error in server.text(), error


def wait_until_serves(server: Server) -> None:
    with closing(server.connect()) as connection:
        while connection.sock is None:
            try:
                connection.connect()
            except ConnectionRefusedError:
                time.sleep(0.01)


def listeners(port: int) -> set[str]:
    """Return the numbers (inodes) of the sockets that listen at a port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"}


@pytest.mark.slow
def test_what_comes_while_a_worker_ends_is_served_by_the_next(tmp_path: Path) -> None:
    port = free_port()
    source = APPLICATION.replace("time.sleep(0.3)", "time.sleep(3)")
    server = Server(tmp_path, "--reuse-port", port=port, source=source)  # each worker binds it
    try:
        wait_until_serves(server)
        with closing(server.connect()) as slow:
            server.request_slowly(slow)
            before = listeners(port)
            server.process.send_signal(signal.SIGHUP)
            # The old one looks each second whether it is to end.
            until("another listener", lambda: (now := listeners(port)) and not now & before)
            assert [server.get("/")[0] for _ in range(20)] == [200] * 20
            assert slow.getresponse().status == 200
    finally:
        server.end()


def test_no_connections_are_refused_at_the_start(tmp_path: Path) -> None:
    worker = "cpythonplus.tasklets.gunicorn.Worker"
    options = ("-k", worker, "-b", "127.0.0.1:0", "--worker-connections", "0", "wsgiref:x")
    done = subprocess.run(
        [sys.executable, "-m", "gunicorn", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "worker_connections must be at least 1" in done.stderr


def test_descriptors_that_run_out_are_told(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
    server = Server(tmp_path, source=limit + APPLICATION)
    connections = [server.connect() for _ in range(50)]
    try:
        for connection in connections:
            connection.connect()
        while "Cannot accept connections" not in server.text():
            time.sleep(0.01)
        assert "Too many open files" in server.text()
    finally:
        for connection in connections:
            connection.close()
        server.end()
