"""Cutting the parent's connections in each worker, so that no two processes use one.

A forked worker inherits its parent's descriptors.  Suppose a pool's connection is among them: all
workers write to one stream, and each reads answers that belong to another.  So nothing may be sent
on it, not even a farewell, and the pool must see that the connection is lost.

    parent   begin   remember what is open: it is not cut
             look    note the new descriptors, and what opened them
             tell    one line in the log for each peer
    worker   cut     right after the fork, while there is one thread

`cut` replaces each descriptor by dup2.  A socket object, a TLS session or a C library keeps its
number, and may close it without harm.

    connected stream sockets           a dead socket: reading gives the end of the stream, writing
                                       fails with EPIPE, nothing blocks.  Also while they connect
    connected datagram sockets         a new socket to the same peer.  There is no stream to break,
                                       and a log or statsd continues
    non-blocking pairs inside of this  a new pair.  Such a pair only wakes its own process (asyncio,
    process                            kafka, `signal.set_wakeup_fd`); a dead one would wake it for
                                       ever
    other pairs                        a dead socket: a helper process may have the other end too
    the pipes of a `subprocess.Popen`  a dead socket, if both its input and its output are pipes: so
                                       programs talk with a helper process.  Likewise
                                       pseudo-terminals
    epoll, eventfd, timerfd, inotify,  a new one with the same state: see `renewing`
    files

Left alone are descriptors that were open at `begin`, sockets that listen or are not connected (the
server's own), netlink sockets, other pipes, and signalfd, which shows each process its own signals.
Programs share pipes on purpose: with loggers, with multiprocessing's queues.

The inode identifies a socket.  If another thread closes a number and opens it again, that is a
different socket.  epoll and the like have one inode together: there the number identifies.

Three numbers are kept from the beginning: the dead socket, its other end, and a copy of that.  The
latter two are closed first, so that `cut` works when the limit of descriptors is reached.

Rejected: closing the descriptors, for the next open would take the number, and the pool would write
there; shutdown(), which ends the parent's connection; an unconnected TCP socket as the dead one,
whose ENOTCONN clients do not take for a lost connection.
"""

import _socket
import errno
import fcntl
import os
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cpythonplus.prefork._fork import pools, renewing

_FOLDER = "/proc/self/fd"
_SOCKET = "socket:["
_PIPE = "pipe:["
_STREAMS = frozenset({socket.SOCK_STREAM, socket.SOCK_SEQPACKET})
_TCP_CONNECTING = 2  # TCP_SYN_SENT
_WAKING = "pair of sockets that wakes"
_QUIET = {*renewing.NAMES, _WAKING}


@dataclass(slots=True)
class _Found:
    """A descriptor that was opened after `begin`.

    origin: the step that opened it. text: its name in the log; empty if it is not logged.
    """

    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """A connected socket.  peer: as getpeername; None while it is being connected."""

    family: int
    kind: int
    proto: int
    peer: Any
    unnamed: bool

    @property
    def is_stream(self) -> bool:
        return self.kind in _STREAMS

    def __str__(self) -> str:
        if self.family == socket.AF_UNIX:
            if isinstance(self.peer, bytes):  # abstract
                return "Unix socket @" + self.peer[1:].decode(errors="replace")
            return f"Unix socket {self.peer}" if self.peer else "pair of Unix sockets"
        kind = "TCP" if self.is_stream else "UDP"
        if self.peer is None:
            return f"{kind}, not connected yet"
        if self.family == socket.AF_INET:
            return "{} {}:{}".format(kind, *self.peer)
        if self.family == socket.AF_INET6:
            return "{} [{}]:{}".format(kind, *self.peer[:2])
        return f"socket {self.peer}"


@dataclass(slots=True)
class Connections:
    """The descriptors that a parent has opened since `begin`; the copy in a worker cuts them.

    whole: cut also descriptors that were opened after the last `look`, up to the fork. mine: the
    descriptor of a socket that the next worker is to have; -1 for none.
    """

    whole: bool = False
    mine: int = -1
    _pid: int = 0
    _before: frozenset[str] | None = None
    _first: frozenset[str] = frozenset()
    """The descriptors at the first `begin`."""
    _found: dict[str, _Found] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _kept: dict[int, str] = field(default_factory=dict)
    """The dead socket's number and the two spare ones, with their identities."""
    _inherited_dead: str = ""
    """The dead socket on the numbers that were cut in this process."""

    # ---- in the parent --------------------------------------------------------------------------

    def begin(self) -> None:
        """Leave the present descriptors alone, except those that `look` has found before.

        Raises OSError if the descriptors cannot be listed; then no descriptor is ever cut.
        """
        before = set(_descriptors())
        if not self._kept:
            dead, spare = _dead()
            self._kept = {each: _identity(each) for each in (dead, spare, os.dup(spare))}
        before.update(self._kept.values())
        self._before = frozenset(before - self._found.keys())
        self._first = self._first or self._before

    def begin_again(self, mine: int) -> None:
        """Leave the descriptors of the first `begin` alone, in a worker that will fork itself.

        mine: a socket of its own, which its children close.  Raises OSError.
        """
        self._found.clear()
        self._kept.clear()
        self.begin()
        own = {_identity(mine), self._inherited_dead, *self._kept.values()}
        self._before = self._first | own

    def look(self, origin: str) -> None:
        """Note new descriptors, as opened by `origin`; raises OSError."""
        if self._before is None:
            return
        self._pid = os.getpid()
        now = _descriptors() | self._talks()
        for gone in self._found.keys() - now.keys():
            del self._found[gone]
        for identity in now.keys() - self._before - self._found.keys():
            text = _described(identity, now)
            self._found[identity] = _Found(origin, text)

    def tell(self, log: Any) -> None:  # noqa: ANN401  # what a Guard has
        """Log each connection that will be cut, and its origin, once.  Raises OSError."""
        now = _descriptors() | self._talks() if self._found else {}
        for each in [self._found[identity] for identity in self._found.keys() & now.keys()]:
            line = f"{each.text} (opened by {each.origin})"
            if not each.text or line in self._told:
                continue
            self._told.add(line)
            if each.text in _QUIET:
                log.info("each worker gets a new %s", line)
            else:
                log.warning(
                    "two processes cannot share a connection, so it is cut in the workers: %s."
                    " Close it in a function given to cpythonplus.prefork.before_fork",
                    line,
                )

    def _talks(self) -> dict[str, list[int]]:
        """Return the pipes to helpers of a server's application; other programs may share them."""
        return _helpers() if self.whole else {}

    # ---- in a worker ----------------------------------------------------------------------------

    def cut(self) -> None:
        """Replace all descriptors that must not be shared; see the module's docstring.

        Only for a process just forked; does nothing in the parent or when called again.  A
        descriptor that cannot be renewed becomes a dead socket.  Raises OSError if the descriptors
        cannot be listed: then nothing is replaced.
        """
        if self._before is None or self._pid in {0, os.getpid()}:
            return
        before, found, self._before = self._before, self._found, None
        # The program may have closed all numbers above 2, and opened other files there.
        dead, *spares = (number if _is(number, it) else -1 for number, it in self._kept.items())
        for each in spares:
            with suppress(OSError):
                os.close(each)
        now = _descriptors() | self._talks()
        chosen = {
            identity: numbers
            for identity, numbers in now.items()
            if (identity not in before if self.whole else identity in found)
            and self.mine not in numbers
            and _is_inherited(identity, numbers[0])
        }
        # All are read before any is replaced: an epoll's list contains sockets that are replaced.
        states = {
            number: renewing.read(kind, number)
            for identity, (number, *_) in chosen.items()
            if (kind := renewing.kind(identity))
        }
        if dead < 0:
            dead, spare = _dead()
            os.close(spare)
        _cut_sockets({each: chosen[each] for each in chosen if each.startswith(_SOCKET)}, dead)
        renewing.renew(states, dead)
        self._inherited_dead = _identity(dead)
        for identity, numbers in chosen.items():
            if identity.startswith(_PIPE):
                _put(dead, numbers, keep=True)
        os.close(dead)


def _cut_sockets(chosen: dict[str, list[int]], dead: int) -> None:
    renewed: set[str] = set()
    for identity, numbers in chosen.items():
        # Both ends of a pair are renewed together.
        seen = None if identity in renewed else _seen(numbers[0])
        if seen is None:
            continue
        partner = _partner(identity, numbers[0]) if seen.unnamed else ""
        try:
            if partner in chosen:
                renewed.add(partner)
                mine, other = _pair(seen)
                _put(mine, numbers)
                _put(other, chosen[partner])
            elif seen.is_stream or seen.unnamed:
                _put(dead, numbers, keep=True)
            else:
                _put(_connected(seen), numbers)
        except OSError:
            if seen.is_stream:
                _put(dead, [*numbers, *chosen.get(partner, ())], keep=True)
            # If it is a datagram socket, its peer's address has no listener now, and the socket
            # stays shared.


# ---- finding descriptors ------------------------------------------------------------------------


def _descriptors() -> dict[str, list[int]]:
    """Return the numbers of each socket and renewable descriptor, by identity; raises OSError."""
    found: dict[str, list[int]] = {}
    for name in os.listdir(_FOLDER):  # noqa: PTH208  # pathlib interns the numbers
        with suppress(OSError):  # closed meanwhile
            link = _identity(int(name))
            if link.startswith(_SOCKET):
                found.setdefault(link, []).append(int(name))
            elif renewing.is_renewed(link, int(name)):
                found[f"{link} {name}"] = [int(name)]
    return found


def _helpers() -> dict[str, list[int]]:
    """Return the pipes to processes that this one talks with, by identity."""
    found: dict[str, list[int]] = {}
    for each in pools.instances(
        "subprocess", getattr(sys.modules.get("subprocess"), "Popen", None)
    ):
        with suppress(AttributeError, OSError, ValueError):  # closed, or no pipe
            if each.returncode is None:
                numbers = [each.stdin.fileno(), each.stdout.fileno()]
                found |= {f"{_identity(number)} {number}": [number] for number in numbers}
    return {each: numbers for each, numbers in found.items() if each.startswith(_PIPE)}


def _is_inherited(identity: str, number: int) -> bool:
    """Whether a descriptor is the parent's, not made here by a library's fork handler."""
    inherited = renewing.is_inherited(number)
    if inherited is not None:
        return inherited
    # A socket has its own inode.  If a library has started threads here, its handler did the rest.
    return identity.startswith(_SOCKET) or len(os.listdir(renewing.TASKS)) == 1  # noqa: PTH208


def _identity(number: int) -> str:
    return os.readlink(f"{_FOLDER}/{number}")  # noqa: PTH115


def _is(number: int, identity: str) -> bool:
    with suppress(OSError):
        return _identity(number) == identity
    return False


def _described(identity: str, now: dict[str, list[int]]) -> str:
    """Return the descriptor's name in the log; empty for sockets that stay, and for datagrams."""
    if identity.startswith(_PIPE):
        return "pipe to a helper process"
    kind = renewing.kind(identity)
    if kind == renewing.FILE:
        return ""
    if kind:
        renewing.load()
        return kind
    number = now[identity][0]
    seen = _seen(number)
    if seen is None or not (seen.is_stream or seen.unnamed):
        return ""
    return _WAKING if seen.unnamed and _partner(identity, number) in now else str(seen)


def _seen(number: int) -> _Seen | None:
    """Return the connected socket behind a number; None for any other."""
    # With a default time-out a new object would make the shared socket non-blocking.
    timeout = _socket.getdefaulttimeout()
    if timeout is not None:
        _socket.setdefaulttimeout(None)
    try:
        it = _socket.socket(fileno=number)  # the C type, which is never patched
    except OSError:  # closed meanwhile
        return None
    finally:
        if timeout is not None:
            _socket.setdefaulttimeout(timeout)
    try:
        return _examined(it)
    except OSError:
        return None
    finally:
        it.detach()


def _examined(it: _socket.socket) -> _Seen | None:
    if it.family == socket.AF_NETLINK:  # it always seems to be connected
        return None
    if it.type not in _STREAMS and it.type != socket.SOCK_DGRAM:
        return None
    if it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return None
    peer = None
    try:
        peer = it.getpeername()
    except OSError as error:
        if error.errno != errno.ENOTCONN or not _is_connecting(it):
            return None
    unnamed = it.family == socket.AF_UNIX and not peer and not it.getsockname()
    return _Seen(it.family, it.type, it.proto, peer, unnamed)


def _is_connecting(it: _socket.socket) -> bool:
    if it.type != socket.SOCK_STREAM or it.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    return it.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _TCP_CONNECTING


def _partner(identity: str, number: int) -> str:
    """Return the identity of a non-blocking pair's other end, or "".

    Only the kernel's socket diagnosis knows it.  Without the diagnosis the pair is dead.
    """
    if not fcntl.fcntl(number, fcntl.F_GETFL) & os.O_NONBLOCK:
        return ""
    inode = int(identity[len(_SOCKET) : -1])
    with suppress(OSError, struct.error):
        return f"{_SOCKET}{_peer_inode(inode)}]"
    return ""


_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1
_UDIAG_SHOW_PEER, _UNIX_DIAG_PEER = 4, 2
_ANY, _HEADER, _MESSAGE = 0xFFFFFFFF, 16, 32


def _peer_inode(inode: int) -> int:
    """Return the inode of the socket that a Unix socket is connected with.  Raises OSError."""
    # struct unix_diag_req: family, protocol, states, inode, what to show, cookie
    asked = struct.pack(
        "=BBHIIIII", socket.AF_UNIX, 0, 0, _ANY, inode, _UDIAG_SHOW_PEER, _ANY, _ANY
    )
    header = struct.pack("=IHHII", _HEADER + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    it = _socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
    try:
        it.settimeout(None)
        it.send(header + asked)
        answer = it.recv(8192)
    finally:
        it.close()
    if struct.unpack_from("=H", answer, 4)[0] != _SOCK_DIAG_BY_FAMILY:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))  # or without the diagnosis
    at = _MESSAGE
    while at < len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == _UNIX_DIAG_PEER:
            return int(struct.unpack_from("=I", answer, at + 4)[0])
        at += max((length + 3) & ~3, 4)
    raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))


# ---- replacing descriptors ----------------------------------------------------------------------


def _put(new: int, numbers: list[int], *, keep: bool = False) -> None:
    """Duplicate `new` to `numbers`, each as inheritable as before; close it unless `keep`."""
    for number in numbers:
        os.dup2(new, number, inheritable=os.get_inheritable(number))
    if not keep:
        os.close(new)


def _dead() -> tuple[int, int]:
    """Return a socket that is shut down, and its other end."""
    dead, spare = _socket.socketpair()
    dead.shutdown(socket.SHUT_RDWR)
    return dead.detach(), spare.detach()


def _pair(like: _Seen) -> tuple[int, int]:
    ends = _socket.socketpair(like.family, like.kind, like.proto)
    for end in ends:
        end.settimeout(0)
    return ends[0].detach(), ends[1].detach()


def _connected(like: _Seen) -> int:
    it = _socket.socket(like.family, like.kind, like.proto)
    try:
        it.connect(like.peer)
        return it.detach()
    finally:
        it.close()
