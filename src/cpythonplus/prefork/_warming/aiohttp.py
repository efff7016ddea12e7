"""Asking an application of aiohttp: an Application, or a coroutine function that makes one.

The application runs as in a server, in aiohttp's own AppRunner: with its start-up, clean-up and
middlewares.  A request comes in over a connection of this process to itself.

An Application belongs to the event loop that it was started in: "web.Application instance
initialized with different loop".  After its clean-up the Application is made to forget that loop,
and gets its earlier keys back.  Its start-up functions run again in the workers.  It takes no
middleware after its start, and aiohttp caches the chain of them for each handler: so the metrics'
one is added before the warm-up.  A coroutine function is called again in the workers, where nothing
of the warm-up's Application is used.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cpythonplus.prefork._applications import is_aiohttp_application
from cpythonplus.prefork._guarding import in_one_line
from cpythonplus.prefork._warming.limit import TooLong
from cpythonplus.prefork._warming.loop import WarmLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from cpythonplus._base.requests import Request
    from cpythonplus.prefork._warming.kept import Kept

_FINAL = 200
"""Answers with a lower status are followed by another one."""


class AiohttpSession:
    """The application between its start-up and its clean-up, in one event loop.

    kept: connections that the requests leave open are noted there. tell: called with an error of
    the clean-up, in one line.
    """

    def __init__(
        self,
        application: Any,  # noqa: ANN401  # aiohttp's
        kept: Kept,
        tell: Callable[[str], object],
    ) -> None:
        self._application = application
        self._tell = tell
        self._loop = WarmLoop(kept)
        self._runner: Any = None
        self._keys = dict(application) if is_aiohttp_application(application) else {}

    def ask(self, request: Request, limit_s: float) -> tuple[int, int]:
        """Return the status and the length of the answer; raises the start-up's exceptions."""
        if self._runner is None:
            self._loop.run(self._start(), limit_s)
        return self._loop.run(self._ask(request), limit_s, request)

    async def _start(self) -> None:
        web: Any = import_module("aiohttp.web")
        made = self._application
        if not is_aiohttp_application(made):
            made = await made()
        self._runner = made if isinstance(made, web.AppRunner) else web.AppRunner(made)
        await self._runner.setup()

    async def _ask(self, request: Request) -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        ours, theirs = _connected()
        await loop.connect_accepted_socket(self._runner.server, theirs)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(_message(request))
            await writer.drain()
            return await _answer(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def close(self, limit_s: float) -> None:
        """Clean the application up, and end the loop."""
        try:
            if self._runner is not None:
                self._loop.run(self._runner.cleanup(), limit_s)
        except (Exception, TooLong) as error:  # noqa: BLE001  # any error of the application
            self._tell(f"the warm-up's clean-up of the application: {in_one_line(error)}")
        finally:
            self._loop.close()
            if is_aiohttp_application(self._application):
                forget_loop(self._application)
                for key in [key for key in self._application if key not in self._keys]:
                    del self._application[key]
                for key, value in self._keys.items():
                    if self._application.get(key) is not value:
                        self._application[key] = value


def forget_loop(application: Any) -> None:  # noqa: ANN401  # aiohttp's
    """Let another loop start the application, and its start-up functions set keys again."""
    application._loop = None  # noqa: SLF001
    application._frozen = False  # noqa: SLF001
    application.cleanup_ctx._exits.clear()  # noqa: SLF001  # else they are exited a second time
    for each in application._subapps:  # noqa: SLF001
        forget_loop(each)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    status = 0
    while status < _FINAL:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return 0, 0
        status = int(head.split(maxsplit=2)[1])
    length = 0
    while piece := await reader.read(1 << 16):
        length += len(piece)
    return status, length


def _connected() -> tuple[socket.socket, socket.socket]:
    """Return two ends of a TCP connection on the loopback, as applications know them."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, peer = listener.accept()
        if peer != ours.getsockname():
            ours.close()
            theirs.close()
            raise ConnectionError("somebody else has connected to the warm-up")
    ours.setblocking(False)  # noqa: FBT003
    theirs.setblocking(False)  # noqa: FBT003
    return ours, theirs


def _message(request: Request) -> bytes:
    url = urlsplit(request.target)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    lines = [f"{request.method} {target} HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in request.all_headers()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body
