"""The machine as the rest of the package sees it: programs, files and names, behind one class.

Functions that plan and judge take a Machine, so that tests can pass one that only records calls.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING

from cpythonplus_sites.files import FOLDER_MODE, PRIVATE_FOLDER_MODE, make_folder
from cpythonplus_sites.probing import echo, send_udp
from cpythonplus_sites.trust import weak_spot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import IO

    from cpythonplus_sites.model import Address
    from cpythonplus_sites.probing import Ping, Probe

NOT_FOUND_STATUS = 127
TIMED_OUT_STATUS = 124
RESOLVE_TIMEOUT_S = 10
"""The time limit for all names together. With two silent servers a name takes 20 s."""
MOST_BYTES = 1 << 24
"""The most bytes that are read of a file; our own files have a thousandth of it."""
PIECE_BYTES = 1 << 16

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def _without_waiting(name: str, flags: int) -> int:
    """An opener for `open`: a FIFO without a writer reads as empty."""
    return os.open(name, flags | os.O_NONBLOCK)


@dataclass(frozen=True)
class Output:
    """The result of a program.  status: 127: it is missing; 124: it timed out (as in a shell)."""

    status: int
    out: str = ""
    err: str = ""

    @property
    def reason(self) -> str:
        """One line for people: the program's last line on standard error, else its status."""
        lines = self.err.strip().splitlines()
        return lines[-1] if lines else f"status {self.status}"


class ProgramError(Exception):
    """A needed program that is missing or fails; the text is one line."""


class Machine:
    """This machine."""

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 30) -> Output:
        """Run a program to its end, in the C locale. Does not raise if the program fails.

        The output goes to files: a daemon that the program leaves behind (wireguard-go) would keep
        a pipe open until its own end. The files are in memory, as `wg show` prints keys, and as a
        full disk would truncate the output silently.
        """
        try:
            with _scratch_file() as out, _scratch_file() as err:
                done = subprocess.run(
                    list(argv),
                    input=stdin.encode(),
                    stdout=out,
                    stderr=err,
                    timeout=timeout_s,
                    check=False,
                    env=_environment(),
                )
                return Output(done.returncode, _text(out), _text(err))
        except subprocess.TimeoutExpired:
            return Output(TIMED_OUT_STATUS, err=f"{argv[0]} took more than {timeout_s:g} s")
        except OSError as error:
            return Output(NOT_FOUND_STATUS, err=f"{argv[0]}: {error.strerror}")

    def start(self, argv: Sequence[str]) -> None:
        """Start a program that continues after this one and its terminal. Raises OSError."""
        nothing = subprocess.DEVNULL
        subprocess.Popen(  # no process waits for this one
            list(argv), stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )

    def read(self, path: Path) -> str | None:
        """The text of a file, or None if it does not exist. Raises OSError for other reasons.

        Invalid bytes are kept as surrogates, so that a damaged file can be restored unchanged.
        """
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                # For settings below /proc/sys, the kernel refuses reads of megabytes.
                pieces = iter(partial(file.read, PIECE_BYTES), b"")
                data = b"".join(islice(pieces, MOST_BYTES // PIECE_BYTES + 1))
        except FileNotFoundError:
            return None
        if len(data) > MOST_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return data.decode("utf-8", "surrogateescape")

    def mode(self, path: Path) -> int | None:
        """The permission bits of a file, or None if it does not exist."""
        try:
            return stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            return None

    def exists(self, path: Path) -> bool:
        """Whether there is such a file or folder."""
        return path.exists()

    def listing(self, path: Path) -> tuple[str, ...]:
        """The names in a folder; none if it does not exist or cannot be read."""
        try:
            return tuple(sorted(each.name for each in path.iterdir()))
        except OSError:
            return ()

    def write(self, path: Path, text: str, *, mode: int) -> None:
        """Replace a file atomically, owned by this user, and make its folder if it is missing.

        Raises OSError, and SecretError if somebody else could replace the file.
        """
        from cpythonplus_sites.secrets import SecretError, write_atomically

        found = weak_spot(path.parent, sticky=True)
        if found is not None:
            raise SecretError(found)
        make_folder(path.parent, FOLDER_MODE if mode & _OTHERS else PRIVATE_FOLDER_MODE)
        write_atomically(path, text, mode=mode, keep_owner=False)

    def remove(self, path: Path) -> None:
        """Take a file away. Raises OSError."""
        path.unlink()

    def now_s(self) -> float:
        """Seconds since the epoch, as WireGuard counts handshakes."""
        return time.time()

    def monotonic_s(self) -> float:
        """Seconds since the boot, by a clock that cannot be set and that all processes share."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def echo(
        self,
        probes: Sequence[Probe],
        *,
        count: int = 3,
        interval_s: float = 0.2,
        wait_s: float = 1.0,
    ) -> list[Ping]:
        """Ping several addresses at once; see probing.echo."""
        return echo(probes, count=count, interval_s=interval_s, wait_s=wait_s)

    def send_udp(self, source: Address, target: Address, ports: Iterable[tuple[int, int]]) -> None:
        """Send an empty packet for each pair (own port, far port); see probing.send_udp."""
        send_udp(source, target, ports)

    def resolve(self, host: str) -> tuple[str, ...]:
        """The addresses of a DNS name or address, in the resolver's order; none if it fails."""
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            return ()
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    def resolve_all(
        self, hosts: Iterable[str], *, timeout_s: float = RESOLVE_TIMEOUT_S
    ) -> dict[str, tuple[str, ...]]:
        """The addresses of several hosts, looked up at once; none for a name that timed out.

        A look-up cannot be cancelled, so it runs in a thread that is not waited for after the
        timeout, and that does not keep the process alive, as one of a ThreadPoolExecutor would.
        """
        wanted = sorted(set(hosts))
        found: dict[str, tuple[str, ...]] = {}

        def look_up(host: str) -> None:
            found[host] = self.resolve(host)

        threads = [Thread(target=look_up, args=(x,), daemon=True) for x in wanted if _is_name(x)]
        for thread in threads:
            thread.start()
        for host in wanted:
            if not _is_name(host):
                look_up(host)
        end = time.monotonic() + timeout_s
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        return {host: found.get(host, ()) for host in wanted}


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return True
    return False


def _scratch_file() -> IO[bytes]:
    import os

    if hasattr(os, "memfd_create"):  # not in each build of CPython
        return os.fdopen(os.memfd_create("output"), "w+b")
    return tempfile.TemporaryFile()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="backslashreplace")


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "LC_ALL": "C"}
