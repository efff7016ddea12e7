"""One run of one application: a server in a folder of its own, its client, its phases."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.compat_serve import processes
from tools.compat_serve.client import Address, Client, Counts
from tools.compat_serve.sentry_sink import SentrySink

WORKERS = 2
PATIENCE_S = 30.0
"""For everything that is waited for: far more than it takes."""
LOOK_S = 0.05
EXPECTED = "on purpose"
"""What an error says that an application raises when it is told to."""

Condition = Callable[[], bool]


@dataclass(frozen=True)
class Phase:
    """What was seen in one phase; it passed when there are no complaints."""

    complaints: tuple[str, ...]
    counts: Counts
    seconds: float


@dataclass
class Run:
    """A server of two workers that is taken through a day's work."""

    folder: Path
    environment: Path
    """The virtual environment."""
    address: Address
    client: Client
    command: Sequence[str]
    settings: str
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment."""
    sink: SentrySink | None = None
    phases: dict[str, Phase] = field(default_factory=dict)
    killed: set[int] = field(default_factory=set)
    """Workers that were killed."""
    seen: set[int] = field(default_factory=set)
    """All workers."""
    masters: list[int] = field(default_factory=list)
    _complaints: list[str] = field(default_factory=list)
    _log_read: int = 0
    _process: "subprocess.Popen[bytes] | None" = None

    # ---- the server --------------------------------------------------------------------------

    def configure(self, **changes: object) -> None:
        """Write gunicorn's configuration file."""
        where = self.address
        values: dict[str, object] = {
            "bind": f"unix:{where}" if isinstance(where, Path) else f"127.0.0.1:{where}",
            "workers": WORKERS,
            "pidfile": "pid",
            "graceful_timeout": 10,
            "control_socket_disable": True,
            **changes,
        }
        lines = [f"{name} = {value!r}" for name, value in values.items()]
        text = "\n".join([*lines, self.settings, ""])
        (self.folder / "gunicorn.conf.py").write_text(text, "utf-8")

    def start(self) -> None:
        """Start the server; nothing is waited for."""
        self.folder.joinpath("tmp").mkdir()
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.masters.append(self._process.pid)

    def variables(self) -> dict[str, str]:
        """Return the environment of the server, and of programs that ask it something."""
        programs = self.environment / "bin"
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {
            "PATH": f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}",
            "VIRTUAL_ENV": str(self.environment),
            "TMPDIR": str(self.folder / "tmp"),
            processes.MARK: str(self.folder),
            **self.extra,
        }

    def ask(self, program: str, *words: str) -> str:
        """Run a Python program in the environment and in the folder; what it prints."""
        done = subprocess.run(
            [str(self.environment / "bin" / "python"), "-c", program, *words],
            cwd=self.folder,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[-1]
        return done.stdout.strip()

    @property
    def log(self) -> Path:
        """What the server has written."""
        return self.folder / "log"

    @property
    def master(self) -> int:
        """The master that is in charge."""
        return self.masters[-1]

    def pid_in(self, name: str) -> int:
        """Return the pid that a file has; 0 when there is none."""
        try:
            return int((self.folder / name).read_text("ascii"))
        except (OSError, ValueError):
            return 0

    def workers(self) -> set[int]:
        """Return the workers of the master."""
        found = processes.children(self.master) - {self.pid_in("pid.2")}
        self.seen |= found
        return found

    def status(self) -> int | None:
        """Return the exit status of the master; None while it runs."""
        if self._process is not None and self.master == self._process.pid:
            return self._process.poll()
        return processes.status_of(self.master)

    def signal(self, number: int) -> None:
        """Send the master a signal."""
        os.kill(self.master, number)

    def kill_what_is_left(self) -> set[int]:
        """Kill all processes of the run, and return which there were."""
        left = processes.of_run(str(self.folder))
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left

    # ---- phases ------------------------------------------------------------------------------

    def complain(self, text: str) -> None:
        """Let the phase not pass."""
        if text not in self._complaints:
            self._complaints.append(text)

    def until(self, what: str, condition: Condition) -> bool:
        """Wait for a condition while the master runs; complain when it does not come true."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if not processes.alive(self.master):
                self.complain(f"the master ended with {self.status()}, waiting for {what}")
                return False
            if time.monotonic() > end:
                self.complain(f"waited {PATIENCE_S:g} s in vain for {what}")
                return False
            time.sleep(LOOK_S)
        return True

    def serving(self, count: int = WORKERS) -> bool:
        """Wait until there are `count` workers and each of them has answered."""
        self.client.forget()

        def all_answer() -> bool:
            workers = self.workers()
            return len(workers) == count and workers <= self.client.answered()

        return self.until(f"answers of {count} workers", all_answer)

    def phase(self, name: str, work: Callable[[], None], *, allowed: int = 0) -> bool:
        """Go through one phase and note what was seen; whether the server may be used further.

        allowed: errors that the client may have.
        """
        begin = time.monotonic()
        work()
        counts = self.client.take()
        if counts.errors.total() > allowed:
            kinds = (f"{count} x {kind}" for kind, count in counts.errors.items())
            self.complain(f"errors of the client: {', '.join(kinds)}")
        if counts.refused and self.phases:
            self.complain(f"{counts.refused} connections refused")
        self._read_log()
        seconds = round(time.monotonic() - begin, 2)
        self.phases[name] = Phase(tuple(self._complaints), counts, seconds)
        self._complaints.clear()
        return processes.alive(self.master)

    def _read_log(self) -> None:
        text = self.log.read_text("utf-8", "replace")
        new, self._log_read = text[self._log_read :], len(text)
        for after in new.split("Traceback (most recent call last)")[1:]:
            lines = after.splitlines()[1:]
            said = next((line for line in lines if line and not line.startswith((" ", "["))), "?")
            if EXPECTED not in said:
                self.complain(f"a traceback in the log: {said}")
        for line in new.splitlines():
            if "[CRITICAL]" in line:
                self.complain(f"in the log: {line.partition('[CRITICAL] ')[2]}")


def fresh_folder(folder: Path, files: Sequence[tuple[Path, str]]) -> None:
    """Make an empty folder with copies of files under other names."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for source, name in files:
        shutil.copyfile(source, folder / name)
