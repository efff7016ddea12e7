"""Tasklets: each connection has one, and each sleeper."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from benchmarks.tasklet_io.sides.protocol import Certificate, Plan, echo, sleeper, tls
from cpythonplus import tasklets
from cpythonplus.tasklets import io

LOCKS: Mapping[str, Callable[[], Any]] = {
    "lock": lambda: import_module("cpythonplus.tasklets.locks").Lock(),
    "rlock": lambda: import_module("cpythonplus.tasklets.locks").RLock(),
}
"""A server does not load them."""


def serve(listener: socket.socket, certificate: Certificate | None) -> None:
    """Serve with a `StreamServer`."""
    context = tls(io.ssl, certificate) if certificate else None
    io.StreamServer(listener, echo, ssl_context=context).serve_forever()


def sleep_all(plans: Sequence[Plan]) -> array[int]:
    """Call io.sleep() in tasklets."""
    late_ns = array("q")
    for plan in plans:
        tasklets.tasklet(sleeper)(io.sleep, plan, late_ns)
    tasklets.run()
    return late_ns
