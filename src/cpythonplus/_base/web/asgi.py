"""ASGI: a request is a span until the application has returned."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

from cpythonplus._base.web.routes import asgi_route, guess
from cpythonplus._base.web.wsgi import Span

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
SpanT = TypeVar("SpanT", bound=Span)


def around_asgi(
    application: Application,
    begin: Callable[[str], SpanT],
    run: Callable[[SpanT, Awaitable[None]], Awaitable[None]] = lambda _, application: application,
) -> Application:
    """Return an ASGI application each of whose HTTP requests is a span; `begin` makes it.

    A request lasts until the application has returned, that is, until a streaming response has been
    sent. It is named by its method and the route that Starlette or FastAPI found, as in
    `GET /users/{id}`; without them by the path, with `*` for numbers and keys. run: returns what is
    awaited in place of the application's own coroutine. Websockets and the lifespan are unchanged.
    """

    async def spanned(scope: Scope, receive: Receive, send: Send) -> None:
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
        span = begin(guess(scope.get("method"), scope.get("path")))
        try:
            await run(span, application(scope, receive, sent))
        finally:
            span.end(asgi_route(scope, root_path, status))

    return spanned
