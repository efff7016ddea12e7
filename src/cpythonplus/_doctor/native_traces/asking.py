"""The doctor's side: makes memray trace a process, and reads the result."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import TYPE_CHECKING, NamedTuple

from cpythonplus._base.reading import amount, size
from cpythonplus._doctor.agent.client import AskError
from cpythonplus._doctor.agent.finding import Unreachable
from cpythonplus._doctor.native_traces.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus._doctor.agent.client import Client

_HIGHEST_FILE = 1 << 20
_LARGEST = 256 << 20


def traced(client: Client, seconds: float, *, small: bool) -> Traced:
    """Trace the process for so many seconds; it answers no other doctor meanwhile.

    small: with the blocks that Python's allocator hands out. Raises AskError if it refuses,
    Unreachable if it is gone, OSError if the file cannot be read.
    """
    with _sign_of_life() as thread:
        cost = client.ask("native", f"{seconds:.3f},{thread}{',1' * small}", takes_s=seconds)
    try:
        file = min(max(size(cost, "file"), 0), _HIGHEST_FILE)
        with open(f"/proc/{client.process.pid}/fd/{file}", "rb") as written:  # noqa: PTH123
            return Traced(cost, written.read(_LARGEST))
    finally:
        with suppress(AskError, Unreachable):
            client.ask("native_forget")


class Traced(NamedTuple):
    """The tracer's cost, as reported by the process, and the tracer's records."""

    cost: dict[str, object]
    records: bytes

    def examined(self) -> dict[str, object]:
        """Return the allocations that were not freed, as an examination; this takes seconds."""
        found = {name: self.cost.get(name) for name in ("ended_by", "executable")}
        found |= {name: amount(self.cost, name) for name in ("seconds", "cpu_s")}
        found |= {name: size(self.cost, name) for name in ("pause_ns", "file_bytes")}
        with TemporaryFile(prefix="cpythonplus-") as file:
            file.write(self.records)
            file.flush()
            try:
                return {**found, **read(f"/proc/{os.getpid()}/fd/{file.fileno()}")}
            except (OSError, ValueError) as error:
                text = " ".join(str(error).split())
                return {"error": f"memray cannot read what it has traced: {text}"}


@contextmanager
def _sign_of_life() -> Iterator[int]:
    """Yield the number of a thread: once that thread has ended, the process ends its tracer."""
    done = Event()
    thread = Thread(target=done.wait, daemon=True)
    thread.start()
    try:
        yield thread.native_id or os.getpid()
    finally:
        done.set()
        thread.join()
