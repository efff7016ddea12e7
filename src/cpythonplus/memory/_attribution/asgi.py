"""ASGI: a request is a span until the application has returned."""

from cpythonplus._base.web.asgi import Application, around_asgi
from cpythonplus.memory._attribution.recording import Span, refuse


def attribute_asgi(application: Application) -> Application:
    """Return an ASGI application whose HTTP requests are attributed to their routes.

    Use it as `app = memory.attribute_asgi(app)`, outermost. A request counts until the application
    has returned, that is, until a streaming response has been sent. It is named by its method and
    the route that Starlette or FastAPI found, as in `GET /users/{id}`; without them by the path,
    with `*` for numbers and keys. Websockets and the lifespan are not changed.

    Raises UnsupportedPlatform without a GIL.
    """
    refuse()
    return around_asgi(application, Span)
