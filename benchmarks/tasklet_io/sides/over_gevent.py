"""Gevent: each connection has a greenlet, and each sleeper."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from benchmarks.tasklet_io.sides.protocol import Certificate, Plan, echo, sleeper, tls

gevent: Any = import_module("gevent")
lock: Any = import_module("gevent.lock")
server: Any = import_module("gevent.server")
sockets: Any = import_module("gevent.socket")
ssl: Any = import_module("gevent.ssl")

LOCKS: Mapping[str, Callable[[], Any]] = {"lock": lock.BoundedSemaphore, "rlock": lock.RLock}


def serve(listener: socket.socket, certificate: Certificate | None) -> None:
    """Serve with a `StreamServer`."""
    own = sockets.socket(fileno=listener.detach())
    arguments = {"ssl_context": tls(ssl, certificate)} if certificate else {}
    server.StreamServer(own, echo, **arguments).serve_forever()


def sleep_all(plans: Sequence[Plan]) -> array[int]:
    """Call gevent.sleep() in greenlets."""
    late_ns = array("q")
    started = [gevent.spawn(sleeper, gevent.sleep, plan, late_ns) for plan in plans]
    gevent.joinall(started, raise_error=True)
    return late_ns
