"""Networks for property tests: any that the checks of the site file would let through."""

from __future__ import annotations

from base64 import b64encode
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from cpythonplus_sites.model import Endpoint, Link, Network, Site
from cpythonplus_sites.rendering import Host

if TYPE_CHECKING:
    from cpythonplus_sites.model import Subnet, Topology, Via

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
KEYS = st.binary(min_size=32, max_size=32).map(lambda data: b64encode(data).decode())
DNS_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]\.example\.(org|com)", fullmatch=True)
ADDRESSES = st.integers(0, 250).map(lambda n: f"198.51.100.{n}") | st.integers(0, 2**16 - 1).map(
    lambda n: f"2001:db8:ffff::{n:x}"
)
SSH_KEYS = KEYS.map(lambda key: f"ssh-ed25519 {_ssh_blob(key)} somebody@somewhere")


def _ssh_blob(key: str) -> str:
    """The wire form of an ed25519 public key (RFC 8709, section 4) in base64."""
    from base64 import b64decode

    kind = b"ssh-ed25519"
    parts = (len(kind).to_bytes(4, "big"), kind, (32).to_bytes(4, "big"), b64decode(key))
    return b64encode(b"".join(parts)).decode()


@st.composite
def endpoints(draw: st.DrawFn) -> Endpoint:
    return Endpoint(draw(DNS_NAMES | ADDRESSES), draw(st.integers(1, 65535)))


def _lans(number: int, *, version: int, count: int) -> tuple[Subnet, ...]:
    """Subnets that no other site's overlap."""
    if version == 4:
        return tuple(IPv4Network(f"10.{number}.{part}.0/24") for part in range(count))
    return tuple(IPv6Network(f"fd00:{number:x}:{part:x}::/64") for part in range(count))


@st.composite
def sites(draw: st.DrawFn, name: str, number: int, *, tunnel: Subnet, interface: str) -> Site:
    version = draw(st.sampled_from((4, 4, 6)))
    lans = _lans(number, version=version, count=draw(st.integers(1, 3)))
    other = 10 - version
    if draw(st.booleans()):
        lans += _lans(number, version=other, count=1)
    return Site(
        name=name,
        lans=lans,
        gateway=lans[0].network_address + 1,
        tunnel_address=tunnel.network_address + number + 1,
        interface=interface,
        listen_port=draw(st.integers(1, 65535)),
        endpoint=draw(endpoints()),
        lan_interface=draw(st.none() | st.just("eth1")),
        public_key=draw(st.none() | KEYS),
        ssh_endpoint=draw(st.none() | endpoints()),
        ssh_public_key=draw(st.none() | SSH_KEYS),
        ssh_host_key=draw(st.none() | SSH_KEYS),
    )


def _behind_nat(draw: st.DrawFn, found: list[Site], keep: str | None) -> list[Site]:
    """At most one site of a mesh, and any but the hub of a star, may have no endpoint at all."""
    from dataclasses import replace

    hidden = {site.name for site in found if keep is not None and site.name != keep}
    if keep is None:
        hidden = {draw(st.sampled_from(found)).name}
    return [
        replace(site, endpoint=None, ssh_endpoint=None)
        if site.name in hidden and draw(st.booleans())
        else site
        for site in found
    ]


@st.composite
def networks(draw: st.DrawFn, *, most_sites: int = 6) -> Network:
    """Two sites or more, WireGuard and ssh mixed, IPv4 and IPv6 mixed."""
    name = draw(NAMES)
    names = draw(st.lists(NAMES, min_size=2, max_size=most_sites, unique=True))
    tunnel = ip_network(draw(st.sampled_from(("172.31.0.0/24", "fd42::/64"))))
    interface = f"wg-{name}"[:15]
    found = [
        draw(sites(each, number, tunnel=tunnel, interface=interface))
        for number, each in enumerate(names)
    ]
    topology: Topology = draw(st.sampled_from(("mesh", "hub")))
    hub = draw(st.sampled_from(names)) if topology == "hub" else None
    found = _behind_nat(draw, found, hub)
    pairs = [tuple(sorted(pair)) for pair in combinations(names, 2) if hub is None or hub in pair]
    called = {site.name for site in found if site.ssh_endpoint is not None}
    links = [
        draw(_link((one, other), number, by_ssh=bool(called & {one, other})))
        for number, (one, other) in enumerate(pairs)
    ]
    preshared = draw(st.booleans())
    return Network(name, tunnel, topology, hub, preshared, tuple(found), tuple(links))


@st.composite
def _link(draw: st.DrawFn, ends: tuple[str, str], number: int, *, by_ssh: bool) -> Link:
    via: Via = draw(st.sampled_from(("wireguard", "wireguard", "ssh" if by_ssh else "wireguard")))
    mtu = draw(st.integers(1280, 1500))
    keepalive = draw(st.sampled_from((0, 25)))
    return Link(ends, via, mtu, keepalive, number if via == "ssh" else None)


@st.composite
def hosts(draw: st.DrawFn, network: Network) -> Host:
    """What a gateway of the network knows; with its secrets."""
    preshared = {site.name: draw(KEYS) for site in network.sites}
    return Host(private_key=draw(KEYS), preshared_keys=preshared)


@st.composite
def gateways(draw: st.DrawFn) -> tuple[Network, Site, Host]:
    """A network, one of its sites, and that site's own values."""
    network = draw(networks())
    site = draw(st.sampled_from(network.sites))
    return network, site, draw(hosts(network))


def example() -> Network:
    """Berlin, Paris behind NAT, and Oslo, whose link to Paris goes over ssh."""

    def site(
        number: int, name: str, endpoint: Endpoint | None, ssh_endpoint: Endpoint | None = None
    ) -> Site:
        lan = ip_network(f"192.168.{number * 10}.0/24")
        blob = _ssh_blob(b64encode(bytes([number] * 32)).decode())
        return Site(
            name=name,
            lans=(lan,),
            gateway=lan.network_address + 1,
            tunnel_address=ip_address(f"10.254.0.{number}"),
            interface="wg-acme",
            listen_port=51820,
            endpoint=endpoint,
            ssh_endpoint=ssh_endpoint,
            public_key=b64encode(bytes([number] * 32)).decode(),
            ssh_public_key=f"ssh-ed25519 {blob} {name}",
            ssh_host_key=f"ssh-ed25519 {blob}",
        )

    found = (
        site(1, "berlin", Endpoint("vpn.example.org", 51820)),
        site(2, "paris", None),
        site(3, "oslo", Endpoint("203.0.113.7", 51820), Endpoint("203.0.113.7", 22)),
    )
    links = (
        Link(("berlin", "paris"), "wireguard", 1420, 25),
        Link(("berlin", "oslo"), "wireguard", 1400, 25),
        Link(("oslo", "paris"), "ssh", 1420, 25, 7),
    )
    return Network("acme", ip_network("10.254.0.0/24"), "mesh", None, True, found, links)


def with_ipv6(network: Network) -> Network:
    """The network, whose first site has a LAN of IPv6 as well."""
    from dataclasses import replace

    first, *rest = network.sites
    first = replace(first, lans=(*first.lans, ip_network("fd00:10::/64")))
    return replace(network, sites=(first, *rest))


def lan_gateway(site: Site) -> IPv4Address:
    """The site's gateway, which is an IPv4 address in `example()`."""
    assert isinstance(site.gateway, IPv4Address)
    return site.gateway
