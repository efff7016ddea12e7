"""The files for forwarding between a gateway's LAN and the tunnels: sysctl, and nftables."""

from __future__ import annotations

from itertools import groupby
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cpythonplus_sites import advertised
from cpythonplus_sites.rendering import names, wireguard
from cpythonplus_sites.rendering.files import IPV4, IPV6, Host, RenderedFile, word
from cpythonplus_sites.rotation import spare_interface

if TYPE_CHECKING:
    from cpythonplus_sites.model import Link, Network, Site

SYSCTL = PurePosixPath("/etc/sysctl.d")
HEARD = "heard"
HEARD_S = 3600
"""The set of other gateways' messages about their files (agreement.py), and their lifetime."""

FIRST_PORT, PARTS = 47120, 4
"""The source ports of these messages; their target ports are the numbers that they carry."""

MOST_HEARD = 8192
HEADERS = {IPV4: 40, IPV6: 60}
"""The bytes of the IP and TCP headers, by version of IP: MSS = MTU less these."""


def sysctl_settings(network: Network) -> dict[str, str]:
    """The kernel's settings that forwarding needs, by their dotted names."""
    settings = {"net.ipv4.ip_forward": "1"}
    if any(subnet.version == IPV6 for site in network.sites for subnet in site.subnets):
        settings["net.ipv6.conf.all.forwarding"] = "1"
    return settings


def sysctl_path(network: Network) -> PurePosixPath:
    """The path of the file of sysctl.d."""
    return SYSCTL / f"60-cpythonplus-sites-{word(network.name)}.conf"


def sysctl(network: Network, host: Host) -> RenderedFile:
    """The file of sysctl.d: accept_ra, which keeps the default route, comes before forwarding."""
    lines = ["# Forwarding between the LAN and the tunnels."]
    settings = sysctl_settings(network)
    if "net.ipv6.conf.all.forwarding" in settings:
        lines += [
            "# With IPv6 forwarding the kernel no longer takes its own default route from router",
            "# advertisements, unless accept_ra is 2 for the interface to the provider.",
        ]
        lines += [f"-{advertised.setting(name)} = 2" for name in host.advertised]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    return RenderedFile(sysctl_path(network), "\n".join(lines) + "\n")


def nftables_path(network: Network, host: Host) -> PurePosixPath:
    """The path of the nftables file."""
    return host.folder / f"{word(network.name)}.nft"


def nftables(network: Network, site: Site, host: Host) -> RenderedFile:
    """A table of our own, made anew as one transaction; the user's tables are not touched.

    MSS is clamped in both directions, as the far gateway may run other software. Packets from a
    tunnel over ssh must come from the far side's subnets, as AllowedIPs require for WireGuard.
    Messages of other gateways about their files are kept in a set, behind that filter.
    """
    table = f"table inet {names.table(network)}"
    filters = [
        rule for link in _links_by_ssh(network, site) for rule in _sources(network, site, link)
    ]
    chains = [_chain("forward", "forward priority mangle", _clamping(network, site))]
    if filters:
        chains.append(_chain("sources", "prerouting priority raw", filters))
    if devices(network, site):
        chains = [_heard_set(site), *chains, _heard_chain(network, site)]
    text = f"{table}\ndelete {table}\n{table} {{\n" + "\n".join(chains) + "}\n"
    return RenderedFile(nftables_path(network, host), text)


def unit(network: Network, host: Host) -> RenderedFile:
    """The unit that loads the table, and again after nftables.service flushed all of them."""
    path = nftables_path(network, host)
    text = f"""\
[Unit]
Description=MSS clamping for the sites of {word(network.name)}
After=nftables.service
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=5
ExecStart=nft -f {path}
ExecReload=nft -f {path}
ExecStop=nft delete table inet {names.table(network)}

[Install]
WantedBy=multi-user.target nftables.service
"""
    return RenderedFile(names.UNITS / names.clamping_unit(network), text)


def devices(network: Network, site: Site) -> dict[str, int]:
    """The site's tunnel devices with their MTUs in bytes."""
    found = {names.tun_device(link): link.mtu for link in _links_by_ssh(network, site)}
    if wireguard.links_by_wireguard(network, site):
        found[word(site.interface)] = wireguard.interface_mtu(network, site)
    return found


def _links_by_ssh(network: Network, site: Site) -> list[Link]:
    return [link for link in network.links_of(site.name) if link.has_ssh]


def _chain(name: str, hook: str, rules: list[str]) -> str:
    head = f"\tchain {name} {{\n\t\ttype filter hook {hook}; policy accept;\n"
    return head + "".join(f"\t\t{rule}\n" for rule in rules) + "\t}\n"


def _clamping(network: Network, site: Site) -> list[str]:
    """The rules that lower the MSS; it is never raised (nft(8), EXTENSION HEADERS).

    They do not use `tcp flags syn / syn,rst`, which newer versions of nft print: 0.9.8 (Debian 11)
    cannot read that.
    """
    rules = []
    found = sorted(devices(network, site).items(), key=lambda each: (each[1], each[0]))
    for mtu, group in groupby(found, key=lambda each: each[1]):
        quoted = ", ".join(f'"{device}"' for device, _ in group)
        for direction in ("iifname", "oifname"):
            for version, headers in HEADERS.items():
                rules.append(
                    f"{direction} {{ {quoted} }} meta nfproto ipv{version} "
                    f"tcp flags & (syn | rst) == syn tcp option maxseg size set {mtu - headers}"
                )
    return rules


def _heard_set(site: Site) -> str:
    address = f"ipv{site.tunnel_address.version}_addr"
    return f"""\
\tset {HEARD} {{
\t\ttype {address} . inet_service . inet_service
\t\tsize {MOST_HEARD}
\t\tflags dynamic,timeout
\t\ttimeout {HEARD_S}s
\t}}
"""


def _heard_chain(network: Network, site: Site) -> str:
    """The chain that collects the messages, also from the second interface of a change of keys."""
    own = list(devices(network, site))
    own += [spare_interface(site.interface)] if word(site.interface) in own else []
    quoted = ", ".join(f'"{name}"' for name in own)
    field = "ip" if site.tunnel_address.version == IPV4 else "ip6"
    matches = f"iifname {{ {quoted} }} {field} saddr {network.tunnel}"
    matches += f" {field} daddr {site.tunnel_address}"
    matches += f" udp sport {FIRST_PORT}-{FIRST_PORT + PARTS - 1}"
    update = f"update @{HEARD} {{ {field} saddr . udp sport . udp dport }}"
    return _chain(HEARD, "prerouting priority -290", [f"{matches} {update} drop"])


def _sources(network: Network, site: Site, link: Link) -> list[str]:
    allowed = network.allowed_ips(site.name, link.other(site.name))
    rules = []
    for version, field in ((IPV4, "ip"), (IPV6, "ip6")):
        subnets = ", ".join(str(subnet) for subnet in allowed if subnet.version == version)
        match = f"{field} saddr != {{ {subnets} }}" if subnets else f"meta nfproto ipv{version}"
        rules.append(f'iifname "{names.tun_device(link)}" {match} drop')
    return rules
