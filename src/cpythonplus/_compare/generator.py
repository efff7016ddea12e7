"""A load generator for HTTP/1.1: an open loop at a fixed rate, and a closed loop.

Open loop: request i is due at `start + i / rate`, whatever happened to those before it, and its
latency counts from then. If the server stalls, requests wait for a free connection, and their wait
is part of the latency. A generator that counts from the real time of sending leaves out exactly the
requests that a stall delayed ("coordinated omission": Gil Tene, How NOT to Measure Latency, 2013;
wrk2 counts from the due time, too).

Closed loop: each connection sends its next request when it has the answer to the last. This
measures the throughput of the server, and tells nothing about waiting.

    connection 1   take slot 0 . sleep until it is due . send . answer . take slot 3 ...
    connection 2   take slot 1 . sleep .............. send . answer .......... take slot 4
    connection 3   take slot 2 ...

It runs in a process of its own, `python -m cpythonplus._compare.generator SETTINGS...`, so that its
GIL is neither the server's nor the measuring process's. It writes its `Load` as a line of JSON.
"""

import asyncio
import gc
import itertools
import json
import os
import re
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from cpythonplus._compare.load import Load, Sent, Settings
from cpythonplus._compare.statistics import percentile

TIMEOUT_S = 10.0
"""The limit for an answer, and for the time that an open loop goes on after its end."""
_PAUSE_S = 0.05
"""After a failure in a closed loop: a refused connection would be tried 10,000 times a second."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_STAYS = re.compile(rb"\r\nconnection:[ \t]*keep-alive", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})")
_FIRST_FINAL, _FIRST_ERROR, _WITHOUT_BODY = 200, 400, (204, 304)


class _AnswerError(Exception):
    """A failed request; its text is the kind of failure."""


class _Connection:
    """One connection, opened on demand, with at most one request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> None:
        """Send a request and read the answer. Raises _AnswerError."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._ask(request)
        except TimeoutError:
            self.close()
            raise _AnswerError("timeout") from None
        except BaseException:
            self.close()
            raise

    async def _ask(self, request: bytes) -> None:
        if self._streams is not None and await self._answer(request, *self._streams, is_used=True):
            return
        # A server may close an idle connection while the request is on its way: try once more.
        self.close()
        try:
            self._streams = await asyncio.open_connection(*self._address)
        except OSError as error:
            raise _AnswerError(f"cannot connect: {_words(error)}") from None
        await self._answer(request, *self._streams, is_used=False)

    async def _answer(
        self,
        request: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_used: bool,
    ) -> bool:
        """Ask on this connection; False if it was used before and closed meanwhile."""
        try:
            writer.write(request)
            head = await _head(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            if is_used and not getattr(error, "partial", b""):
                return False
            raise _AnswerError("connection closed") from None
        except asyncio.LimitOverrunError:
            raise _AnswerError("no HTTP answer") from None
        try:
            version, status = _version_and_status(head)
            stays = request.startswith(b"HEAD ") or await _read_body(reader, head, status)
        except (OSError, asyncio.IncompleteReadError):
            raise _AnswerError("connection closed") from None
        except (ValueError, asyncio.LimitOverrunError):
            raise _AnswerError("no HTTP answer") from None
        if not stays or _CLOSE.search(head) or (version == 0 and not _STAYS.search(head)):
            self.close()
        if status >= _FIRST_ERROR:
            raise _AnswerError(f"status {status}")
        return True

    def close(self) -> None:
        """Close the connection, if it is open."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Return the head of an answer, skipping interim answers (1xx)."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        match = _STATUS.match(head)
        if match is None or int(match[2]) >= _FIRST_FINAL:
            return head


def _version_and_status(head: bytes) -> tuple[int, int]:
    match = _STATUS.match(head)
    if match is None:
        raise ValueError("no HTTP answer")
    return int(match[1]), int(match[2])


async def _read_body(reader: asyncio.StreamReader, head: bytes, status: int) -> bool:
    """Read the body; False if it ended with the connection. Raises ValueError."""
    if status in _WITHOUT_BODY:
        return True
    if _CHUNKED.search(head):
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            await reader.readexactly(size + 2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return True
    length = _LENGTH.search(head)
    if length is None:
        await reader.read()
        return False
    await reader.readexactly(int(length[1]))
    return True


def _words(error: OSError) -> str:
    # asyncio words the error itself, with the port.
    return os.strerror(error.errno) if error.errno else type(error).__name__


def _address(settings: Settings) -> tuple[str, int]:
    """Return the address where the server answers: a name may have several, and costs a look-up."""
    try:
        with socket.create_connection((settings.host, settings.port), TIMEOUT_S) as connection:
            host, port = connection.getpeername()[:2]
            return str(host), int(port)
    except OSError:
        return settings.host, settings.port


def request_of(settings: Settings) -> bytes:
    """Return the bytes of the request."""
    return (
        f"GET {settings.path} HTTP/1.1\r\nHost: {settings.address}\r\n"
        "User-Agent: cpythonplus-compare\r\nAccept: */*\r\n\r\n"
    ).encode()


def order_of(requests: Sequence[Sent]) -> list[int]:
    """Return the places of requests as often as their weights say, each evenly spread."""
    places = (
        ((turn + 0.5) / each.weight, place)
        for place, each in enumerate(requests)
        for turn in range(each.weight)
    )
    return [place for _, place in sorted(places)]


class _Run:
    """One run of a loop."""

    def __init__(self, settings: Settings) -> None:
        self._load = Load()
        self._settings = settings
        self._errors: Counter[str] = Counter()
        self._late_ns: list[int] = []
        self._slots = iter(range(max(1, round(settings.rate * settings.duration_s))))
        self._turns = itertools.count()
        self._requests = [each.text.encode("latin-1") for each in settings.requests]
        self._requests = self._requests or [request_of(settings)]
        self._order = order_of(settings.requests) or [0]
        address = _address(settings)
        self._connections = [_Connection(address) for _ in range(settings.connections)]
        self._start_ns = time.perf_counter_ns()
        self._end_ns = self._start_ns + int(settings.duration_s * 1e9)

    async def run(self) -> Load:
        """Run the loop; returns its results."""
        user = self._open if self._settings.loop == "open" else self._closed
        await asyncio.gather(*map(user, self._connections))
        for connection in self._connections:
            connection.close()
        self._load.errors = dict(self._errors)
        if self._late_ns:
            self._load.late_ns = percentile(sorted(self._late_ns), 99)
        return self._load

    async def _open(self, connection: _Connection) -> None:
        give_up_ns = self._end_ns + int(TIMEOUT_S * 1e9)
        for slot in self._slots:
            due_ns = self._start_ns + int(slot / self._settings.rate * 1e9)
            now_ns = time.perf_counter_ns()
            if now_ns < due_ns:
                await asyncio.sleep((due_ns - now_ns) / 1e9)
                self._late_ns.append(max(0, time.perf_counter_ns() - due_ns))
            elif now_ns > give_up_ns:
                self._errors["not sent: all connections were busy"] += 1
                self._note(now_ns - due_ns, self._which(slot))
                continue
            await self._ask(connection, due_ns, self._which(slot))

    async def _closed(self, connection: _Connection) -> None:
        while (now_ns := time.perf_counter_ns()) < self._end_ns:
            if not await self._ask(connection, now_ns, self._which(next(self._turns))):
                await asyncio.sleep(_PAUSE_S)

    def _which(self, turn: int) -> int:
        return self._order[turn % len(self._order)]

    def _note(self, latency_ns: int, which: int) -> None:
        self._load.latencies_ns.append(latency_ns)
        self._load.which.append(which)

    async def _ask(self, connection: _Connection, since_ns: int, which: int) -> bool:
        try:
            await connection.ask(self._requests[which])
        except _AnswerError as error:
            kind = str(error)
            self._errors[kind] += 1
            if kind == "timeout":
                self._note(time.perf_counter_ns() - since_ns, which)
            return False
        now_ns = time.perf_counter_ns()
        self._note(now_ns - since_ns, which)
        self._load.answered += now_ns <= self._end_ns
        return True


def _loop() -> asyncio.AbstractEventLoop:
    # epoll sleeps in whole milliseconds: every request would be up to one late.
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    """Run the loop of the first argument, and write its results."""
    given = json.loads("".join(sys.argv[1:]))
    requests = tuple(Sent(**each) for each in given.pop("requests"))
    settings = Settings(**given, requests=requests)
    gc.disable()  # its pauses would be the server's latencies
    with asyncio.Runner(loop_factory=_loop) as runner:
        load = runner.run(_Run(settings).run())
    sys.stdout.write(f"\n{json.dumps(asdict(load))}\n")


if __name__ == "__main__":
    main()
