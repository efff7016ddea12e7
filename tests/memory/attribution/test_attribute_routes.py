"""The names of routes, and what WSGI and ASGI applications come with."""

# ruff: noqa: ANN401  (messages of ASGI)
import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from textwrap import dedent
from typing import Any
from wsgiref.util import FileWrapper

import pytest
from flask import Flask

from cpythonplus import memory
from cpythonplus._base.web.routes import normalised
from cpythonplus.memory._attribution import recording
from tests.memory.attribution.attributing import each_call, growing, rows
from tests.prefork import services
from tests.support import SANITIZED, run_child

__all__ = ["each_call"]

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [
    pytest.mark.needs_gil,
    pytest.mark.usefixtures("each_call"),
    pytest.mark.skipif(SANITIZED, reason="malloc is the sanitizer's"),
]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("", ""),
        ("/users/17/orders/3", "/users/*/orders/*"),
        ("/f/123e4567-e89b-12d3-a456-426614174000", "/f/*"),
        ("/blob/9f86d081884c7d659a2feaa0c55ad015", "/blob/*"),
        ("/v2/items.json", "/v2/items.json"),
        ("/deadbeefdead/feedback", "/deadbeefdead/feedback"),
        ("/t/eyJhbGciOiJIUzI1NiJ9.e30", "/t/*"),
        ("/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/..."),
    ],
)
def test_paths_without_what_varies(path: str, expected: str) -> None:
    assert normalised(path) == expected


# ---- WSGI ---------------------------------------------------------------------------------------


def environ(path: str, **more: Any) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "SERVER_NAME": "test",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.version": (1, 0),
        "wsgi.input": BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        **more,
    }


def get(application: Callable[..., Iterable[bytes]], path: str, **more: Any) -> bytes:
    answer = application(environ(path, **more), lambda *_: None)
    try:
        return b"".join(answer)
    finally:
        getattr(answer, "close", lambda: None)()


def test_flask() -> None:
    kept = []
    app = Flask("shop")

    @app.get("/users/<int:number>")
    def users(number: int) -> dict[str, int]:
        return {"number": number}

    @app.get("/pictures/<name>")
    def pictures(name: str) -> str:
        kept.append(name * 200)
        return "ok"

    application = memory.attribute_wsgi(app.wsgi_app)
    for number in range(200):
        assert json.loads(get(application, f"/users/{number}")) == {"number": number}
        assert get(application, f"/pictures/picture{number}") == b"ok"
        assert b"Not Found" in get(application, f"/admin{number}.php")
    found = memory.attributed()
    assert rows(found).keys() == {"GET /users/<int:number>", "GET /pictures/<name>", "(no route)"}
    assert all(row.calls == 200 for row in found.rows)
    assert growing(found) == ["GET /pictures/<name>"]


DJANGO = """
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, DEBUG=False, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
import django
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path, re_path
from cpythonplus import memory
from tests.memory.attribution.test_attribute_routes import get

urlpatterns = [
    path("users/<int:number>/", lambda request, number: HttpResponse(str(number))),
    re_path("^words/([a-z]+)$", lambda request, word: StreamingHttpResponse([word, "."])),
]
application = memory.attribute_wsgi(get_wsgi_application())
for number in range(20):
    assert get(application, f"/users/{number}/") == str(number).encode()
    assert get(application, "/words/one") == b"one."
    get(application, f"/none{number}")
found = {row.name: row.calls for row in memory.attributed().rows}
names = ("GET /users/<int:number>/", "GET /^words/([a-z]+)$", "(no route)")
assert found == dict.fromkeys(names, 20), found
"""


def test_django() -> None:
    run_child(DJANGO, env=services.python_path(str(ROOT)))


def test_a_stream_counts_until_it_is_closed() -> None:
    steps = []

    def stream(environ: object, start_response: Callable[..., object]) -> Iterator[bytes]:
        start_response("200 OK", [])
        try:
            yield b"one"
            yield b"two"
        finally:
            steps.append("closed")

    application = memory.attribute_wsgi(stream)
    answer = iter(application(environ("/stream"), lambda *_: None))
    assert next(answer) == b"one"
    assert recording.recorder().active == 1
    answer.close()  # type: ignore[attr-defined]
    answer.close()  # type: ignore[attr-defined]
    assert steps == ["closed"]
    assert recording.recorder().active == 0
    answer = iter(application(environ("/stream"), lambda *_: None))
    assert list(answer) == [b"one", b"two"]
    assert recording.recorder().active == 1
    del answer  # a server that does not close it
    assert recording.recorder().active == 0
    assert rows(memory.attributed())["GET /stream"].calls == 2


def test_an_application_that_fails_and_one_that_closes_with_an_error() -> None:
    def fails(environ: object, start_response: object) -> Iterable[bytes]:
        raise KeyError

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            return iter([b"x"])

        def close(self) -> None:
            raise OSError

    with pytest.raises(KeyError):
        get(memory.attribute_wsgi(fails), "/fails")
    with pytest.raises(OSError):  # noqa: PT011
        get(memory.attribute_wsgi(lambda *_: Body()), "/closes")
    assert recording.recorder().active == 0
    assert rows(memory.attributed()).keys() == {"GET /fails", "GET /closes"}


def test_what_a_server_treats_in_its_own_way_is_left_as_it_is() -> None:
    whole, file = [b"whole"], FileWrapper(BytesIO(b"file"))
    for body in (whole, file):
        application = memory.attribute_wsgi(lambda *_, body=body: body)
        more = {"wsgi.file_wrapper": FileWrapper}
        assert application(environ("/", **more), lambda *_: None) is body
    assert recording.recorder().active == 0


def test_odd_requests() -> None:
    def answer(environ: object, start_response: Callable[..., object]) -> list[bytes]:
        start_response("odd", [])
        return [b""]

    application = memory.attribute_wsgi(answer)
    get(application, "/a\x1b", REQUEST_METHOD="BREW")
    application({}, lambda *_: None)
    found = memory.attributed()
    assert {row.name for row in found.rows} == {"? /a\x1b", "? "}
    assert "\x1b" not in found.text()


# ---- ASGI ---------------------------------------------------------------------------------------


def ask(application: Any, path: str, kind: str = "http") -> None:
    asyncio.run(asked(application, path, kind))


async def asked(application: Any, path: str, kind: str = "http") -> None:
    sent: list[bool] = []

    async def receive() -> dict[str, Any]:
        if sent:
            await asyncio.Event().wait()  # nobody hangs up
        sent.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: object) -> None:
        pass

    scope = {
        "type": kind,
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "root_path": "",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("test", 80),
    }
    await application(scope, receive, send)


def test_an_asgi_application_of_nobodys() -> None:
    seen = []

    async def plain(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])
        status = 404 if scope["path"].endswith("/none") else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        if scope["path"].endswith("/5"):
            raise KeyError

    application = memory.attribute_asgi(plain)
    ask(application, "/items/4")
    ask(application, "/none")
    ask(application, "/socket", "websocket")
    with pytest.raises(KeyError):
        ask(application, "/items/5")
    assert seen == ["http", "http", "websocket", "http"]
    found = {row.name: row.calls for row in memory.attributed().rows}
    assert found == {"GET /items/*": 2, "(no route)": 1}


def test_an_older_starlette_that_tells_only_what_varies() -> None:
    async def routed(scope: Any, receive: Any, send: Any) -> None:
        scope["endpoint"] = ask
        scope["path_params"] = {"name": "anna"}

    ask(memory.attribute_asgi(routed), "/people/anna/orders")
    assert [row.name for row in memory.attributed().rows] == ["GET /people/{name}/orders"]


FASTAPI = """
import asyncio
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route
from cpythonplus import memory
from tests.memory.attribution.test_attribute_routes import asked

memory.attribute.configure(share=1)
KEPT = []
api = FastAPI()

@api.get("/items/{number}")
async def items(number: int):
    return {"number": number}

@api.get("/leak/{word}")
def leak(word: str):
    KEPT.append(word * 1000)
    return word

async def parts():
    yield b"x"

async def page(request):
    return StreamingResponse(parts())

site = Starlette(routes=[
    Route("/pages/{name}", page),
    Mount("/api", api),
])
application = memory.attribute_asgi(site)

async def main():
    for number in range(420):
        if number == 20:
            memory.attributed()  # frees what importing has left
        await asked(application, f"/api/items/{number}")
        await asked(application, f"/api/leak/word{number}")
        await asked(application, f"/pages/name{number}")
        await asked(application, f"/none{number}")

asyncio.run(main())
found = {row.name: row.finding for row in memory.attributed().rows}
assert found.keys() == {
    "GET /api/items/{number}", "GET /api/leak/{word}", "GET /pages/{name}", "(no route)",
}, found
assert [name for name in found if found[name] == "grows"] == ["GET /api/leak/{word}"], found
"""


def test_starlette_and_fastapi(tmp_path: Path) -> None:
    folders = services.packages("fastapi", needs="fastapi")
    run_child(dedent(FASTAPI), env=services.python_path(str(ROOT), *folders))
