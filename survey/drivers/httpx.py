"""httpx: its client, its asynchronous client, and the transports that need no network."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx

from survey.drivers.support import Refused, Server, awaits_failing, fails, pages

_SERVER = Server(pages)
_REFUSED = Refused()
_LOOP = asyncio.new_event_loop()
_IMPATIENT = httpx.Timeout(30, read=0.01)
# One client for all calls, as a service has.
_CLIENT = httpx.Client(trust_env=False, timeout=30)


def _wsgi(_environ: object, start: Callable[..., object]) -> list[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"fine"]


def _refusing_wsgi(_environ: object, _start: object) -> list[bytes]:
    raise ValueError("refused")


async def _asgi(_scope: object, _receive: object, send: Callable[..., Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


async def _refusing_asgi(_scope: object, _receive: object, _send: object) -> None:
    raise ValueError("refused")


def _refuse(request: object) -> "httpx.Response":
    raise httpx.ConnectError("refused", request=request)


def _get(path: str, **options: object) -> "httpx.Response":
    return _CLIENT.get(_SERVER.url + path, **options)


async def _get_asynchronously(url: str, **options: object) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=30, **options) as client:
        await client.get(url)


def get() -> None:
    _get("/ok")


def get_by_a_new_client() -> None:
    with httpx.Client(trust_env=False) as client:
        client.get(_SERVER.url + "/ok")


def get_asynchronously() -> None:
    _LOOP.run_until_complete(_get_asynchronously(_SERVER.url + "/ok"))


def post() -> None:
    _CLIENT.post(_SERVER.url + "/ok", data={"a": "b"}, files={"f": b"x"})


def get_json() -> None:
    _get("/json").json()


def get_compressed() -> None:
    _get("/gzip")


def get_stream() -> None:
    with _CLIENT.stream("GET", _SERVER.url + "/ok") as answer:
        for _ in answer.iter_bytes(2):
            pass


def follow_redirect() -> None:
    _get("/redirect", follow_redirects=True)


def mock_transport() -> None:
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200))) as client:
        client.get("http://nowhere/")


def wsgi_transport() -> None:
    with httpx.Client(transport=httpx.WSGITransport(_wsgi)) as client:
        client.get("http://nowhere/")


def asgi_transport() -> None:
    transport = httpx.ASGITransport(_asgi)
    _LOOP.run_until_complete(_get_asynchronously("http://nowhere/", transport=transport))


def refused() -> None:
    fails(httpx.ConnectError, lambda: _CLIENT.get(_REFUSED.url))


def refused_asynchronously() -> None:
    _LOOP.run_until_complete(awaits_failing(httpx.ConnectError, _get_asynchronously(_REFUSED.url)))


def refused_by_a_mock() -> None:
    with httpx.Client(transport=httpx.MockTransport(_refuse)) as client:
        fails(httpx.ConnectError, lambda: client.get("http://nowhere/"))


def timed_out() -> None:
    fails(httpx.ReadTimeout, lambda: _get("/slow", timeout=_IMPATIENT))


def timed_out_asynchronously() -> None:
    async def work() -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(_SERVER.url + "/slow", timeout=_IMPATIENT)

    _LOOP.run_until_complete(awaits_failing(httpx.ReadTimeout, work()))


def dropped() -> None:
    fails(httpx.RemoteProtocolError, lambda: _get("/drop"))


def no_http() -> None:
    fails(httpx.RemoteProtocolError, lambda: _get("/garbage"))


def short_body() -> None:
    fails(httpx.RemoteProtocolError, lambda: _get("/short"))


def broken_compression() -> None:
    fails(httpx.DecodingError, lambda: _get("/bad-gzip"))


def too_many_redirects() -> None:
    fails(httpx.TooManyRedirects, lambda: _get("/loop", follow_redirects=True))


def status() -> None:
    fails(httpx.HTTPStatusError, lambda: _get("/404").raise_for_status())


def no_json() -> None:
    fails(ValueError, lambda: _get("/ok").json())


def no_tls() -> None:
    fails(httpx.ConnectError, lambda: _CLIENT.get(f"https://127.0.0.1:{_SERVER.port}/"))


def no_url() -> None:
    fails(httpx.InvalidURL, lambda: _CLIENT.get("http://127.0.0.1:port/"))


def no_such_scheme() -> None:
    fails(httpx.UnsupportedProtocol, lambda: _CLIENT.get("gopher://127.0.0.1/"))


def failing_wsgi() -> None:
    with httpx.Client(transport=httpx.WSGITransport(_refusing_wsgi)) as client:
        fails(ValueError, lambda: client.get("http://nowhere/"))


def failing_asgi() -> None:
    transport = httpx.ASGITransport(_refusing_asgi)
    _LOOP.run_until_complete(
        awaits_failing(ValueError, _get_asynchronously("http://nowhere/", transport=transport))
    )


def closed_client() -> None:
    client = httpx.Client(trust_env=False, timeout=30)
    client.close()
    fails(RuntimeError, lambda: client.get(_SERVER.url + "/ok"))


ORDINARY = [
    get,
    get_by_a_new_client,
    get_asynchronously,
    post,
    get_json,
    get_compressed,
    get_stream,
    follow_redirect,
    mock_transport,
    wsgi_transport,
    asgi_transport,
]
ERRORS = [
    refused,
    refused_asynchronously,
    refused_by_a_mock,
    timed_out,
    timed_out_asynchronously,
    dropped,
    no_http,
    short_body,
    broken_compression,
    too_many_redirects,
    status,
    no_json,
    no_tls,
    no_url,
    no_such_scheme,
    failing_wsgi,
    failing_asgi,
    closed_client,
]
