"""asyncio on its own loop: a protocol for each connection, a task for each sleeper."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.tasklet_io.sides.protocol import BACKLOG, Certificate, Plan, tls

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


class Echo(asyncio.Protocol):
    """Writes what it is given."""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvloop's is no Transport
        """Keep what every call needs."""
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        """Answer."""
        self._write(data)


def serve(
    listener: socket.socket,
    certificate: Certificate | None,
    loop_factory: LoopFactory | None = None,
) -> None:
    """Serve with a protocol for each connection."""

    async def serving() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            Echo, sock=listener, backlog=BACKLOG, ssl=tls(ssl, certificate)
        )
        await server.serve_forever()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serving())


def sleep_all(plans: Sequence[Plan], loop_factory: LoopFactory | None = None) -> array[int]:
    """Await asyncio.sleep() in tasks."""
    late_ns = array("q")

    async def sleeping() -> None:
        await asyncio.gather(*(_sleeper(plan, late_ns) for plan in plans))

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(sleeping())
    return late_ns


async def _sleeper(plan: Plan, late_ns: array[int]) -> None:
    """Do what `protocol.sleeper` does."""
    now = time.perf_counter_ns
    await asyncio.sleep(plan[0])
    for seconds in plan[1:]:
        due = now() + int(seconds * 1e9)
        await asyncio.sleep(seconds)
        late_ns.append(now() - due)
