"""Servers that the tests of several rooms start: any program, Redis, PostgreSQL.

What is missing skips the test with a message, or fails it where CPYTHONPLUS_NEED_SERVERS is set.
Nothing is installed into the system: a Redis that is not there is fetched into a cache folder.
"""

import fcntl
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from tests.support import child_environment

T = TypeVar("T")

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "cpythonplus-tests")
PATIENCE_S = 180.0
INSTALL_S = 280.0
LOWEST_PORT = 10_000
NEEDED = "CPYTHONPLUS_NEED_SERVERS"


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
    """Return a port of loopback that was free a moment ago, for programs that take no socket.

    It is below those that the kernel gives to sockets without one, if there is room: tests beside
    this one make thousands of connections, and one would take it before the program does.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with closing(socket.socket()) as probe, suppress(OSError):
            wanted = random.randrange(LOWEST_PORT, first) if first > 2 * LOWEST_PORT else 0
            probe.bind(("127.0.0.1", wanted))
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
        """Ask it to end, if it has not; return its status."""
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


def foreign_environment(changes: dict[str, str] | None = None) -> dict[str, str]:
    """Return a child's environment for other people's programs: without a sanitizer's library."""
    return {k: v for k, v in child_environment(changes).items() if k != "LD_PRELOAD"}


@contextmanager
def running(
    command: Sequence[str],
    *,
    folder: Path,
    env: dict[str, str] | None = None,
    log: str = "log",
    user: str | None = None,
    foreign: bool = False,
) -> Iterator[Server]:
    """Run a server; nothing of its session is left afterwards.

    user: whom it runs as; None: as this process.  foreign: other people's program.
    """
    path = folder / log
    with path.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=foreign_environment(env) if foreign else child_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
        )
    server = Server(process, path)
    try:
        yield server
    finally:
        for pid in server.processes():
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(pid, signal.SIGKILL)
        process.wait()


@dataclass
class Service:
    """A server of one's own, and where it is."""

    url: str
    server: Server


def absent(why: str) -> NoReturn:
    """Skip the test; fail it where no server may be missing."""
    if os.environ.get(NEEDED):
        pytest.fail(f"{NEEDED} is set, and {why}")
    pytest.skip(why)


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
    if os.environ.get(NEEDED):
        absent("there is no redis-server")
    folder = cached("redis", _fill_redis)
    libraries = [str(path) for path in folder.glob("usr/lib/*") if path.is_dir()]
    return str(folder / "usr/bin/redis-server"), {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@contextmanager
def redis(folder: Path) -> Iterator[Service]:
    """Run a Redis of one's own in `folder`, which keeps nothing."""
    program, environment = _redis_command()
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    command = [program, *options, "--dir", str(folder), "--daemonize", "no"]
    with running(command, folder=folder, env=environment, log="redis.log", foreign=True) as server:
        server.says("Ready to accept connections")
        yield Service(f"redis://127.0.0.1:{port}/0", server)


# ---- PostgreSQL ---------------------------------------------------------------------------------

# Nothing outlives the test, so nothing has to reach the disk.
_POSTGRES = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "120",
    "shared_buffers": "16MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    # Not every folder of Debian has a /dev/shm for all.
    "dynamic_shared_memory_type": "mmap",
    "max_parallel_workers": "0",
}

_INITDB = ("-U", "postgres", "-A", "trust", "--no-sync", "--encoding=UTF8", "--locale=C")


def _postgres_programs() -> Path:
    """Return the folder of initdb and postgres; Debian keeps them off PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += Path("/usr/lib/postgresql").glob("*/bin")
    whole = [folder for folder in folders if (folder / "postgres").exists()]
    if not whole:
        absent("there is no PostgreSQL")
    return max(whole, key=lambda folder: (folder.parent.name.zfill(4), str(folder)))


def _unprivileged() -> str | None:
    """Return the user to run PostgreSQL as, which refuses root; None: the one that this is."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in names:
            return name
    absent("PostgreSQL does not run as root, and there is no user for it")


@contextmanager
def postgres() -> Iterator[Service]:
    """Run a PostgreSQL of one's own: the user and the database `postgres`, without a password."""
    programs, user = _postgres_programs(), _unprivileged()
    # Not below pytest's folder, into which no other user can look.
    with tempfile.TemporaryDirectory(prefix="cpythonplus-postgres-") as name:
        folder = Path(name)
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        made = subprocess.run(
            [str(programs / "initdb"), "-D", str(data), *_INITDB],
            check=False,
            cwd=folder,
            user=user,
            env=foreign_environment({"LC_ALL": "C"}),
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        port = free_port()
        settings = {**_POSTGRES, "port": str(port)}
        command = [str(programs / "postgres"), "-D", str(data)]
        for setting, value in settings.items():
            command += ["-c", f"{setting}={value}"]
        # PostgreSQL writes its messages in the language of the user who starts it.
        with running(
            command, folder=folder, env={"LC_ALL": "C"}, user=user, foreign=True
        ) as server:
            server.says("ready to accept connections")
            yield Service(f"postgresql://postgres@127.0.0.1:{port}/postgres", server)
            # At once, without a last checkpoint; what is left of it the way out ends.
            server.stop(signal.SIGQUIT)


# ---- fixtures -----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One Redis for all tests of this process; each uses keys of its own."""
    with redis(tmp_path_factory.mktemp("redis")) as service:
        yield service


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Service]:
    """One PostgreSQL for all tests of this process; each uses tables of its own."""
    with postgres() as service:
        yield service
