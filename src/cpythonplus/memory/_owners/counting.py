"""Counts descriptors and threads by kind, `atexit` callbacks and interned strings."""

import atexit
import os
import re
import sys
from _socket import AF_INET, AF_INET6, inet_ntop  # socket itself makes 900 objects
from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final

from cpythonplus._base.modules import imported
from cpythonplus._base.proc import read_bytes

# Not pathlib: it interns each part of a path, and each descriptor's number would be a new one.
# ruff: noqa: PTH115, PTH123

_PROC: Final = "/proc/self"
_SHARED: Final = "/dev/shm"  # noqa: S108  # a name
_RANDOM: Final = re.compile(r"[0-9A-Za-z]*\d[0-9A-Za-z]*|(?<=mp-)\w+|(?<=_)[a-f]{8}$")
"""The random parts of names: numbers, and the characters that multiprocessing draws."""
_DELETED: Final = " (deleted)"
_MOST_MAPS: Final = 16 << 20
_LISTENS: Final = "0A"
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv4 address in IPv6."""


def entries(folder: str) -> int:
    """Return how many files a folder has."""
    with os.scandir(folder) as found:
        return sum(1 for _ in found)


def descriptor_kinds() -> dict[str, int]:
    """Return the numbers of the process's descriptors by kind: `epoll`, `pipe`, `files in /tmp`."""
    counts: Counter[str] = Counter()
    sockets = []
    with os.scandir(f"{_PROC}/fd") as found:
        names = [each.name for each in found]
    for name in names:
        with suppress(OSError):  # closed meanwhile
            target = os.readlink(f"{_PROC}/fd/{name}")
            if target.startswith("socket:"):
                sockets.append(target.partition(":")[2].strip("[]"))
            else:
                counts[_kind(target)] += 1
    if sockets:
        peers = _peers({*sockets})
        counts.update(peers.get(inode, "socket") for inode in sockets)
    return dict(counts)


def _kind(target: str) -> str:
    sort, _, rest = target.partition(":")
    if target.startswith("/"):
        folder = target.rpartition("/")[0]
        if target.startswith("/memfd:"):
            return "memfd"
        return _shared(target) if folder == _SHARED else f"files in {folder or '/'}"
    return rest.strip("[]").replace("eventpoll", "epoll") if sort == "anon_inode" else sort


def _shared(file: str) -> str:
    """Return the kind of a file of shared memory, without the random part of its name."""
    return _RANDOM.sub("*", file.removesuffix(_DELETED))


def shared_mappings() -> dict[str, int]:
    """Return the mappings of shared memory without a file on disk, by kind."""
    counts: Counter[str] = Counter()
    for line in os.fsdecode(read_bytes(f"{_PROC}/maps", _MOST_MAPS)).splitlines():
        file = line[line.find("/") :] if "/" in line else ""
        if file.startswith((f"{_SHARED}/", "/memfd:", "/SYSV", "/dev/zero")) and " rw-s " in line:
            counts[_shared(file)] += 1
    return dict(counts)


def _peers(inodes: AbstractSet[str]) -> dict[str, str]:
    """Return the peers of these sockets by inode."""
    found: dict[str, str] = {}
    ends: dict[str, tuple[str, str, str]] = {}
    for words in _sockets("unix", 7):
        if words[6] in inodes:
            found[words[6]] = "unix socket"
    for table in ("tcp", "tcp6"):
        for words in _sockets(table, 10):
            if words[9] in inodes or words[3] == _LISTENS:
                ends[words[9]] = words[1].rpartition(":")[2], words[2], words[3]
    listening = {port for port, _, state in ends.values() if state == _LISTENS}
    for inode, (port, remote, state) in ends.items():
        if state == _LISTENS:
            found[inode] = "listening socket"
        elif port in listening:  # the peer's port is a different one for each connection
            found[inode] = f"socket accepted at port {int(port, 16)}"
        else:
            found[inode] = _peer(remote)
    return found


def _sockets(table: str, least: int) -> Iterator[list[str]]:
    """Yield the words of each line of a table of the kernel's: all sockets of the host."""
    path = f"{_PROC}/net/{table}"
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
        next(lines, None)
        for line in lines:
            words = line.split()
            if len(words) >= least:
                yield words


def _peer(remote: str) -> str:
    address, _, port = remote.rpartition(":")
    parts = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
    packed = b"".join(part.to_bytes(4, sys.byteorder) for part in parts)
    if packed.startswith(_MAPPED):
        packed = packed.removeprefix(_MAPPED)
    host = inet_ntop(AF_INET if len(packed) == 4 else AF_INET6, packed)  # noqa: PLR2004
    return f"socket to {host}:{int(port, 16)}"


def thread_kinds() -> dict[str, int]:
    """Return the threads that Python has started by the function that they began with."""
    threading = imported("threading")
    counts: Counter[str] = Counter()
    for thread in [] if threading is None else threading.enumerate():
        target = getattr(thread, "_target", None)
        name = getattr(target, "__qualname__", None)
        counts[f"{name}()" if type(name) is str else type(thread).__qualname__] += 1
    return dict(counts)


def exit_callbacks() -> int:
    """Return how many functions `atexit` is to call."""
    return atexit._ncallbacks()  # noqa: SLF001  # no public function


def interned_strings() -> int:
    """Return how many strings are interned; 0 on 3.11, which has no such count."""
    count = getattr(sys, "_getunicodeinternedsize", None)
    return 0 if count is None else int(count())
