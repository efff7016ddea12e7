"""Whether an ASGI application works after its shut-down and another start-up.

A worker that becomes the mold has shut its application down, and each worker that is forked from it
starts it again.  Some applications do not work then: a flag for shutting down stays set, or a
client of the module stays closed.  So before it forks, the mold starts the application, repeats
requests that it has answered well as a worker, and shuts it down.

Only requests are repeated that change nothing, by their method, and carry no credentials.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from cpythonplus._base.requests import Request
from cpythonplus.prefork._guarding import in_one_line
from cpythonplus.prefork._warming.asgi import AsgiSession
from cpythonplus.prefork._warming.kept import Kept
from cpythonplus.prefork._warming.limit import TooLong

_MOST_PATHS = 8
_LIMIT_S = 5.0
_BAD, _FAILURES = 400, 500
_CREDENTIALS = {b"authorization", b"cookie"}


class Again:
    """Requests that a worker has answered well, and the test whether it would again."""

    def __init__(self) -> None:
        self._requests: dict[str, Request] = {}

    def noting(
        self, scope: dict[str, Any], send: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> Callable[[dict[str, Any]], Awaitable[None]]:
        """Return `send` with a step that notes the request if it is one to repeat."""
        path, headers = scope["path"], scope["headers"]
        if (
            len(self._requests) >= _MOST_PATHS
            or path in self._requests
            or scope["method"] != "GET"
            or any(name in _CREDENTIALS for name, _ in headers)
        ):
            return send

        async def noted(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] < _BAD:
                raw = scope.get("raw_path") or path.encode()
                query = b"?" + scope["query_string"] if scope.get("query_string") else b""
                self._requests[path] = Request(
                    (raw + query).decode("latin-1"),
                    headers=tuple((a.decode("latin-1"), b.decode("latin-1")) for a, b in headers),
                )
            await send(message)

        return noted

    def problem(self, application: Callable[..., Any]) -> str:
        """Start the application, repeat the requests, shut it down; return the problem, or ""."""
        if not self._requests:
            return ""
        told: list[str] = []
        session = AsgiSession(application, Kept(), told.append)
        why = ""
        for path, request in self._requests.items():
            try:
                status, _length = session.ask(request, _LIMIT_S)
                how = f"is answered {status}" if status >= _FAILURES else ""
            except (Exception, TooLong) as error:  # noqa: BLE001  # the application's
                how = f"raises {in_one_line(error)}"
            if how:
                why = f"after a shut-down and another start-up GET {path} {how}"
                break
        session.close(_LIMIT_S)
        return why or "".join(told)
