"""What a warm-up has left open in an application, as far as the application still refers to it."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpythonplus.prefork._warming.requests import Request

__all__ = ["Kept"]


class Kept:
    """Connections of event loops that have ended, each with the request that opened it."""

    def __init__(self) -> None:
        self._opened: list[tuple[weakref.ref[Any], Request]] = []

    def add(self, transport: object, request: Request) -> None:
        """Note what `request` has opened, and somebody else has aborted."""
        with suppress(TypeError):  # without weak references
            self._opened.append((weakref.ref(transport), request))

    def counts(self) -> dict[Request, int]:
        """Return how many each request has opened that somebody still refers to."""
        found: dict[Request, int] = {}
        for each, request in self._opened:
            if each() is not None:
                found[request] = found.get(request, 0) + 1
        return found
