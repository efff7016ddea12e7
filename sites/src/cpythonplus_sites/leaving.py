"""The end of a link over ssh, after which no packet of its far site gets in any more. No I/O.

    keys that permit it -> sessions that it has -> ssh -> its device  ...  the filter of its packets

The filter is removed last, with the rest of the firewall table: without it, packets that still come
out of the device would reach the LAN. A step that leaves the device in place has failed, so the
steps behind it are not done.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites.rendering.ssh import FOLDER
from cpythonplus_sites.sessions import to_be_ended
from cpythonplus_sites.steps import Command, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus_sites.live import Device, Live
    from cpythonplus_sites.sessions import Session
    from cpythonplus_sites.wanted import File, Wanted

_TUN = re.compile(r"tun\d+")
_TUN_UNIT = re.compile(r"-tun@(\d+)\.service$")
_KEY = re.compile(r'\btunnel="(\d+)"')
VERIFY = 'ip link show dev "$0" >/dev/null 2>&1 || exit 0; echo "$0 is still there" >&2; exit 1'


def changed_keys(wanted: Wanted, live: Live) -> tuple[File, ...]:
    """The existing files of keys that may log in whose contents are not as wanted."""
    found = []
    for file in (*wanted.files, *wanted.withdrawn):
        if file.path.parent == FOLDER and file.path.suffix == ".keys":
            there = live.files.get(Path(file.path))
            if there is not None and there.text != file.text:
                found.append(file)
    return tuple(found)


def withdraw_keys(wanted: Wanted, live: Live) -> Iterator[Step]:
    """Change the keys that may log in, and end the sessions of keys that may no longer."""
    for file in changed_keys(wanted, live):
        there = live.files[Path(file.path)]
        refused = _permitted(there.text if there else "") - _permitted(file.text)
        if not refused:
            yield Step(f"change {file.path}", file=file)
            continue
        stays = wanted.devices - {device for device, _ in refused}
        ended = to_be_ended(live.sessions, stays=stays)
        yield Step(
            f"change {file.path}{_told(ended)}",
            tuple(_end(ended)),
            file=file,
            interrupts=bool(ended),
        )


def _permitted(text: str) -> set[tuple[str, str]]:
    """The devices, and the lines that permit a key to open them, without the site's name."""
    found = ((_KEY.search(line), line.rpartition(" ")[0]) for line in text.splitlines())
    return {(f"tun{match[1]}", line) for match, line in found if match}


def remove_devices(wanted: Wanted, live: Live) -> Iterator[Step]:
    """Take down the tun devices of links that are no longer in the file."""
    for device in left_over(wanted, live):
        ended = to_be_ended(live.sessions, stays=wanted.devices)
        mine = tuple(session for session in ended if device.name in session.devices)
        yield Step(
            f"remove {device.name}, whose link over ssh is not in the file{_told(mine)}",
            (
                *_end(mine),
                Command(("ip", "link", "delete", "dev", device.name), tolerated=True),
                Command(("sh", "-c", VERIFY, device.name)),
            ),
            interrupts=device.running,
        )


def forget(live: Live) -> Iterator[Step]:
    """Withdraw the keys that a network of an old name let in, and end their sessions."""
    for path in live.gone.files:
        if Path(path).parent == Path(FOLDER) and live.files.get(Path(path)) is not None:
            yield Step(f"remove {path}", (Command(("rm", "-f", path)),))
    for user in live.gone.users:
        end = Command(("pkill", "-KILL", "-u", user), tolerated=True)
        yield Step(f"end the sessions of {user}", (end,), interrupts=True)


def left_over(wanted: Wanted, live: Live) -> tuple[Device, ...]:
    """The tun devices of this network's tunnel user that belong to no link of the file.

    The devices of a user of an old name are included: ssh of another user could not open them.
    """
    if wanted.tunnel_user is None:
        return ()
    return tuple(
        device
        for device in live.devices.values()
        if _TUN.fullmatch(device.name)
        and (
            (device.owner == wanted.tunnel_user and device.name not in wanted.devices)
            or device.owner in live.gone.users
        )
    )


def going(wanted: Wanted, live: Live) -> set[str]:
    """The names of the tun devices that these steps and those of the units remove."""
    units = (_TUN_UNIT.search(name) for name in live.units if name not in wanted.units)
    return {device.name for device in left_over(wanted, live)} | {f"tun{x[1]}" for x in units if x}


def _end(found: tuple[Session, ...]) -> Iterator[Command]:
    if found:
        # KILL: a stopped process would not act on another signal, and could be continued later.
        pids = " ".join(str(session.pid) for session in found)
        yield Command(("sh", "-c", f"kill -KILL {pids}"), tolerated=True)


def _told(ended: tuple[Session, ...]) -> str:
    if not ended:
        return ""
    return f", and end {len(ended)} session{'s' * (len(ended) != 1)}"
