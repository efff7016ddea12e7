"""The same as over asyncio, on uvloop's loop."""

from __future__ import annotations

import socket
from array import array
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.tasklet_io.sides import over_asyncio
from benchmarks.tasklet_io.sides.protocol import Certificate, Plan

uvloop: Any = import_module("uvloop")


def serve(listener: socket.socket, certificate: Certificate | None) -> None:
    """Serve with a protocol for each connection."""
    over_asyncio.serve(listener, certificate, uvloop.new_event_loop)


def sleep_all(plans: Sequence[Plan]) -> array[int]:
    """Await asyncio.sleep() in tasks."""
    return over_asyncio.sleep_all(plans, uvloop.new_event_loop)
