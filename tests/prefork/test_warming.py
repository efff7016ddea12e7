"""Warm-ups: requests through WSGI and ASGI without a server, and callables."""

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cpythonplus.prefork import _warming as warming
from cpythonplus.prefork._applications import is_asgi
from cpythonplus.prefork._warming import WarmUp
from cpythonplus.prefork._warming_kept import Kept

pytestmark = pytest.mark.any_version

Start = Callable[[str, list[tuple[str, str]]], object]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Recorder:
    """A WSGI application that keeps what it was asked, and whether its answers were closed."""

    def __init__(self, status: str = "200 OK") -> None:
        self.status = status
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    def __call__(self, environ: dict[str, Any], start_response: Start) -> Iterable[bytes]:
        self.asked.append(environ)
        start_response(self.status, [])
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter([b"abc", b"de"])

    def close(self) -> None:
        self.closed += 1


def warm(*targets: str | Callable[[], object], of: Any = None, **plan: Any) -> list[warming.Answer]:  # noqa: ANN401
    return warming.warm_up(WarmUp(targets=targets, **plan), of)


def test_a_path_is_asked_for_until_the_bytecode_is_warm() -> None:
    application = Recorder()
    answers = warm("/a%20b?x=1", of=application)
    assert answers == [warming.Answer("/a%20b?x=1", 200, 5)]
    assert answers[0].good
    assert len(application.asked) == application.closed == warming.REPEATS
    assert application.asked[0]["PATH_INFO"] == "/a b"
    assert application.asked[0]["QUERY_STRING"] == "x=1"


def test_an_address_gives_the_host() -> None:
    application = Recorder()
    warm("https://example.com/x", of=application)
    asked = application.asked[0]
    assert (asked["HTTP_HOST"], asked["SERVER_PORT"]) == ("example.com", "443")
    assert asked["wsgi.url_scheme"] == "https"


def test_a_bad_answer_is_told_and_not_repeated() -> None:
    application = Recorder("500 Oops")
    (answer,) = warm("/", of=application)
    assert not answer.good
    assert len(application.asked) == 1


def test_so_many_times() -> None:
    application = Recorder()
    warm("/", of=application, repeats=3)
    assert len(application.asked) == 3


def test_an_asgi_application_is_recognised() -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"  # no lifespan
        assert (await receive())["type"] == "http.request"
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})
        assert (await receive())["type"] == "http.disconnect"

    assert is_asgi(application)
    assert not is_asgi(Recorder())
    assert warm("/é", of=application) == [warming.Answer("/é", 201, 3)]


def test_callables_are_called_once_in_order() -> None:
    called: list[str] = []
    warm(lambda: called.append("first"), lambda: called.append("second"), of=Recorder())
    assert called == ["first", "second"]


def test_modules_are_imported_and_names_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    module = SimpleNamespace(
        one=lambda: called.append("one"), inner=SimpleNamespace(two=lambda: called.append("two"))
    )
    monkeypatch.setitem(sys.modules, "warmed", module)
    warm("warmed", "warmed:one", "warmed:inner.two")
    assert called == ["one", "two"]


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("sys:no_such_name", "cannot be imported: AttributeError"),
        ("sys:maxsize", "is not callable"),
        ("/", "no application was found"),
    ],
)
def test_what_cannot_be_done_is_told(target: str, why: str) -> None:
    with pytest.raises(warming.Failed, match=f"the warm-up.* {target}:? {why}"):
        warm(target)


def test_a_failure_that_does_not_stop() -> None:
    application, failed = Recorder(), []
    plan = WarmUp(targets=["sys:maxsize", "/", "/x"], file="no such file")
    answers = warming.warm_up(plan, application, failed=lambda error: failed.append(str(error)))
    assert [answer.target for answer in answers] == ["/", "/x"]
    assert failed == [
        "the warm-up sys:maxsize is not callable",
        "the warm-up's requests no such file: No such file or directory",
    ]


# ---- the time limit -----------------------------------------------------------------------------


def test_a_request_that_takes_too_long() -> None:
    def application(_environ: object, _start_response: Start) -> Iterable[bytes]:
        while True:
            try:
                time.sleep(600)
            except Exception:  # noqa: BLE001  # as frameworks do
                continue

    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(warming.Failed, match=r"the warm-up of / was ended: .* than 0.01 s \(at .*"):
        warm("/", of=application, limit_s=0.01)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_the_programs_own_timer_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        warm("/", of=Recorder(), limit_s=600)
        while not rung:
            signal.sigtimedwait([], 0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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
    import socketserver
    import threading

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
    from cpythonplus.prefork._warming_asgi import rehearsed

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
    from cpythonplus.prefork._warming_asgi import rehearsed

    application, kept = Pooled(port), Kept()
    warming.warm_up(WarmUp(targets=["/"]), application, kept=kept)
    application.pool.clear()
    gc.collect()
    assert rehearsed(application, kept, Lines()) is application


def test_what_never_works_in_a_worker_is_told(port: int) -> None:
    from cpythonplus.prefork._warming_asgi import rehearsed

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


def test_django_by_asgi(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    from tests.support import run_child

    run_child("""
        import django
        from django.conf import settings
        from django.core.asgi import get_asgi_application
        from django.http import HttpResponse
        from django.urls import path
        from cpythonplus.prefork import _warming as warming

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
