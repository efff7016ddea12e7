"""The ordered steps that take a gateway's links down, until the next `apply`.

    routes that refuse -> timers -> units, the last one first -> interfaces
      -> when none is left, the nftables table

The timers come first: they would restore the links. The table comes last: it restricts packets from
ssh to the far side's addresses. The kernel removes the routes through an interface with it.

Files and keys stay, so that `apply` restores everything, and so do kernel settings: others may need
forwarding. The `unreachable` routes stay, with the unit that sets them at boot: a gateway that was
taken down is the very case that they are for. They are removed only if a person says that packets
for the other sites should take another way (`routes_too`). As in planning, things of others are not
changed.
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
    """The plan that removes the existing links; the table only when no interface is left.

    routes_too: also remove the `unreachable` routes, and their unit; else set the missing ones.
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
    # The next plan checks the devices of these units again: the end of a unit may fail to remove
    # its device, as a tun device that an sshd holds.
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
    """Our existing interfaces, with those that the file no longer mentions."""
    ours = {*wanted.devices, *(tunnel.interface for tunnel in own_tunnels(wanted, live))}
    return sorted(ours & set(live.devices))


def _takes(unit: str, device: str) -> bool:
    """Whether the end of a unit removes a device."""
    number = device.removeprefix("tun")
    return unit == f"wg-quick@{device}.service" or unit.endswith(f"-tun@{number}.service")


def _stop(live: Live, names: list[str], user: str | None = None) -> Iterator[Step]:
    for name in names:
        unit = live.units[name]
        if unit.active or unit.enabled:
            stop = Command(("systemctl", "disable", "--now", name))
            end = _end_sessions(user if "-tun@" in name else None)
            if name.endswith(".timer"):
                # A started service may be waiting for the lock, and would restore the links.
                service = f"{name[: -len('.timer')]}.service"
                end = (Command(("systemctl", "stop", service), tolerated=True),)
            interrupts = unit.active and not name.endswith((".timer", *LAST_UNITS))
            yield Step(f"disable and stop {name}", (stop, *end), interrupts=interrupts)


def _remove(device: str, user: str | None) -> Step:
    # `ip tuntap del` would fail while a program holds the device.
    remove = Command(("ip", "link", "delete", "dev", device))
    return Step(f"remove {device}", (remove, *_end_sessions(user)), interrupts=True)


def _end_sessions(user: str | None) -> tuple[Command, ...]:
    """The command that ends sessions: an sshd without its device would keep its client connected.

    The client would then never connect again.
    """
    return () if user is None else (Command(("pkill", "-u", user), tolerated=True),)


def _delete(title: str) -> Step:
    delete = Command(("nft", "delete", "table", *title.split()))
    return Step(f"remove the nftables table {title}", (delete,))


def _all_closed(wanted: Wanted, live: Live) -> Iterator[Step]:
    """A step for each `unreachable` route of ours, which removes it."""
    return reopen(replace(wanted, closed=()), live)
