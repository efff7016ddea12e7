"""The `unreachable` routes, which keep packets for other sites from leaving in clear text.

A tunnel's routes disappear with its interface: at `wg-quick down`, or when wireguard-go is killed;
and they do not exist yet when the network comes up at boot. The default route would then send
packets for another site to the provider. So each LAN of another site, and the range of the tunnels'
addresses, has an `unreachable` route too, with a metric that loses against every other: it needs no
interface, and the sender gets an ICMP error at once. A route of other software still wins.

The LANs of this site have such routes, too: packets out of a tunnel for a LAN that is not connected
would go to the provider, decrypted. A LAN may be a part of a network that the gateway has a route
to; a refusal of that part alone would hide the route, so the whole network gets one
(`own_subnets`).

Rejected: `reject` in our nftables table, which would also reject packets for a route that the user
has on purpose, and which is gone whenever somebody flushes the ruleset.
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
"""The protocol of the kernel's own routes, not ours: systemd-networkd removes foreign routes that
have no interface (ManageForeignRoutes=, networkd.conf(5)), at its start and whenever it configures
an interface, as at boot or when a cable is plugged in again. It leaves the kernel's routes alone.
Our routes are recognised by their type and their metric."""

LEAST_METRIC = 2_000_000_000
"""A metric far above those of network managers (at most 20,000), and below 2**31."""

_SPREAD = 99_999_989
"""A prime modulus: different names of networks nearly always have different remainders."""


PARTS_PREFIX = 3
"""The length up to which a prefix is a part of a default route, as 0.0.0.0/1 and 2000::/3."""

_REFUSED = re.compile(r"^route replace unreachable (\S+) ", re.MULTILINE)


def metric(network: Network) -> int:
    """The metric of the network's `unreachable` routes, which differs between networks.

    Such a route has no interface that shows its network.
    """
    return LEAST_METRIC + int.from_bytes(network.name.encode(), "big") % _SPREAD


def subnets(network: Network, site: Site, own: Iterable[Subnet] = ()) -> tuple[Subnet, ...]:
    """Return the networks that must leave the gateway of `site` by no default route.

    The networks of a site without a key are included.

    own: the result of `own_subnets`, instead of the site's LANs.
    """
    lans = [lan for other in network.sites if other.name != site.name for lan in other.lans]
    return tuple(dict.fromkeys((*lans, network.tunnel, *(own or site.lans))))


def own_subnets(
    site: Site, routes: Sequence[LiveRoute], lan_device: str | None, before: str
) -> tuple[Subnet, ...]:
    """Return the networks to refuse for the site's own LANs: for each, the network of its route.

    lan_device: the interface with the gateway's address.  before: the batch of an earlier run. Its
    networks are kept while the LAN is not connected, unless its interface shows another one.
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
    """Whether a route leads to a LAN, and is neither a default route nor a part of one."""
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
    """The arguments of `ip route replace` or `del` for an `unreachable` route."""
    return f"unreachable {subnet} proto {PROTOCOL} metric {metric}"


def batch_path(network: Network, host: Host) -> PurePosixPath:
    """The file for `ip -batch` that sets the routes."""
    return host.folder / f"{word(network.name)}-unreachable.batch"


def batch(network: Network, site: Site, host: Host) -> RenderedFile:
    """The file of the routes, for `ip -batch`."""
    own = metric(network)
    found = subnets(network, site, host.own_subnets)
    lines = [f"route replace {route_arguments(each, own)}" for each in found]
    return RenderedFile(batch_path(network, host), "".join(f"{line}\n" for line in lines))


def unit(network: Network, host: Host) -> RenderedFile:
    """The unit that sets the routes before the network comes up. A stop does not remove them.

    A line that fails, as for IPv6 on a kernel without it, must not hold up the boot.
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
