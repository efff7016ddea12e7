"""Starts the child processes of a benchmark and makes sure that each one ends.

Every child is in a session of its own, so a Ctrl-C at the terminal reaches only the benchmark,
which then ends its children one by one, by process id. Each worker also arms `signal.alarm`
(see `worker.begin`), so that it ends by itself should the benchmark be killed outright.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from benchmarks.common.errors import MeasurementError
from benchmarks.common.sides import Side

ROOT = Path(__file__).resolve().parents[2]
"""Of the checkout: what the children import `benchmarks` and `examples` from."""
GRACE_S = 5.0
"""How long a child that was asked to end may take before it is killed."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The command lines that make a Python program run stock and plus."""

    python: str
    plus_prefix: tuple[str, ...]

    @classmethod
    def of(cls, python: str, plus_prefix: Sequence[str] | None = None) -> Commands:
        """Return the commands of one interpreter for both sides."""
        if plus_prefix is None:
            plus_prefix = (python, "-m", "cpythonplus", "run")
        return cls(python, tuple(plus_prefix))

    def prefix(self, side: Side) -> list[str]:
        """Return what stands before `script.py`, `-m module` or `-c code`."""
        match side:
            case "plus" | "scheduled":
                return list(self.plus_prefix)
            case "threads-only":
                return [*self.plus_prefix, "--no-gil"]
            case _:
                return [self.python]


def environment() -> dict[str, str]:
    """Return the environment of all children, stock and plus alike."""
    env = dict(os.environ)
    # Were the benchmark itself run under `cpythonplus run`, the stock side would inherit it.
    env.pop("CPYTHONPLUS_RUN", None)
    # The same hash seed on both sides: dict and set layouts must not differ by chance.
    env["PYTHONHASHSEED"] = "0"
    env["PYTHONUNBUFFERED"] = "1"
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), env.get("PYTHONPATH"))))
    return env


def loopback_listener() -> socket.socket:
    """Return a listening TCP socket on loopback, with a port that the kernel chose."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", 0))
        listener.listen(256)
    except OSError:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _signals_later() -> Iterator[None]:
    """Put off the reaction to SIGINT and SIGTERM until the end of the block.

    An exception between the fork and the note that there is a child would leave it behind, and so
    would a second Ctrl-C while the children are being ended. Blocking the signals instead would
    block them in the child, too: it inherits the mask.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # nothing is raised in other threads
        return
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda n, _: came.append(n)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(came[0])


def _wait_for_exit(pid: int, timeout: float) -> bool:
    """Wait at most `timeout` seconds for the child `pid` to end; leaves its status to be read.

    Popen.wait with a time-out polls, with sleeps of up to 50 ms: useless for timing start-ups.
    """
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select.select([descriptor], [], [], timeout)[0])
    finally:
        os.close(descriptor)


class Child:
    """One running child process and the file that takes its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: IO[bytes], what: str) -> None:
        """Wrap `process`; `what` names it in messages."""
        self.process = process
        self._stderr = stderr
        self._what = what

    def last_words(self) -> str:
        """Return the last line that the child wrote to standard error, or nothing."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def wait(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the child to end well.

        Raises MeasurementError when it takes longer or ends with another status than 0.
        """
        if self.process.poll() is None and not _wait_for_exit(self.process.pid, timeout):
            raise MeasurementError(f"{self._what} took longer than {timeout:.0f} s")
        if status := self.process.wait():
            raise MeasurementError(self._obituary(status))

    def check(self) -> None:
        """Raise MeasurementError if the child has already ended, whatever its status."""
        status = self.process.poll()
        if status is not None:
            raise MeasurementError(self._obituary(status))

    def _obituary(self, status: int) -> str:
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        words = self.last_words()
        return f"{self._what} ended with {how}" + (f": {words}" if words else "")

    def end(self) -> None:
        """End the child and what it started; returns when it is gone."""
        if self.process.poll() is None:
            self.process.terminate()
            _wait_for_exit(self.process.pid, GRACE_S)
        # The child leads its own session: its process group is its own, even when it is gone.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._stderr.close()


class Children:
    """All children of one measurement; leaving the `with` block ends those still there."""

    def __init__(self) -> None:
        """Make a temporary folder for results."""
        self._children: list[Child] = []
        self._folder = tempfile.TemporaryDirectory(prefix="cpythonplus-bench-")
        self._results = 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End what still runs, last started first, and remove the folder."""
        with _signals_later():
            while self._children:
                self._children.pop().end()
            self._folder.cleanup()

    def start(
        self,
        command: Sequence[str],
        what: str,
        *,
        listener: socket.socket | None = None,
        cpu: int | None = None,
        env: dict[str, str] | None = None,
    ) -> Child:
        """Start `command`.

        `what` names it in messages. `listener` is passed on and closed here. With `cpu` the child
        is on that one core from its first instruction, as under taskset. `env` is added to
        `environment()`. Raises MeasurementError if it can't be started.
        """
        with _signals_later():
            child = self._start(command, what, listener, cpu, environment() | (env or {}))
            self._children.append(child)
        return child

    @staticmethod
    def _start(
        command: Sequence[str],
        what: str,
        listener: socket.socket | None,
        cpu: int | None,
        env: dict[str, str],
    ) -> Child:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by Child.end
        before = os.sched_getaffinity(0)
        try:
            if cpu is not None:
                # The calling thread's own mask is what a new process inherits; set for the
                # moment of the fork, no code has to run between fork and exec.
                os.sched_setaffinity(0, {cpu})
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=env,
                start_new_session=True,
                pass_fds=() if listener is None else (listener.fileno(),),
            )
        except OSError as error:
            stderr.close()
            raise MeasurementError(f"cannot start {what}: {error}") from error
        finally:
            os.sched_setaffinity(0, before)
            if listener is not None:
                listener.close()
        return Child(process, stderr, what)

    def worker(
        self,
        prefix: Sequence[str],
        script: Path,
        parameters: dict[str, object],
        *,
        limit_s: float,
        listener: socket.socket | None = None,
        cpu: int | None = None,
        env: dict[str, str] | None = None,
    ) -> Worker:
        """Start the worker `script`, which gets `parameters` and ends itself after `limit_s`."""
        self._results += 1
        result = Path(self._folder.name) / f"result-{self._results}.json"
        full: dict[str, object] = {**parameters, "limit_s": limit_s, "result": str(result)}
        if listener is not None:
            full["fd"] = listener.fileno()
        what = f"{script.parent.name}/{script.name}"
        command = [*prefix, str(script), json.dumps(full)]
        child = self.start(command, what, listener=listener, cpu=cpu, env=env)
        return Worker(child, result, limit_s)


@dataclass(frozen=True, slots=True)
class Worker:
    """A child that leaves a JSON object behind."""

    child: Child
    result_file: Path
    limit_s: float

    def result(self) -> dict[str, Any]:
        """Wait for the worker and return what it measured. Raises MeasurementError."""
        # Its own alarm comes first and says more: the signal's name instead of a time-out.
        self.child.wait(self.limit_s + GRACE_S)
        try:
            found = json.loads(self.result_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise MeasurementError(f"{self.result_file.name} is not readable: {error}") from error
        if not isinstance(found, dict):
            raise MeasurementError(f"{self.result_file.name} holds no JSON object")
        return found

    def result_from(self, server: Child) -> dict[str, Any]:
        """Do as `result`, for a client of `server`. Raises MeasurementError.

        When the server is gone, its own last words say more than the client's.
        """
        try:
            return self.result()
        except MeasurementError:
            server.check()
            raise


def timed_run(command: Sequence[str], timeout: float) -> int:
    """Run `command` to its end and return how long it took, in nanoseconds.

    Raises MeasurementError when it fails or takes longer than `timeout` seconds.
    """
    with Children() as children:
        start = time.perf_counter_ns()
        child = children.start(command, " ".join(command[:5]))
        child.wait(timeout)
        return time.perf_counter_ns() - start
