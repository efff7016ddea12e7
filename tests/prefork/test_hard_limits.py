"""Workers that are ended in the middle of a request: it takes too long, or has too much memory."""

import contextlib
import http.client
import re
import signal
import threading
from pathlib import Path

import pytest

from tests.prefork.serving import Clients, Server, running, until
from tests.support import run_child

pytest.importorskip("gunicorn", reason="gunicorn is not installed")

from cpythonplus.prefork._limits import hung_workers
from cpythonplus.prefork._options import Options

WORDS = ("--workers", "1", "--metrics", "/metrics", "--request-timeout", "1")
THREADS = ("--worker-class", "gthread", "--threads", "3")

APP = """
    import ctypes, os, time
    kept = []
    def nap():
        time.sleep(1e6)
    def app(environ, start_response):
        path = environ["PATH_INFO"]
        if path == "/slow":
            nap()
        if path == "/slow-body":
            start_response("200 OK", [])
            return (nap() for _ in range(1))
        if path == "/keeps-the-gil":
            ctypes.PyDLL(None).sleep(1_000_000)
        if path == "/grow":
            kept.append(bytearray(os.urandom(120_000_000)))
            nap()
        body = str(os.getpid()).encode()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]
"""
ASGI_APP = """
    import asyncio, os, time
    async def nap():
        await asyncio.sleep(1e6)
    def in_a_thread():
        time.sleep(1e6)
    def spins():
        time.sleep(2e6)
    async def hogs():
        spins()
    async def in_a_task():
        await asyncio.sleep(3e6)
    def calls():
        time.sleep(4e6)
    tasks = []
    async def app(scope, receive, send):
        if scope["type"] != "http":
            raise RuntimeError("no lifespan")
        path = scope["path"]
        if path == "/slow":
            await nap()
        if path == "/thread":
            await asyncio.to_thread(in_a_thread)
        if path == "/blocks":
            spins()
        if path == "/task":
            await asyncio.gather(in_a_task())
        if path == "/call":
            asyncio.get_running_loop().call_soon(calls)
            await nap()
        if path == "/beside":
            tasks.append(asyncio.ensure_future(hogs()))
            await nap()
        body = str(os.getpid()).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
"""
AIOHTTP_APP = """
    import asyncio, os
    from aiohttp import web
    async def nap():
        await asyncio.sleep(1e6)
    async def answer(request):
        if request.path == "/slow":
            await nap()
        return web.Response(text=str(os.getpid()))
    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
"""


def ask(server: Server, path: str) -> threading.Thread:
    """Send a request that is not answered."""

    def run() -> None:
        with (
            contextlib.suppress(OSError, http.client.HTTPException),
            contextlib.closing(server.connection()) as connection,
        ):
            connection.request("GET", path)
            connection.getresponse().read()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def place(folder: Path, code: str, function: str) -> str:
    """What the log says of a line of the application."""
    lines = (folder / "app.py").read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.strip() == code]
    return f"{folder / 'app.py'}:{number} ({function})"


def is_ended(server: Server, reason: str) -> bool:
    return server.metric("worker_restarts_total", reason=reason) == 1


def ends(server: Server, path: str, reason: str = "request_timeout") -> str:
    """Ask for `path`; the log, when the worker was replaced for it, which is counted."""
    first = server.get()
    thread = ask(server, path)
    until(lambda: server.workers() and str(*server.workers()) != first, "the next worker")
    thread.join()
    assert server.get() != first
    until(lambda: is_ended(server, reason), "the count")
    assert server.stop() == 0, server.output()
    assert server.nothing_left()
    assert "Traceback" not in server.output()
    return server.output()


@pytest.mark.parametrize("words", [(), THREADS], ids=["sync", "gthread"])
def test_a_request_that_takes_too_long_is_named_with_its_line(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with running(tmp_path, *WORDS, *words, app=APP) as server:
        log = ends(server, "/slow?secret=1")
    found = re.search(
        r"worker \d+ is ended at once: GET /slow for \d+\.\d s, at (.*); request_timeout is 1 s",
        log,
    )
    assert found, log
    inner, _, outer = found[1].partition(" < ")
    assert inner == place(tmp_path, "time.sleep(1e6)", "nap")
    assert re.fullmatch(r"\S+app\.py:\d+ \(app\)", outer)  # nothing of the server
    assert "secret" not in log


@pytest.mark.slow
def test_an_answer_counts_until_its_end(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, app=APP) as server:
        log = ends(server, "/slow-body")
    assert "is ended at once: GET /slow-body for" in log
    assert place(tmp_path, "time.sleep(1e6)", "nap") in log


@pytest.mark.slow
def test_requests_that_end_with_the_worker_are_named(tmp_path: Path) -> None:
    words = ("--workers", "1", *THREADS, "--request-timeout", "3")
    with running(tmp_path, *words, app=APP) as server:
        threads = [ask(server, "/slow"), ask(server, "/slow-body")]
        until(lambda: "which is ended: GET /slow" in server.output(), "both lines")
        for thread in threads:
            thread.join()
        told = re.findall(r"ended(?: at once)?: GET (\S+) for", server.output())
        assert set(told) == {"/slow", "/slow-body"}


@pytest.mark.parametrize("kind", ["uvicorn", "asgi", "aiohttp"])
def test_a_task_that_takes_too_long_is_named_with_its_line(tmp_path: Path, kind: str) -> None:
    app, words = ASGI_APP, ("--worker-class", kind)
    if kind == "uvicorn":
        pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
        words = ("--worker-class", "uvicorn_worker.UvicornWorker")
    elif kind == "aiohttp":
        pytest.importorskip("aiohttp", reason="aiohttp is not installed")
        app, words = AIOHTTP_APP, ("--worker-class", "aiohttp.GunicornWebWorker")
    else:
        pytest.importorskip("gunicorn.workers.gasgi", reason="this gunicorn has no ASGI worker")
    with running(tmp_path, *WORDS, *words, app=app) as server:
        log = ends(server, "/slow")
    assert re.search(r"is ended at once: GET /slow for \d+\.\d s", log), log
    assert f" < {place(tmp_path, 'await asyncio.sleep(1e6)', 'nap')} < " in log


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/blocks", "/beside", "/task", "/call", "/thread"])
def test_what_an_event_loop_waits_for_is_named(tmp_path: Path, path: str) -> None:
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    words = ("--worker-class", "uvicorn_worker.UvicornWorker")
    with running(tmp_path, *WORDS, *words, app=ASGI_APP) as server:
        log = ends(server, path)
    assert re.search(rf"is ended at once: GET {path} for \d+\.\d s", log), log
    inner = {
        "/beside": ("task", "time.sleep(2e6)", "spins"),
        "/task": ("task", "await asyncio.sleep(3e6)", "in_a_task"),
        "/call": ("thread", "time.sleep(4e6)", "calls"),
        "/thread": ("thread", "time.sleep(1e6)", "in_a_thread"),
    }
    if path == "/blocks":
        assert f"s, at {place(tmp_path, 'time.sleep(2e6)', 'spins')} < " in log
        return
    kind, code, function = inner[path]
    where = re.escape(place(tmp_path, code, function))
    assert re.search(rf"which is ended: {kind} \S+, at (\S+ \(sleep\) < )?{where}", log), log


def test_a_request_whose_place_cannot_be_told_is_ended_all_the_same() -> None:
    child = run_child(
        """
        import time
        from types import SimpleNamespace
        from cpythonplus.prefork._limits import hard_limits
        from cpythonplus.prefork._options import Options
        def fails(key):
            raise LookupError(key)
        hard_limits._frames_of = fails
        limits = hard_limits.HardLimits()
        log = SimpleNamespace(error=lambda text, *args: print(text % args, flush=True))
        assert limits.start(Options(request_timeout=0.01), None, log)
        limits.begin(1, "GET", "/a\\x1b[0m\\n")
        time.sleep(1e6)
        """,
        status=1,
    )
    line = (
        r"worker \d+ is ended at once: GET /a\\x1b\[0m\\n for \d+\.\d s,"
        r" at an unknown place; .*\n"
    )
    assert re.fullmatch(line, child.out), child.out


def test_a_process_that_is_no_longer_watched_goes_on() -> None:
    run_child(
        """
        from types import SimpleNamespace
        from cpythonplus.prefork._limits import hard_limits
        from cpythonplus.prefork._options import Options
        limits, written = hard_limits.HardLimits(), []
        slot = SimpleNamespace(write=lambda looked_ns: written.append(looked_ns))
        assert not limits.start(Options(), slot, None)
        assert limits.start(Options(hard_private_memory="1G"), slot, None)
        limits.stop()
        assert written and written[-1] == 0, written
        """
    )


@pytest.mark.slow
def test_the_master_ends_a_worker_in_which_no_python_runs(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, *THREADS, app=APP) as server:
        log = ends(server, "/keeps-the-gil")
    assert re.search(r"worker \d+ hangs, in \S*libffi", log)
    assert re.search(r"worker \d+ is killed: no Python code can run in it.* request_timeout", log)


def test_a_master_that_was_stopped_too_gives_its_workers_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = 10**9
    now = 1000 * second
    monkeypatch.setattr(hung_workers, "monotonic_ns", lambda: now)
    hung, options = hung_workers.HungWorkers(), Options(request_timeout=2)
    looked = now
    assert not hung.passed(7, 0, options)
    assert not hung.passed(7, looked, options)
    now += 60 * second
    assert not hung.passed(7, looked, options)
    now += second // 2
    assert not hung.passed(7, looked, options)
    assert not hung.passed(7, now, options)
    now += 60 * second
    assert not hung.passed(7, looked, options)
    now += second
    assert hung.passed(7, looked, options) == "request_timeout"
    assert not hung.passed(7, looked, Options(request_timeout=1000))
    assert hung.passed(0, looked, Options()) == ""


@pytest.mark.parametrize("words", [(), ("--request-timeout", "600")], ids=["", "both"])
def test_a_worker_that_grows_in_a_request_is_ended(tmp_path: Path, words: tuple[str, ...]) -> None:
    words = ("--workers", "1", "--metrics", "/metrics", "--hard-private-memory", "90M", *words)
    with running(tmp_path, *words, app=APP) as server:
        log = ends(server, "/grow", "hard_private_memory")
    assert re.search(
        r"worker \d+ is ended at once: it has [\d.]+ MiB of private memory; hard_private_memory is"
        r" 90 MiB",
        log,
    )
    assert re.search(r"which is ended: GET /grow for \d+\.\d s, at \S+app\.py:\d+ \(", log)


def test_a_hard_limit_below_what_a_fresh_worker_has(tmp_path: Path) -> None:
    words = ("--workers", "1", "--metrics", "/metrics", "--hard-private-memory", "1M")
    with running(tmp_path, *words, app=APP) as server:
        first = server.get()
        assert "hard_private_memory (1 MiB) is ignored" in server.output()
        assert server.get() == first
        assert not is_ended(server, "hard_private_memory")
        assert server.stop() == 0, server.output()


@pytest.mark.slow
def test_limits_hold_in_workers_of_a_mold(tmp_path: Path) -> None:
    words = ("--workers", "1", "--refork", "--refork-after", "10", "--request-timeout", "2")
    with running(tmp_path, *words, app=APP) as server:
        with Clients(server) as clients:
            until(lambda: "workers of generation 1" in server.output(), "a mold")
            (mold,) = re.findall(r"are forked from process (\d+)", server.output())
            count = len(clients.pids)
            until(lambda: len(clients.pids) > count or clients.failures, "its worker")
        assert clients.failures == []
        ask(server, "/slow").join()
        until(lambda: "is ended at once: GET /slow" in server.output(), "its end")
        assert f"worker {mold} is ended" not in server.output()
        assert server.get() != mold
        server.signal(signal.SIGTERM)


@pytest.mark.slow
def test_what_cannot_be_watched_or_is_too_late_says_so(tmp_path: Path) -> None:
    with running(tmp_path, "--request-timeout", "60", app=APP) as server:
        assert "a sync worker is aborted after 30 s (--timeout), before" in server.output()
        assert server.stop() == 0
    pytest.importorskip("gevent", reason="gevent is not installed")
    words = ("--worker-class", "gevent", "--no-threads", "--request-timeout", "1")
    with running(tmp_path, *words, app=APP) as server:
        assert "workers of class gevent cannot be watched" in server.output()
        assert server.stop() == 0
