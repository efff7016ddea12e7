"""tornado: client and server on loopback, coroutines, templates, locks and queues."""

import asyncio
import datetime as dt
import logging
from collections.abc import Coroutine, Generator

from tornado import gen, httpclient, httpserver, locks, queues, template, testing, web, websocket

from survey.drivers.support import Refused, Server, awaits_failing, fails, pages

_SERVER = Server(pages)
_REFUSED = Refused()
_LOOP = asyncio.new_event_loop()
_LOOP.set_exception_handler(lambda _loop, _context: None)
for _name in ("tornado.access", "tornado.application", "tornado.general"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class _Index(web.RequestHandler):
    def get(self) -> None:
        self.write({"a": 1})

    def post(self) -> None:
        self.write(self.get_body_argument("a"))


class _Coroutine(web.RequestHandler):
    async def get(self) -> None:
        await gen.sleep(0)
        self.write("fine")


class _Refuse(web.RequestHandler):
    def get(self) -> None:
        raise ValueError("refused")


class _RefuseLater(web.RequestHandler):
    async def get(self) -> None:
        await gen.sleep(0)
        raise ValueError("refused")


class _Forbid(web.RequestHandler):
    def get(self) -> None:
        raise web.HTTPError(403)


class _Echo(websocket.WebSocketHandler):
    def on_message(self, message: str | bytes) -> None:
        if message == "refuse":
            raise ValueError("refused")
        self.write_message(message)


async def _serve() -> int:
    """The port of a server that stays."""
    application = web.Application(
        [
            ("/", _Index),
            ("/coroutine", _Coroutine),
            ("/refuse", _Refuse),
            ("/refuse-later", _RefuseLater),
            ("/forbid", _Forbid),
            ("/echo", _Echo),
        ]
    )
    socket, port = testing.bind_unused_port()
    server = httpserver.HTTPServer(application)
    server.add_socket(socket)
    _KEPT.append(server)
    return int(port)


_KEPT: list[object] = []
_PORT = _LOOP.run_until_complete(_serve())


def _on_loop(work: Coroutine[object, object, object]) -> None:
    _LOOP.run_until_complete(work)


async def _fetch(url: str, **options: object) -> None:
    await httpclient.AsyncHTTPClient().fetch(url, **options)


def _run(url: str, fails: type[Exception] | None, options: dict[str, object]) -> None:
    work = _fetch(url, **options)
    _on_loop(awaits_failing(fails, work) if fails else work)


def _ask(path: str, fails: type[Exception] | None = None, **options: object) -> None:
    _run(f"http://127.0.0.1:{_PORT}{path}", fails, options)


def _get(path: str, fails: type[Exception] | None = None, **options: object) -> None:
    _run(_SERVER.url + path, fails, options)


@gen.coroutine
def _coroutine() -> Generator[object, object, int]:
    yield gen.sleep(0)
    return 3


@gen.coroutine
def _failing_coroutine() -> Generator[object, object, int]:
    yield gen.sleep(0)
    raise ValueError("refused")


def get() -> None:
    _get("/ok")


def serve() -> None:
    _ask("/")


def serve_post() -> None:
    _ask("/", method="POST", body="a=b")


def serve_coroutine() -> None:
    _ask("/coroutine")


def serve_web_socket() -> None:
    async def work() -> None:
        connection = await websocket.websocket_connect(f"ws://127.0.0.1:{_PORT}/echo")
        await connection.write_message("x")
        await connection.read_message()
        connection.close()
        await connection.read_message()

    _on_loop(work())


def coroutine() -> None:
    async def work() -> None:
        await _coroutine()

    _on_loop(work())


def gathered() -> None:
    async def work() -> None:
        await gen.multi([_coroutine(), _coroutine()])

    _on_loop(work())


def render_template() -> None:
    template.Template("{% for x in y %}{{ x }}{% end %}").generate(y=[1, 2])


def queue() -> None:
    async def work() -> None:
        waiting: queues.Queue[int] = queues.Queue(1)
        await waiting.put(1)
        await waiting.get()

    _on_loop(work())


def follow_redirect() -> None:
    _get("/redirect")


def refused() -> None:
    _on_loop(awaits_failing(OSError, _fetch(_REFUSED.url)))


def timed_out() -> None:
    _get("/slow", request_timeout=0.1, fails=httpclient.HTTPError)


def dropped() -> None:
    _get("/drop", fails=Exception)


def no_http() -> None:
    _get("/garbage", fails=Exception)


def short_body() -> None:
    _get("/short", fails=Exception)


def broken_chunk() -> None:
    _get("/bad-chunk", fails=Exception)


def missing_page() -> None:
    _get("/404", fails=httpclient.HTTPError)


def too_many_redirects() -> None:
    _get("/loop", fails=httpclient.HTTPError)


def no_such_scheme() -> None:
    _on_loop(awaits_failing(ValueError, _fetch("gopher://127.0.0.1")))


def failing_handler() -> None:
    _ask("/refuse", fails=httpclient.HTTPError)


def failing_coroutine_handler() -> None:
    _ask("/refuse-later", fails=httpclient.HTTPError)


def forbidden() -> None:
    _ask("/forbid", fails=httpclient.HTTPError)


def no_such_page() -> None:
    _ask("/none", fails=httpclient.HTTPError)


def missing_argument() -> None:
    _ask("/", method="POST", body="", fails=httpclient.HTTPError)


def failing_web_socket() -> None:
    async def work() -> None:
        connection = await websocket.websocket_connect(f"ws://127.0.0.1:{_PORT}/echo")
        await connection.write_message("refuse")
        await connection.read_message()

    _on_loop(work())


def no_web_socket() -> None:
    async def work() -> None:
        await websocket.websocket_connect(f"ws://127.0.0.1:{_PORT}/")

    _on_loop(awaits_failing(websocket.WebSocketError, work()))


def failing_coroutine() -> None:
    async def work() -> None:
        await _failing_coroutine()

    _on_loop(awaits_failing(ValueError, work()))


def failing_gathered() -> None:
    async def work() -> None:
        await gen.multi([_failing_coroutine(), _coroutine()])

    _on_loop(awaits_failing(ValueError, work()))


def timed_out_coroutine() -> None:
    async def work() -> None:
        await gen.with_timeout(dt.timedelta(milliseconds=1), locks.Event().wait())

    _on_loop(awaits_failing(gen.TimeoutError, work()))


def timed_out_queue() -> None:
    async def work() -> None:
        await queues.Queue().get(timeout=dt.timedelta(milliseconds=1))

    _on_loop(awaits_failing(gen.TimeoutError, work()))


def wrong_template() -> None:
    fails(template.ParseError, lambda: template.Template("{% if %}"))


def failing_template() -> None:
    found = template.Template("{{ x.y }}")
    fails(AttributeError, lambda: found.generate(x=1))


ORDINARY = [
    get,
    serve,
    serve_post,
    serve_coroutine,
    serve_web_socket,
    coroutine,
    gathered,
    render_template,
    queue,
    follow_redirect,
]
ERRORS = [
    refused,
    timed_out,
    dropped,
    no_http,
    short_body,
    broken_chunk,
    missing_page,
    too_many_redirects,
    no_such_scheme,
    failing_handler,
    failing_coroutine_handler,
    forbidden,
    no_such_page,
    missing_argument,
    failing_web_socket,
    no_web_socket,
    failing_coroutine,
    failing_gathered,
    timed_out_coroutine,
    timed_out_queue,
    wrong_template,
    failing_template,
]
