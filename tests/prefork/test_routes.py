"""The use of each route: its steps, its threads, and what `serve` counts of real frameworks."""

import asyncio
import mmap
import os
import re
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from cpythonplus import _native
from cpythonplus.prefork._board.board import Board, BoardBusy, RouteRow
from cpythonplus.prefork._board.counts import MOST_LABELS
from cpythonplus.prefork._board.metrics import render
from cpythonplus.prefork._routes.counting import Routes, Use
from tests.prefork import services
from tests.prefork.serving import Server, answers, metric, running, until
from tests.servers import free_port
from tests.support import FREE_THREADED, child_environment, run_child


class Clock:
    """The use of the calling thread, as a test sets it."""

    def __init__(self) -> None:
        self.used = [0, 0, 0, 0, 0]

    def __call__(self) -> Use:
        held, waited, cpu, stalls, new_bytes = self.used
        return held, waited, cpu, stalls, new_bytes

    def uses(self, *more: int) -> None:
        for place, each in enumerate(more):
            self.used[place] += each


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def routes(clock: Clock) -> Routes:
    return Routes(clock, limit_ns=0)


def get(application: Any, path: str) -> list[bytes]:  # noqa: ANN401
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path}
    return list(application(environ, lambda *_: None))


def ask(*coroutines: Awaitable[None]) -> None:
    async def main() -> None:
        await asyncio.gather(*coroutines)

    asyncio.run(main())


async def nothing(*_: object) -> dict[str, Any]:
    return {}


def call(application: Any, path: str) -> Awaitable[None]:  # noqa: ANN401
    scope = {"type": "http", "method": "GET", "path": path}
    answer: Awaitable[None] = application(scope, nothing, nothing)
    return answer


# ---- requests -----------------------------------------------------------------------------------


def test_a_request_of_wsgi_is_what_its_thread_uses(clock: Clock, routes: Routes) -> None:
    def application(environ: dict[str, Any], _: Callable[..., Any]) -> Iterable[bytes]:
        clock.uses(5, 1, 4, 1)

        def body() -> Iterator[bytes]:
            clock.uses(10, 0, 10, 0)
            yield b"x"

        return body() if environ["PATH_INFO"] == "/long/7" else [b"x"]

    counted = routes.around(application, asgi=False)
    clock.uses(100, 100, 100, 100)  # between two requests
    get(counted, "/short")
    get(counted, "/long/7")
    get(counted, "/long/8")
    assert routes.rows == {"GET /short": [1, 5, 1, 4, 1, 0], "GET /long/*": [2, 20, 2, 18, 2, 0]}


def test_requests_of_asgi_that_take_turns(clock: Clock, routes: Routes) -> None:
    turn = asyncio.Event()

    async def application(scope: dict[str, Any], *_: object) -> None:
        clock.uses(1, 0, 0, 0)
        if scope["path"] == "/first":
            await turn.wait()
            clock.uses(10, 0, 0, 0)
        else:
            await asyncio.sleep(0)
            clock.uses(100, 0, 0, 0)
            turn.set()

    counted = routes.around(application, asgi=True)
    ask(call(counted, "/first"), call(counted, "/second"))
    assert routes.rows == {"GET /first": [1, 11, 0, 0, 0, 0], "GET /second": [1, 101, 0, 0, 0, 0]}


def test_exceptions_go_in_and_out(clock: Clock, routes: Routes) -> None:
    async def application(scope: dict[str, Any], *_: object) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            clock.uses(7, 0, 0, 0)
            raise LookupError(scope["path"]) from None

    async def main() -> None:
        task = asyncio.ensure_future(call(routes.around(application, asgi=True), "/x"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(LookupError, match="/x"):
            await task

    asyncio.run(main())
    assert routes.rows == {"GET /x": [1, 7, 0, 0, 0, 0]}


def test_a_request_that_is_dropped(clock: Clock, routes: Routes) -> None:
    left = []

    async def application(*_: object) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            left.append(1)

    coroutine: Any = call(routes.around(application, asgi=True), "/x")
    with pytest.raises(RuntimeError):  # no loop
        coroutine.send(None)
    assert left == [1]
    assert routes.rows["GET /x"][0] == 1
    del clock


def test_a_step_that_blocks_its_loop(clock: Clock) -> None:
    routes = Routes(clock, limit_ns=1)

    async def application(*_: object) -> None:
        pass

    ask(call(routes.around(application, asgi=True), "/x"))
    assert routes.rows == {"GET /x": [1, 0, 0, 0, 1, 0]}


def test_other_scopes_are_left_alone(routes: Routes) -> None:
    seen = []

    async def application(scope: dict[str, Any], *_: object) -> None:
        seen.append(scope["type"])

    ask(routes.around(application, asgi=True)({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]
    assert routes.rows == {}


def test_there_are_not_more_rows_than_the_board_has(routes: Routes) -> None:
    for number in range(MOST_LABELS + 3):
        routes.count(f"GET /{'x' * number}", 1, [1, 0, 0, 0, 0])
    assert len(routes.rows) == MOST_LABELS + 1
    assert routes.rows["other other"] == [3, 3, 0, 0, 0, 0]


# ---- the board and the text ---------------------------------------------------------------------


def test_each_row_is_given_once(routes: Routes) -> None:
    given: list[RouteRow] = []
    routes.count("GET /a", 1, [5, 4, 3, 2, 1])
    routes.give(given.extend)
    routes.give(given.extend)
    routes.count("GET /a", 1, [1, 0, 0, 0, 0])
    routes.count("? /b", 1, [0, 0, 0, 0, 0])
    routes.count("(no route)", 1, [0, 0, 0, 0, 0])
    routes.give(given.extend)
    assert given == [
        ("GET", "/a", 1, 5, 4, 3, 2, 1),
        ("GET", "/a", 1, 1, 0, 0, 0, 0),
        ("_OTHER", "/b", 1, 0, 0, 0, 0, 0),
        ("_OTHER", "(no route)", 1, 0, 0, 0, 0, 0),
    ]


def test_what_the_board_does_not_take_is_given_again(routes: Routes) -> None:
    def busy(_: list[RouteRow]) -> None:
        raise BoardBusy

    given: list[RouteRow] = []
    routes.count("GET /a", 1, [5, 4, 3, 2, 1])
    with pytest.raises(BoardBusy):
        routes.give(busy)
    routes.give(given.extend)
    assert given == [("GET", "/a", 1, 5, 4, 3, 2, 1)]


def test_the_text() -> None:
    board = Board(1)
    for _ in range(2):
        board.count_routes([RouteRow("GET", '/a/"x"', 1, 10**9, 5 * 10**8, 10**8, 1, 4096)])
    text = render(board, master_pid=os.getpid())
    labels = r'{http_request_method="GET",http_route="/a/\"x\""}'
    assert [line for line in text.splitlines() if line.startswith("cpythonplus_route")] == [
        f"cpythonplus_route_requests_total{labels} 2",
        f"cpythonplus_route_gil_hold_seconds_total{labels} 2.0",
        f"cpythonplus_route_gil_wait_seconds_total{labels} 1.0",
        f"cpythonplus_route_cpu_seconds_total{labels} 0.2",
        f"cpythonplus_route_stalls_total{labels} 2",
        f"cpythonplus_route_new_memory_bytes_total{labels} 8192",
    ]


def test_the_text_of_tasks() -> None:
    board, clock = Board(1), Clock()
    routes = Routes(clock, 0, tasks=True)
    run = routes.begin_task("shop.tasks.look")
    clock.uses(10**9, 0, 5 * 10**8, 0, 8192)
    run.end()
    routes.give(board.count_routes)
    text = render(board, master_pid=os.getpid())
    labels = '{task="shop.tasks.look"}'
    assert [line for line in text.splitlines() if line.startswith("cpythonplus_task")] == [
        f"cpythonplus_task_runs_total{labels} 1",
        f"cpythonplus_task_gil_hold_seconds_total{labels} 1.0",
        f"cpythonplus_task_gil_wait_seconds_total{labels} 0.0",
        f"cpythonplus_task_cpu_seconds_total{labels} 0.5",
        f"cpythonplus_task_stalls_total{labels} 0",
        f"cpythonplus_task_new_memory_bytes_total{labels} 8192",
    ]
    assert "cpythonplus_route" not in text


def test_instruments() -> None:
    """As a reader of OpenTelemetry's API sees them."""
    run_child(
        """
        import sys, types
        made = {}
        class Meter:
            def create_observable_counter(self, name, callbacks, unit, description):
                made[name] = unit, callbacks
        api = types.ModuleType("opentelemetry.metrics")
        api.get_meter = lambda name: Meter()
        api.Observation = lambda value, attributes=None: (value, attributes)
        sys.modules["opentelemetry"] = types.ModuleType("opentelemetry")
        sys.modules["opentelemetry.metrics"] = api

        from cpythonplus.prefork._routes.counting import Routes
        from cpythonplus.prefork._routes.instruments import make_instruments
        routes = Routes(lambda: (0, 0, 0, 0), 0)
        make_instruments(routes, lambda: (7, 2 * 10**9), lambda: [("C", "a.py:3", 2, 10**9)])
        routes.count("GET /a/{id}", 3, [2 * 10**9, 10**9, 10**9, 1, 0])

        def seen(name):
            unit, [callback] = made[name]
            return unit, [
                (round(value, 6), attributes) for value, attributes in callback(None)
            ]

        route = {"http.request.method": "GET", "http.route": "/a/{id}"}
        at = {"kind": "C", "at": "a.py:3"}
        assert seen("cpythonplus.route.requests") == ("{request}", [(3, route)])
        assert seen("cpythonplus.route.gil_hold") == ("s", [(2, route)])
        assert seen("cpythonplus.route.gil_wait") == ("s", [(1, route)])
        assert seen("cpythonplus.route.cpu") == ("s", [(1, route)])
        assert seen("cpythonplus.route.stalls") == ("{stall}", [(1, route)])
        assert seen("cpythonplus.route.new_memory") == ("By", [(0, route)])
        assert seen("cpythonplus.gil.waits") == ("{wait}", [(7, None)])
        assert seen("cpythonplus.gil.wait") == ("s", [(2, None)])
        assert seen("cpythonplus.stalls") == ("{stall}", [(2, at)])
        assert seen("cpythonplus.stall") == ("s", [(1, at)])
        assert len(made) == 10

        made.clear()
        runs = Routes(lambda: (0, 0, 0, 0, 0), 0, tasks=True)
        make_instruments(runs, lambda: (7, 2 * 10**9), lambda: [])
        runs.begin_task("shop.look").end()
        task = {"celery.task_name": "shop.look"}
        assert seen("cpythonplus.task.runs") == ("{run}", [(1, task)])
        assert seen("cpythonplus.task.gil_hold") == ("s", [(0, task)])
        assert len(made) == 10
        """
    )


# ---- threads ------------------------------------------------------------------------------------


def test_functions_in_pools_belong_to_the_request() -> None:
    """In a process of its own: the pool's class stays changed."""
    run_child(
        """
        import asyncio, threading
        from concurrent.futures import ThreadPoolExecutor
        from cpythonplus.prefork._routes.counting import Routes
        from cpythonplus.prefork._routes.pools import count_in_pools

        count_in_pools()
        count_in_pools()
        own = threading.local()
        routes = Routes(lambda: (getattr(own, "held", 0), 0, 0, 0), 0)

        def computes(a, b=0):
            own.held = getattr(own, "held", 0) + a + b
            return a + b

        async def application(scope, receive, send):
            assert await asyncio.to_thread(computes, 3, b=4) == 7

        async def nothing(*_):
            pass

        scope = {"type": "http", "method": "GET", "path": "/x"}
        asyncio.run(routes.around(application, asgi=True)(scope, nothing, nothing))
        assert routes.rows == {"GET /x": [1, 7, 0, 0, 0, 0]}, routes.rows
        with ThreadPoolExecutor() as pool:
            assert pool.submit(computes, 1).result() == 1
        assert routes.rows == {"GET /x": [1, 7, 0, 0, 0, 0]}, routes.rows
        """
    )
    assert not hasattr(ThreadPoolExecutor.submit, "_of_routes")


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
def test_what_a_thread_uses() -> None:
    fresh = mmap.mmap(-1, 1000 * mmap.PAGESIZE)
    fresh.madvise(mmap.MADV_NOHUGEPAGE)
    before = _native.gil_thread_use()
    for each in range(0, len(fresh), mmap.PAGESIZE):
        fresh[each] = 1
    assert _native.gil_thread_use()[4] - before[4] >= len(fresh)
    run_child(
        """
        import ctypes, threading, time
        from cpythonplus import _native, gil
        gil.install()
        assert _native.gil_watch_stalls(100_000, 60_000)
        def waits():
            while not over:
                time.sleep(0.001)
        over = []
        thread = threading.Thread(target=waits)
        thread.start()
        time.sleep(0.01)
        before = _native.gil_thread_use()
        holds = 0
        while _native.gil_thread_use()[3] == before[3]:  # the other thread may come late
            ctypes.PyDLL(None).usleep(200_000)
            holds += 1
            time.sleep(0.01)
        time.sleep(2)
        held, waited, cpu, stalls, _ = (
            b - a for a, b in zip(before, _native.gil_thread_use())
        )
        over.append(1)
        thread.join()
        assert holds * 0.2e9 <= held < holds * 0.2e9 + 1.5e9, (holds, held)  # it slept for longer
        assert cpu < 0.2e9 * holds, cpu
        assert 1 <= stalls < 4, stalls  # the kernel may stop this thread while it has the GIL
        """
    )


# ---- greenlets ----------------------------------------------------------------------------------


def test_greenlets_that_take_turns() -> None:
    """Each turn belongs to the request of its greenlet, also that of a pool's greenlet."""
    pytest.importorskip("greenlet", reason="greenlet is not installed")
    run_child(
        """
        import threading
        from greenlet import getcurrent, greenlet, gettrace, settrace
        from cpythonplus.prefork._routes.counting import Routes
        from cpythonplus.prefork._routes.greenlets import Greenlets

        used = [0, 0, 0, 0, 0]
        seen = []
        settrace(lambda event, greenlets: seen.append(event))
        routes = Routes(lambda: tuple(used), 0)
        greenlets = Greenlets(routes)
        main = getcurrent()

        def application(environ, start_response):
            own = int(environ["PATH_INFO"][2:])
            used[0] += own
            main.switch()
            used[0] += own
            request = Routes.current.get()
            pool = greenlet(request.call)
            pool.switch(lambda: (used.__setitem__(0, used[0] + 1000 * own), main.switch()))
            pool.switch()
            thread = threading.Thread(target=request.call, args=(lambda: None,))
            thread.start()
            thread.join()
            def body():
                yield b"x"
                main.switch()
                used[0] += own
            return body()

        counted = greenlets.around(application)
        greenlets.watch()
        def serve(path):
            body = counted({"REQUEST_METHOD": "GET", "PATH_INFO": path}, None)
            list(body)
            body.close()
        members = [greenlet(serve) for _ in range(2)]
        members[0].switch("/a1")
        members[1].switch("/b20")
        while not all(each.dead for each in members):
            used[0] += 10**6  # the hub's
            for each in members:
                if not each.dead:
                    each.switch()
        used[0] += 10**9
        assert routes.rows == {
            "GET /a1": [1, 1003, 0, 0, 0, 0], "GET /b20": [1, 20060, 0, 0, 0, 0]
        }, routes.rows
        assert greenlets._requests == {}
        assert "switch" in seen  # an earlier trace function is called, too
        """
    )


# ---- servers ------------------------------------------------------------------------------------

# Three requests keep the GIL, for 400 ms each, and three sleep. A holder that the kernel does not
# run stalls the others too: on a busy machine a request may have a stall more, but those that sleep
# have no three. The thread that wants the GIL may come late there: it has 300 ms for that.

FLASK = """
    import ctypes, os, threading, time
    from flask import Flask
    usleep = ctypes.PyDLL(None).usleep
    app = Flask(__name__)
    others = []
    def other():
        while True:
            time.sleep(0.001)
    @app.get("/")
    def index():
        if not others:
            others.append(threading.Thread(target=other, daemon=True))
            others[0].start()
        return str(os.getpid())
    @app.get("/keeps/<int:number>")
    def keeps(number):
        usleep(400_000)
        return "x"
    @app.get("/sleeps/<word>")
    def sleeps(word):
        time.sleep(0.15)
        return "x"
"""
FASTAPI = """
    import ctypes, os, threading, time
    from fastapi import FastAPI
    usleep = ctypes.PyDLL(None).usleep
    app = FastAPI()
    others = []
    def other():
        while True:
            time.sleep(0.001)
    @app.get("/")
    async def index():
        if not others:
            others.append(threading.Thread(target=other, daemon=True))
            others[0].start()
        return os.getpid()
    @app.get("/keeps/{number}")
    async def keeps(number: int):
        usleep(400_000)
    @app.get("/keeps-in-a-thread/{number}")
    def keeps_in_a_thread(number: int):
        usleep(400_000)
    @app.get("/sleeps/{word}")
    def sleeps(word: str):
        time.sleep(0.15)
    @app.get("/metrics-alike")
    async def blocks():
        time.sleep(0.15)
"""


def of_route(server: Server, name: str, route: str, method: str = "GET") -> float:
    labels = {"http_request_method": method, "http_route": route}
    return metric(server.get("/metrics"), f"route_{name}", **labels)


def counted(server: Server, route: str, requests: int, method: str = "GET") -> None:
    """Wait until that many requests are on the board."""
    line = re.compile(
        rf'^cpythonplus_route_requests_total{{http_request_method="{method}",'
        rf'http_route="{re.escape(route)}"}} {requests}$',
        re.MULTILINE,
    )
    until(lambda: line.search(server.get("/metrics")), f"{requests} of {route}")


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
@pytest.mark.parametrize("kind", ["sync", "gthread"])
def test_flask(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("flask", reason="flask is not installed")
    words = ("--workers", "1", "--worker-class", kind, "--metrics", "/metrics")
    with running(tmp_path, *words, app=FLASK) as server:
        server.get("/")
        for number in range(3):
            server.get(f"/keeps/{number}")
            server.get(f"/sleeps/word{number}")
            server.get(f"/none/{number}")
        counted(server, "/keeps/<int:number>", 3)
        counted(server, "/sleeps/<word>", 3)
        counted(server, "(no route)", 3, "_OTHER")
        assert of_route(server, "gil_hold_seconds_total", "/keeps/<int:number>") >= 1.2
        assert of_route(server, "stalls_total", "/keeps/<int:number>") >= 3
        assert of_route(server, "gil_hold_seconds_total", "/sleeps/<word>") < 0.45
        assert of_route(server, "stalls_total", "/sleeps/<word>") < 3
        assert of_route(server, "cpu_seconds_total", "/keeps/<int:number>") < 0.3
        assert 'http_route="/metrics"' not in server.get("/metrics")
        assert server.stop() == 0, server.output()


def takes_turns(server: Server) -> None:
    """Ask an application of FLASK whose requests are greenlets, and look at its routes."""
    server.get("/")
    with ThreadPoolExecutor(6) as clients:
        for number in range(3):
            clients.submit(server.get, f"/keeps/{number}")
            clients.submit(server.get, f"/sleeps/word{number}")
    counted(server, "/keeps/<int:number>", 3)
    counted(server, "/sleeps/<word>", 3)
    assert of_route(server, "gil_hold_seconds_total", "/keeps/<int:number>") >= 1.2
    assert of_route(server, "stalls_total", "/keeps/<int:number>") >= 3
    # The others' turns are not theirs, although they wait for them.
    assert of_route(server, "gil_hold_seconds_total", "/sleeps/<word>") < 0.45
    assert of_route(server, "stalls_total", "/sleeps/<word>") < 3


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
@pytest.mark.parametrize("kind", ["gevent", "gunicorn.workers.ggevent.GeventPyWSGIWorker"])
def test_flask_under_gevent(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("flask", reason="flask is not installed")
    pytest.importorskip("gevent", reason="gevent is not installed")
    words = ("--workers", "1", "--worker-class", kind, "--metrics", "/metrics")
    with running(tmp_path, *words, app=FLASK) as server:
        takes_turns(server)
        assert server.stop() == 0, server.output()


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
def test_flask_under_eventlet(tmp_path: Path) -> None:
    """With a gunicorn that still has such a worker."""
    pytest.importorskip("flask", reason="flask is not installed")
    folders = services.packages("eventlet", needs="eventlet")
    env = services.python_path(*folders, str(tmp_path))
    words = ("--workers", "1", "--worker-class", "eventlet", "--metrics", "/metrics")
    with running(tmp_path, *words, app=FLASK, env=env) as server:
        takes_turns(server)
        assert server.stop() == 0, server.output()


def test_workers_whose_turns_are_not_known(tmp_path: Path) -> None:
    """One line says so, and the rest of the metrics is there."""
    files = {
        "own.py": """
            from gunicorn.workers.sync import SyncWorker
            class Gevent(SyncWorker):
                pass
            Gevent.__module__ = "gevent_of_ours"
        """
    }
    words = ("--workers", "1", "--worker-class", "own.Gevent", "--metrics", "/metrics")
    with running(tmp_path, *words, files=files) as server:
        assert metric(server.get("/metrics"), "workers") == 1
        line = "no metrics by route: it is not known how requests take turns in workers of class"
        assert f"{line} Gevent" in server.output()
        assert server.stop() == 0, server.output()


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
def test_fastapi_under_uvicorn(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker", reason="uvicorn-worker is not installed")
    folders = services.packages("fastapi", needs="fastapi")
    env = services.python_path(str(tmp_path), *folders)
    words = ("--workers", "1", "--worker-class", "uvicorn_worker.UvicornWorker")
    with running(tmp_path, *words, "--metrics", "/metrics", app=FASTAPI, env=env) as server:
        server.get("/")
        for number in range(3):
            server.get(f"/keeps/{number}")
            server.get(f"/keeps-in-a-thread/{number}")
            server.get(f"/sleeps/word{number}")
        server.get("/metrics-alike")
        for route in ("/keeps/{number}", "/keeps-in-a-thread/{number}", "/sleeps/{word}"):
            counted(server, route, 3)
        for route in ("/keeps/{number}", "/keeps-in-a-thread/{number}"):
            assert of_route(server, "gil_hold_seconds_total", route) >= 1.2
            assert of_route(server, "stalls_total", route) >= 3
        assert of_route(server, "gil_hold_seconds_total", "/sleeps/{word}") < 0.45
        assert of_route(server, "stalls_total", "/sleeps/{word}") < 3
        counted(server, "/metrics-alike", 1)
        assert of_route(server, "stalls_total", "/metrics-alike") >= 1
        assert server.stop() == 0, server.output()


def test_without_metrics_nothing_is_counted(tmp_path: Path) -> None:
    app = """
        import sys
        def app(environ, start_response):
            body = str("cpythonplus.prefork._routes.counting" in sys.modules).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]
    """
    with running(tmp_path, "--workers", "1", app=app) as server:
        assert server.get() == "False"
        assert server.stop() == 0, server.output()


# ---- run --metrics ------------------------------------------------------------------------------

WSGIREF = """
    import sys
    from wsgiref.simple_server import make_server
    from flask_app import app
    make_server("127.0.0.1", int(sys.argv[1]), app).serve_forever()
"""
UVICORN = """
    import sys, uvicorn
    from fastapi_app import app
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""
SERVED = {
    "flask run": ("-m", "flask", "--app", "flask_app", "run", "--port", "{port}"),
    "wsgiref": ("wsgiref_app.py", "{port}"),
    "uvicorn": ("uvicorn_app.py", "{port}"),
}


@contextmanager
def alone(folder: Path, *words: str, env: dict[str, str]) -> Iterator[tuple[Server, int]]:
    """Start a program with a server; `{port}` in its words is a port. Also return the metrics'."""
    files = {"flask": FLASK, "fastapi": FASTAPI, "wsgiref": WSGIREF, "uvicorn": UVICORN}
    for name, text in files.items():
        (folder / f"{name}_app.py").write_text(dedent(text))
    port, metrics_port = free_port(), free_port()
    command = [sys.executable, "-m", "cpythonplus", "run", "--metrics", str(metrics_port)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *(word.format(port=port) for word in words)],
            cwd=folder,
            env=child_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        server = Server(process, port, log)
        until(lambda: process.poll() is not None or answers(server), "an answer")
        assert process.poll() is None, server.output()
        yield server, metrics_port
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")
@pytest.mark.parametrize("name", SERVED)
def test_a_server_in_a_program(tmp_path: Path, name: str) -> None:
    pytest.importorskip("flask", reason="flask is not installed")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    folders = services.packages("fastapi", needs="fastapi") if name == "uvicorn" else []
    env = services.python_path(str(tmp_path), *folders)
    with alone(tmp_path, *SERVED[name], env=env) as (server, metrics_port):
        server.get("/")
        server.get("/keeps/7")
        told = Server(server.process, metrics_port, server.log)
        route = "/keeps/{number}" if name == "uvicorn" else "/keeps/<int:number>"
        counted(told, route, 1)
        assert of_route(told, "gil_hold_seconds_total", route) >= 0.4
        assert of_route(told, "stalls_total", route) >= 1
        at = r'cpythonplus_stalls_total\{kind="C",at="\S+_app\.py:\d+"\} 1\n'
        until(lambda: re.search(at, told.get("/metrics")), "the line of the stall")
        assert metric(told.get("/metrics"), "worker_requests_total") >= 2


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("flask", reason="flask is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ("--metrics", port, *SERVED["wsgiref"])
        with alone(tmp_path, *words, env=services.python_path(str(tmp_path))) as (server, _):
            assert server.get("/")
            line = f"cpythonplus run: no metrics: cannot listen on {port} for metrics: "
            assert line in server.output()
