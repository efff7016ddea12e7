"""The network as it is meant to be: sites, the links between them, who is reached through whom.

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
    """Where a gateway is reached from outside; `host` is a DNS name or an address."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Site:
    """One office: its subnets, and the gateway that links them to the others.

    gateway: the gateway's address in the LAN.  tunnel_address: its end of every tunnel.
    endpoint: None behind NAT; more_endpoints: others, as of a second line to a provider, in the
    order in which they are tried when it does not answer.  second_port: of UDP, for a change of
    keys; None: the next one.  probe: a host of the LAN that `status` asks.
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
        """Where it can be called from outside, in the order in which that is tried."""
        return () if self.endpoint is None else (self.endpoint, *self.more_endpoints)

    @cached_property
    def subnets(self) -> tuple[Subnet, ...]:
        """All that lies at this site: its LANs and its end of the tunnels."""
        return (*self.lans, ip_network(self.tunnel_address))


@dataclass(frozen=True)
class Link:
    """A tunnel between two gateways; `ends` are the sites' names in sorted order.

    tunnel_number: of the `tun` device at both ends, for links over ssh.  fallback: what carries the
    packets while WireGuard gets no answer; None: nothing.  caller: the end that starts ssh; None:
    the endpoints decide it.
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
        """Whether there is an ssh tunnel for it, in use or kept ready."""
        return "ssh" in (self.via, self.fallback)

    def other(self, name: str) -> str:
        """The end that is not `name`."""
        return self.ends[1] if name == self.ends[0] else self.ends[0]


@dataclass(frozen=True)
class Relay:
    """A pair of sites without a tunnel of their own; `via`, another site, passes it on."""

    ends: tuple[str, str]
    via: str


@dataclass(frozen=True)
class Route:
    """From one gateway to a subnet of site `target`, through the link to its neighbour `peer`."""

    subnet: Subnet
    target: str
    peer: str
    link: Link


@dataclass(frozen=True)
class Network:
    """All sites with all links between them, defaults filled in.

    links: every pair of a mesh but those of `relays`; in a `hub` topology those between the hub and
    each other site.

    preshared_of_names: preshared keys come from the names of the sites, as up to version 0.2.

    revision: makes the file another one than an earlier file that says the same (agreement.py).

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
        """Of the sites that were asked for."""
        return {}

    @cached_property
    def _allowed_by_site(self) -> dict[str, dict[str, tuple[Subnet, ...]]]:
        """Of the sites that were asked for."""
        return {}

    def site(self, name: str) -> Site:
        """The site called `name`. Raises KeyError where there is none."""
        return self._site_by_name[name]

    def link(self, one: str, other: str) -> Link | None:
        """The direct link between two sites, or None."""
        ends = tuple(sorted((one, other)))
        return next((link for link in self.links_of(one) if link.ends == ends), None)

    def links_of(self, name: str) -> tuple[Link, ...]:
        """The links that end at site `name`."""
        return self._links_by_site.get(name, ())

    def relay(self, one: str, other: str) -> str | None:
        """The site that passes on what these two send each other, or None."""
        ends = tuple(sorted((one, other)))
        return next((relay.via for relay in self.relays if relay.ends == ends), None)

    def first_link(self, name: str, target: str) -> Link | None:
        """The link on which what site `name` sends to `target` leaves; None where there is none."""
        through = self.relay(name, target) or self.hub
        return self.link(name, target) or (self.link(name, through) if through else None)

    def routes_from(self, name: str) -> tuple[Route, ...]:
        """How the gateway of site `name` reaches every other one: directly, or through a third."""
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
        """What the gateway of site `name` sends to `peer` and accepts from it (its AllowedIPs)."""
        if name not in self._allowed_by_site:
            found: dict[str, list[Subnet]] = {}
            for route in self.routes_from(name):
                found.setdefault(route.peer, []).append(route.subnet)
            self._allowed_by_site[name] = {peer: tuple(each) for peer, each in found.items()}
        return self._allowed_by_site[name].get(peer, ())


def _directions(relay: Relay, name: str) -> list[tuple[str, str]]:
    """Of a relay of site `name`: who passes on, and to whom."""
    one, other = relay.ends
    return [(relay.via, other if one == name else one)] if name in relay.ends else []
