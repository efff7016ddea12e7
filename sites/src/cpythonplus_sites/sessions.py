"""The processes of the tunnel user, which hold the tun devices of links over ssh. Needs root.

A session outlives the key that permitted it: sshd reads the keys only at log-in. So a site that is
removed, or whose ssh key is changed, stays connected until its session is ended here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cpythonplus_sites.machine import Machine

PROC = Path("/proc")
_DEVICE = re.compile(r"^iff:\s*(\S+)", re.MULTILINE)
_USER = re.compile(r"^Uid:\s*(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Session:
    """A process of the tunnel user.  devices: the tun devices that it has open."""

    pid: int
    program: str
    devices: frozenset[str] = frozenset()

    @property
    def is_server(self) -> bool:
        """Whether it is sshd's part for one connection: `sshd-session` since OpenSSH 9.8."""
        return self.program.startswith("sshd")


def sessions(machine: Machine, user: str) -> tuple[Session, ...]:
    """The processes of a user; none if there is no such user, or no /proc."""
    number = machine.run(["id", "-u", user]).out.strip()
    if not number.isdecimal():
        return ()
    return tuple(_sessions(machine, number))


def _sessions(machine: Machine, user: str) -> Iterator[Session]:
    for pid in machine.listing(PROC):
        if not pid.isdecimal():
            continue
        folder = PROC / pid
        owner = _USER.search(_text(machine, folder / "status"))
        if owner is None or owner[1] != user:
            continue
        opened = (_text(machine, folder / "fdinfo" / x) for x in machine.listing(folder / "fdinfo"))
        devices = frozenset(found[1] for found in map(_DEVICE.search, opened) if found)
        yield Session(int(pid), _text(machine, folder / "comm").strip(), devices)


def _text(machine: Machine, path: Path) -> str:
    """The text of a file in /proc; empty if the process has ended."""
    try:
        return machine.read(path) or ""
    except (OSError, ValueError):
        return ""


def to_be_ended(found: Iterable[Session], *, stays: frozenset[str]) -> tuple[Session, ...]:
    """The processes that hold a device which does not stay, and sshd's processes without a device.

    The latter are logged in, and could open a device later.
    """
    return tuple(
        session
        for session in found
        if session.devices - stays or (session.is_server and not session.devices)
    )
