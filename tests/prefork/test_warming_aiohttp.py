"""aiohttp: what its worker takes is served, warmed and measured."""

import json
import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.prefork.services import packages
from tests.prefork.serving import python_path, running, until
from tests.support import DEBUG, run_child

pytestmark = pytest.mark.skipif(
    DEBUG and sys.version_info >= (3, 14), reason="multidict's C code crashes in tp_traverse there"
)

APP = """
    import os
    from aiohttp import web

    asked = []
    lives = []

    @web.middleware
    async def outer(request, handler):
        asked.append((request.method, request.path_qs, request.remote, await request.read()))
        return await handler(request)

    async def hello(request):
        lives.append(request.app["life"])
        return web.Response(text=str(os.getpid()), headers={"X-Asked": str(len(asked))})

    async def start(app):
        lives.append("start")
        app["life"] = object()

    async def clean(app):
        lives.append("clean")

    async def around(app):
        lives.append("enter")
        yield
        lives.append("leave")

    def make():
        made = web.Application(middlewares=[outer])
        made.router.add_route("*", "/", hello)
        made.router.add_get("/fails", lambda request: 1 / 0)
        made.on_startup.append(start)
        made.on_cleanup.append(clean)
        made.cleanup_ctx.append(around)
        part = web.Application()
        part["life"] = "of a part"
        part.router.add_get("/", hello)
        made.add_subapp("/part", part)
        return made
"""
INSTANCE = f"{APP}\n    app = make()\n"
FACTORY = f"{APP}\n    async def app():\n        return make()\n"
RUNNER = f"{APP}\n    async def app():\n        return web.AppRunner(make())\n"
KINDS = {"instance": INSTANCE, "factory": FACTORY, "runner": RUNNER}
WORDS = ("--workers", "2", "--worker-class", "aiohttp.GunicornWebWorker")


@pytest.fixture(scope="module")
def folders() -> list[str]:
    return packages("aiohttp", needs="aiohttp")


def environment(folder: Path, folders: list[str]) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([python_path(folder), *folders])}


def child(app: str, code: str, folders: list[str]) -> None:
    run_child(dedent(app) + dedent(code), env=environment(Path(), folders))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_asked_between_start_up_and_clean_up(kind: str, folders: list[str]) -> None:
    child(
        KINDS[kind],
        """
        import asyncio, json, os, tempfile
        from cpythonplus.prefork._warming import warming

        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"path": "/?a=b", "method": "PUT", "body": "sent"}, file)
            file.flush()
            plan = warming.WarmUp(targets=["/", "/none", "/fails", "/part/"], file=file.name)
            answers = warming.warm_up(plan, app)
        assert [answer.status for answer in answers] == [200, 404, 500, 200, 200], answers
        assert answers[0].length == len(str(os.getpid()))
        assert asked[:8] == [("GET", "/", "127.0.0.1", b"")] * 8
        assert asked[-3:] == [
            ("PUT", "/?a=b", "127.0.0.1", b"sent"),
            ("GET", "/", "127.0.0.1", b""),
            ("GET", "/part/", "127.0.0.1", b""),
        ]
        ends = [each for each in lives if isinstance(each, str) and each != "of a part"]
        for at in (0, 4):  # and once more, to prove that a worker can
            assert sorted(ends[at : at + 2]) == ["enter", "start"], ends
            assert sorted(ends[at + 2 : at + 4]) == ["clean", "leave"], ends
        """,
        folders,
    )


def test_an_application_that_was_started_starts_again(folders: list[str]) -> None:
    """In another loop, with the keys of before, and each context is left once."""
    child(
        INSTANCE,
        """
        import asyncio, warnings
        from cpythonplus.prefork._warming import warming

        warnings.simplefilter("error", DeprecationWarning)
        for _ in range(2):
            app["before"] = "kept"
            warming.warm_up(warming.WarmUp(targets=["/"], repeats=1), app)
            assert dict(app) == {"before": "kept"}, dict(app)
        assert [lives.count(each) for each in ("start", "clean", "enter", "leave")] == [4] * 4

        async def serve():
            runner = web.AppRunner(app)
            await runner.setup()
            await runner.cleanup()
        asyncio.run(serve())
        assert [lives.count(each) for each in ("start", "clean", "enter", "leave")] == [5] * 4
        """,
        folders,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warm", [False, True])
def test_it_is_served_and_measured(
    kind: str, folders: list[str], tmp_path: Path, *, warm: bool
) -> None:
    words = (*WORDS, "--metrics", "/metrics", *(("--warm-up", "/") if warm else ()))
    env = environment(tmp_path, folders)
    with running(tmp_path, *words, app=KINDS[kind], env=env) as server:
        server.ready(2)
        assert int(server.get("/")) in server.workers()
        # A worker puts its count on the board once a second.
        until(lambda: server.get() and server.metric("worker_requests_total") >= 1, "counts")
        assert ("warm-up of /: the application answered 200" in server.output()) == warm
        assert server.stop() == 0
        assert "Error" not in server.output()


@pytest.mark.slow
def test_an_application_that_takes_no_middleware_is_served(
    folders: list[str], tmp_path: Path
) -> None:
    app = f"{INSTANCE}\n    app.freeze()\n    app._frozen = False\n"
    env = environment(tmp_path, folders)
    with running(tmp_path, *WORDS, "--metrics", "/metrics", app=app, env=env) as server:
        assert int(server.get("/")) in server.workers()
        assert server.get("/metrics").startswith("404")
        assert "no metrics and no limits of aiohttp's requests: RuntimeError" in server.output()


@pytest.mark.slow
def test_requests_of_a_file_and_a_failure_that_does_not_stop(
    folders: list[str], tmp_path: Path
) -> None:
    (tmp_path / "requests.json").write_text(json.dumps([{"path": "/?q=secret", "method": "POST"}]))
    words = ["--warm-up", "app:none", "--warm-up-failure", "continue"]
    words += ["--warm-up-requests", "requests.json", "--warm-up-repeats", "3"]
    env = environment(tmp_path, folders)
    with running(tmp_path, *WORDS, *words, app=INSTANCE, env=env) as server:
        output = server.output()
        assert "the warm-up app:none cannot be imported: AttributeError" in output
        assert "; the start goes on" in output
        assert "warm-up of POST / (request 1): the application answered 200" in output
        assert "secret" not in output
