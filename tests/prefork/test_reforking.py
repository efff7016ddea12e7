"""Reforking: new workers are forked from one that has served, and no request is refused."""

import os
import random
import re
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.prefork.serving import AIOHTTP_APP, DEADLINE_S, Clients, Server, running, until
from tests.support import run_child

FIRST = """
    import os, threading, time
    served_by = []
    def app(environ, start_response):
        path = environ["PATH_INFO"]
        served_by.append(os.getpid())
        if path == "/thread":
            threading.Thread(target=time.sleep, args=(1e6,), daemon=True, name="ticker").start()
        body = str(served_by[0] if path == "/first" else os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""
ASGI = """
    import os
    served_by = []
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": kind + ".complete"})
                if kind == "lifespan.shutdown":
                    return
        served_by.append(os.getpid())
        first = scope["path"] == "/first"
        body = str(served_by[0] if first else os.getpid()).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
"""
SHUT = (
    ASGI.replace('"status": 200', '"status": 503 if shut else 200')
    .replace("served_by = []", "served_by, shut = [], []")
    .replace("return\n", "return shut.append(kind)\n")
)
REFORK = ("--workers", "2", "--refork", "--refork-after", "10")


def generation(server: Server) -> int:
    found = re.findall(r"workers of generation (\d+)", server.output())
    return int(found[-1]) if found else 0


def molds(server: Server) -> list[int]:
    return [int(each) for each in re.findall(r"are forked from process (\d+)", server.output())]


def loaders(server: Server) -> list[int]:
    return [int(each) for each in re.findall(r"process (\d+) has loaded", server.output())]


def serving(server: Server) -> set[int]:
    return server.workers() - {*molds(server), *loaders(server)}


def is_renewed(server: Server) -> bool:
    """Whether the workers are of one generation: what the first one served with is a mold's."""
    return {int(server.get("/first")) for _ in range(8)} <= {*molds(server), *first_molds(server)}


def first_molds(server: Server) -> list[int]:
    return [int(each) for each in re.findall(r"worker (\d+) has served", server.output())]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sync", "gthread", "uvicorn", "aiohttp"])
def test_workers_are_renewed_without_a_refused_request(tmp_path: Path, kind: str) -> None:
    app, words = FIRST, ("--worker-class", kind)
    if kind == "uvicorn":
        pytest.importorskip("uvicorn_worker")
        app, words = ASGI, ("--worker-class", "uvicorn_worker.UvicornWorker")
    if kind == "aiohttp":
        pytest.importorskip("aiohttp")
        app, words = AIOHTTP_APP, ("--worker-class", "aiohttp.GunicornWebWorker")
    with running(tmp_path, *REFORK, *words, app=app) as server:
        with Clients(server, count=4, keep_alive=kind != "sync") as clients:
            until(lambda: generation(server) >= 3 or clients.failures, "three generations")
        assert clients.failures == []
        until(lambda: is_renewed(server), "the last one to be in use")
        assert server.stop() == 0, server.output()
        assert server.nothing_left()
        assert "Traceback" not in server.output()


def test_gunicorns_signals_go_on_working(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with running(tmp_path, *REFORK, "--pid", str(pidfile), app=FIRST) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 1 or clients.failures, "a mold")
            until(lambda: is_renewed(server), "renewed workers")
            server.signal(signal.SIGTTIN)
            until(lambda: len(serving(server)) == 3, "three workers")
            server.signal(signal.SIGTTOU)
            until(lambda: len(serving(server)) == 2, "two workers")
            before = server.workers()
            server.signal(signal.SIGHUP)
            until(lambda: not before & server.workers() or clients.failures, "other workers")
        assert clients.failures == []
        assert pidfile.read_text().strip() == str(server.process.pid)
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


CONNECTED = """
    import os, socket
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []
    def app(environ, start_response):
        if not kept:
            kept.append(socket.create_connection(listener.getsockname()))
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def test_what_requests_have_connected_is_told_once_by_the_mold(tmp_path: Path) -> None:
    with running(tmp_path, *REFORK, app=CONNECTED) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 2 or clients.failures, "two molds")
        assert clients.failures == []
        told = re.findall(r"cut in the workers: TCP .* \(opened by (.*?)\)", server.output())
        assert told == ["the requests that this worker has served"]  # later ones: it is dead
        assert server.stop() == 0, server.output()


def test_the_gain_is_told_once(tmp_path: Path) -> None:
    with running(tmp_path, *REFORK, app=FIRST) as server:
        with Clients(server) as clients:
            line = "with reforking, and took"
            until(lambda: line in server.output() or clients.failures, "the line")
            until(lambda: generation(server) >= 2 or clients.failures, "a second mold")
        assert clients.failures == []
        assert server.output().count(line) == 1
        assert server.stop() == 0, server.output()


def test_a_mold_that_is_killed_is_told_and_the_service_goes_on(tmp_path: Path) -> None:
    words = ("--workers", "2", "--refork", "--refork-after", "30", "--max-requests", "200")
    with running(tmp_path, *words, app=FIRST) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 1 or clients.failures, "a mold")
            os.kill(molds(server)[0], signal.SIGKILL)
            until(lambda: "is given up" in server.output() or clients.failures, "a line")
            count = len(clients.pids)
            until(lambda: len(clients.pids) > count + 2 or clients.failures, "more workers")
        assert clients.failures == []
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def is_whole_without(server: Server, pid: int) -> bool:
    return pid not in server.workers() and len(serving(server)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    with running(tmp_path, *REFORK, app=FIRST) as server:
        with Clients(server, goes_on=True):
            for _ in range(8):
                time.sleep(moments.uniform(0, 1))
                helpers = server.workers() - serving(server)
                pid = moments.choice(sorted(moments.choice([helpers, server.workers()])) or [0])
                if pid:
                    with suppress(ProcessLookupError):  # it has ended meanwhile
                        os.kill(pid, signal.SIGKILL)
                until(partial(is_whole_without, server, pid), "two workers")
                assert server.get()
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


LOST = """
    import os, signal, time
    from types import SimpleNamespace
    from cpythonplus.prefork._board.channel import Channel
    from cpythonplus.prefork._gunicorn import forks, reforking
    from cpythonplus.prefork._gunicorn import mold as molding

    def worker():
        pid = os.fork()
        if pid == 0:
            time.sleep(1e6)
        return pid

    def is_killed(pid):
        return os.waitpid(pid, 0)[1] == signal.SIGKILL
"""


def test_a_worker_whose_mold_ends_before_it_has_said_so_is_not_left() -> None:
    pytest.importorskip("gunicorn")
    run_child(
        LOST
        + """
    pid = worker()
    master, mold = Channel.pair()
    file, other = os.pipe()
    mold.send("worker", pid, descriptors=(file, other))
    mold.close()
    before = set(os.listdir("/proc/self/fd"))
    fork = forks.Fork(SimpleNamespace(age=1), time.monotonic())
    one_before = reforking._Mold(worker(), master, 1, fork=fork)
    assert not reforking.Reforking(service=None)._advance(None, one_before)
    assert os.waitpid(one_before.pid, 0)[1] == signal.SIGTERM
    assert is_killed(pid)
    assert set(os.listdir("/proc/self/fd")) == before
    """
    )


def test_a_worker_that_cannot_be_handed_over_is_not_left() -> None:
    pytest.importorskip("gunicorn")
    run_child(
        LOST
        + """
    pid = worker()
    master, mold = Channel.pair()
    master.close()
    log = SimpleNamespace(error=print)
    of = SimpleNamespace(age=1, tmp=SimpleNamespace(fileno=lambda: 0))
    helper = os.fork()
    if helper == 0:
        service = SimpleNamespace(channel=mold, lines={1: SimpleNamespace(fileno=lambda: 0)})
        molding.deliver(service, SimpleNamespace(WORKERS={pid: of}, log=log))
    os.waitpid(helper, 0)
    assert is_killed(pid)
    """
    )


@pytest.mark.slow
def test_nothing_is_left_of_a_master_that_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, *REFORK, app=FIRST) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 1 or clients.failures, "a mold")
            until(lambda: is_renewed(server), "renewed workers")
        server.process.kill()
        server.process.wait(DEADLINE_S)
        until(server.nothing_left, "the end of all")


@pytest.mark.slow
def test_a_worker_with_a_thread_does_not_become_a_mold(tmp_path: Path) -> None:
    with running(tmp_path, *REFORK, app=FIRST) as server:
        with Clients(server, path="/thread") as clients:
            until(lambda: "does not become the mold" in server.output(), "a refusal")
            time.sleep(0)
        assert clients.failures == []
        assert "threads that a fork would lose: ticker" in server.output()
        assert generation(server) == 0
        assert server.stop() == 0, server.output()


def test_a_generation_that_cannot_begin_is_given_up(tmp_path: Path) -> None:
    config = """
        import os
        from pathlib import Path
        def post_fork(server, worker):
            if os.environ.get("SERVED"):
                raise SystemExit(3)
    """
    app = FIRST.replace("served_by.append(os.getpid())", 'os.environ["SERVED"] = "1"')
    app = app.replace("served_by[0]", "os.getpid()")
    words = (*REFORK, "-c", "config.py")
    with running(tmp_path, *words, app=app, files={"config.py": config}) as server:
        with Clients(server) as clients:
            until(lambda: "is given up" in server.output() or clients.failures, "the end of a mold")
            count = len(clients.pids)
            until(lambda: clients.pids and count and server.workers(), "workers")
        assert clients.failures == []
        assert server.process.poll() is None
        assert server.stop() == 0, server.output()
        assert server.nothing_left()


def test_what_cannot_refork_says_so(tmp_path: Path) -> None:
    with running(tmp_path, *REFORK, "--reload", app=FIRST) as server:
        until(lambda: "no reforking: " in server.output(), "a line")
        assert server.stop() == 0, server.output()


LISTENING = """
    import logging, logging.handlers, os, queue
    records = queue.SimpleQueue()
    logger = logging.getLogger("app")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.handlers.QueueHandler(records))
    listener = logging.handlers.QueueListener(records, logging.FileHandler("records"))
    started = []
    def app(environ, start_response):
        if not started:
            listener.start()
            started.append(os.getpid())
        logger.info("%d", os.getpid())
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""


def test_a_worker_whose_threads_come_back_becomes_a_mold(tmp_path: Path) -> None:
    records = tmp_path / "records"
    with running(tmp_path, *REFORK, app=LISTENING) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 2 or clients.failures, "two generations")
            pid = int(server.get())
            until(lambda: str(pid) in records.read_text().split(), "what a forked worker logs")
        assert clients.failures == []
        assert "does not become the mold" not in server.output()
        assert server.stop() == 0, server.output()


SLOW = """
    import functools, time
    from cpythonplus.prefork._gunicorn import forks, reforking
    reforking.Fork = functools.partial(forks.Fork, limit_s={limit_s})
    def pre_fork(server, worker):
        time.sleep({hook_s})
"""


@pytest.mark.slow
def test_a_hook_may_take_longer_than_a_fork(tmp_path: Path) -> None:
    """A pre_fork of the user's that takes its time is no reason to give its mold up."""
    config = SLOW.format(limit_s=1.5, hook_s=3)
    words = ("--workers", "1", "--refork", "-c", "config.py")
    with running(tmp_path, *words, app=FIRST, files={"config.py": config}) as server:
        assert int(server.get()) in serving(server)
        assert "is given up" not in server.output()
        assert server.stop() == 0, server.output()
        until(server.nothing_left, "the end of all")


@pytest.mark.parametrize("served", [True, False])
def test_a_hook_that_hangs_is_given_up_with_its_mold(served: bool, tmp_path: Path) -> None:
    """A master that knows that a worker has served tries again and again; another one ends."""
    config = SLOW.format(limit_s=10, hook_s="1e6 if server.worker_age > 1 else 0")
    config += "    forks._HOOK_S = 5\n"
    config += f"    reforking.Reforking._has_served = lambda *_: {served}\n"
    words = ("--workers", "1", "--refork", "-c", "config.py")
    with running(tmp_path, *words, app=FIRST, files={"config.py": config}) as server:
        os.kill(int(server.get()), signal.SIGKILL)
        until(lambda: "no worker came within 5 s" in server.output(), "a mold that is given up")
        status = server.stop() if served else server.process.wait(DEADLINE_S)
        assert status == (0 if served else 1), server.output()
        until(server.nothing_left, "the end of the hook")


@pytest.mark.slow
def test_a_master_whose_mold_is_stopped_hears_signals(tmp_path: Path) -> None:
    config = SLOW.format(limit_s=1e9, hook_s=0)
    words = ("--workers", "1", "--refork", "-c", "config.py")
    with running(tmp_path, *words, app=FIRST, files={"config.py": config}) as server:
        worker = int(server.get())
        os.kill(loaders(server)[0], signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        until(lambda: worker not in server.workers(), "the end of the worker")
        assert server.stop() == 0, server.output()
        until(server.nothing_left, "the end of all")


def test_a_loader_that_takes_long_is_told(tmp_path: Path) -> None:
    config = """
        from cpythonplus.prefork._gunicorn import reforking
        reforking._LONG_S = 0.5
    """
    app = (
        FIRST
        + """
    if os.path.exists("hang"):
        time.sleep(1e6)
"""
    )
    with running(tmp_path, *REFORK, "-c", "config.py", app=app, files={"config.py": config}) as it:
        (tmp_path / "hang").touch()
        it.signal(signal.SIGHUP)
        until(lambda: "has been loading the application for" in it.output(), "a line")
        assert int(it.get()) in serving(it)
        (tmp_path / "hang").unlink()
        it.signal(signal.SIGHUP)
        until(lambda: "workers of generation 1 have the new code" in it.output(), "new workers")
        assert it.stop() == 0, it.output()
        until(it.nothing_left, "the end of all")


def test_hooks_of_the_master_are_called_once(tmp_path: Path) -> None:
    """child_exit for a worker that becomes the mold too; nworkers_changed not in the loader."""
    config = """
        import os
        def say(*words):
            with open("hooks", "a") as file:
                print(*words, file=file)
        def nworkers_changed(server, new, old):
            say("nworkers_changed", os.getpid())
        def child_exit(server, worker):
            say("child_exit", worker.pid)
        def pre_fork(server, worker):
            pass
    """
    said = tmp_path / "hooks"
    words = (*REFORK, "-c", "config.py")
    with running(tmp_path, *words, app=FIRST, files={"config.py": config}) as server:
        with Clients(server) as clients:
            until(lambda: generation(server) >= 2 or clients.failures, "two generations")
            server.signal(signal.SIGHUP)
            until(lambda: "have the new code" in server.output() or clients.failures, "new code")
        assert clients.failures == []
        assert "what it keeps in variables is lost" in server.output()
        assert server.stop() == 0, server.output()
    lines = said.read_text().splitlines()
    ended = [int(line.split()[1]) for line in lines if line.startswith("child_exit")]
    assert len(ended) == len(set(ended))
    assert set(molds(server)) <= set(ended)
    changed = [line.split()[1] for line in lines if line.startswith("nworkers_changed")]
    assert changed == [str(server.process.pid)] * 2  # at the start, after HUP


@pytest.mark.slow
def test_an_application_that_cannot_be_started_again_is_no_mold(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker")
    words = (*REFORK, "--worker-class", "uvicorn_worker.UvicornWorker")
    with running(tmp_path, *words, app=SHUT) as server:
        with Clients(server) as clients:
            line = "after a shut-down and another start-up GET / is answered 503"
            until(lambda: line in server.output() or clients.failures, "a refusal")
        assert clients.failures == []
        assert generation(server) == 0
        assert server.stop() == 0, server.output()
