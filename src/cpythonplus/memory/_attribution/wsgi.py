"""WSGI: a request is a span from its call until its response is closed."""

from cpythonplus._base.web.wsgi import Application, around_wsgi
from cpythonplus.memory._attribution.recording import Span, refuse


def attribute_wsgi(application: Application) -> Application:
    """Return a WSGI application whose requests are attributed to their routes.

    Use it as `application = memory.attribute_wsgi(application)`, outermost. A request counts until
    its response is closed. It is named by its method and the route that Flask or Django found, as
    in `GET /users/<int:id>`; without them by the path, with `*` for numbers and keys.
    A file that the server sends by itself counts until it is handed over.

    Raises UnsupportedPlatform without a GIL.
    """
    refuse()
    return around_wsgi(application, Span)
