"""What keeps packets for other sites from leaving in clear text: routes that refuse them.

A tunnel's routes go with its interface: at `wg-quick down`, when wireguard-go is killed; and they
are not there yet when the network comes up at boot. The default route would then take what is meant
for another site, to the provider. So each LAN of another site, and the range of the tunnels'
addresses, has an `unreachable` route too, with a metric that loses against every other: it needs no
interface, and whoever sends is told at once (ICMP). A route of other software still wins.

So have the LANs of this site: what comes out of a tunnel for a LAN that is not connected would go
on to the provider, decrypted. A LAN may be a part of a network that the gateway has a route to; a
refusal of that part alone would hide the route, so the whole network gets one (`own_subnets`).

Rejected: `reject` in our table of nftables would also hit where the user has such a route on
purpose, and is gone whenever somebody flushes the ruleset.
"""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import names
from cpythonplus_sites.rendering.files import Host, RenderedFile, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import PurePosixPath

    from cpythonplus_sites.live_route import LiveRoute
    from cpythonplus_sites.model import Network, Site, Subnet

PROTOCOL = 2
"""That of the kernel's own routes, not the one of ours: systemd-networkd removes routes without an
interface that it did not set (ManageForeignRoutes=, networkd.conf(5)), at its start and whenever it
configures an interface, as at boot or when a cable is plugged in again. It leaves these alone. Ours
are told by their type and their metric."""

LEAST_METRIC = 2_000_000_000
"""Far behind what network managers give (20,000 at most), and below 2**31."""

_SPREAD = 99_999_989
"""A prime: different names of networks nearly always leave different remainders."""


PARTS_PREFIX = 3
"""Up to this length a prefix is a part of a default route, as 0.0.0.0/1 and 2000::/3 are."""

_REFUSED = re.compile(r"^route replace unreachable (\S+) ", re.MULTILINE)


def metric(network: Network) -> int:
    """The metric of the network's `unreachable` routes: those of another one have another.

    Such a route has no interface by which one could tell whose it is.
    """
    return LEAST_METRIC + int.from_bytes(network.name.encode(), "big") % _SPREAD


def subnets(network: Network, site: Site, own: Iterable[Subnet] = ()) -> tuple[Subnet, ...]:
    """Return the networks that must leave the gateway of `site` by no default route.

    Those of a site that has no key yet are among them.

    own: what `own_subnets` found, instead of the site's LANs.
    """
    lans = [lan for other in network.sites if other.name != site.name for lan in other.lans]
    return tuple(dict.fromkeys((*lans, network.tunnel, *(own or site.lans))))


def own_subnets(
    site: Site, routes: Sequence[LiveRoute], lan_device: str | None, before: str
) -> tuple[Subnet, ...]:
    """Return the networks to refuse for the site's own LANs: for each, the one it is routed by.

    lan_device: the interface with the gateway's address.  before: the batch of an earlier run. What
    stands there stays while the LAN is not connected, unless its interface tells otherwise.
    """
    batch = [ip_network(text) for text in _REFUSED.findall(before)]
    return tuple(_around(lan, routes, lan_device, batch) for lan in site.lans)


def _around(
    lan: Subnet, routes: Sequence[LiveRoute], lan_device: str | None, batch: Sequence[Subnet]
) -> Subnet:
    around = [route for route in routes if is_way(route, lan)]
    sure = [route.subnet for route in around if route.device == lan_device]
    kept = [subnet for subnet in batch if contains(subnet, lan)]
    found = sure or kept or [route.subnet for route in around]
    return max(found, key=lambda subnet: subnet.prefixlen, default=lan)


def is_way(route: LiveRoute, lan: Subnet) -> bool:
    """Whether a route leads to a LAN, and is no default one: that may be cut in parts."""
    is_default = route.subnet.prefixlen <= PARTS_PREFIX
    return route.kind == "unicast" and not is_default and contains(route.subnet, lan)


def contains(subnet: Subnet, part: Subnet) -> bool:
    """Whether all of `part` is in `subnet`."""
    if subnet.version != part.version:
        return False
    return subnet.network_address <= part.network_address and (  # type: ignore[operator]
        part.broadcast_address <= subnet.broadcast_address  # type: ignore[operator]
    )


def route_arguments(subnet: Subnet, metric: int) -> str:
    """What follows `ip route replace` or `del`."""
    return f"unreachable {subnet} proto {PROTOCOL} metric {metric}"


def batch_path(network: Network, host: Host) -> PurePosixPath:
    """The file for `ip -batch` that sets the routes."""
    return host.folder / f"{word(network.name)}-unreachable.batch"


def batch(network: Network, site: Site, host: Host) -> RenderedFile:
    """The routes, for `ip -batch`."""
    own = metric(network)
    found = subnets(network, site, host.own_subnets)
    lines = [f"route replace {route_arguments(each, own)}" for each in found]
    return RenderedFile(batch_path(network, host), "".join(f"{line}\n" for line in lines))


def unit(network: Network, host: Host) -> RenderedFile:
    """Sets the routes before the network comes up. Nothing takes them away when it is stopped.

    What one line cannot set, as IPv6 on a kernel without it, must not hold up the boot.
    """
    name = word(network.name)
    text = f"""\
[Unit]
Description=Unreachable routes to the sites of {name}, for when a tunnel or a LAN is down
DefaultDependencies=no
Wants=network-pre.target
After=local-fs.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-ip -force -batch {batch_path(network, host)}
ExecReload=-ip -force -batch {batch_path(network, host)}

[Install]
WantedBy=sysinit.target
"""
    return RenderedFile(names.UNITS / names.closed_unit(network), text)
