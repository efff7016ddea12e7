"""Has each worker of a server collect its garbage once."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterable

from benchmarks.common import loadgen
from benchmarks.common.errors import MeasurementError
from benchmarks.prefork.application import COLLECT_PATH

LIMIT_S = 120.0
"""How long all of it may take."""

_REQUEST = f"POST {COLLECT_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n".encode()


def collect_everywhere(port: int, pids: Iterable[int]) -> None:
    """Ask until each of the workers `pids` behind `port` has answered. Raises MeasurementError.

    Which worker takes a connection is up to the kernel. As many requests as there are workers are
    sent at once, so that those that are busy collecting leave the others to the rest.
    """
    missing = set(pids)
    count = 2 * len(missing)
    deadline = time.monotonic() + LIMIT_S
    while missing:
        if time.monotonic() > deadline:
            raise MeasurementError(f"{len(missing)} workers did not collect in {LIMIT_S:.0f} s")
        try:
            missing -= _ask(port, count)
        except (OSError, ValueError, KeyError, loadgen.AnswerError) as error:
            raise MeasurementError(f"a worker did not collect: {error}") from error


def _ask(port: int, count: int) -> set[int]:
    """Send `count` requests at once; return which processes answered."""
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", port)
        connections = [
            stack.enter_context(socket.create_connection(address, timeout=LIMIT_S))
            for _ in range(count)
        ]
        for connection in connections:
            connection.sendall(_REQUEST)
        return {int(json.loads(_body(connection))["pid"]) for connection in connections}


def _body(connection: socket.socket) -> bytes:
    answer = loadgen.Answer()
    while not answer.feed(piece := connection.recv(65536)):
        if not piece:
            raise ConnectionResetError("closed by the server")
    return answer.body()
