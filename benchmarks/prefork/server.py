"""One gunicorn with its workers: how it is started on each side, watched and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from benchmarks.common import memory
from benchmarks.common.children import Child, Children, Commands, loopback_listener
from benchmarks.common.errors import MeasurementError
from benchmarks.common.sides import Side
from benchmarks.prefork import application, configuration

LIMIT_S = 600
"""How long one server may live."""
READY_S = 120.0
"""How long it may take until all workers are ready."""
STOP_S = 150.0
"""How long it may take to stop."""

_MODULES: dict[Side, str] = {"gc.freeze": "freezing", "gc-off": "gc_off"}
"""The module of this folder that has gunicorn's settings; `configuration` for other sides."""

_SAMPLES_S = 0.05
_AT_REST = 4
"""While stopping, the sampler rests this many times as long as a sample took: it is not to keep a
core busy that the stopping processes need."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    child: Child
    port: int
    workers: int
    """How many it was told to have."""
    reports: Path
    """Folder with a file for each worker that became ready; see `configuration`."""

    def pids(self) -> list[int]:
        """Return the process ids of the workers that are ready and have not ended."""
        living = set(memory.tree(self.child.process.pid))
        return sorted(pid for pid in self._reported() if pid in living)

    def replaced(self) -> int:
        """Return how many workers have been started in the place of one that ended."""
        return len(self._reported()) - self.workers

    def features(self) -> tuple[bool, bool]:
        """Return whether all workers scheduled their GIL, and whether all replaced their locks."""
        files = [self.reports / str(pid) for pid in self._reported()]
        found = [json.loads(file.read_text("ascii")) for file in files]
        return all(f["scheduled"] for f in found), all(f["patched"] for f in found)

    def await_workers(self) -> list[int]:
        """Wait until all workers are ready; returns their ids. Raises MeasurementError."""
        deadline = time.monotonic() + READY_S
        while len(pids := self.pids()) < self.workers:
            self.child.check()
            if time.monotonic() > deadline:
                raise MeasurementError(
                    f"{len(pids)} of {self.workers} workers were ready after {READY_S:.0f} s"
                )
            time.sleep(0.02)
        return pids

    def memory(self) -> memory.Memory:
        """Return the memory of all of its processes together."""
        return memory.total(memory.tree(self.child.process.pid))

    def private_bytes(self) -> int:
        """Return the private memory of the median worker."""
        return int(statistics.median_low([memory.of(p).private_bytes for p in self.pids()] or [0]))

    def faults(self) -> int:
        """Return the page faults of all workers so far."""
        return sum(map(memory.faults, self.pids()))

    def stop(self) -> Stopping:
        """Send SIGTERM and wait until all its processes have ended. Raises MeasurementError."""
        root = self.child.process.pid
        pids = memory.tree(root)
        before = memory.total(pids).proportional_bytes
        with _pidfds(pids) as descriptors, _sampled(pids) as peak_bytes:
            start = time.perf_counter()
            os.kill(root, signal.SIGTERM)
            _await_ends(descriptors)
            seconds = time.perf_counter() - start
        return Stopping(seconds, before, peak_bytes(), self.child.process.wait())

    def _reported(self) -> list[int]:
        return [int(path.name) for path in self.reports.iterdir() if path.name.isdigit()]


@dataclass(frozen=True, slots=True)
class Stopping:
    """How a server ended."""

    seconds: float
    """From SIGTERM to the end of its last process."""
    before_bytes: int
    """Sum of Pss when the signal was sent."""
    peak_bytes: int
    """Largest sum of Pss that was seen afterwards."""
    status: int


@contextlib.contextmanager
def running(
    commands: Commands,
    side: Side,
    workers: int,
    environment: dict[str, str],
    options: Sequence[str] = (),
) -> Iterator[tuple[Server, Children]]:
    """Start a server and end it with all its processes when the block is left.

    Yields it, with all workers ready, and the group of children that a client may be added to.
    environment: that of `application.environment`.  options: further options of gunicorn.  Raises
    MeasurementError.
    """
    with TemporaryDirectory(prefix="cpythonplus-bench-") as folder, Children() as children:
        listener = loopback_listener()
        port: int = listener.getsockname()[1]
        variables = {
            **environment,
            configuration.LIMIT_VARIABLE: str(LIMIT_S),
            configuration.REPORTS_VARIABLE: folder,
            # gunicorn reads options from here too; only the ones below are meant.
            "GUNICORN_CMD_ARGS": "",
        }
        command = [
            *_command(commands, side),
            *("--bind", f"fd://{listener.fileno()}"),
            *("--workers", str(workers)),
            *("--config", f"python:{__package__}.{_MODULES.get(side, 'configuration')}"),
            *options,
            application.APP,
        ]
        child = children.start(command, "the server", listener=listener, env=variables)
        server = Server(child, port, workers, Path(folder))
        try:
            server.await_workers()
            yield server, children
        finally:
            # What has been measured need not end in peace, which takes stock many seconds.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)


def _command(commands: Commands, side: Side) -> list[str]:
    if side == "plus" and commands.plus_prefix != (commands.python,):
        return [*commands.plus_prefix, "--warm-up", application.WARM_UP]
    return [commands.python, "-m", "gunicorn"]


@contextlib.contextmanager
def _pidfds(pids: Sequence[int]) -> Iterator[list[int]]:
    """Yield a descriptor for each of `pids`: readable when it has ended."""
    descriptors: list[int] = []
    try:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                descriptors.append(os.pidfd_open(pid))
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _await_ends(descriptors: Sequence[int]) -> None:
    deadline = time.monotonic() + STOP_S
    for descriptor in descriptors:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([descriptor], [], [], left)[0]:
            raise MeasurementError(f"the server did not stop within {STOP_S:.0f} s")


@contextlib.contextmanager
def _sampled(pids: list[int]) -> Iterator[Callable[[], int]]:
    """Sample the memory of `pids` in the block; yields what returns the largest sum of Pss."""
    done = Event()
    peak = 0

    def sample() -> None:
        nonlocal peak
        pause_s = 0.0
        while not done.wait(pause_s):
            start = time.perf_counter()
            peak = max(peak, memory.total(pids).proportional_bytes)
            pause_s = max(_SAMPLES_S, _AT_REST * (time.perf_counter() - start))

    thread = Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield lambda: peak
    finally:
        done.set()
        thread.join()
