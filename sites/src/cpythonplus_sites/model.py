"""The network as it is meant to be: sites, the links between them, and the relays.

Nothing here reads a file or touches a machine: plans, rendered files and diagrams are made from
these values alone, so they say the same on every host and need no root.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

Address = Union[IPv4Address, IPv6Address]
Subnet = Union[IPv4Network, IPv6Network]
Via = Literal["wireguard", "ssh"]
Topology = Literal["mesh", "hub"]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint at which a gateway is reached from outside; host: a DNS name or an address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Site:
    """One office: its subnets, and the gateway that links them to the others.

    gateway: the gateway's address in the LAN.  tunnel_address: its end of every tunnel.
    endpoint: None behind NAT; more_endpoints: others, such as a second line to a provider, in the
    order in which they are tried if `endpoint` does not answer.  second_port: the UDP port for a
    change of keys; None: the next one.  probe: a host of the LAN that `status` pings.
    next_public_key: the key that a rotation is changing to.
    """

    name: str
    lans: tuple[Subnet, ...]
    gateway: Address
    tunnel_address: Address
    interface: str
    listen_port: int
    endpoint: Endpoint | None = None
    lan_interface: str | None = None
    public_key: str | None = None
    next_public_key: str | None = None
    ssh_endpoint: Endpoint | None = None
    ssh_public_key: str | None = None
    ssh_host_key: str | None = None
    more_endpoints: tuple[Endpoint, ...] = ()
    second_port: int | None = None
    probe: Address | None = None

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints, in the order in which they are tried."""
        return () if self.endpoint is None else (self.endpoint, *self.more_endpoints)

    @cached_property
    def subnets(self) -> tuple[Subnet, ...]:
        """The subnets of this site: its LANs and its end of the tunnels."""
        return (*self.lans, ip_network(self.tunnel_address))


@dataclass(frozen=True)
class Link:
    """A tunnel between two gateways; `ends` are the sites' names in sorted order.

    tunnel_number: the number of the `tun` device at both ends, for links over ssh.  fallback: the
    tunnel that carries the packets while WireGuard gets no answer, or None.  caller: the end that
    starts ssh; None: the endpoints decide.
    """

    ends: tuple[str, str]
    via: Via
    mtu: int
    keepalive_s: int
    tunnel_number: int | None = None
    fallback: Literal["ssh"] | None = None
    caller: str | None = None

    @property
    def has_ssh(self) -> bool:
        """Whether the link has an ssh tunnel, in use or kept ready."""
        return "ssh" in (self.via, self.fallback)

    def other(self, name: str) -> str:
        """The end that is not `name`."""
        return self.ends[1] if name == self.ends[0] else self.ends[0]


@dataclass(frozen=True)
class Relay:
    """A pair of sites without a tunnel between them; another site, `via`, forwards its packets."""

    ends: tuple[str, str]
    via: str


@dataclass(frozen=True)
class Route:
    """A route of a gateway to a subnet of site `target`, through the link to neighbour `peer`."""

    subnet: Subnet
    target: str
    peer: str
    link: Link


@dataclass(frozen=True)
class Network:
    """All sites with all links between them, defaults filled in.

    links: every pair of a mesh except those of `relays`; in a `hub` topology, the pairs of the hub
    and each other site.

    preshared_of_names: preshared keys are derived from the names of the sites, as up to version
    0.2.

    revision: makes the file different from an earlier file with the same contents (agreement.py).

    The indexes are made once: a mesh of 500 sites has 124,750 links.
    """

    name: str
    tunnel: Subnet
    topology: Topology
    hub: str | None
    preshared: bool
    sites: tuple[Site, ...]
    links: tuple[Link, ...]
    relays: tuple[Relay, ...] = ()
    preshared_of_names: bool = False
    revision: int = 0

    @cached_property
    def _site_by_name(self) -> dict[str, Site]:
        return {site.name: site for site in reversed(self.sites)}

    @cached_property
    def _links_by_site(self) -> dict[str, tuple[Link, ...]]:
        found: dict[str, list[Link]] = {}
        for link in self.links:
            for name in link.ends:
                found.setdefault(name, []).append(link)
        return {name: tuple(links) for name, links in found.items()}

    @cached_property
    def _routes_by_site(self) -> dict[str, tuple[Route, ...]]:
        """The cache of `routes_from`."""
        return {}

    @cached_property
    def _allowed_by_site(self) -> dict[str, dict[str, tuple[Subnet, ...]]]:
        """The cache of `allowed_ips`."""
        return {}

    def site(self, name: str) -> Site:
        """The site called `name`. Raises KeyError if there is none."""
        return self._site_by_name[name]

    def link(self, one: str, other: str) -> Link | None:
        """The direct link between two sites, or None."""
        ends = tuple(sorted((one, other)))
        return next((link for link in self.links_of(one) if link.ends == ends), None)

    def links_of(self, name: str) -> tuple[Link, ...]:
        """The links that end at site `name`."""
        return self._links_by_site.get(name, ())

    def relay(self, one: str, other: str) -> str | None:
        """The site that relays between these two, or None."""
        ends = tuple(sorted((one, other)))
        return next((relay.via for relay in self.relays if relay.ends == ends), None)

    def first_link(self, name: str, target: str) -> Link | None:
        """The link on which packets from site `name` to `target` leave; None if there is none."""
        through = self.relay(name, target) or self.hub
        return self.link(name, target) or (self.link(name, through) if through else None)

    def routes_from(self, name: str) -> tuple[Route, ...]:
        """The routes from site `name` to all other sites, directly or through a third one."""
        if name not in self._routes_by_site:
            self._routes_by_site[name] = tuple(self._routes(name))
        return self._routes_by_site[name]

    def _routes(self, name: str) -> Iterator[Route]:
        links = {link.other(name): link for link in self.links_of(name)}
        relays = {other: one for each in self.relays for one, other in _directions(each, name)}
        for target in self.sites:
            through = relays.get(target.name, self.hub)
            link = links.get(target.name) or links.get(through or "")
            if target.name == name or link is None:
                continue
            peer = link.other(name)
            yield from (Route(subnet, target.name, peer, link) for subnet in target.subnets)

    def allowed_ips(self, name: str, peer: str) -> tuple[Subnet, ...]:
        """The subnets that site `name` sends to `peer` and accepts from it (its AllowedIPs)."""
        if name not in self._allowed_by_site:
            found: dict[str, list[Subnet]] = {}
            for route in self.routes_from(name):
                found.setdefault(route.peer, []).append(route.subnet)
            self._allowed_by_site[name] = {peer: tuple(each) for peer, each in found.items()}
        return self._allowed_by_site[name].get(peer, ())


def _directions(relay: Relay, name: str) -> list[tuple[str, str]]:
    """The pairs (relaying site, target) of a relay, for packets from site `name`."""
    one, other = relay.ends
    return [(relay.via, other if one == name else one)] if name in relay.ends else []
