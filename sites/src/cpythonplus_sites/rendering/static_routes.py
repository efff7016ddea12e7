"""Instructions for a LAN whose hosts have another router as their default gateway.

The hosts send packets for the other sites to that router, which has no routes to them. Either the
router gets the routes (best), or it announces them by DHCP, or each host gets them.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from cpythonplus_sites.rendering.files import IPV4, Host, RenderedFile, word

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cpythonplus_sites.model import Network, Site, Subnet

NAME = "static-routes.md"
DEFAULT_ROUTE = IPv4Network("0.0.0.0/0")


def destinations(network: Network, site: Site) -> tuple[Subnet, ...]:
    """The subnets that LAN hosts reach through the gateway: other LANs, the tunnel addresses.

    They have the IP version of the gateway's LAN address, as a route needs a next hop of its own
    version.
    """
    lans = [lan for other in network.sites if other.name != site.name for lan in other.lans]
    return tuple(each for each in (*lans, network.tunnel) if each.version == site.gateway.version)


def option_121(routes: Iterable[tuple[Subnet, IPv4Address]]) -> str:
    """The value of DHCP's classless static routes as hexadecimal bytes, `18:c0:a8:14:...`.

    Each route has the prefix length, the significant bytes of the network, and the router
    (RFC 3442).
    """
    value = bytearray()
    for subnet, router in routes:
        value.append(subnet.prefixlen)
        value += subnet.network_address.packed[: (subnet.prefixlen + 7) // 8]
        value += router.packed
    return value.hex(":")


def instructions(
    network: Network, site: Site, host: Host, *, router: IPv4Address | None = None
) -> RenderedFile:
    """The text for people. router: the LAN's default gateway, if it is known.

    DHCP clients that use option 121 ignore the ordinary default route (option 3), so the option
    has to contain it too.
    """
    found = destinations(network, site)
    parts = [_head(network, site, found), _linux(site, found), _windows(site, found)]
    if site.gateway.version == IPV4:
        parts.append(_dhcp(site, found, router))
    return RenderedFile(host.folder / NAME, "\n".join(part for part in parts if part))


def _head(network: Network, site: Site, found: tuple[Subnet, ...]) -> str:
    rows = "".join(f"| {subnet} | {site.gateway} |\n" for subnet in found)
    other = sum(len(each.lans) for each in network.sites if each.name != site.name)
    left = other + 1 - len(found)
    note = (
        f"\n{left} destinations of the other address family are not listed: {word(site.name)} has "
        "one gateway address.\n"
    )
    return (
        f"# Static routes for hosts in {word(site.name)}\n\n"
        f"Needed where the default gateway of the hosts is not {site.gateway}. Best is one entry "
        "for each row in\nthe router that is; the rest of this file is for"
        " when that is not possible.\n"
        f"\n| destination | next hop |\n|---|---|\n{rows}" + (note if left else "")
    )


def _linux(site: Site, found: tuple[Subnet, ...]) -> str:
    via = site.gateway
    once = "".join(f"    ip -{each.version} route replace {each} via {via}\n" for each in found)
    networkd = "".join(
        f"    [Route]\n    Destination={each}\n    Gateway={via}\n\n" for each in found
    )
    manager = "".join(
        f'    nmcli connection modify "$NAME" +ipv{each.version}.routes "{each} {via}"\n'
        for each in found
    )
    return (
        f"## Linux\n\nUntil the next boot:\n\n{once}\n"
        f"systemd-networkd, in the `.network` file of the interface:\n\n{networkd}"
        f"NetworkManager; `nmcli connection show` lists the names:\n\n    NAME='...'\n{manager}"
        '    nmcli connection up "$NAME"\n'
    )


def _windows(site: Site, found: tuple[Subnet, ...]) -> str:
    if site.gateway.version == IPV4:
        lines = [
            f"    route -p add {each.network_address} mask {each.netmask} {site.gateway}\n"
            for each in found
        ]
    else:
        lines = [f"    route -p add {each} {site.gateway}\n" for each in found]
    return "## Windows\n\nAs administrator; `-p` keeps them:\n\n" + "".join(lines)


def _dhcp(site: Site, found: tuple[Subnet, ...], router: IPv4Address | None) -> str:
    gateway = IPv4Address(site.gateway.packed)
    routes: list[tuple[Subnet, IPv4Address]] = [(each, gateway) for each in found]
    if router is None:
        note = (
            "The default route must be in it as well, since clients then ignore option 3. It is "
            "missing\nhere: `cpythonplus-sites render --lan-router ADDRESS` puts it in.\n"
        )
    else:
        routes.insert(0, (DEFAULT_ROUTE, router))
        note = f"The first route is the default route, through {router}.\n"
    text = option_121(routes)
    bare = text.replace(":", "")
    listed = ",".join(f"{subnet},{hop}" for subnet, hop in routes)
    numbers = ", ".join(str(byte) for byte in bytes.fromhex(bare))
    return (
        "## DHCP, option 121\n\n"
        f"{note}\n"
        f"Value, hexadecimal (249 takes the same, for old Windows):\n\n    {text}\n\n    0x{bare}\n"
        f"\ndnsmasq:\n\n    dhcp-option=121,{listed}\n"
        "\nISC dhcpd:\n\n    option rfc3442 code 121 = array of unsigned integer 8;\n"
        f"    option rfc3442 {numbers};\n"
        '\nKea:\n\n    {"code": 121, "space": "dhcp4", "csv-format": false, '
        f'"data": "{bare}"}}\n'
    )
