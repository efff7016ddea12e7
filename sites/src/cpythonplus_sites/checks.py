"""The problems of a network as a whole, though each of its values is well-formed.

The functions are pure: they go from the stanzas of a file to problems. A value that is missing, or
that was wrong by itself, is skipped here, so that a mistake is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from cpythonplus_sites.schema import LinkStanza, NetworkStanza, SiteStanza, Wrong
from cpythonplus_sites.values import INTERFACE_LENGTH, is_v6

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from cpythonplus_sites.model import Address, Endpoint, Subnet
    from cpythonplus_sites.problems import Keys
    from cpythonplus_sites.schema import FileStanzas

MOST_SITES = 500
"""The most sites; a mesh of them has a link for each pair: 124,750."""
LEAST_MTU_OF_IPV6 = 1280  # RFC 8200, section 5
ALL_ADDRESSES = (31, 127)
"""The prefix lengths from which the first and last address are hosts (RFC 3021, RFC 6164)."""
NOT_INTERFACES = ("lo", "all", "default")
PAIR = 2
DEFAULT_PORT = 51820
TUNNELS = ("wireguard", "ssh")
"""The kinds of tunnel in `via` of a link; anything else is the name of the site that relays."""
OF_TUNNELS = ("mtu", "keepalive", "tunnel_number", "fallback", "caller")


class Subject:
    """A file under examination: its stanzas, and the values that were already wrong."""

    def __init__(self, file: FileStanzas, wrong: Iterable[Wrong] = ()) -> None:
        self.network = file.network or NetworkStanza()
        self.sites: dict[str, SiteStanza] = dict(file.sites or {})
        self.links = file.links
        self.wrong = frozenset(one.keys for one in wrong)

    def site_keys(self, name: str, *keys: str | int) -> Keys:
        """The way to a value of a site."""
        return ("sites", name, *keys)

    def is_wrong(self, *keys: str | int) -> bool:
        """Whether the value was reported as wrong."""
        return keys in self.wrong

    @cached_property
    def linked(self) -> dict[tuple[str, str], LinkStanza]:
        """Each pair of sites that has a link, names sorted, with its stanza or an empty one."""
        return {pair: link for pair, link in self._by_pair.items() if link.via in TUNNELS}

    @cached_property
    def relayed(self) -> dict[tuple[str, str], str]:
        """Each pair of sites, names sorted, that a third one relays for, with that site."""
        return {pair: x.via for pair, x in self._by_pair.items() if x.via not in TUNNELS}

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str], LinkStanza]:
        stanzas, usual = self._stanzas(), LinkStanza()
        return {pair: stanzas.get(pair, usual) for pair in self._pairs()}

    def _stanzas(self) -> dict[tuple[str, ...], LinkStanza]:
        return {tuple(sorted(map(str, link.between or ()))): link for link in reversed(self.links)}

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for one, other in combinations(sorted(self.sites), PAIR):
            if self.network.topology == "mesh" or self.network.hub in (one, other):
                yield one, other

    def has_ipv6(self) -> bool:
        """Whether IPv6 goes through the tunnels."""
        return any(is_v6(claim.subnet) for claim in claims(self))


def check(file: FileStanzas, wrong: Iterable[Wrong] = ()) -> list[Wrong]:
    """All problems that keep the network from working; `wrong`: those of its single values."""
    subject = Subject(file, wrong)
    if len(subject.sites) > MOST_SITES:
        text = f"{len(subject.sites)} sites; at most {MOST_SITES} can be linked"
        return [Wrong(("sites",), text)]
    found = [one for examine in EXAMINATIONS for one in examine(subject)]
    return [one for one in dict.fromkeys(found) if one.keys not in subject.wrong]


@dataclass(frozen=True)
class Claim:
    """A subnet that a site claims; site: None for the tunnel range."""

    subnet: Subnet
    keys: Keys
    order: int
    site: str | None = None

    def named(self, by: str | None) -> str:
        """The claim's description in a message about the claim of another site, `by`."""
        if self.site is None:
            return f"the tunnel range {self.subnet}"
        return f"{self.subnet} of {'the same site' if self.site == by else self.site}"


def claims(subject: Subject) -> list[Claim]:
    """The tunnel range and all LANs, in the order of the file."""
    found = []
    if subject.network.tunnel is not None:
        found.append(Claim(subject.network.tunnel, ("network", "tunnel"), 0))
    for name, site in subject.sites.items():
        for index, lan in enumerate(site.lan or ()):
            if lan is not None:
                found.append(Claim(lan, subject.site_keys(name, "lan", index), len(found), name))
    return found


def overlaps(subject: Subject) -> Iterator[Wrong]:
    """Subnets that overlap. They are nested or disjoint: in sorted order the outer one is first."""
    around: list[Claim] = []
    for claim in sorted(claims(subject), key=_place):
        while around and not _holds(around[-1].subnet, claim.subnet.network_address):
            around.pop()
        if around:
            earlier, later = sorted((around[-1], claim), key=lambda one: one.order)
            text = f"{later.subnet} overlaps {earlier.named(later.site)}"
            yield Wrong(later.keys, text)
        around.append(claim)


def _place(claim: Claim) -> tuple[int, int, int]:
    subnet = claim.subnet
    return subnet.version, int(subnet.network_address), subnet.prefixlen


def _holds(subnet: Subnet, address: Address) -> bool:
    return subnet.version == address.version and address in subnet


def lans(subject: Subject) -> Iterator[Wrong]:
    """LANs that no router forwards, and sites without a LAN."""
    for claim in claims(subject):
        subnet = claim.subnet
        if subnet.prefixlen == 0:
            yield Wrong(claim.keys, f"{subnet} covers all addresses")
        elif subnet.is_loopback or subnet.is_multicast or subnet.is_link_local:
            yield Wrong(claim.keys, f"{subnet} is never routed (loopback, multicast, link-local)")
    for name, site in subject.sites.items():
        if site.lan == []:
            yield Wrong(subject.site_keys(name, "lan"), "it contains no subnet")


def gateways(subject: Subject) -> Iterator[Wrong]:
    """Gateways that are not a host of one of their LANs."""
    for name, site in subject.sites.items():
        keys, gateway = subject.site_keys(name, "gateway"), site.gateway
        if gateway is None or not site.lan or None in site.lan:
            continue
        lan = next((lan for lan in site.lan if lan and _holds(lan, gateway)), None)
        if lan is None:
            yield Wrong(keys, f"{gateway} is in none of this site's LANs")
        elif (kind := _no_host(lan, gateway)) is not None:
            yield Wrong(keys, f"{gateway} is the {kind} address of {lan}, not a host's")


def probes(subject: Subject) -> Iterator[Wrong]:
    """Probe hosts outside of their site's LANs, or equal to the gateway, which is probed anyway."""
    for name, site in subject.sites.items():
        keys, probe = subject.site_keys(name, "probe"), site.probe
        if probe is None or not site.lan or None in site.lan:
            continue
        if probe == site.gateway:
            yield Wrong(keys, f"{probe} is the gateway, which is asked anyway; name a host")
        elif not any(_holds(lan, probe) for lan in site.lan if lan):
            yield Wrong(keys, f"{probe} is in none of this site's LANs")


def tunnel_addresses(subject: Subject) -> Iterator[Wrong]:
    """Tunnel addresses that are not hosts of the tunnel range."""
    tunnel = subject.network.tunnel
    for name, site in subject.sites.items():
        keys, address = subject.site_keys(name, "tunnel_address"), site.tunnel_address
        if address is None or tunnel is None:
            continue
        if not _holds(tunnel, address):
            yield Wrong(keys, f"{address} is not in the tunnel range {tunnel}")
        elif (kind := _no_host(tunnel, address)) is not None:
            yield Wrong(keys, f"{address} is the {kind} address of {tunnel}, not a host's")


def _no_host(subnet: Subnet, address: Address) -> str | None:
    if subnet.prefixlen >= ALL_ADDRESSES[is_v6(subnet)]:
        return None
    if address == subnet.network_address:
        return "network" if not is_v6(subnet) else "routers' anycast"
    is_last = address == subnet.broadcast_address and not is_v6(subnet)
    return "broadcast" if is_last else None


def endpoints(subject: Subject) -> Iterator[Wrong]:
    """Endpoints that nobody can call from outside, as addresses of the network itself."""
    ranges = claims(subject)
    for name, site in subject.sites.items():
        if site.more_endpoints and site.endpoint is None:
            way = subject.site_keys(name, "more_endpoints")
            yield Wrong(way, "the first one belongs into endpoint")
    for keys, endpoint in _endpoints(subject):
        address = as_address(endpoint)
        if address is None:
            continue
        if address.is_loopback or address.is_multicast or address.is_unspecified:
            yield Wrong(keys, f"{address} is an address that no other host can reach")
        for claim in ranges:
            if _holds(claim.subnet, address):
                yield Wrong(keys, f"{address} is inside {claim.named(str(keys[1]))}")


def _endpoints(subject: Subject) -> Iterator[tuple[Keys, Endpoint]]:
    for name, site in subject.sites.items():
        if site.endpoint is not None:
            yield subject.site_keys(name, "endpoint"), site.endpoint
        for index, each in enumerate(site.more_endpoints or ()):
            if each is not None:
                yield subject.site_keys(name, "more_endpoints", index), each
        if site.ssh_endpoint is not None:
            yield subject.site_keys(name, "ssh_endpoint"), site.ssh_endpoint


def as_address(endpoint: Endpoint) -> Address | None:
    """The address of an endpoint that is written as one, None for a DNS name."""
    try:
        return ip_address(endpoint.host)
    except ValueError:
        return None


class _Use(NamedTuple):
    """A value that only one site may have."""

    value: Hashable
    keys: Keys
    owner: str


UNIQUE = (
    (("tunnel_address",), "tunnel address"),
    (("endpoint",), "endpoint"),
    (("ssh_endpoint",), "ssh endpoint"),
    (("public_key", "next_public_key"), "key"),
    (("ssh_public_key",), "ssh key"),
)


def duplicates(subject: Subject) -> Iterator[Wrong]:
    """Values that must be unique among the sites, and are not."""
    for fields, what in UNIQUE:
        uses = [
            _Use(_told_apart_by(value), subject.site_keys(name, key), name)
            for name, site in subject.sites.items()
            for key in fields
            if (value := getattr(site, key)) is not None and not _is_in_change(site, key)
        ]
        if "endpoint" in fields:
            uses += [
                _Use(each, subject.site_keys(name, "more_endpoints", index), name)
                for name, site in subject.sites.items()
                for index, each in enumerate(site.more_endpoints or ())
                if each is not None
            ]
        yield from _repeated(uses, what)


def _is_in_change(site: SiteStanza, key: str) -> bool:
    """Whether `key` repeats the new key, as it does between `rotate switch` and `finish`."""
    return key == "next_public_key" and site.next_public_key == site.public_key


def _told_apart_by(value: object) -> Hashable:
    """The part of a value that must be unique: an ssh key's kind and data, without its comment."""
    return " ".join(value.split(" ")[:PAIR]) if isinstance(value, str) else value


def _repeated(uses: list[_Use], what: str) -> Iterator[Wrong]:
    first: dict[Hashable, _Use] = {}
    for use in uses:
        other = first.setdefault(use.value, use)
        if other is not use:
            yield Wrong(use.keys, f"the same {what} is used by {other.owner}")


def hub(subject: Subject) -> Iterator[Wrong]:
    """A hub that is not one of the sites, or that does not fit the topology."""
    name, keys = subject.network.hub, ("network", "hub")
    if subject.network.topology == "mesh":
        if name is not None:
            yield Wrong(keys, 'is for topology = "hub"; this network is a mesh')
    elif name is None:
        yield Wrong(keys, 'topology = "hub" requires the name of a site here')
    elif name not in subject.sites:
        yield Wrong(keys, f"there is no site {name}")


def link_stanzas(subject: Subject) -> Iterator[Wrong]:
    """Links with wrong ends, or with keys that do not belong to their kind."""
    seen: set[frozenset[str]] = set()
    for index, link in enumerate(subject.links):
        keys: Keys = ("links", index)
        yield from _kind(link, keys)
        ends = link.between
        if ends is None or None in ends:
            continue
        names = frozenset(map(str, ends))
        problem = _ends(subject, sorted(names), len(ends))
        if problem is None and names in seen:
            problem = f"{' and '.join(map(str, ends))} are already linked by a table above"
        if problem is not None:
            yield Wrong((*keys, "between"), problem)
        seen.add(names)


def _ends(subject: Subject, names: list[str], count: int) -> str | None:
    if count != PAIR or len(names) != PAIR:
        return "must name two different sites"
    unknown = [name for name in names if name not in subject.sites]
    if unknown:
        return f"there is no site {' and no site '.join(unknown)}"
    if subject.network.topology == "hub" and subject.network.hub not in (None, *names):
        return f"every link has the hub, {subject.network.hub}, at one end"
    return None


def _kind(link: LinkStanza, keys: Keys) -> Iterator[Wrong]:
    if link.via not in TUNNELS:
        for key in OF_TUNNELS:
            if getattr(link, key) is not None:
                yield Wrong((*keys, key), f"is for links of their own; {link.via} relays this one")
        return
    if link.via == "ssh" and link.fallback is not None:
        yield Wrong((*keys, "fallback"), 'is for links over WireGuard; this one has via = "ssh"')
    if link.caller is not None and not has_ssh(link):
        yield Wrong((*keys, "caller"), 'is for links with via = "ssh" or fallback = "ssh"')
    keys = (*keys, "tunnel_number")
    if has_ssh(link) and link.tunnel_number is None:
        what = 'via = "ssh"' if link.via == "ssh" else 'fallback = "ssh"'
        yield Wrong(keys, f"is missing; {what} needs one: 7 is tun7 at both ends")
    if not has_ssh(link) and link.tunnel_number is not None:
        yield Wrong(keys, 'is for links with via = "ssh" or fallback = "ssh"')


def callers(subject: Subject) -> Iterator[Wrong]:
    """Links whose `caller` is not one of the ends, or whose other end cannot be called by ssh."""
    for index, link in enumerate(subject.links):
        ends, keys = list(map(str, link.between or ())), ("links", index, "caller")
        if link.caller is None or not has_ssh(link) or len(ends) != PAIR:
            continue
        if link.caller not in ends:
            yield Wrong(keys, f"{link.caller} is not one of the two")
            continue
        called = ends[1] if link.caller == ends[0] else ends[0]
        if called in subject.sites and not _is_reached(subject, called, "ssh_endpoint"):
            yield Wrong(keys, f"{called}, which would be called, has no ssh_endpoint")


def has_ssh(link: LinkStanza) -> bool:
    """Whether the link has an ssh tunnel, in use or kept ready."""
    return "ssh" in (link.via, link.fallback)


def relays(subject: Subject) -> Iterator[Wrong]:
    """Relays without a direct link to both of the other sites."""
    relayed = subject.relayed
    for index, link in enumerate(subject.links):
        keys: Keys = ("links", index, "via")
        ends = list(map(str, link.between or ()))
        if link.via in TUNNELS:
            continue
        if link.via not in subject.sites:
            yield Wrong(keys, f'is neither "wireguard" nor "ssh", and there is no site {link.via}')
        elif link.via in ends:
            yield Wrong(keys, f"{link.via} is one of the two; it is to be a third site")
        elif subject.network.topology == "hub":
            yield Wrong(keys, 'a relay is for topology = "mesh"; the hub is one for all others')
        else:
            for end in ends:
                if tuple(sorted((end, link.via))) in relayed:
                    text = f"{link.via} has no link of its own with {end}: that is relayed, too"
                    yield Wrong(keys, text)


def reachability(subject: Subject) -> Iterator[Wrong]:
    """Links of which no end can be called by the other."""
    order = {name: place for place, name in enumerate(subject.sites)}
    if subject.network.topology == "hub":
        order[str(subject.network.hub)] = len(order)  # the problem is reported at the hub, once
    alone: dict[tuple[str, str], list[str]] = {}
    reached = {
        key: {name for name in subject.sites if _is_reached(subject, name, key)}
        for key in ("endpoint", "ssh_endpoint")
    }
    for ends, link in subject.linked.items():
        wanted = ["endpoint"] * (link.via == "wireguard") + ["ssh_endpoint"] * has_ssh(link)
        for key in wanted:
            if reached[key].isdisjoint(ends):
                one, other = sorted(ends, key=order.__getitem__)
                alone.setdefault((other, key), []).append(one)
    for (name, key), others in alone.items():
        text = f"neither this site nor {_listed(others)} has an {key}, so neither end can call"
        way_out = around(subject, name, others) if key == "endpoint" else ""
        yield Wrong(subject.site_keys(name, key), text + way_out)


def around(subject: Subject, name: str, others: list[str]) -> str:
    """The end of a message: how the file can link sites that cannot connect directly."""
    if subject.network.topology == "hub":
        return ""
    if any(subject.sites[each].ssh_endpoint for each in (name, *others)):
        return '; a [[links]] table with via = "ssh" needs only the ssh_endpoint of one of the two'
    relay = _relay_for(subject, {name, *others})
    if relay is None:
        return ""
    return f'; a [[links]] table with via = "{relay}" lets that site relay'


def _relay_for(subject: Subject, names: set[str]) -> str | None:
    """A site that all of `names` can call."""
    relayed = subject.relayed
    for name, site in subject.sites.items():
        pairs = [tuple(sorted((name, each))) for each in names]
        if site.endpoint is not None and name not in names and not any(p in relayed for p in pairs):
            return name
    return None


def _is_reached(subject: Subject, name: str, key: str) -> bool:
    is_wrong = subject.is_wrong(*subject.site_keys(name, key))
    return is_wrong or getattr(subject.sites[name], key) is not None


def _listed(names: list[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def tunnel_numbers(subject: Subject) -> Iterator[Wrong]:
    """Links over ssh that have the same device at one site."""
    taken = {
        (name, site.interface): "its WireGuard interface"
        for name, site in subject.sites.items()
        if site.interface is not None
    }
    for index, link in enumerate(subject.links):
        if link.tunnel_number is None or not has_ssh(link):
            continue
        device, ends = f"tun{link.tunnel_number}", list(dict.fromkeys(map(str, link.between or ())))
        for name in ends:
            if (owner := taken.get((name, device))) is not None:
                text = f"{device} is taken at {name} by {owner}"
                yield Wrong(("links", index, "tunnel_number"), text)
        taken |= {(name, device): f"the link of {' and '.join(ends)}" for name in ends}


def interfaces(subject: Subject) -> Iterator[Wrong]:
    """Interface names that the kernel cannot take, or that are used twice."""
    name = subject.network.name
    default = f"wg-{name}" if name is not None else None
    is_used = any(site.interface is None for site in subject.sites.values())
    if default is not None and len(default) > INTERFACE_LENGTH and is_used:
        text = f"{default} is too long for an interface; shorten it, or give each site an interface"
        yield Wrong(("network", "name"), text)
    for site_name, site in subject.sites.items():
        for key in ("interface", "lan_interface"):
            if getattr(site, key) in NOT_INTERFACES:
                text = f"{getattr(site, key)} is not a usable interface name"
                yield Wrong(subject.site_keys(site_name, key), text)
        own = site.interface or default
        if own is not None and own == site.lan_interface:
            yield Wrong(
                subject.site_keys(site_name, "lan_interface"), f"{own} is the tunnel's interface"
            )


def second_ports(subject: Subject) -> Iterator[Wrong]:
    """Second ports that equal the first one."""
    for name, site in subject.sites.items():
        first = site.listen_port or (site.endpoint.port if site.endpoint else None)
        if site.second_port is not None and site.second_port == (first or DEFAULT_PORT):
            text = f"{site.second_port} is the port of the first interface"
            yield Wrong(subject.site_keys(name, "second_port"), text)


def families(subject: Subject) -> Iterator[Wrong]:
    """Pairs of sites whose LANs have neither IPv4 nor IPv6 in common."""
    first: dict[bool, str] = {}
    for name, site in subject.sites.items():
        kinds = {is_v6(lan) for lan in site.lan or () if lan is not None}
        if len(kinds) != 1 or None in (site.lan or ()):
            continue
        (kind,) = kinds
        first.setdefault(kind, name)
        if (other := first.get(not kind)) is not None:
            words = ("IPv6", "IPv4") if kind else ("IPv4", "IPv6")
            text = f"only {words[0]} here and only {words[1]} at {other}: no host reaches the other"
            yield Wrong(subject.site_keys(name, "lan"), text)


def mtus(subject: Subject) -> Iterator[Wrong]:
    """MTUs below the 1280 bytes that IPv6 needs."""
    if not subject.has_ipv6():
        return
    sizes: list[tuple[Keys, int | None]] = [(("network", "mtu"), subject.network.mtu)]
    sizes += [(("links", i, "mtu"), link.mtu) for i, link in enumerate(subject.links)]
    for keys, size in sizes:
        if size is not None and size < LEAST_MTU_OF_IPV6:
            text = f"{size} is too small for IPv6, which needs {LEAST_MTU_OF_IPV6} bytes"
            yield Wrong(keys, text)


EXAMINATIONS = (
    overlaps,
    lans,
    gateways,
    probes,
    tunnel_addresses,
    endpoints,
    duplicates,
    hub,
    link_stanzas,
    callers,
    relays,
    reachability,
    tunnel_numbers,
    interfaces,
    second_ports,
    families,
    mtus,
)
