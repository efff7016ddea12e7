"""Threads of the operating system: each connection has one."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.tasklet_io.sides.protocol import Certificate, echo, tls

LOCKS: Mapping[str, Callable[[], Any]] = {"lock": threading.Lock, "rlock": threading.RLock}


def serve(listener: socket.socket, certificate: Certificate | None) -> None:
    """Accept, and start a thread that does the rest, the handshake as well."""
    context = tls(ssl, certificate)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve_one, args=(connection, context), daemon=True).start()


def _serve_one(connection: socket.socket, context: ssl.SSLContext | None) -> None:
    if context is not None:
        connection = context.wrap_socket(connection, server_side=True)
    with connection:
        echo(connection)
