"""What has to be done so that a gateway's links are down and stay so, until `apply`.

    routes that refuse -> timers -> units, the last one first -> interfaces
      -> when none is left, the nftables table

The timers come first: they would bring back what goes. The table comes last: it holds what arrives
by ssh to the far side's addresses. Routes through an interface go with it, in the kernel.

Files and keys stay, so that `apply` brings all of it back, and so do kernel settings: forwarding
may be needed by somebody else. The `unreachable` routes stay, with the unit that sets them at boot:
a gateway that was taken down is the very case for which they are there. They go where a person says
that packets for the other sites are to take another way (`routes_too`). What is not ours is not
touched, as in planning.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cpythonplus_sites.closing import close, reopen
from cpythonplus_sites.planning import LAST_UNITS, own_tunnels, strangers
from cpythonplus_sites.steps import Command, Plan, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus_sites.live import Live
    from cpythonplus_sites.wanted import Wanted

LATER = "when the interfaces are gone: {0}"
KEPT_UNIT = "-unreachable.service"
"""The end of the name of the unit that sets the `unreachable` routes."""


def plan_down(wanted: Wanted, live: Live, *, routes_too: bool = False) -> Plan:
    """What is to be undone of what is there; the table only when no interface is.

    routes_too: also the `unreachable` routes, and their unit; else those that are missing are set.
    """
    found = tuple(strangers(wanted, live))
    if found:
        return Plan((), found)
    names = [name for name in live.units if routes_too or not name.endswith(KEPT_UNIT)]
    timers = [name for name in names if name.endswith(".timer")]
    last = [name for name in names if name.endswith(LAST_UNITS)]
    rest = [name for name in names if name not in (*timers, *last)]
    user = wanted.tunnel_user
    stopped = [*_stop(live, timers), *_stop(live, rest[::-1], user)]
    devices = _devices(wanted, live)
    units = [step.commands[0].argv[-1] for step in stopped]
    # What a unit takes away is looked at again afterwards: it may fail to, as for a tun device
    # that an sshd holds.
    left = [device for device in devices if not any(_takes(unit, device) for unit in units)]
    tuns = {link.device for link in wanted.ssh}
    steps = [*stopped, *(_remove(device, user if device in tuns else None) for device in left)]
    tables = [table.title for table in wanted.tables if live.tables.get(table.title, (None,))[0]]
    later = [*_stop(live, last)] or [*map(_delete, tables)]
    later += _all_closed(wanted, live) if routes_too else ()
    steps = [*(() if routes_too else close(wanted, live)), *steps]
    if devices:
        return Plan(tuple(steps), notes=tuple(LATER.format(step.description) for step in later))
    return Plan((*steps, *later))


def _devices(wanted: Wanted, live: Live) -> list[str]:
    """The interfaces of ours that are there, those that the file no longer mentions included."""
    ours = {*wanted.devices, *(tunnel.interface for tunnel in own_tunnels(wanted, live))}
    return sorted(ours & set(live.devices))


def _takes(unit: str, device: str) -> bool:
    """Whether the end of a unit is meant to be that of a device."""
    number = device.removeprefix("tun")
    return unit == f"wg-quick@{device}.service" or unit.endswith(f"-tun@{number}.service")


def _stop(live: Live, names: list[str], user: str | None = None) -> Iterator[Step]:
    for name in names:
        unit = live.units[name]
        if unit.active or unit.enabled:
            stop = Command(("systemctl", "disable", "--now", name))
            end = _end_sessions(user if "-tun@" in name else None)
            if name.endswith(".timer"):
                # What it has begun may wait for the lock, and would bring back what goes.
                service = f"{name[: -len('.timer')]}.service"
                end = (Command(("systemctl", "stop", service), tolerated=True),)
            interrupts = unit.active and not name.endswith((".timer", *LAST_UNITS))
            yield Step(f"disable and stop {name}", (stop, *end), interrupts=interrupts)


def _remove(device: str, user: str | None) -> Step:
    # Not `ip tuntap del`, which fails while a program holds the device.
    remove = Command(("ip", "link", "delete", "dev", device))
    return Step(f"remove {device}", (remove, *_end_sessions(user)), interrupts=True)


def _end_sessions(user: str | None) -> tuple[Command, ...]:
    """Without its device an sshd would keep the client connected, which then never calls again."""
    return () if user is None else (Command(("pkill", "-u", user), tolerated=True),)


def _delete(title: str) -> Step:
    delete = Command(("nft", "delete", "table", *title.split()))
    return Step(f"remove the nftables table {title}", (delete,))


def _all_closed(wanted: Wanted, live: Live) -> Iterator[Step]:
    """A step for each `unreachable` route of ours, which removes it."""
    return reopen(replace(wanted, closed=()), live)
