"""ASGI: a request is a span until the application has returned."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from cpythonplus.memory._attribution.recording import Span, refuse
from cpythonplus.memory._attribution.routes import asgi_route, guess

__all__ = ["attribute_asgi"]

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def attribute_asgi(application: Application) -> Application:
    """Return an ASGI application whose HTTP requests are attributed to their routes.

    Use it as `app = memory.attribute_asgi(app)`, outermost. A request counts until the application
    has returned, that is, until a streaming response has been sent. It is named by its method and
    the route that Starlette or FastAPI found, as in `GET /users/{id}`; without them by the path,
    with `*` for numbers and keys. Websockets and the lifespan are not changed.

    Raises UnsupportedPlatform without a GIL.
    """
    refuse()

    async def attributed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("type") != "http":
            await application(scope, receive, send)
            return
        status = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message.get("type") == "http.response.start":
                status = message.get("status", 0)
            await send(message)

        root_path = str(scope.get("root_path") or "")
        span = Span(guess(scope.get("method"), scope.get("path")))
        try:
            await application(scope, receive, sent)
        finally:
            span.end(asgi_route(scope, root_path, status))

    return attributed
