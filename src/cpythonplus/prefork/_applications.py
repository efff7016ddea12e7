"""Telling the kind of a web application or of a worker without calling it."""

import inspect
import sys
from collections.abc import Callable
from typing import Any


def is_asgi(application: object) -> bool:
    """Whether an ASGI server can call the application: a coroutine function of three arguments."""
    call = getattr(application, "__call__", None)  # noqa: B004  # the method, not whether it is there
    is_coroutine = inspect.iscoroutinefunction(application) or inspect.iscoroutinefunction(call)
    return is_coroutine and not _is_factory(application)


def comes_from(kind: type, *modules: str) -> bool:
    """Whether a class, or one of its bases, is from a module whose name begins like this."""
    return any(each.__module__.startswith(modules) for each in kind.__mro__)


def is_aiohttp(application: object) -> bool:
    """Whether this is an Application of aiohttp, or a coroutine function that makes one."""
    return is_aiohttp_application(application) or _is_factory(application)


def is_aiohttp_application(application: object) -> bool:
    """Whether this is an Application of aiohttp itself."""
    web: Any = sys.modules.get("aiohttp.web")
    return web is not None and isinstance(application, web.Application)


def _is_factory(application: Any) -> bool:  # noqa: ANN401  # anything
    """Whether this is a coroutine function that needs no arguments, and does not take ASGI's."""
    if not inspect.iscoroutinefunction(application):
        return False
    return _takes(application) and not _takes(application, "scope", "receive", "send")


def _takes(function: Callable[..., object], *arguments: str) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True
