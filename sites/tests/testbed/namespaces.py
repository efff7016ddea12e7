"""Machines of a test: network, processes and configuration of their own, in Linux namespaces.

A machine lives as long as its first process, which ends when the pipe to it is closed: by `stop`,
or by the kernel when the test's process dies, however it dies. With the first process the kernel
ends every other one in the machine, and with the last one its network and its mounts. So a killed
test leaves nothing behind, and there is nothing that a later one would have to look for. Names
under /run/netns, and a reaper that goes by them, were rejected for that: they outlive a SIGKILL.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import child_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

NEEDED = "CPYTHONPLUS_NEED_SITES"
PROGRAMS = (
    "ip",
    "nft",
    "nsenter",
    "ping",
    "ssh",
    "sshd",
    "unshare",
    "wg",
    "wg-quick",
    "wireguard-go",
)
TIMEOUT_S = 60
POLL_S = 0.05

# The first process of a machine. It has a /run of its own, in which WireGuard's sockets are, and an
# /etc that begins as a copy, and a /dev/net/tun that everybody may open, as udev makes it. Children
# that lost their parents are waited for, so that a daemon that was killed is gone and not a zombie.
FIRST = """\
set -eu
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/etc
cp -a /etc/. /run/etc
mount --bind /run/etc /etc
if [ -c /dev/net/tun ]; then
    mknod -m 0666 /run/tun c 10 200
    mount --bind /run/tun /dev/net/tun
fi
ip link set lo up
exec "$1" -ISc 'import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.write(1, b"ready")
os.read(0, 1)' "$2"
"""


def require() -> None:
    """Skip the test where it cannot run; fail where CPYTHONPLUS_NEED_SITES says that it has to."""
    missing = _missing()
    if not missing:
        return
    if os.environ.get(NEEDED):
        pytest.fail(f"{NEEDED} is set, and {missing}")
    pytest.skip(missing)


def _missing() -> str:
    """What is not to be had here, or nothing."""
    if os.geteuid() != 0:
        return "namespaces need root"
    programs = [name for name in PROGRAMS if program(name) is None]
    if programs:
        return f"there is no {', '.join(programs)}"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    try:
        with Machine("probe") as probe:
            done = probe.try_run("ip", "tuntap", "add", "dev", "tun0", "mode", "tun")
            return "" if done.returncode == 0 else f"tun devices are not to be had: {done.stderr}"
    except (OSError, RuntimeError) as error:
        return f"namespaces are not to be had: {error}"


def program(name: str) -> str | None:
    """Where a program is, also where only root's PATH has it."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin")


def wait_until(
    is_so: Callable[[], bool], what: str, *, timeout: float = TIMEOUT_S, poll_s: float = POLL_S
) -> float:
    """Poll until it is so; return how many seconds that took. Fails the test after `timeout`."""
    begin = time.monotonic()
    while not is_so():
        if time.monotonic() - begin > timeout:
            pytest.fail(f"not within {timeout:g} s: {what}")
        time.sleep(poll_s)
    return time.monotonic() - begin


class Process:
    """A program that goes on running in a machine; what it prints is in the file `output`."""

    def __init__(self, entered: subprocess.Popen[bytes], output: Path) -> None:
        self._entered = entered
        self.output = output

    def text(self) -> str:
        """What it has printed so far, without a line that is not yet whole."""
        printed = self.output.read_text("utf-8", "replace")
        return printed[: printed.rfind("\n") + 1]

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._entered.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program itself, not to what entered the machine."""
        for pid in _children(self._entered.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self) -> None:
        """End it and wait for its end."""
        self.signal(signal.SIGKILL)
        self._entered.wait(TIMEOUT_S)


class Machine:
    """Network, processes, /etc and /run of its own; the rest of the files are the real machine's.

    Use it as a context manager.
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.name = name
        self.folder = folder
        self._started = 0
        self.environment: dict[str, str] = {}
        self._stack = ExitStack()
        self._unshare: subprocess.Popen[bytes] | None = None
        self.pid = 0

    def __enter__(self) -> Self:
        first = ["/bin/sh", "-c", FIRST, "sh", sys.executable]
        command = ["unshare", "--net", "--mount", f"--propagation={_propagation()}", "--pid"]
        command += ["--fork", "--kill-child", "--mount-proc", *first, f"cpp-sites-{self.name}"]
        self._unshare = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._unshare.stdout is not None
        if self._unshare.stdout.read(len(b"ready")) != b"ready":
            self._unshare.kill()
            raise RuntimeError(self._unshare.communicate()[1].decode().strip())
        (self.pid,) = _children(self._unshare.pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End every process of it, and with them its network. Stopping twice is harmless."""
        if self._unshare is not None:
            self._unshare.kill()  # and with it the first process, for --kill-child
            self._unshare.communicate()
            self._stack.close()

    def _enter(self, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        # The folder is gone into at the end: entering the mounts sets it to their root.
        inside = ["env", f"--chdir={self.folder or '/'}", *(f"{k}={v}" for k, v in env.items())]
        enter = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--root"]
        return [*enter, *inside, *argv]

    def try_run(
        self,
        *argv: str | Path,
        stdin: str = "",
        timeout: float = TIMEOUT_S,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in here to its end, whatever that is."""
        return subprocess.run(
            self._enter([str(word) for word in argv], {**self.environment, **(env or {})}),
            check=False,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=_environment(),
        )

    def run(self, *argv: str | Path, stdin: str = "", timeout: float = TIMEOUT_S) -> str:
        """Run a program in here and return what it printed. Fails the test where it fails."""
        done = self.try_run(*argv, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            words = " ".join(map(str, argv))
            pytest.fail(
                f"{self.name}: {words}: status {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def enter_network(self, *argv: str) -> None:
        """Run a program in this machine's network, but among the real machine's processes."""
        subprocess.run(["nsenter", f"--target={self.pid}", "--net", *argv], check=True)

    def start(self, *argv: str | Path) -> Process:
        """Start a program in here, which ends with the machine at the latest."""
        assert self.folder is not None
        self._started += 1
        path = self.folder / f"{self.name}-{self._started}.out"
        output = self._stack.enter_context(path.open("wb"))
        entered = subprocess.Popen(
            self._enter([str(word) for word in argv], self.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(),
        )
        self._stack.callback(entered.wait)
        return Process(entered, path)

    def write(self, path: str | Path, text: str, *, mode: int = 0o644) -> None:
        """Write a file as this machine sees it."""
        script = 'umask 077 && mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"'
        self.run("sh", "-c", script, "sh", path, f"{mode:o}", stdin=text)

    def read(self, path: str | Path) -> str:
        """The text of a file as this machine sees it."""
        return self.run("cat", path)

    def pids(self, name: str) -> list[int]:
        """The processes of this machine called `name`, by their numbers in here."""
        return [int(pid) for pid in self.try_run("pgrep", "-x", name).stdout.split()]

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the processes called `name` of this machine. Fails where there is none.

        Returns when they are gone, where the signal is one that nothing survives; a supervisor may
        have started others by then.
        """
        before = set(self.pids(name))
        self.run("pkill", f"-{number.value}", "-x", name)
        if number == signal.SIGKILL:
            wait_until(lambda: not before & set(self.pids(name)), f"the end of {name}")


def _environment() -> dict[str, str]:
    """This one, with root's PATH, and without what a test runner puts into it."""
    found = child_environment({"LC_ALL": "C"})
    return {**found, "PATH": f"{found.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"}


def _children(pid: int) -> Iterator[int]:
    with suppress(FileNotFoundError):
        for word in Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split():
            yield int(word)


def _propagation() -> str:
    """How mounts of a machine are kept to itself.

    In a chroot whose root is not a mount this cannot be asked for; there the mounts around it have
    to be private already.
    """
    mounts = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    if any(line.split()[4] == "/" for line in mounts):
        return "private"
    if any("shared:" in line.partition(" - ")[0] for line in mounts):
        raise RuntimeError("mounts are shared here; it needs a mount namespace of its own")
    return "unchanged"
