"""aiohttp: its client against loopback, its server behind its own test server."""

import asyncio
from collections.abc import Coroutine

import aiohttp
from aiohttp import test_utils, web

from survey.drivers.support import Refused, Server, awaits_failing, pages

_SERVER = Server(pages)
_REFUSED = Refused()
_LOOP = asyncio.new_event_loop()
_LOOP.set_exception_handler(lambda _loop, _context: None)


def _on_loop(work: Coroutine[object, object, object]) -> None:
    _LOOP.run_until_complete(work)


async def _new_session() -> "aiohttp.ClientSession":
    return aiohttp.ClientSession()


# One session for all calls, as a service has.
_SESSION = _LOOP.run_until_complete(_new_session())


async def _get(path: str, **options: object) -> None:
    async with _SESSION.get(_SERVER.url + path, **options) as answer:
        await answer.read()


async def _get_json(path: str) -> None:
    async with _SESSION.get(_SERVER.url + path) as answer:
        await answer.json()


async def _get_by_a_new_session(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        await answer.read()


async def _index(_: "web.Request") -> "web.Response":
    return web.json_response({"a": 1})


async def _refuse(_: "web.Request") -> "web.Response":
    raise ValueError("refused")


async def _forbid(_: "web.Request") -> "web.Response":
    raise web.HTTPForbidden


async def _form(request: "web.Request") -> "web.Response":
    return web.Response(text=str(await request.post()))


async def _json(request: "web.Request") -> "web.Response":
    return web.json_response(await request.json())


async def _echo(request: "web.Request") -> "web.WebSocketResponse":
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.data == "refuse":
            raise ValueError("refused")
        await socket.send_str(message.data)
    return socket


def _application() -> "web.Application":
    application = web.Application()
    application.router.add_get("/", _index)
    application.router.add_get("/refuse", _refuse)
    application.router.add_get("/forbid", _forbid)
    application.router.add_post("/form", _form)
    application.router.add_post("/json", _json)
    application.router.add_get("/echo", _echo)
    return application


async def _new_client() -> "test_utils.TestClient":
    client = test_utils.TestClient(test_utils.TestServer(_application()))
    await client.start_server()
    return client


_CLIENT = _LOOP.run_until_complete(_new_client())


async def _ask(method: str, path: str, **options: object) -> None:
    async with _CLIENT.request(method, path, **options) as answer:
        await answer.read()


def get() -> None:
    _on_loop(_get("/ok"))


def get_by_a_new_session() -> None:
    _on_loop(_get_by_a_new_session(_SERVER.url + "/ok"))


def get_json() -> None:
    _on_loop(_get_json("/json"))


def get_compressed() -> None:
    _on_loop(_get("/gzip"))


def get_chunked() -> None:
    _on_loop(_get("/chunked"))


def post() -> None:
    async def work() -> None:
        async with _SESSION.post(_SERVER.url + "/ok", data={"a": "b"}) as answer:
            await answer.read()

    _on_loop(work())


def follow_redirect() -> None:
    _on_loop(_get("/redirect"))


def serve() -> None:
    _on_loop(_ask("GET", "/"))


def serve_form() -> None:
    _on_loop(_ask("POST", "/form", data={"a": "b"}))


def serve_web_socket() -> None:
    async def work() -> None:
        async with _CLIENT.ws_connect("/echo") as socket:
            await socket.send_str("x")
            await socket.receive_str()

    _on_loop(work())


def new_server() -> None:
    async def work() -> None:
        client = await _new_client()
        async with client.get("/") as answer:
            await answer.read()
        await client.close()

    _on_loop(work())


def refused() -> None:
    async def work() -> None:
        async with _SESSION.get(_REFUSED.url):
            pass

    _on_loop(awaits_failing(aiohttp.ClientConnectorError, work()))


def refused_by_a_new_session() -> None:
    _on_loop(awaits_failing(aiohttp.ClientConnectorError, _get_by_a_new_session(_REFUSED.url)))


def timed_out() -> None:
    timeout = aiohttp.ClientTimeout(sock_read=0.01)
    _on_loop(awaits_failing(TimeoutError, _get("/slow", timeout=timeout)))


def dropped() -> None:
    _on_loop(awaits_failing(aiohttp.ServerDisconnectedError, _get("/drop")))


def no_http() -> None:
    _on_loop(awaits_failing(aiohttp.ClientError, _get("/garbage")))


def short_body() -> None:
    _on_loop(awaits_failing(aiohttp.ClientPayloadError, _get("/short")))


def broken_chunk() -> None:
    _on_loop(awaits_failing(aiohttp.ClientError, _get("/bad-chunk")))


def broken_compression() -> None:
    _on_loop(awaits_failing(aiohttp.ClientError, _get("/bad-gzip")))


def too_many_redirects() -> None:
    _on_loop(awaits_failing(aiohttp.TooManyRedirects, _get("/loop")))


def bad_redirect() -> None:
    _on_loop(awaits_failing(aiohttp.ClientError, _get("/bad-redirect")))


def status() -> None:
    _on_loop(awaits_failing(aiohttp.ClientResponseError, _get("/404", raise_for_status=True)))


def no_json() -> None:
    _on_loop(awaits_failing(aiohttp.ContentTypeError, _get_json("/ok")))


def no_tls() -> None:
    async def work() -> None:
        async with _SESSION.get(f"https://127.0.0.1:{_SERVER.port}/"):
            pass

    _on_loop(awaits_failing(aiohttp.ClientConnectorError, work()))


def no_url() -> None:
    _on_loop(awaits_failing(aiohttp.InvalidURL, _get_by_a_new_session("nothing")))


def no_web_socket() -> None:
    async def work() -> None:
        async with _CLIENT.ws_connect("/"):
            pass

    _on_loop(awaits_failing(aiohttp.WSServerHandshakeError, work()))


def closed_session() -> None:
    async def work() -> None:
        session = aiohttp.ClientSession()
        await session.close()
        await session.get(_SERVER.url)

    _on_loop(awaits_failing(RuntimeError, work()))


def failing_handler() -> None:
    _on_loop(_ask("GET", "/refuse"))


def forbidden() -> None:
    _on_loop(_ask("GET", "/forbid"))


def no_such_page() -> None:
    _on_loop(_ask("GET", "/none"))


def wrong_method() -> None:
    _on_loop(_ask("POST", "/"))


def broken_json() -> None:
    _on_loop(_ask("POST", "/json", data=b"{"))


def failing_web_socket() -> None:
    async def work() -> None:
        async with _CLIENT.ws_connect("/echo") as socket:
            await socket.send_str("refuse")
            await socket.receive()

    _on_loop(work())


ORDINARY = [
    get,
    get_by_a_new_session,
    get_json,
    get_compressed,
    get_chunked,
    post,
    follow_redirect,
    serve,
    serve_form,
    serve_web_socket,
    new_server,
]
ERRORS = [
    refused,
    refused_by_a_new_session,
    timed_out,
    dropped,
    no_http,
    short_body,
    broken_chunk,
    broken_compression,
    too_many_redirects,
    bad_redirect,
    status,
    no_json,
    no_tls,
    no_url,
    no_web_socket,
    closed_session,
    failing_handler,
    forbidden,
    no_such_page,
    wrong_method,
    broken_json,
    failing_web_socket,
]
