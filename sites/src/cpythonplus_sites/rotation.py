"""The change of a gateway's key without packet loss: the tunnels of each stage. No I/O.

On one interface a subnet belongs to one peer, so the old and the new key of a gateway cannot both
carry its LAN: packets in flight at the moment of the change would be dropped. So there is a second
interface during the change, at every gateway that is linked to the changing one:

    stage      file: public_key, next_public_key   first interface   second   routes prefer
    idle       old,  -                             old key           -        first
    begun      old,  new                           old key           new key  second
    switched   new,  new                           new key           new key  first
    idle       new,  -                             new key           -        first

    aborted    old,  -    (other gateways: idle)   old key           new key  first

Both interfaces accept the same subnets, so the two ends of a link may move their routes one after
the other. A route moves only to an interface whose session with that peer is alive, whatever the
stage prefers (`carrier`): a gateway without the new file keeps its routes, and so do those that
send to it.

Rejected: moving AllowedIPs from peer to peer on one interface loses what is in flight, and the
packets of the end that moves second; a tunnel inside the tunnel ends with the outer one.

Both interfaces need a loose reverse path filter (rp_filter 2) meanwhile: a packet may come in
through one of them while the route back still goes through the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cpythonplus_sites.model import Endpoint

if TYPE_CHECKING:
    from collections.abc import Collection

    from cpythonplus_sites.model import Link, Network, Site, Subnet

Stage = Literal["idle", "begun", "switched", "aborted"]

FRESH_S = 180
"""A WireGuard session is refused when its handshake is older (whitepaper, 6.1: Reject-After)."""

SPARE_KEEPALIVE_S = 25
_MAX_PORT = 65535
_MAX_NAME = 15


@dataclass(frozen=True)
class Peer:
    """The far end of a link on one interface.

    preferred: whether routes to it should go through this interface once its session is alive.
    """

    site: str
    public_key: str
    allowed_ips: tuple[Subnet, ...]
    endpoint: Endpoint | None
    keepalive_s: int
    preferred: bool
    more_endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True)
class Tunnel:
    """A WireGuard interface of a gateway.

    key: its private key in the host folder.  spare: the second interface, during a change.
    Both interfaces have the site's tunnel_address.
    """

    interface: str
    key: Literal["current", "next"]
    spare: bool
    listen_port: int
    mtu: int
    peers: tuple[Peer, ...]


def stage_of(site: Site, *, next_key: str | None = None) -> Stage:
    """The stage of the change of a site's key.

    next_key: the public half of the next key in this host's folder, for the site of this host;
    the other gateways go by the file alone.
    """
    if site.next_public_key is None:
        return "idle" if next_key in (None, site.public_key) else "aborted"
    return "switched" if site.next_public_key == site.public_key else "begun"


def wanted_tunnels(network: Network, name: str, stage: Stage | None = None) -> tuple[Tunnel, ...]:
    """The WireGuard interfaces that the gateway of site `name` should have, the lasting one first.

    stage: that of this site's own change, from `stage_of`; by default as the file says. There are
    none if no link of the site is over WireGuard. Peers without a public key are left out.
    """
    site = network.site(name)
    stage = stage or stage_of(site)
    links = [link for link in network.links_of(name) if link.via == "wireguard"]
    if not links:
        return ()
    first = _tunnel(network, site, links, stage, spare=False)
    changing = [
        link
        for link in links
        if stage != "idle" or stage_of(network.site(link.other(name))) != "idle"
    ]
    if not changing:
        return (first,)
    return (first, _tunnel(network, site, changing, stage, spare=True))


def carries(site: Site, *, spare: bool) -> str:
    """The name of a site's first or second interface."""
    return spare_interface(site.interface) if spare else site.interface


def spare_interface(interface: str) -> str:
    """The name of the second interface, within the 15 characters that Linux allows."""
    return f"{interface[: _MAX_NAME - 2]}-n"


def spare_port(port: int) -> int:
    """The UDP port of the second interface if the file names none.

    It has to be reachable as the first one is.
    """
    return port + 1 if port < _MAX_PORT else port - 1


def second_port(site: Site) -> int:
    """The port at which the second interface of a site listens."""
    return site.second_port or spare_port(site.listen_port)


def carrier(
    tunnels: tuple[Tunnel, ...],
    peer: str,
    alive: Collection[tuple[str, str]],
    current: str | None = None,
) -> str:
    """The interface for the routes to the subnets behind site `peer`.

    alive: interface and public key of the sessions that are younger than FRESH_S seconds.
    current: the interface that the routes have now. Raises KeyError for an unknown peer.
    """
    known = {t.interface: p for t in tunnels for p in t.peers if p.site == peer}
    if not known:
        raise KeyError(peer)
    fresh = [name for name, end in known.items() if (name, end.public_key) in alive]
    chosen = next((name for name in fresh if known[name].preferred), None)
    if chosen is None and current in (fresh or known):
        chosen = current
    return chosen or next(iter(fresh or known))


def awaited(tunnels: tuple[Tunnel, ...], alive: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """The sites that change their key and whose routes wait for a session on another interface.

    The changing site itself awaits none: there, the other sites come later.
    """
    if len(tunnels) < 2 or tunnels[1].key == "next":  # noqa: PLR2004
        return ()
    changing = {peer.site for peer in tunnels[1].peers}
    return tuple(
        peer.site
        for tunnel in tunnels
        for peer in tunnel.peers
        if peer.preferred
        and peer.site in changing
        and (tunnel.interface, peer.public_key) not in alive
    )


def _tunnel(
    network: Network, site: Site, links: list[Link], stage: Stage, *, spare: bool
) -> Tunnel:
    peers = (_peer(network, site.name, link, stage, spare=spare) for link in links)
    return Tunnel(
        interface=carries(site, spare=spare),
        key="next" if spare and stage != "idle" else "current",
        spare=spare,
        listen_port=second_port(site) if spare else site.listen_port,
        mtu=min(link.mtu for link in links),
        peers=tuple(peer for peer in peers if peer is not None),
    )


def _peer(network: Network, name: str, link: Link, stage: Stage, *, spare: bool) -> Peer | None:
    far = network.site(link.other(name))
    key, endpoints, keepalive_s = far.public_key, far.endpoints, link.keepalive_s
    if spare:
        key = far.next_public_key or key
        endpoints = tuple(
            Endpoint(x.host, far.second_port or spare_port(x.port)) for x in endpoints
        )
        # Without keepalive there is no handshake before traffic, and no traffic before a handshake.
        keepalive_s = keepalive_s or SPARE_KEEPALIVE_S
    if key is None:
        return None
    return Peer(
        site=far.name,
        public_key=key,
        allowed_ips=network.allowed_ips(name, far.name),
        endpoint=endpoints[0] if endpoints else None,
        more_endpoints=endpoints[1:],
        keepalive_s=keepalive_s,
        preferred=("begun" in (stage, stage_of(far))) == spare,
    )
