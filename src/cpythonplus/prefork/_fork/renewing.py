"""Renewing descriptors without a peer in a worker: epoll, eventfd, timerfd, inotify, files.

A fork copies the number, not the object behind it.  A shared epoll watches the *parent's* sockets,
and wakes every worker for a connection that one of them has added.  If one worker reads from a
shared eventfd or timerfd, the others miss the event.  A shared file has one position: a worker that
has sought its record reads another one, if a second worker has sought meanwhile (an archive, a
table of records).

A new descriptor gets the state of the old one, as /proc/self/fdinfo shows it:

    epoll     its watches, each with its events and its 64 bits of data, which may be a pointer
              of a C library.  Watches are added by number, after all sockets were replaced: an
              event loop that the parent made wakes, and hears that its connections are lost
    eventfd   its count
    timerfd   the time left, and the interval
    inotify   nothing: the kernel does not show paths, and the thread that reads it is not here
    file      the same file, opened again, at the same position.  Not a file that is written at its
              end, a log for example: workers with positions of their own would overwrite each
              other's lines.  So an flock on such a file still is that of all workers

A library with a fork handler of its own (gRPC) may have made new ones under the same numbers by
now, which its threads wait for already.  Those are not touched: see `is_inherited`.

Tried: the loops of asyncio and selectors continue with such an epoll; gevent makes a new one after
each fork.  Rejected: an empty epoll, in which asyncio's loop never wakes again; a dead socket, on
which the loop raises for ever.

ctypes is used because Python has no timerfd before 3.13, no inotify, and chooses the data of an
epoll itself.  `load` imports it in the parent, so that workers share its pages.
"""

import errno
import os
import platform
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

NAMES = ("epoll", "eventfd", "timerfd", "inotify")
FILE = "file"
_TERMINAL = "pseudo-terminal"
_LINKS = {
    "anon_inode:[eventpoll]": "epoll",
    "anon_inode:[eventfd]": "eventfd",
    "anon_inode:[timerfd]": "timerfd",
    "anon_inode:inotify": "inotify",
    "/dev/ptmx": _TERMINAL,
    "/dev/pts/ptmx": _TERMINAL,
}
_KEPT_FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_SYNC | os.O_DIRECT | os.O_NOATIME
_EPOLL_CTL_ADD = 1
_SYS_KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine(), -1)
_KCMP_FILE = 0
TASKS = "/proc/self/task"
# struct epoll_event: packed on x86-64 only.
_EVENT = "=IQ" if platform.machine() == "x86_64" else "=I4xQ"

_libc: Any = None


@dataclass(frozen=True, slots=True)
class State:
    """The state of a descriptor.

    values: the lines of fdinfo.  watches: of an epoll, (number, struct epoll_event).
    """

    number: int
    kind: str
    flags: int
    values: dict[str, str]
    watches: tuple[tuple[int, bytes], ...]


def kind(link: str) -> str:
    """Return the name for a link in /proc/self/fd that `renew` knows; "" if it is another one."""
    return _LINKS.get(link.partition(" ")[0], "") or (FILE if link.startswith("/") else "")


def is_renewed(link: str, number: int) -> bool:
    """Whether `renew` knows what is behind a number; devices and folders are no files."""
    name = kind(link)
    return bool(name) and (name != FILE or stat.S_ISREG(os.fstat(number).st_mode))


def load() -> None:
    """Import ctypes; without it a dead socket replaces all kinds but eventfd."""
    global _libc  # noqa: PLW0603
    if _libc is None:
        with suppress(ImportError, OSError):
            import ctypes

            _libc = ctypes.CDLL(None, use_errno=True)


def is_inherited(number: int) -> bool | None:
    """Whether the parent has the same open file behind `number`; None if that is unknown."""
    if _libc is None:
        return None
    import ctypes

    how = _libc.syscall(_SYS_KCMP, os.getppid(), os.getpid(), _KCMP_FILE, number, number)
    if how < 0:  # forbidden, or the parent has closed the number
        return False if ctypes.get_errno() == errno.EBADF else None
    return bool(how == 0)


def read(name: str, number: int) -> State:
    """Return the state of the descriptor `number`, of kind `name`."""
    values: dict[str, str] = {}
    watches = []
    with suppress(OSError), open(f"/proc/self/fdinfo/{number}", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            first, _, rest = line.partition(":")
            values[first] = rest.strip()
            words = line.replace(":", " ").split()
            if first == "tfd" and _is_watched(int(words[1]), words):
                event = struct.pack(_EVENT, int(words[3], 16), int(words[5], 16))
                watches.append((int(words[1]), event))
    return State(number, name, int(values.get("flags", "0"), 8), values, tuple(watches))


def _is_watched(number: int, words: list[str]) -> bool:
    """Whether the epoll watches the file now behind `number`, not a copy of an earlier one."""
    # tfd 5 events 19 data 5 pos 0 ino 2f sdev 8; before Linux 4.13 without the last three
    with suppress(OSError, IndexError):
        inode = int(words[words.index("ino") + 1], 16) if "ino" in words else None
        return inode in {None, os.fstat(number).st_ino}
    return False


def renew(states: dict[int, State], dead: int) -> None:
    """Put new descriptors with the states on the numbers; `dead` if that is impossible."""
    for number, state in states.items():
        new = -1
        with suppress(OSError, KeyError, ValueError, AttributeError):
            new = _MAKE[state.kind](state)
        if new < 0 and state.kind == FILE:
            continue  # it stays shared
        os.dup2(new if new >= 0 else dead, number, inheritable=os.get_inheritable(number))
        if new >= 0:
            os.close(new)
    for number, state in states.items():
        for watched, event in state.watches if _libc is not None else ():
            _libc.epoll_ctl(number, _EPOLL_CTL_ADD, watched, event)


def _epoll(_: State) -> int:
    new: int = _libc.epoll_create1(0)
    return new


def _eventfd(state: State) -> int:
    flags = state.flags & os.O_NONBLOCK
    if state.values.get("eventfd-semaphore") == "1":
        flags |= os.EFD_SEMAPHORE
    return os.eventfd(int(state.values["eventfd-count"], 16), flags)


def _timerfd(state: State) -> int:
    new: int = _libc.timerfd_create(int(state.values["clockid"]), state.flags & os.O_NONBLOCK)
    interval, left = (
        [int(part) for part in state.values[name].strip("()").split(",")]
        for name in ("it_interval", "it_value")
    )
    if not any(left) and int(state.values["ticks"]):
        left = [0, 1]  # it has expired, and was not read
    if new >= 0:
        # A relative time, even if the timer was set to a date.
        _libc.timerfd_settime(new, 0, struct.pack("=4q", *interval, *left), None)
    return new


def _inotify(state: State) -> int:
    new: int = _libc.inotify_init1(state.flags & os.O_NONBLOCK)
    return new


def _file(state: State) -> int:
    """Return a file with a position of its own, -1 for one that is written at its end."""
    access, position = state.flags & os.O_ACCMODE, int(state.values["pos"])
    if access == os.O_WRONLY:
        return -1
    if access == os.O_RDWR and not state.flags & os.O_APPEND:
        size = os.fstat(state.number).st_size
        if 0 < size <= position:
            return -1
    new = os.open(f"/proc/self/fd/{state.number}", state.flags & _KEPT_FLAGS)
    os.lseek(new, position, os.SEEK_SET)
    return new


_MAKE = {
    "epoll": _epoll,
    "eventfd": _eventfd,
    "timerfd": _timerfd,
    "inotify": _inotify,
    FILE: _file,
}
