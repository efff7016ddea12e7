"""The network as a Mermaid flowchart, which many pages of text can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network, Site


def mermaid(network: Network) -> str:
    """The flowchart: a node for each site, a line for each link, dotted for ssh."""
    ids = {site.name: f"s{number}" for number, site in enumerate(network.sites)}
    lines = ["flowchart LR"]
    lines += [f'    {ids[site.name]}["{_label(site)}"]' for site in network.sites]
    for link in network.links:
        arrow = "<-->" if link.via == "wireguard" else f"<-. ssh, tun{link.tunnel_number} .->"
        if link.fallback is not None:
            arrow = f"<-- else ssh, tun{link.tunnel_number} -->"
        lines.append(f"    {ids[link.ends[0]]} {arrow} {ids[link.ends[1]]}")
    return "\n".join(lines) + "\n"


def _label(site: Site) -> str:
    where = str(site.endpoint) if site.endpoint else "behind NAT"
    lines = [f"<b>{_escaped(site.name)}</b>", *map(str, site.lans), _escaped(where)]
    return "<br>".join(lines)


def _escaped(text: str) -> str:
    """Mermaid's own entities, by number: a quotation mark would end the label."""
    return "".join(
        each if each.isalnum() or each in "-.:_/[] " else f"#{ord(each)};" for each in text
    )
