"""Warm-ups of ASGI applications: one event loop, one lifespan, and what is left for a worker."""

import asyncio
import gc
import http.client
import os
import socketserver
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from cpythonplus.prefork._warming import warming
from cpythonplus.prefork._warming.asgi import rehearsed
from cpythonplus.prefork._warming.kept import Kept
from cpythonplus.prefork._warming.warming import WarmUp
from tests.prefork.services import packages
from tests.prefork.serving import python_path, running
from tests.support import run_child

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def warm(*targets: str | Callable[[], object], of: Any, **plan: Any) -> list[warming.Answer]:  # noqa: ANN401
    return warming.warm_up(WarmUp(targets=targets, **plan), of)


@pytest.mark.parametrize("blocks", [False, True])
def test_an_asgi_request_that_takes_too_long(*, blocks: bool) -> None:
    async def application(scope: Scope, _receive: Receive, _send: Send) -> None:
        assert scope["type"] == "http"
        while blocks:
            time.sleep(0.01)  # noqa: ASYNC251  # what is tried
        await asyncio.sleep(600)

    with pytest.raises(warming.Failed, match=r"the warm-up of / was ended: it took longer than"):
        warm("/", of=application, limit_s=0.01)


# ---- ASGI: one loop, one lifespan ---------------------------------------------------------------


class Asgi:
    """An ASGI application with a lifespan, which keeps the order of what happened."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.happened: list[object] = []
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.loops.add(asyncio.get_running_loop())
        if scope["type"] == "lifespan":
            scope["state"]["pool"] = "a pool"
            for part in ("startup", "shutdown"):
                assert await receive() == {"type": f"lifespan.{part}"}
                self.happened.append(part)
                how = "failed" if part == self.fails else "complete"
                await send({"type": f"lifespan.{part}.{how}", "message": "no data base"})
            return
        self.happened.append(scope["path"])
        assert scope["state"]["pool"] == "a pool"
        assert len(scope["state"]) == 1
        scope["state"]["mine"] = 1  # of this request alone
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


def test_all_requests_run_in_one_loop_between_start_up_and_shut_down() -> None:
    application = Asgi()

    def between() -> None:
        application.happened.append("callable")
        asyncio.run(asyncio.sleep(0))  # no loop is running here

    warm("/a", between, "/b", of=application, repeats=2)
    first = ["startup", "/a", "/a", "callable", "/b", "/b", "shutdown"]
    assert application.happened[:7] == first
    # The proof that a worker can do it, in another loop.
    assert application.happened[7:] == ["startup", "/a", "/b", "shutdown"]
    assert len(application.loops) == 2
    assert all(loop.is_closed() for loop in application.loops)


def test_without_a_lifespan() -> None:
    application = Asgi()
    with pytest.raises(warming.Failed, match="raised KeyError: 'pool'"):
        warm("/", of=application, lifespan=False)
    assert application.happened == ["/"]


def test_what_a_first_loop_spoils_for_the_workers_fails() -> None:
    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        if not made:
            made.append(asyncio.get_running_loop())
        made[0].call_soon(print)  # as a session of aiohttp that the first request made
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    made: list[asyncio.AbstractEventLoop] = []
    why = "the warm-up of / spoils it for the workers: .* it raised RuntimeError: Event loop is clo"
    with pytest.raises(warming.Failed, match=why):
        warm("/", of=application)
    made.clear()
    warming.warm_up(WarmUp(targets=["/"]), application, renew=made.clear)


def test_a_start_up_that_fails_fails_the_warm_up() -> None:
    application = Asgi(fails="startup")
    with pytest.raises(warming.Failed, match="warm-up of / raised RuntimeError: no data base"):
        warm("/", of=application)
    assert application.happened == ["startup"]


def test_a_shut_down_that_fails_is_told() -> None:
    told: list[str] = []
    warming.warm_up(WarmUp(targets=["/"]), Asgi(fails="shutdown"), tell=told.append)
    line, again = told
    assert line == again
    assert line.startswith("the warm-up's shut-down of the application: RuntimeError: no data base")


def test_an_application_that_returns_has_no_lifespan() -> None:
    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})

    assert warm("/", of=application)[0].good


def test_tasks_of_the_application_end_with_the_loop() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            ended.append("task")

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        tasks.append(asyncio.ensure_future(forever()))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
        await asyncio.sleep(0)

    tasks: list[asyncio.Future[None]] = []
    warm("/", of=application, repeats=1)
    assert ended == ["task"] * 2


# ---- ASGI: what the application keeps -----------------------------------------------------------


class Pooled:
    """An ASGI application that keeps a connection to an echo server, as pools do."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pool: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for part in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{part}.complete"})
            return
        self.asked += 1
        if self.pool:
            reader, writer = self.pool.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"ping\n")
        await writer.drain()
        assert await reader.readline() == b"ping\n"
        self.pool.append((reader, writer))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port() -> Iterator[int]:
    """The port of an echo server in a thread."""

    class Echo(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                self.wfile.write(line)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


class Lines:
    """A logger's warnings."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.lines.append(message % args)


async def serve_one_life(application: Any) -> list[str]:  # noqa: ANN401  # ASGI
    """Start an application as a server does, and stop it; what it said."""
    said: list[str] = []
    asked = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(asked)}

    async def send(message: dict[str, Any]) -> None:
        said.append(message["type"])

    await application({"type": "lifespan", "state": {}}, receive, send)
    return said


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_worker_loses_what_the_warm_up_left_in_a_pool(
    kind: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "uvloop":
        uvloop = pytest.importorskip("uvloop")
        monkeypatch.setattr(asyncio, "new_event_loop", uvloop.new_event_loop)
    application, kept, log = Pooled(port), Kept(), Lines()
    warming.warm_up(WarmUp(targets=["/"]), application, kept=kept)
    ((_, warmed),) = application.pool
    assert warmed.transport.is_closing()
    gc.collect()  # the one of the first loop, which the second one has found lost
    assert list(kept.counts().values()) == [1]

    before = application.asked
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        said = runner.run(serve_one_life(rehearsed(application, kept, log)))
        assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert application.asked == before + 2  # the second one connects
        ((_, writer),) = application.pool
        assert writer is not warmed
        assert not writer.transport.is_closing()
        writer.transport.abort()
        runner.run(asyncio.sleep(0))
    assert log.lines == []


def test_an_application_that_keeps_nothing_is_not_asked_again(port: int) -> None:
    application, kept = Pooled(port), Kept()
    warming.warm_up(WarmUp(targets=["/"]), application, kept=kept)
    application.pool.clear()
    gc.collect()
    assert rehearsed(application, kept, Lines()) is application


def test_what_never_works_in_a_worker_is_told(port: int) -> None:
    class Bound(Pooled):
        bound = False

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if self.bound:
                raise RuntimeError("attached to a different loop")
            if scope["type"] != "http":
                raise ValueError("no lifespan")  # told to nobody
            await super().__call__(scope, receive, send)

    application, kept, log = Bound(port), Kept(), Lines()
    warming.warm_up(WarmUp(targets=["/"]), application, kept=kept)
    application.bound = True
    with pytest.raises(RuntimeError, match="attached"):
        asyncio.run(serve_one_life(rehearsed(application, kept, log)))
    (line,) = log.lines
    assert line.startswith("the warm-up of / is repeated in this worker, and raised RuntimeError:")


# ---- real frameworks ----------------------------------------------------------------------------


def test_django() -> None:
    pytest.importorskip("django", reason="Django is not installed")
    run_child("""
        import django
        from django.conf import settings
        from django.core.asgi import get_asgi_application
        from django.http import HttpResponse
        from django.urls import path
        from cpythonplus.prefork._warming import warming

        asked = []
        async def page(request):
            asked.append((request.method, request.body, request.COOKIES))
            return HttpResponse("ok")
        urlpatterns = [path("page", page)]
        settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
        application = get_asgi_application()
        (answer,) = warming.warm_up(warming.WarmUp(targets=["/page"], repeats=2), application)
        assert answer.status == 200, answer
        assert asked == [("GET", b"", {})] * 3, asked
    """)


FASTAPI = """
    import contextlib, threading
    from fastapi import FastAPI, Request
    lives = []
    @contextlib.asynccontextmanager
    async def lifespan(app):
        lives.append("start")
        yield {"pool": "a pool"}
        lives.append("stop")
    app = FastAPI(lifespan=lifespan)
    @app.get("/page")
    async def page(request: Request):
        return {"pool": request.state.pool, "cookies": request.cookies}
    @app.get("/thread")
    def thread():
        return threading.current_thread().name
    @app.post("/body")
    async def body(sent: dict):
        return sent
"""


def test_fastapi(tmp_path: Path) -> None:
    folders = packages("fastapi", needs="fastapi")
    file = tmp_path / "requests"
    file.write_text('{"path": "/body", "method": "POST", "body": {"a": 1}}')
    code = f"""
        import threading
        from cpythonplus.prefork._warming import warming
        plan = warming.WarmUp(targets=["/page", "/thread"], file={str(file)!r})
        answers = warming.warm_up(plan, app)
        assert [each.status for each in answers] == [200] * 3, answers
        assert lives == ["start", "stop"] * 2, lives
        assert [each.name for each in threading.enumerate()] == ["MainThread"]
    """
    run_child(
        dedent(FASTAPI) + dedent(code),
        env={"PYTHONPATH": os.pathsep.join([python_path(tmp_path), *folders])},
    )


# ---- served -------------------------------------------------------------------------------------

POOLED = """
    import asyncio, os
    pool = []
    async def app(scope, receive, send):
        if scope["type"] == "lifespan" and LIFESPAN:
            for part in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{part}.complete"})
            return
        assert scope["type"] == "http"
        body = b"ok"
        if scope["path"] == "/db":
            pool or pool.append(await asyncio.open_connection("127.0.0.1", PORT))
            reader, writer = pool.pop()
            writer.write(b"ping\\n")
            await writer.drain()
            body = await reader.readline()
            pool.append((reader, writer))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})
"""
WORKER = """
    from uvicorn_worker import UvicornWorker
    class Worker(UvicornWorker):
        CONFIG_KWARGS = {"loop": "LOOP"}
"""


@pytest.mark.slow
@pytest.mark.parametrize("lifespan", [False, True])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "gunicorn"])
def test_a_pool_that_was_warmed(loop: str, port: int, tmp_path: Path, *, lifespan: bool) -> None:
    """Every answer of every worker is right, the first one too."""
    worker = "worker.Worker"
    if loop == "gunicorn":
        pytest.importorskip("gunicorn.workers.gasgi", reason="this gunicorn has no ASGI worker")
        worker = "asgi"
    elif loop == "uvloop":
        pytest.importorskip("uvloop", reason="uvloop is not installed")
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    app = POOLED.replace("LIFESPAN", str(lifespan)).replace("PORT", str(port))
    words = ("--workers", "3", "--worker-class", worker, "--warm-up", "/db")
    files = {"worker.py": WORKER.replace("LOOP", loop)}
    with running(tmp_path, *words, app=app, files=files) as server:
        for _ in range(60):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", "/db")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"ping\n")
            connection.close()
        assert "Traceback" not in server.output()
        assert server.stop() == 0


SPOILT = """
    import asyncio
    made = None
    async def app(scope, receive, send):
        global made
        assert scope["type"] == "http"
        made = made or asyncio.get_running_loop()
        made.call_soon(int)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})
"""


@pytest.mark.slow
def test_what_no_worker_could_answer_ends_the_start(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    words = ("--worker-class", "uvicorn_worker.UvicornWorker", "--warm-up", "/")
    why = "ended with 1(.|\n)*Reason: the warm-up of / spoils it for the workers"
    with (
        pytest.raises(pytest.fail.Exception, match=why),
        running(tmp_path, *words, app=SPOILT),
    ):
        pass
