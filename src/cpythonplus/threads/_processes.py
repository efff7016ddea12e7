"""Waits that another process can end, and whether that process waits for this one.

The kernel tells the call in which a thread sleeps, and its arguments (`syscall` in proc(5)). They
lead to the processes that can end it: those that have the other end of a pipe or of a Unix socket,
the child whose end is waited for, those that share a semaphore. A process is stuck if each of its
threads sleeps without a time-out, and if all who can end that sleep are stuck, or are this process.
Whatever is not known may go on: a time-out, a call that is not in the table, a process of another
user.
"""

import os
import stat
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

from cpythonplus._base.proc import children, mapping_fields, read_bytes, stat_fields

# read, readv, recvfrom, recvmsg; write, writev, sendto, sendmsg; and so on.
_CALLS = {
    "x86_64": {**dict.fromkeys((0, 19, 45, 47), "read"), **dict.fromkeys((1, 20, 44, 46), "write")}
    | {61: "wait4", 247: "waitid", 202: "futex"},
    "aarch64": dict.fromkeys((63, 65, 207, 212), "read")
    | dict.fromkeys((64, 66, 206, 211), "write")
    | {260: "wait4", 95: "waitid", 98: "futex"},
}
_OWN = b"cpythonplus"  # how the kernel names them
_FUTEX_WAITS, _FUTEX_PRIVATE, _FUTEX_COMMAND = (0, 9), 128, 127
_P_ALL, _P_PID, _P_PIDFD = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Sleep:
    """One thread that sleeps until one of some processes ends that.

    kind: "pipe", "socket", "process 4711", "process" (any child), "semaphore", or "" for a lock
    within its own process.  method: "read", "write", "join", "acquire".  mark: another one as soon
    as the thread has run.
    """

    kind: str
    method: str
    enders: frozenset[int]
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """The threads of this process that wait for others, all of which wait for this one.

    sleeps: by ident of the thread.  others: what each process does.
    """

    sleeps: dict[int, Sleep]
    others: dict[int, list[Sleep]]

    def because(self, ident: int) -> str:
        """Return what the processes do that could wake this thread."""
        return ", ".join(
            f"process {pid} waits {_words(each)}"
            for pid in sorted(self.sleeps[ident].enders & self.others.keys())
            for each in [each for each in self.others[pid] if each.kind][:1]
        )


def _words(sleep: Sleep) -> str:
    if sleep.method in ("read", "write"):
        return f"to {sleep.method} {'from' if sleep.method == 'read' else 'to'} a {sleep.kind}"
    if sleep.kind == "semaphore":
        return "for a semaphore of multiprocessing"
    return f"for the end of {'a child' if sleep.kind == 'process' else sleep.kind}"


def beside(threads: dict[int, int]) -> Beside | None:
    """Return how threads of this process and others wait for each other; None if one may go on.

    threads: their numbers in the kernel, by ident.
    """
    kernel, own = _Kernel(), os.getpid()
    sleeps: dict[int, Sleep] = {}
    for ident, number in threads.items():
        sleep = kernel.sleep(own, number)
        if sleep is None or not sleep.kind:
            return None
        sleeps[ident] = sleep
    others = kernel.stuck_with(own, sleeps.values())
    if all(each.enders <= {own, *others} for each in sleeps.values()):
        return Beside(sleeps, others)
    return None


class _Kernel:
    """The processes as the kernel tells of them; each table is read at most once."""

    def __init__(self) -> None:
        self._calls = _CALLS.get(os.uname().machine, {})
        self._holders: dict[str, dict[int, int]] | None = None
        self._mappers: dict[tuple[str, int], set[int]] | None = None
        self._peers: dict[str, str] | None = None
        self._unreadable: set[int] = set()

    def stuck_with(self, own: int, sleeps: Iterable[Sleep]) -> dict[int, list[Sleep]]:
        """Return the processes that can go on only if `own` does, with what their threads do."""
        found: dict[int, list[Sleep]] = {}
        seen = {own}
        todo = {pid for each in sleeps for pid in each.enders} - seen
        while todo:
            pid = todo.pop()
            seen.add(pid)
            threads = [self.sleep(pid, number) for number in _threads(pid)]
            known = [each for each in threads if each is not None]
            if threads and len(known) == len(threads):
                found[pid] = known
                todo.update(*(each.enders for each in known))
                todo -= seen
        if any(_descends(pid, seen) for pid in self._unreadable):
            return {}  # it may have inherited an end
        while True:
            able = {own, *found}
            free = [
                pid for pid, does in found.items() if not all(each.enders <= able for each in does)
            ]
            if not free:
                return found
            for pid in free:
                del found[pid]

    def sleep(self, pid: int, number: int) -> Sleep | None:
        """Return what a thread sleeps in; None if it runs, or may be woken by somebody else."""
        folder = f"/proc/{pid}/task/{number}"
        try:
            text = read_bytes(f"{folder}/syscall").decode()
            switches = read_bytes(f"{folder}/status").partition(b"voluntary_")[2].decode()
        except OSError:
            return None
        call, *numbers = text.split()
        kind = self._calls.get(int(call)) if call.isdigit() else None
        arguments = [int(each, 16) for each in numbers]
        if kind is None:
            found = None
        elif kind == "futex":
            found = self._of_futex(arguments, pid)
        elif kind in ("read", "write"):
            found = self._of_descriptor(_link(pid, arguments[0]), kind)
        else:
            found = _of_children(kind, arguments, pid)
        return found and Sleep(found.kind, found.method, found.enders, text + switches)

    def _of_futex(self, arguments: list[int], pid: int) -> Sleep | None:
        address, operation, _, timeout = arguments[:4]
        if operation & _FUTEX_COMMAND not in _FUTEX_WAITS or timeout:
            return None
        if operation & _FUTEX_PRIVATE:
            return Sleep("", "", frozenset([pid]))
        if self._mappers is None:
            self._mappers = self._mappings()
        where = next((file for start, end, file in _files(pid) if start <= address < end), ("", 0))
        return Sleep("semaphore", "acquire", frozenset(self._mappers[where])) if where[1] else None

    def _of_descriptor(self, link: str, method: str) -> Sleep | None:
        """Return the wait for those who have the other end."""
        kind = link.partition(":")[0]
        if kind == "socket":
            self._peers = _unix_peers() if self._peers is None else self._peers
            link = self._peers.get(link, "")
        if not link or kind not in ("pipe", "socket"):
            return None
        if self._holders is None:
            self._holders = self._descriptors()
        way = stat.S_IWUSR if method == "read" else stat.S_IRUSR
        enders = (pid for pid, ways in self._holders[link].items() if ways & way)
        return Sleep(kind, method, frozenset(enders))

    def _descriptors(self) -> dict[str, dict[int, int]]:
        """Return by pipe and socket the processes that have it, and for what."""
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for pid in self._processes("fd"):
            with suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                    link = _link(pid, name)
                    if link.startswith(("pipe:", "socket:")):
                        mode = os.lstat(f"/proc/{pid}/fd/{name}").st_mode
                        found[link][pid] = found[link].get(pid, 0) | mode
        return found

    def _mappings(self) -> dict[tuple[str, int], set[int]]:
        """Return by device and inode the processes that map a file."""
        found: dict[tuple[str, int], set[int]] = defaultdict(set)
        for pid in self._processes("maps"):
            for _, _, file in _files(pid):
                found[file].add(pid)
        return found

    def _processes(self, name: str) -> Iterator[int]:
        for pid in (int(each) for each in os.listdir("/proc") if each.isdigit()):  # noqa: PTH208
            if os.access(f"/proc/{pid}/{name}", os.R_OK):
                yield pid
            else:
                self._unreadable.add(pid)


def _of_children(call: str, arguments: list[int], pid: int) -> Sleep | None:
    which = arguments[0] if call == "wait4" else arguments[1]
    child = (which & 0xFFFF_FFFF ^ 1 << 31) - (1 << 31)  # a signed number of 32 bits
    if call == "waitid":
        if arguments[0] == _P_PIDFD:
            child = _pid_of(pid, child)
        elif arguments[0] != _P_PID:
            child = -1 if arguments[0] == _P_ALL else 0
    if child > 0:
        return Sleep(f"process {child}", "join", frozenset([child]))
    return Sleep("process", "join", frozenset(children(pid))) if child == -1 else None


def _threads(pid: int) -> list[int]:
    """Return the threads of a process that are not this package's own."""
    folder = f"/proc/{pid}/task"
    with suppress(OSError):
        return [
            int(name)
            for name in os.listdir(folder)  # noqa: PTH208
            if name == str(pid) or not read_bytes(f"{folder}/{name}/comm").startswith(_OWN)
        ]
    return []


def _descends(pid: int, ancestors: set[int]) -> bool:
    with suppress(OSError):
        while pid > 1:
            if pid in ancestors:
                return True
            pid = int(stat_fields(pid)[1])
    return False


def _link(pid: int, name: int | str) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
    return ""


def _pid_of(pid: int, number: int) -> int:
    """Return the process of a descriptor of one; 0 if it is not known."""
    with suppress(OSError, ValueError):
        return int(read_bytes(f"/proc/{pid}/fdinfo/{number}").partition(b"\nPid:")[2].split()[0])
    return 0


def _files(pid: int) -> Iterator[tuple[int, int, tuple[str, int]]]:
    """Yield start, end, and the device and inode of what is mapped there."""
    with suppress(OSError):
        for line in read_bytes(f"/proc/{pid}/maps").decode("utf-8", "replace").splitlines():
            start, end, _, _, device, inode, _ = mapping_fields(line)
            yield start, end, (device, inode)


# ---- the other end of a Unix socket: sock_diag(7) -----------------------------------------------

_SOCK_DIAG_BY_FAMILY, _REQUEST_AND_DUMP, _SHOW_PEER, _PEER, _NETLINK_SOCK_DIAG = 20, 0x301, 4, 2, 4
_HEAD, _REQUEST, _ANSWER = (
    struct.Struct("=IHHII"),
    struct.Struct("=BBHIIIII"),
    struct.Struct("=BBBBIII"),
)


def _unix_peers() -> dict[str, str]:
    """Return the other end of each connected Unix socket, both as links in /proc/PID/fd."""
    # Not the module over it: programs without sockets do without that.
    import _socket as socket

    found: dict[str, str] = {}
    request = _REQUEST.pack(socket.AF_UNIX, 0, 0, 0xFFFF_FFFF, 0, _SHOW_PEER, 0, 0)
    size = _HEAD.size + len(request)
    with (
        suppress(OSError),
        closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)) as kernel,
    ):
        kernel.send(_HEAD.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST_AND_DUMP, 1, 0) + request)
        while True:
            answer = kernel.recv(1 << 16)
            while answer:
                size, kind, *_ = _HEAD.unpack_from(answer)
                if kind != _SOCK_DIAG_BY_FAMILY:  # the end, or an error
                    return found
                inode = _ANSWER.unpack_from(answer, _HEAD.size)[4]
                rest = answer[_HEAD.size + _ANSWER.size : size]
                while rest:
                    length, name, peer = struct.unpack_from("=HHI", rest)
                    if name == _PEER:
                        found[f"socket:[{inode}]"] = f"socket:[{peer}]"
                    rest = rest[length + 3 & ~3 :]
                answer = answer[size + 3 & ~3 :]
    return found
