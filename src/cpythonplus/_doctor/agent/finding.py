"""Facts about a process from outside: whether it can be looked at, and its socket."""

import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass

from cpythonplus._base.data import Data
from cpythonplus._base.proc import children, read_bytes, resident_bytes, stat_fields

_ELF_HEAD = 20
_PARENT = 1
_START_TIME = 19
"""Fields 4 and 22 of /proc/PID/stat; its first two are cut off."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROGRAM = re.compile(r"/(?:lib)?python(\d)\.(\d+)[^/\n]*$", re.MULTILINE)
_MODULE = re.compile(r"\.cpython-(3)(\d+)[^/\n]*$", re.MULTILINE)
_OLDEST_MINOR = 11
_TEMPORARY = "/tmp"  # noqa: S108  # the same as in agent_socket.c, which checks the owner


class Unreachable(RuntimeError):  # noqa: N818  # it names a state
    """The process cannot be looked at; the text gives the reason, in one line."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that may be looked at.

    uids: real, effective, saved, of files; inner_pid: its id in its own PID namespace; minor: of
    its Python 3, None if that cannot be seen; gids: the groups, as uids.
    """

    pid: int
    uids: tuple[int, ...]
    inner_pid: int
    minor: int | None
    gids: tuple[int, ...] = ()

    @property
    def uid(self) -> int:
        """The effective user."""
        return self.uids[1]


@dataclass(frozen=True, slots=True)
class Child(Data):
    """A process that another one started."""

    pid: int
    command: str
    rss_bytes: int


def _text(path: str) -> str:
    return read_bytes(path).decode(errors="backslashreplace")


def find(pid: int) -> Process:
    """Return the process; Unreachable if there is none, or if it is not Python."""
    status = _status(pid)
    if status.get("State", "").startswith(("Z", "X")):
        raise Unreachable(
            f"process {pid} has ended (a zombie: its parent has not waited for it yet)"
        )
    if int(status.get("Tgid", pid)) != pid:
        raise Unreachable(f"{pid} is a thread of process {status['Tgid']}: use that PID")
    uids = tuple(map(int, status["Uid"].split()))
    inner_pid = int(status.get("NSpid", str(pid)).split()[-1])
    if "VmSize" not in status:
        # An ending process has no memory before it is a zombie; kernel threads, children of 2,
        # never have.
        of_kernel = "2" in (status.get("PPid"), str(pid))
        raise Unreachable(f"process {pid} " + ("is a kernel thread" if of_kernel else "has ended"))
    _check_architecture(pid, status["Name"])
    gids = tuple(map(int, status["Gid"].split()))
    return Process(pid, uids, inner_pid, _minor_version(pid, status["Name"], uids[1]), gids)


def _status(pid: int) -> dict[str, str]:
    try:
        text = _text(f"/proc/{pid}/status")
    except (FileNotFoundError, ProcessLookupError):
        raise Unreachable(_why_unseen(pid)) from None
    except OSError as error:
        raise Unreachable(f"process {pid}: {error.strerror}") from None
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in pairs}


def _why_unseen(pid: int) -> str:
    """Return the reason why /proc has no entry: hidepid shows users only their own processes."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return f"process {pid} belongs to another user: ask as that user or as root"
    except (OSError, OverflowError):
        pass
    return f"there is no process {pid}"


def is_stopped(pid: int) -> bool:
    """Whether the process is stopped, until it gets SIGCONT or a debugger resumes it."""
    return _status(pid).get("State", "").startswith(("T", "t"))


def _check_architecture(pid: int, name: str) -> None:
    """Unreachable if its program is for another architecture than this interpreter."""
    try:
        head, own = (read_bytes(f"/proc/{who}/exe", _ELF_HEAD) for who in (pid, "self"))
    except OSError:
        return  # another check reports a file that cannot be read
    # The class (32 or 64 bits), the byte order, and the machine.
    if (head[4:6], head[18:20]) != (own[4:6], own[18:20]):
        raise Unreachable(
            f"process {pid} ({name}) runs on a different architecture from this Python"
        )


def _minor_version(pid: int, name: str, uid: int) -> int | None:
    try:
        mapped = _text(f"/proc/{pid}/maps")
    except (FileNotFoundError, ProcessLookupError):
        raise Unreachable(f"there is no process {pid}") from None
    except OSError:
        mapped = ""
    if not mapped:
        raise _refused(pid, name, uid)
    mapped = mapped.replace(" (deleted)", "")
    found = _PROGRAM.search(mapped) or _MODULE.search(mapped)
    if found is None:
        if re.search(r"/[^/\n]*python[^/\n]*$", mapped, re.MULTILINE) is None:
            raise Unreachable(f"process {pid} ({name}) is not a Python program")
        return None
    major, minor = map(int, found.groups())
    if (major, minor) < (3, _OLDEST_MINOR):
        raise Unreachable(
            f"process {pid} ({name}) runs Python {major}.{minor}; the doctor supports"
            f" 3.{_OLDEST_MINOR} and later"
        )
    return minor


def _refused(pid: int, name: str, uid: int) -> Unreachable:
    if uid != os.geteuid() and os.geteuid() != 0:
        return Unreachable(
            f"process {pid} ({name}) belongs to another user ({user_name(uid)}):"
            " run the doctor as that user or as root"
        )
    return Unreachable(
        f"process {pid} ({name}) cannot be examined: the kernel denies access to its memory"
    )


def user_name(uid: int) -> str:
    """Return the name of a user, or its number if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def socket_paths(process: Process) -> list[str]:
    """Return the possible paths of the process's socket, the likely ones first.

    The process may have changed its user since it opened the socket, or may have another root.
    """
    folders = []
    # Include root's folder: a process that started as root may have changed its user.
    for uid in dict.fromkeys([process.uid, *process.uids, os.geteuid(), 0]):
        own = os.environ.get("XDG_RUNTIME_DIR") if uid == os.geteuid() else None
        theirs = _environment(process.pid).get("XDG_RUNTIME_DIR")
        runtime = [each for each in (theirs, own, f"/run/user/{uid}") if each]
        folders += [f"{each}/cpythonplus" for each in runtime]
        folders.append(f"{_TEMPORARY}/cpythonplus-{uid}")
    names = [f"{folder}/{process.inner_pid}.sock" for folder in dict.fromkeys(folders)]
    return [*names, *(f"/proc/{process.pid}/root{name}" for name in names)]


def may_be_its(process: Process, path: str) -> bool:
    """Whether a socket may be the process's, by its folder: no other user can have put it there.

    After connecting, the kernel reports which process listens. This check comes first, because a
    link may lead to any socket of the machine, and connecting to one may have an effect.
    """
    try:
        folder, status = os.lstat(path.rpartition("/")[0]), os.lstat(path)
    except OSError:
        return False
    private = stat.S_ISDIR(folder.st_mode) and not folder.st_mode & 0o022
    trusted = folder.st_uid in {*process.uids, os.geteuid(), 0}
    return private and trusted and stat.S_ISSOCK(status.st_mode)


def why_without_socket(process: Process) -> str:
    """Return the reason why the process can have no socket, by its folders; "": it could."""
    root = f"/proc/{process.pid}/root" if elsewhere(process.pid) else ""
    runtime = _environment(process.pid).get("XDG_RUNTIME_DIR", "")
    places = [f"{root}{_TEMPORARY}/cpythonplus-{process.uid}"]
    # A link may lead to the runtime folder. A folder of another user is not used.
    if runtime.startswith("/") and not _unusable(f"{root}{runtime}", process.uid, 0o022, os.stat):
        places.insert(0, f"{root}{runtime}/cpythonplus")
    problems = [_unusable(each, process.uid, 0o077, os.lstat) for each in places]
    return "" if "" in problems else problems[0]


def elsewhere(pid: int) -> bool:
    """Whether the process has another root folder or other mounts."""
    for link in ("ns/mnt", "root"):
        try:
            theirs, own = os.stat(f"/proc/{pid}/{link}"), os.stat(f"/proc/self/{link}")  # noqa: PTH116
        except OSError:
            continue
        if (theirs.st_dev, theirs.st_ino) != (own.st_dev, own.st_ino):
            return True
    return False


def _unusable(folder: str, uid: int, forbidden: int, look: Callable[[str], os.stat_result]) -> str:
    """Return the reason why agent_socket.c does not use a folder in a process of that user."""
    try:
        status = look(folder)
    except FileNotFoundError:
        return _not_to_be_written(folder.rpartition("/")[0] or "/")
    except OSError as error:
        return f"{folder} cannot be read: {error.strerror}"
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder"
    if status.st_uid != uid:
        return f"{folder} belongs to another user ({user_name(status.st_uid)})"
    if status.st_mode & forbidden:
        return f"{folder} is accessible to other users"
    return _not_to_be_written(folder)


def _not_to_be_written(folder: str) -> str:
    try:
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{folder} cannot be used: {error.strerror}"
    return f"{folder} is on a read-only file system" if read_only else ""


def _environment(pid: int) -> dict[str, str]:
    try:
        text = read_bytes(f"/proc/{pid}/environ")
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in text.split(b"\0"))
    return {key: value for key, _, value in pairs}


def started_s(pid: int) -> float:
    """Return the start of the process, in seconds since 1970; Unreachable if there is none."""
    try:
        fields = stat_fields(pid)
    except OSError:
        raise Unreachable(f"there is no process {pid}") from None
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_START_TIME]) / _TICKS_PER_S
    return time.time() - age_s


def parent_of(pid: int) -> int:
    """Return the id of the parent, 0 if there is none."""
    try:
        return int(stat_fields(pid)[_PARENT])
    except OSError:
        return 0


def children_of(pid: int) -> list[Child]:
    """Return the processes that `pid` started and that are still its children."""
    return [Child(each, command_of(each), resident_bytes(each)) for each in children(pid)]


def command_of(pid: int) -> str:
    """Return the command line of a process, empty if there is none."""
    try:
        words = read_bytes(f"/proc/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="backslashreplace")
