"""uWSGI, built from its source and really started."""

import json
import os
import re
import shutil
import signal
import socket
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests import servers
from tests.prefork import services
from tests.prefork.serving import metric as serving_metric

pytestmark = [pytest.mark.any_version, pytest.mark.builds]

IMMORTAL = sys.version_info >= (3, 12)

APP = """
    import atexit, ctypes, json, os, sys, threading, time
    import uwsgi
    from cpythonplus import gil, threads
    from cpythonplus.prefork._engine import Engine

    Engine.min_age_s = Engine.interval_s = 0.01
    CATALOGUE = [{"number": n} for n in range(50_000)]
    KEPT = []
    OTHERS = []

    def wake_often():
        while True:
            time.sleep(0.001)

    def warm():
        CATALOGUE.append({"number": "warm"})

    @atexit.register
    def say():
        print("exit function of worker", uwsgi.worker_id(), flush=True)

    def application(environ, start_response):
        if environ["PATH_INFO"] == "/warm":
            warm()
        if environ["PATH_INFO"].startswith("/keeps/"):
            if not OTHERS:
                OTHERS.append(threading.Thread(target=wake_often, daemon=True))
                OTHERS[0].start()
            ctypes.PyDLL(None).usleep(400_000)
        if environ["PATH_INFO"] == "/grow":
            KEPT.append(bytearray(os.urandom(1024) * 1024 * 200))
        start_response("200 OK", [("Content-Type", "application/json")])
        answer = {
            "pid": os.getpid(),
            "worker": uwsgi.worker_id(),
            "immortal": sys.getrefcount(CATALOGUE[0]) > 1 << 29,
            "gil": gil.active(),
            "native_locks": isinstance(threading.Lock(), threads.Lock),
            "warm": CATALOGUE[-1]["number"],
        }
        return [json.dumps(answer).encode()]
"""
IMPORT = ("--import", "cpythonplus.prefork.uwsgi")
MODULE = ("--module", "shop:application", *IMPORT)


def program() -> str:
    beside = Path(sys.executable).with_name("uwsgi")
    if beside.exists():
        return str(beside)
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler to build uWSGI with")
    folder = services.packages("uwsgi", needs="uwsgidecorators")
    return str(Path(folder[0], "bin", "uwsgi"))


def catches_sigterm(pid: int) -> bool:
    """Whether uWSGI has set its handlers in that process: until then it can miss a signal."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False  # it has ended: look again who is there
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


class Site:
    """The server, and a client of it."""

    def __init__(self, server: servers.Server, stats: Path, *, ready: bool) -> None:
        self.server = server
        self._stats = stats
        self._workers: set[int] = set()
        server.says("spawned uWSGI worker 2")
        if ready:
            server.until("all are ready", lambda: all(map(catches_sigterm, server.processes())))
        found = re.search(r"TCP address (127\.0\.0\.1:\d+)", server.text())
        assert found is not None, server.text()
        self._address = found[1]

    def get(self, path: str = "/") -> Any:  # noqa: ANN401  # JSON
        with urllib.request.urlopen(f"http://{self._address}{path}", timeout=60) as response:
            answer = json.load(response)
        self._workers.add(answer["worker"])
        return answer

    def busy(self) -> bool:
        """Whether a worker has not done with its request: the answer is sent before."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._stats))
            with connection.makefile("rb") as answer:
                workers = json.load(answer)["workers"]
        return any(worker["status"].startswith("busy") for worker in workers)

    def ends(self) -> None:
        """Stopped, it leaves nothing behind, and workers that served called exit functions.

        uWSGI has a worker call none that is stopped while it is busy.
        """
        self.server.until("all are idle", lambda: not self.busy())
        assert self.server.stop() == 0, self.server.text()
        assert self.server.processes() == set()
        text = self.server.text()
        for worker in self._workers:
            assert text.count(f"exit function of worker {worker}\n") == 1, text
        assert "Traceback" not in text
        assert "SystemError" not in text


@contextmanager
def serving(
    folder: Path, *options: str, last_line: str = "", ready: bool = True, **env: str
) -> Iterator[Site]:
    uwsgi = program()
    (folder / "shop.py").write_text(dedent(APP) + last_line)
    path = os.pathsep.join([str(folder), str(Path(uwsgi).parent.parent), *filter(None, sys.path)])
    usual = ["--http-socket", "127.0.0.1:0", "--master", "--processes", "2", "--die-on-term"]
    stats = folder / "stats"
    command = [uwsgi, *usual, "--need-app", "--stats", str(stats), *options]
    with servers.running(command, folder=folder, env={"PYTHONPATH": path, **env}) as server:
        yield Site(server, stats, ready=ready)


@pytest.mark.slow
def test_workers_share_a_prepared_heap(tmp_path: Path) -> None:
    with serving(tmp_path, *MODULE, CPYTHONPLUS_PREFORK_WARM_UP="shop:warm") as site:
        answers = [site.get() for _ in range(20)]
        assert {answer["pid"] for answer in answers} <= site.server.processes()
        assert site.server.process.pid not in {answer["pid"] for answer in answers}
        assert {answer["immortal"] for answer in answers} == {IMMORTAL}
        assert all(answer["gil"] and answer["native_locks"] for answer in answers)
        assert {answer["warm"] for answer in answers} == {"warm"}
        assert site.server.text().count("cpythonplus prefork: prepared: ") == 1
        site.ends()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--threads", "4")], ids=["one-thread", "threads"])
def test_a_worker_that_grew_is_replaced_and_no_request_is_lost(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    limit = "120M"
    with serving(tmp_path, *MODULE, *options, CPYTHONPLUS_PREFORK_MAX_PRIVATE_MEMORY=limit) as site:
        first = site.server.processes()
        grown = site.get("/grow")["pid"]
        assert grown in first

        def replaced() -> bool:
            answer = site.get()  # raises when a request is dropped
            assert answer["immortal"] == IMMORTAL
            return answer["pid"] not in first

        site.server.until("a new worker", replaced)
        assert grown not in site.server.processes()
        assert len(first & site.server.processes()) == 2  # the master and the other worker
        line = f"worker {grown} has more than 120 MiB of private memory and is recycled"
        assert site.server.text().count(line) == 1
        # The worker that was replaced has called its exit functions too.
        assert site.server.text().count("exit function of worker") == 1
        assert site.server.stop() == 0
        assert site.server.processes() == set()


@pytest.mark.slow
def test_a_path_warms_up_and_workers_answer_for_metrics(tmp_path: Path) -> None:
    port = servers.free_port()
    with serving(
        tmp_path,
        *(*MODULE, "--enable-threads"),  # the default, but of older versions
        CPYTHONPLUS_PREFORK_WARM_UP="/warm",
        CPYTHONPLUS_PREFORK_METRICS=str(port),
        CPYTHONPLUS_PREFORK_FAST_EXIT="off",
        CPYTHONPLUS_PREFORK_PREPARE_AGAIN="1M",
    ) as site:
        assert {site.get()["warm"] for _ in range(5)} == {"warm"}

        def metric(name: str) -> float:
            address = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(address, timeout=60) as response:
                return serving_metric(response.read().decode(), name)

        assert metric("workers") == 2
        # They are counted after the answer.
        site.server.until("all are counted", lambda: metric("worker_requests_total") == 5)
        refused = "prepare_again is not available with uWSGI: uWSGI forks in C"
        assert site.server.text().count(refused) == 1
        site.ends()


@pytest.mark.needs_gil
@pytest.mark.parametrize("kind", ["", "file", "threads", "gevent"])
def test_the_use_of_each_route(tmp_path: Path, kind: str) -> None:
    port = servers.free_port()
    is_file = kind == "file"
    where = ("--wsgi-file", "shop.py") if is_file else MODULE
    last_line = "import cpythonplus.prefork.uwsgi\n" if is_file else ""
    if kind == "gevent":
        pytest.importorskip("gevent", reason="gevent is not installed")
    more = {"threads": ("--threads", "4"), "gevent": ("--gevent", "10")}.get(kind, ())
    with serving(
        tmp_path,
        *(*where, *more, "--enable-threads"),
        last_line=last_line,
        CPYTHONPLUS_PREFORK_METRICS=str(port),
    ) as site:
        for number in range(3):
            site.get(f"/keeps/{number}")
            site.get("/shop")

        def read(name: str, route: str) -> float:
            address = f"http://127.0.0.1:{port}/metrics"
            with urllib.request.urlopen(address, timeout=60) as response:
                text: str = response.read().decode()
            if f'http_route="{route}"' not in text:
                return 0
            labels = {"http_request_method": "GET", "http_route": route}
            return serving_metric(text, f"route_{name}_total", **labels)

        site.server.until("all that keep", lambda: read("requests", "/keeps/*") == 3)
        site.server.until("all others", lambda: read("requests", "/shop") == 3)
        assert read("gil_hold_seconds", "/keeps/*") >= 1.2
        # On a busy machine the kernel stops a holder now and then: a stall more, but not three
        # where none is.
        assert read("stalls", "/keeps/*") >= 3
        assert read("stalls", "/shop") < 3
        if kind != "gevent":  # uWSGI kills such workers
            site.ends()


@pytest.mark.slow
def test_requests_that_take_turns_unseen_are_told_of(tmp_path: Path) -> None:
    port = str(servers.free_port())
    options = (*MODULE, "--async", "10", "--ugreen")
    with serving(tmp_path, *options, CPYTHONPLUS_PREFORK_METRICS=port) as site:
        assert site.get()["immortal"] == IMMORTAL
        line = "no metrics by route: requests take turns in a thread (async)"
        assert site.server.text().count(line) == 1


@pytest.mark.slow
def test_a_killed_worker_is_replaced_by_a_prepared_one(tmp_path: Path) -> None:
    with serving(tmp_path, *MODULE) as site:
        first = site.server.processes()
        os.kill(site.get()["pid"], signal.SIGKILL)
        answer = site.server.until(
            "a new worker",
            lambda: next(filter(lambda a: a["pid"] not in first, [site.get()]), None),
        )
        assert answer["immortal"] == IMMORTAL
        assert answer["gil"]
        site.ends()


@pytest.mark.slow
def test_workers_that_are_stopped_while_they_start_end_at_once(tmp_path: Path) -> None:
    """One that missed the signal would be waited for longer than this test does."""
    slow_start = dedent("""
        import time
        from uwsgidecorators import postfork

        @postfork
        def start():
            print("worker starts", flush=True)
            time.sleep(600)
    """)
    options = [*MODULE, "--worker-reload-mercy", "600"]
    with serving(tmp_path, *options, last_line=slow_start, ready=False) as site:
        site.server.until("both start", lambda: site.server.text().count("worker starts") == 2)
        site.server.until("the master", lambda: catches_sigterm(site.server.process.pid))
        site.ends()


@pytest.mark.slow
def test_a_file_imports_it_in_its_last_line(tmp_path: Path) -> None:
    last_line = "import cpythonplus.prefork.uwsgi\n"
    with serving(tmp_path, "--wsgi-file", "shop.py", last_line=last_line) as site:
        assert site.get()["immortal"] == IMMORTAL
        assert "last line" not in site.server.text()
        site.ends()


@pytest.mark.slow
def test_a_file_that_does_not_is_told_of(tmp_path: Path) -> None:
    with serving(tmp_path, "--wsgi-file", "shop.py", *IMPORT) as site:
        assert not site.get()["immortal"]
        assert site.server.text().count("in the application's last line") == 1
        site.ends()


@pytest.mark.slow
def test_lazy_apps_are_told_of(tmp_path: Path) -> None:
    with serving(tmp_path, *MODULE, "--lazy-apps") as site:
        answer = site.get()
        assert not answer["immortal"]
        assert answer["gil"]
        site.server.says("nothing is shared")
        # A worker that is stopped while it loads the application fails, as in stock uWSGI.
        site.server.until("both have loaded", lambda: site.server.text().count(" ready in ") == 2)
        site.ends()


@pytest.mark.slow
def test_an_application_that_does_not_import_ends_as_ever(tmp_path: Path) -> None:
    uwsgi = program()
    command = [uwsgi, "--http-socket", "127.0.0.1:0", "--master", "--need-app", *IMPORT]
    path = os.pathsep.join(filter(None, sys.path))
    env = {"PYTHONPATH": path}
    with servers.running(
        [*command, "--module", "nothing:there"], folder=tmp_path, env=env
    ) as server:
        servers.until("its end", lambda: server.process.poll() is not None)
        assert server.process.returncode == 22
        assert "cpythonplus prefork: module nothing:there: ModuleNotFoundError" in server.text()
