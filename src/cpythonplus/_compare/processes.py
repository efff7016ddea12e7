"""Starts a program in a session of its own, measures it, and makes sure that it ends."""

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from cpythonplus._base.proc import tree_pss_bytes
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.signals import held

GRACE_S = 5.0
"""The time for a program to end before it is killed."""
SHORTEST_INTERVAL_S = 0.02
SHARE_OF_SAMPLING = 0.05
"""Part of the time that reading the memory may take: it holds up the program's page faults."""
_LAST_LINES = 5
_LAST_BYTES = 5000


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program; its usage includes the children that were waited for."""

    status: int
    """As subprocess has it: -15 for SIGTERM."""
    wall_s: float
    cpu_s: float


class Program:
    """A running program; see `started`."""

    def __init__(self, command: Sequence[str], *, stdout: bool) -> None:
        """Start it. stdout: keep standard output, as standard error is kept; else drop it."""
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `end`
        environment = dict(os.environ)
        environment.pop("CPYTHONPLUS_RUN", None)  # of a `cpythonplus run` around this
        self._began = time.perf_counter()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output if stdout else subprocess.DEVNULL,
                stderr=self._output,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._output.close()
            raise ComparisonError(f"cannot start {command[0]!r}: {error.strerror}") from None
        self.pid = self._process.pid
        self._ended: Ended | None = None

    def output(self) -> bytes:
        """Return the output so far."""
        descriptor = self._output.fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def last_words(self) -> str:
        """Return the last lines of the output, ` / ` between them."""
        descriptor = self._output.fileno()
        begin = max(0, os.fstat(descriptor).st_size - _LAST_BYTES)
        text = os.pread(descriptor, _LAST_BYTES, begin).decode(errors="backslashreplace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " / ".join(lines[-_LAST_LINES:]) or "it printed nothing"

    def failure(self, side: str) -> ComparisonError:
        """Return the error for an unexpected end."""
        status = self.wait().status
        return ComparisonError(f"{side} ended with status {status}: {self.last_words()}")

    def has_ended(self) -> bool:
        """Whether the process has ended, without waiting."""
        return self._ended is not None or self._wait_until(0)

    def wait(self) -> Ended:
        """Wait for the process's end. Processes that are left in its process group are killed."""
        if self._ended is None:
            # Reap the process only below: until then no other process can get its PID or process
            # group.
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            now = time.perf_counter()
            with held():
                self._signal_group(signal.SIGKILL)
                _, status, usage = os.wait4(self.pid, 0)
                self._process.returncode = os.waitstatus_to_exitcode(status)
                cpu_s = usage.ru_utime + usage.ru_stime
                self._ended = Ended(self._process.returncode, now - self._began, cpu_s)
        return self._ended

    def stop(self, limit_s: float) -> float | None:
        """Ask the first process alone to end (SIGTERM); return the seconds that it took.

        None if it did not end within `limit_s`; then it is killed.
        """
        began = time.perf_counter()
        os.kill(self.pid, signal.SIGTERM)
        in_time = self._wait_until(limit_s)
        took_s = time.perf_counter() - began
        if not in_time:
            self._signal_group(signal.SIGKILL)
        self.wait()
        return took_s if in_time else None

    def end(self) -> None:
        """End the program, and all of its process group, if it still runs."""
        try:
            if self._ended is None:
                self._signal_group(signal.SIGTERM)
                if not self._wait_until(GRACE_S):
                    self._signal_group(signal.SIGKILL)
                self.wait()
        finally:
            self._output.close()

    def _wait_until(self, limit_s: float) -> bool:
        descriptor = os.pidfd_open(self.pid)
        try:
            return bool(select.select([descriptor], [], [], limit_s)[0])
        finally:
            os.close(descriptor)

    def _signal_group(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


@contextmanager
def started(command: Sequence[str], *, stdout: bool = False) -> Iterator[Program]:
    """Run `command` for the length of the block. Raises ComparisonError if it cannot be started.

    Its standard input is empty; its output is kept for messages (see `Program`).
    """
    program = None
    try:
        with held():
            program = Program(command, stdout=stdout)
        yield program
    finally:
        if program is not None:
            with held():
                program.end()


class PeakMemory:
    """Samples the memory of a process tree in a thread, for the length of a `with` block.

    It sums Pss, the only measure whose sum over processes is the memory that they use together.
    Rejected: `ru_maxrss`, which is that of the largest process alone, counts shared pages whole,
    and begins with the value of this process at the fork. A peak between two samples is missed.
    """

    def __init__(self, pid: int) -> None:
        """Prepare for a process and its descendants."""
        self.peak_bytes = 0
        """0: it ended before the first sample."""
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        interval_s = SHORTEST_INTERVAL_S
        while not self._done.wait(interval_s):
            began = time.perf_counter()
            self.peak_bytes = max(self.peak_bytes, tree_pss_bytes(self._pid))
            took_s = time.perf_counter() - began
            interval_s = max(SHORTEST_INTERVAL_S, took_s / SHARE_OF_SAMPLING)
