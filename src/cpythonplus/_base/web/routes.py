"""The name of a request's route: the framework's, else the path without its variable parts.

Frameworks are recognised by attributes of their objects, so that none is imported.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

NO_ROUTE: Final = "(no route)"
_VARIES: Final = re.compile(
    r"\d+"
    r"|[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}"
    r"|(?=[^/]*\d)[0-9a-fA-F]{12,}"
    r"|(?=[^/]*\d)[\w.~=-]{20,}",
    re.ASCII,
)
_LONGEST_PATH: Final = 400
_MOST_PARTS: Final = 8
NOT_FOUND: Final = 404
_METHODS: Final = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}


def normalised(path: str) -> str:
    """Return a path with each variable part, a number or a key, replaced by `*`."""
    parts = path[:_LONGEST_PATH].split("/")
    parts = ["*" if _VARIES.fullmatch(part) else part for part in parts]
    if len(parts) > _MOST_PARTS:
        parts = [*parts[:_MOST_PARTS], "..."]
    return "/".join(parts)


def guess(method: object, path: object) -> str:
    """Return a preliminary name for a request whose route is unknown."""
    return _named(method, normalised(path if isinstance(path, str) else ""))


def werkzeug_route(environ: Mapping[str, Any]) -> str:
    """Return the route that Flask, or another user of Werkzeug, has found; "": none.

    Call it when the response is started: later the request is no longer in the environment.
    """
    request: Any = environ.get("werkzeug.request")
    if not hasattr(request, "url_rule"):
        return ""
    rule = getattr(request.url_rule, "rule", None)
    return _named(environ.get("REQUEST_METHOD"), rule)


def django_route(environ: Mapping[str, Any], response: object) -> str:
    """Return the route that Django has found; "": the response is not Django's.

    Call it before the response is closed: until then the response knows the method that closes its
    request.
    """
    for closer in getattr(response, "_resource_closers", ()):
        request: Any = getattr(closer, "__self__", None)
        if hasattr(request, "resolver_match"):
            route = getattr(request.resolver_match, "route", None)
            route = f"/{route.lstrip('/')}" if isinstance(route, str) else None
            return _named(environ.get("REQUEST_METHOD"), route)
    return ""


def asgi_route(scope: Mapping[str, Any], root_path: str, status: int) -> str:
    """Return the name of an ASGI request's route; root_path: the scope's original path prefix.

    Starlette and FastAPI put the route into the scope; older versions of Starlette put only the
    names of the path's parts there.
    """
    method = scope.get("method")
    route = scope.get("route")
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    if isinstance(template, str):
        mounted = str(scope.get("root_path") or "").removeprefix(root_path)
        return _named(method, normalised(mounted) + template)
    if scope.get("endpoint") is not None:
        return _named(method, _with_names(scope))
    if status == NOT_FOUND:
        return NO_ROUTE
    return ""


def _with_names(scope: Mapping[str, Any]) -> str:
    path = str(scope.get("path") or "")
    named = scope.get("path_params")
    if isinstance(named, Mapping):
        values = {str(value): f"{{{name}}}" for name, value in named.items()}
        path = "/".join(values.get(part, part) for part in path.split("/"))
    return normalised(path)


def _named(method: object, route: object) -> str:
    if not isinstance(route, str):
        return NO_ROUTE
    known = method if isinstance(method, str) and method in _METHODS else "?"
    return f"{known} {route}"
