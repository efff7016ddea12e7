"""Connections that a warm-up has left open, as far as the application still refers to them."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpythonplus._base.requests import Request


class Kept:
    """Connections of event loops that have ended, each with the request that opened it."""

    def __init__(self) -> None:
        self._opened: list[tuple[weakref.ref[Any], Request]] = []

    def add(self, transport: object, request: Request) -> None:
        """Note a connection that `request` has opened and its loop has aborted."""
        with suppress(TypeError):  # it may not support weak references
            self._opened.append((weakref.ref(transport), request))

    def counts(self) -> dict[Request, int]:
        """Return, for each request, the number of its connections that are still referred to."""
        found: dict[Request, int] = {}
        for each, request in self._opened:
            if each() is not None:
                found[request] = found.get(request, 0) + 1
        return found
