"""Keeps the `unreachable` routes behind those of the tunnels (rendering/closed.py). No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering.closed import PROTOCOL, contains, is_way, route_arguments
from cpythonplus_sites.steps import ip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cpythonplus_sites.live import Device, Live
    from cpythonplus_sites.live_route import LiveRoute
    from cpythonplus_sites.model import Subnet
    from cpythonplus_sites.steps import Step
    from cpythonplus_sites.wanted import Wanted


def close(wanted: Wanted, live: Live) -> Iterator[Step]:
    """The steps that set missing `unreachable` routes, before anything is forwarded."""
    for subnet in unguarded(wanted, live.routes):
        words = route_arguments(subnet, wanted.closed_metric).split()
        when = "it is not connected" if is_own(wanted, subnet) else "no tunnel leads there"
        yield ip(f"refuse {subnet} while {when}", "route", "replace", *words)
    for subnet in _ours(wanted, live.routes):
        # The route for a part would hide a newer route to the whole network.
        if subnet not in wanted.closed and _is_closed(wanted, subnet):
            yield _reopened(wanted, subnet)


def unguarded(wanted: Wanted, routes: Sequence[LiveRoute]) -> list[Subnet]:
    """Return the subnets without an `unreachable` route: a default route may take their packets."""
    there = set(_ours(wanted, routes))
    return [subnet for subnet in wanted.closed if subnet not in there]


def is_own(wanted: Wanted, subnet: Subnet) -> bool:
    """Whether a closed subnet contains a LAN of this site."""
    return any(contains(subnet, lan) for lan in wanted.lans)


def not_connected(
    wanted: Wanted, devices: Mapping[str, Device], routes: Sequence[LiveRoute]
) -> list[Subnet]:
    """Return the LANs of this site to which this gateway has only a default route."""
    # An address of lo has no route in the main table.
    here = [each.network for x in devices.values() if x.up for each in x.addresses]
    ways = [route for route in routes if route.device not in wanted.devices]
    return [
        lan
        for lan in wanted.lans
        if not any(contains(subnet, lan) for subnet in here)
        and not any(is_way(route, lan) for route in ways)
    ]


def reopen(wanted: Wanted, live: Live) -> Iterator[Step]:
    """The steps, last of all, that remove the routes for sites that are not in the file."""
    for subnet in _ours(wanted, live.routes):
        if not _is_closed(wanted, subnet):
            yield _reopened(wanted, subnet)


def _is_closed(wanted: Wanted, subnet: Subnet) -> bool:
    return any(contains(each, subnet) for each in wanted.closed)


def _reopened(wanted: Wanted, subnet: Subnet) -> Step:
    words = route_arguments(subnet, wanted.closed_metric).split()
    return ip(f"no longer refuse {subnet}", "route", "del", *words)


def _ours(wanted: Wanted, routes: Sequence[LiveRoute]) -> Iterator[Subnet]:
    """The subnets of this network's `unreachable` routes; another network has another metric."""
    for route in routes:
        mark = (route.kind, route.protocol, route.metric)
        if mark == ("unreachable", PROTOCOL, wanted.closed_metric):
            yield route.subnet
