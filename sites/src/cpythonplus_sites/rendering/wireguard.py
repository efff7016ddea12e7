"""A gateway's wg-quick configuration.

Four points differ from a usual configuration, each for a tested reason:

- The private key is in the file itself (0600), not behind `PostUp = wg set %i private-key`:
  `wg syncconf`, which `systemctl reload wg-quick@` calls, takes a missing key for "no key".
- `Table = off` and routes of our own: wg-quick would set routes only when the interface comes up,
  and ours could not be distinguished from the user's. `apply` sets the same ones.
- `PreUp` sets the `unreachable` routes if systemd has not done so before (closed.py).
- An endpoint that is a DNS name is set by a command for that peer alone, all of them at once and
  with a time limit. As `Endpoint =`, one name that does not resolve makes wg refuse the whole file,
  and all other links stay down with it; one after the other, each silent name delays the rest.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from cpythonplus_sites.rendering import closed
from cpythonplus_sites.rendering.files import (
    ROUTE_PROTOCOL,
    SECRET_MODE,
    Host,
    RenderedFile,
    word,
)

if TYPE_CHECKING:
    from cpythonplus_sites.model import Endpoint, Link, Network, Route, Site, Subnet

FOLDER = PurePosixPath("/etc/wireguard")
MARK = "`cpythonplus-sites apply` writes this file."
"""The mark that distinguishes our configuration from the user's."""

RESOLUTION_TIMEOUT_S = 10
"""The time limit for a silent resolver; the timer sets the endpoints that failed."""

SET_ENDPOINT = f"""\
use() {{ timeout {RESOLUTION_TIMEOUT_S} getent ahosts "$2" | while read -r a _; do \
case "$(ip route get "$a" 2>/dev/null)" in *" dev %i "*) continue;; esac; \
case $a in *:*) a="[$a]";; esac; wg set %i peer "$1" endpoint "$a:$3"; break; done; }}"""
"""A shell script that gives a peer the first address of a name that does not lead into this tunnel.
An office's own DNS may return one in the far LAN: packets to it would loop."""


def configuration(network: Network, site: Site, host: Host) -> RenderedFile | None:
    """The file of a site's WireGuard interface; None if all its links go over ssh."""
    links = links_by_wireguard(network, site)
    if not links:
        return None
    blocks = [_interface(network, site, host)]
    blocks += [
        _peer(network, site, network.site(link.other(site.name)), link, host) for link in links
    ]
    path = FOLDER / f"{word(site.interface)}.conf"
    secret = host.private_key is not None
    return RenderedFile(path, "\n".join(blocks), SECRET_MODE, secret)


def links_by_wireguard(network: Network, site: Site) -> tuple[Link, ...]:
    """The links that the site's WireGuard interface carries."""
    return tuple(link for link in network.links_of(site.name) if link.via == "wireguard")


def interface_mtu(network: Network, site: Site) -> int:
    """The MTU of the interface in bytes: an interface has one, so the smallest of its links'."""
    return min(link.mtu for link in links_by_wireguard(network, site))


def route_arguments(subnet: Subnet, device: str) -> str:
    """The arguments of `ip route add` or `replace` for every route of ours."""
    return f"{subnet} dev {device} proto {ROUTE_PROTOCOL}"


def is_dns_name(endpoint: Endpoint) -> bool:
    """Whether the endpoint has to be resolved."""
    try:
        ip_address(endpoint.host)
    except ValueError:
        return True
    return False


def _interface(network: Network, site: Site, host: Host) -> str:
    key = f"PrivateKey = {word(host.private_key)}" if host.private_key else "# PrivateKey = ..."
    lines = [
        f"# {word(site.name)} in {word(network.name)}; {MARK}",
        "[Interface]",
        key,
        f"ListenPort = {site.listen_port}",
        f"Address = {site.tunnel_address}/{site.tunnel_address.max_prefixlen}",
        f"MTU = {interface_mtu(network, site)}",
        "Table = off",
        f"PreUp = ip -force -batch {closed.batch_path(network, host)} || true",
        *(f"PostUp = {_route_command(route)}" for route in _routes(network, site)),
        *_endpoint_commands(network, site),
    ]
    return "\n".join(lines) + "\n"


def _routes(network: Network, site: Site) -> list[Route]:
    return [route for route in network.routes_from(site.name) if route.link.via == "wireguard"]


def _route_command(route: Route) -> str:
    """The command that adds a route; another program's route stays, and `plan` reports it."""
    words = route_arguments(route.subnet, "%i")
    return f"ip -{route.subnet.version} route add {words} || true"


def _endpoint_commands(network: Network, site: Site) -> list[str]:
    """One line for all endpoints, in parallel; a name that does not resolve must not stop the rest.

    `wait` succeeds even if a command that it waits for failed.
    """
    commands = []
    for link in links_by_wireguard(network, site):
        peer = network.site(link.other(site.name))
        if peer.public_key and peer.endpoint is not None and is_dns_name(peer.endpoint):
            host, port = word(peer.endpoint.host), peer.endpoint.port
            commands.append(f"use {word(peer.public_key)} {host} {port} &")
    return [f"PostUp = {SET_ENDPOINT}; {' '.join(commands)} wait"] if commands else []


def _peer(network: Network, site: Site, peer: Site, link: Link, host: Host) -> str:
    if not peer.public_key:
        return f"# {word(peer.name)} has no public key yet.\n"
    allowed = network.allowed_ips(site.name, peer.name)
    lines = [
        "[Peer]",
        f"# {word(peer.name)}",
        f"PublicKey = {word(peer.public_key)}",
        *_preshared(network, peer, host),
        f"AllowedIPs = {', '.join(map(str, allowed))}",
    ]
    if peer.endpoint is not None and not is_dns_name(peer.endpoint):
        lines.append(f"Endpoint = {_endpoint(peer.endpoint)}")
    elif peer.endpoint is not None:
        lines.append(f"# Endpoint: {_endpoint(peer.endpoint)}, set by the command above")
    if link.keepalive_s:
        lines.append(f"PersistentKeepalive = {link.keepalive_s}")
    return "\n".join(lines) + "\n"


def _preshared(network: Network, peer: Site, host: Host) -> list[str]:
    if not network.preshared:
        return []
    key = host.preshared_keys.get(peer.name)
    return [f"PresharedKey = {word(key)}" if key else "# PresharedKey = ..."]


def _endpoint(endpoint: Endpoint) -> str:
    host = word(endpoint.host) if ":" not in endpoint.host else str(ip_address(endpoint.host))
    return f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"
