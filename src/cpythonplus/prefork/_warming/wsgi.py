"""Sending a request to a WSGI application, without a server."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes, urlsplit
from wsgiref.util import setup_testing_defaults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cpythonplus._base.requests import Request

_UNPREFIXED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


def ask(application: Callable[..., Any], request: Request) -> tuple[int, int]:
    """Return the status and the length of the answer; raises the application's exceptions."""
    status = 0

    def start_response(
        line: str, headers: Iterable[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], object]:
        del headers, exc_info
        nonlocal status
        status = int(line.split(maxsplit=1)[0])
        return written.append

    written: list[bytes] = []
    body = application(_environ(request), start_response)
    try:
        length = sum(len(piece) for piece in body)
    finally:
        if hasattr(body, "close"):
            body.close()
    return status, length + sum(map(len, written))


def _environ(request: Request) -> dict[str, Any]:
    url = urlsplit(request.target)
    host, port = request.server
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        # The bytes of the path, decoded as latin-1: PEP 3333.
        "PATH_INFO": unquote_to_bytes(url.path or "/").decode("latin-1"),
        "QUERY_STRING": url.query,
        "RAW_URI": request.target,
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": url.scheme or "http",
        "wsgi.input": BytesIO(request.body),
        "wsgi.input_terminated": True,
        "wsgi.multiprocess": True,
    }
    for name, value in request.all_headers():
        key = _UNPREFIXED.get(name.lower(), f"HTTP_{name.upper().replace('-', '_')}")
        between = "; " if key == "HTTP_COOKIE" else ","
        environ[key] = f"{environ[key]}{between}{value}" if key in environ else value
    setup_testing_defaults(environ)
    return environ
