"""asyncio's streams on its own loop: a task for each connection."""

from __future__ import annotations

import asyncio
import socket
import ssl

from benchmarks.tasklet_io.sides.protocol import BACKLOG, CHUNK, Certificate, tls


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Do what `protocol.echo` does."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.close()


def serve(listener: socket.socket, certificate: Certificate | None) -> None:
    """Serve with a stream for each connection."""

    async def serving() -> None:
        server = await asyncio.start_server(
            _echo, sock=listener, backlog=BACKLOG, ssl=tls(ssl, certificate)
        )
        await server.serve_forever()

    asyncio.run(serving())
