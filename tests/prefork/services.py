"""Servers that the tests start: programs, Python packages and Redis, kept in a cache folder.

What cannot be installed skips the test with a message.  Nothing of it is installed into the system
or into the interpreter that runs the tests.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from tests.support import child_environment

T = TypeVar("T")

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "cpythonplus-tests")
PATIENCE_S = 60.0
INSTALL_S = 280.0
PYTHON_TAG = sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag


def until(what: str, found: Callable[[], T | None], *, timeout_s: float = PATIENCE_S) -> T:
    """Return what `found` returns once it is true; fail after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        value = found()
        if value:
            return value
        if time.monotonic() > end:
            pytest.fail(f"waited {timeout_s:g} s in vain: {what}")
        time.sleep(0.02)


def free_port() -> int:
    """Return a port of loopback that was free a moment ago, for programs that take no socket."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ---- installing ---------------------------------------------------------------------------------


def cached(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache, filled once, also by tests in several processes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / name
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            half = CACHE / f"{name}.half"
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            fill(half)
            half.rename(folder)
    return folder


def install(command: Sequence[str], *, why: str, folder: Path | None = None) -> None:
    """Run a command of an installation; skip the test when it fails."""
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            env=child_environment({"PYTHONPATH": ""}),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{why}: {error}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        pytest.skip(f"{why}: {lines[-1]}")


def packages(name: str, *requirements: str, needs: str) -> list[str]:
    """Return the folders for PYTHONPATH that have `requirements`: none if `needs` is importable."""
    if importlib.util.find_spec(needs) is not None:
        return []

    def fill(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        install(
            [*pip, "install", "--target", str(folder), *requirements],
            why=f"{name} cannot be installed",
        )

    return [str(cached(f"{name}-{PYTHON_TAG}", fill))]


# ---- programs -----------------------------------------------------------------------------------


@dataclass
class Server:
    """A server that runs in a session of its own, and writes into a file."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def until(self, what: str, found: Callable[[], T | None]) -> T:
        """Wait for something while the server runs; its end, and its output, are a failure."""

        def look() -> T | None:
            if self.process.poll() is not None:
                pytest.fail(f"it ended with {self.process.returncode}\n{self.text()}")
            return found()

        try:
            return until(what, look)
        except pytest.fail.Exception as failure:
            raise pytest.fail.Exception(f"{failure}\n{self.text()}") from None

    def says(self, text: str) -> None:
        self.until(f"the line {text!r}", lambda: text in self.text())

    def processes(self) -> set[int]:
        """Return the pids of its session that still run."""
        return {pid for pid, session in sessions() if session == self.process.pid}

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; return its status."""
        self.process.send_signal(number)
        until("its end", lambda: self.process.poll() is not None)
        return int(self.process.returncode)


def sessions() -> Iterator[tuple[int, int]]:
    """Yield the pid and the session of all processes but zombies."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            yield int(folder.name), int(fields[3])


@contextmanager
def running(
    command: Sequence[str], *, folder: Path, env: dict[str, str] | None = None, log: str = "log"
) -> Iterator[Server]:
    """Run a server; nothing of its session is left afterwards."""
    path = folder / log
    with path.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=child_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(process, path)
    try:
        yield server
    finally:
        for pid in server.processes():
            os.kill(pid, signal.SIGKILL)
        process.wait()


def python_path(*folders: str) -> dict[str, str]:
    """Return the environment's PYTHONPATH with `folders` behind what is there."""
    parts = [os.environ.get("PYTHONPATH", ""), *folders]
    return {"PYTHONPATH": os.pathsep.join(filter(None, parts))}


# ---- Redis --------------------------------------------------------------------------------------

_DEBIAN = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")


def _fill_redis(folder: Path) -> None:
    why = "redis-server is not there, and Debian's packages cannot be had"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip(why)
    install(["apt-get", "-q", "download", *_DEBIAN], why=why, folder=folder)
    for package in folder.glob("*.deb"):
        install(["dpkg-deb", "-x", str(package), str(folder)], why=why)
        package.unlink()


def _redis_command() -> tuple[str, dict[str, str]]:
    """Return the program, and what it needs in its environment."""
    found = shutil.which("redis-server")
    if found is not None:
        return found, {}
    folder = cached("redis", _fill_redis)
    libraries = [str(path) for path in folder.glob("usr/lib/*") if path.is_dir()]
    return str(folder / "usr/bin/redis-server"), {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """Run a Redis of one's own, which keeps nothing; the value is its URL."""
    program, environment = _redis_command()
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    # A wish for a sanitizer's library is not meant for other people's programs.
    command = [program, *options, "--dir", str(folder), "--daemonize", "no"]
    with running(command, folder=folder, env=environment, log="redis.log") as server:
        server.says("Ready to accept connections")
        yield f"redis://127.0.0.1:{port}/0"
        server.stop()


class Client:
    """A client of a server with workers: each question is a process of its own."""

    def __init__(self, server: Server, folder: Path, env: dict[str, str], prelude: str) -> None:
        self.server = server
        self._folder = folder
        self._env = env
        self._prelude = dedent(prelude)

    def ask(self, code: str) -> Any:  # noqa: ANN401  # JSON
        """Run the prelude and `code`, and return what they have put into `answer`."""
        program = f"{self._prelude}\n{dedent(code)}\nprint(json.dumps(answer))\n"
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=False,
            cwd=self._folder,
            env=child_environment(self._env),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr + self.server.text()
        return json.loads(done.stdout.splitlines()[-1])

    def ends(self) -> None:
        """Stopped, it leaves nothing behind."""
        assert self.server.stop() == 0, self.server.text()
        assert self.server.processes() == set()
