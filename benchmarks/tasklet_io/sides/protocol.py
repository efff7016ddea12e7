"""What each side can do, and the code that several of them share."""

from __future__ import annotations

import socket
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

BACKLOG = 4096
"""Connections come faster than any server takes them; some servers call listen() once more."""

CHUNK = 4096
"""How much a server asks for at once; more than a message has."""

Plan = Sequence[float]
"""How long one sleeper sleeps each time, in seconds; its first sleep is not measured."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files of a server's own certificate and its key."""

    chain: str
    key: str


class Peer(Protocol):
    """A module of this folder; one whose side has no case of a kind lacks the name for it."""

    LOCKS: Mapping[str, Callable[[], Any]]
    """What makes a lock of each kind."""

    def serve(self, listener: socket.socket, certificate: Certificate | None) -> None:
        """Echo whatever comes over connections of `listener`, until the process is ended.

        With a certificate the connections are TLS.
        """

    def sleep_all(self, plans: Sequence[Plan]) -> array[int]:
        """Let one sleeper follow each plan, all at once; return how late they woke, in ns."""


def echo(connection: Any, _address: object = None) -> None:  # noqa: ANN401 - a socket of any package
    """Answer with what came until the other end closes, as code with plain sockets does."""
    while data := connection.recv(CHUNK):
        connection.sendall(data)


def tls(ssl: Any, certificate: Certificate | None) -> Any:  # noqa: ANN401 - its context
    """Return a server's context of the module `ssl`, or of one in its place; None without TLS."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


def sleeper(sleep: Callable[[float], object], plan: Plan, late_ns: array[int]) -> None:
    """Sleep as planned, and add to `late_ns` how late each sleep but the first ended.

    Negative where it ended too early.
    """
    now = time.perf_counter_ns
    sleep(plan[0])
    for seconds in plan[1:]:
        due = now() + int(seconds * 1e9)
        sleep(seconds)
        late_ns.append(now() - due)
