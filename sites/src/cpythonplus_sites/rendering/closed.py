"""What keeps packets for other sites from leaving in clear text: routes that refuse them.

A tunnel's routes go with its interface: at `wg-quick down`, when wireguard-go is killed; and they
are not there yet when the network comes up at boot. The default route would then take what is meant
for another site, to the provider. So each LAN of another site, and the range of the tunnels'
addresses, has an `unreachable` route too, with a metric that loses against every other: it needs no
interface, and whoever sends is told at once (ICMP). A route of other software still wins.

Rejected: `reject` in our table of nftables would also hit where the user has such a route on
purpose, and is gone whenever somebody flushes the ruleset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import names
from cpythonplus_sites.rendering.files import Host, RenderedFile, word

if TYPE_CHECKING:
    from pathlib import PurePosixPath

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


def metric(network: Network) -> int:
    """The metric of the network's `unreachable` routes: those of another one have another.

    Such a route has no interface by which one could tell whose it is.
    """
    return LEAST_METRIC + int.from_bytes(network.name.encode(), "big") % _SPREAD


def subnets(network: Network, site: Site) -> tuple[Subnet, ...]:
    """What must leave the gateway of `site` by a tunnel only, also where a site has no key yet."""
    lans = [lan for other in network.sites if other.name != site.name for lan in other.lans]
    return (*lans, network.tunnel)


def route_arguments(subnet: Subnet, metric: int) -> str:
    """What follows `ip route replace` or `del`."""
    return f"unreachable {subnet} proto {PROTOCOL} metric {metric}"


def batch_path(network: Network, host: Host) -> PurePosixPath:
    """The file for `ip -batch` that sets the routes."""
    return host.folder / f"{word(network.name)}-unreachable.batch"


def batch(network: Network, site: Site, host: Host) -> RenderedFile:
    """The routes, for `ip -batch`."""
    own = metric(network)
    lines = [f"route replace {route_arguments(each, own)}" for each in subnets(network, site)]
    return RenderedFile(batch_path(network, host), "".join(f"{line}\n" for line in lines))


def unit(network: Network, host: Host) -> RenderedFile:
    """Sets the routes before the network comes up. Nothing takes them away when it is stopped.

    What one line cannot set, as IPv6 on a kernel without it, must not hold up the boot.
    """
    name = word(network.name)
    text = f"""\
[Unit]
Description=Unreachable routes to the other sites of {name}, for when a tunnel is down
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
