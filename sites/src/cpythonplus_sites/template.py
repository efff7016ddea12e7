"""The site file that `sites init` writes: comments, and blanks to fill in."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus_sites.model import Subnet, Topology

_COMMENTS_COLUMN = 32
_HEAD = """\
# Sites and the links between them. Every gateway has the same copy of this file; there are only
# public keys in it. Fill in what is empty, then:  cpythonplus-sites check

[network]
name = "{name}"\t# the interface is wg-{name}
tunnel = "{tunnel}"\t# addresses of the tunnels' ends; no LAN may overlap it
topology = "{topology}"{words}
{hub}mtu = 1420\t# bytes; fits into packets of 1500 bytes, also over IPv6
keepalive = 25\t# seconds; keeps the path through NAT open
preshared = true\t# a second secret for each pair of sites
"""

_SITE = """
[sites.{site}]
lan = [""]\t# subnets behind the gateway, such as "192.168.10.0/24"
gateway = ""\t# the gateway's address in the LAN, such as "192.168.10.1"
tunnel_address = "{address}"
{endpoint}
# public_key: `cpythonplus-sites keygen --site {site}` on the gateway writes it here
"""

_ENDPOINT = 'endpoint = ""\t# HOST:PORT from outside, such as "vpn.example.org:51820"'
_BEHIND_NAT = '# endpoint = ""\t# the same, if it can be called from outside'

_TAIL = """
# A link that differs from the rest:
#
# [[links]]
# between = ["{first}", "{second}"]
# via = "ssh"\t# where UDP does not get through
# tunnel_number = 7\t# tun7 at both ends
"""


def template(name: str, tunnel: Subnet, topology: Topology, sites: Sequence[str]) -> str:
    """The text of a new site file.

    The first of at least two sites has an endpoint and is the hub, if there is one. Raises
    ValueError if `tunnel` has too few addresses.
    """
    addresses = list(islice(tunnel.hosts(), len(sites)))
    if len(addresses) < len(sites):
        raise ValueError(f"{tunnel} does not have enough addresses for {len(sites)} sites")
    words = '\t# or "hub": all links to one site' if topology == "mesh" else ""
    text = _HEAD.format(
        name=name,
        tunnel=tunnel,
        topology=topology,
        words=words,
        hub=f'hub = "{sites[0]}"\n' if topology == "hub" else "",
    )
    for site, address in zip(sites, addresses):
        endpoint = _ENDPOINT if site == sites[0] else _BEHIND_NAT
        text += _SITE.format(site=site, address=address, endpoint=endpoint)
    text += _TAIL.format(first=sites[0], second=sites[1])
    return "".join(map(_aligned, text.splitlines(keepends=True)))


def _aligned(line: str) -> str:
    """The line with its comment, behind a tab, in the comments' column."""
    left, tab, comment = line.partition("\t")
    return f"{left:<{_COMMENTS_COLUMN}}{comment}" if tab else line
