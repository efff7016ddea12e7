"""The warnings of `sites check`: values that work, but are probably a mistake or incomplete."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from cpythonplus_sites.checks import Subject, around, as_address, claims, has_ssh
from cpythonplus_sites.schema import Wrong
from cpythonplus_sites.values import is_v6

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cpythonplus_sites.model import Endpoint
    from cpythonplus_sites.schema import FileStanzas

ROUTERS_CHOICES = {
    "192.168.0.0/24": "the default of many home routers",
    "192.168.1.0/24": "the default of many home routers",
    "192.168.2.0/24": "the default of many home routers",
    "192.168.178.0/24": "the default of many home routers",
    "10.0.0.0/24": "the default of many home routers",
    "172.17.0.0/16": "the default of Docker",
}
LARGEST_MTU = 1440
"""1500 bytes less IPv4, UDP and WireGuard's own 32; IPv6 endpoints take 20 more."""


def advise(file: FileStanzas) -> list[Wrong]:
    """The warnings about a file without problems."""
    subject = Subject(file)
    return [one for look in LOOKS for one in look(subject)]


def keys(subject: Subject) -> Iterator[Wrong]:
    """Keys that are not made yet, or are being changed."""
    for name, site in subject.sites.items():
        if site.public_key is None:
            text = "no public_key yet; cpythonplus-sites keygen on its gateway creates one"
            yield Wrong(subject.site_keys(name), text)
        if site.next_public_key is not None:
            text = "the key is being changed; cpythonplus-sites rotate reports the progress"
            yield Wrong(subject.site_keys(name, "next_public_key"), text)


def ssh_keys(subject: Subject) -> Iterator[Wrong]:
    """Links over ssh without the client's ssh_public_key or the server's ssh_host_key."""
    for ends, link in subject.linked.items():
        called = [name for name in ends if subject.sites[name].ssh_endpoint is not None]
        if not has_ssh(link) or not called:
            continue
        server = called[-1]  # as rendering/ssh.py decides it
        client = link.caller or (ends[1] if server == ends[0] else ends[0])
        server = ends[1] if client == ends[0] else ends[0]
        if subject.sites[client].ssh_public_key is None:
            text = f"no ssh_public_key, and it calls {server} over ssh; keygen --ssh creates one"
            yield Wrong(subject.site_keys(client), text)
        if subject.sites[server].ssh_host_key is None:
            text = f"no ssh_host_key: {client}, which calls it, cannot verify this host"
            yield Wrong(subject.site_keys(server, "ssh_endpoint"), text)


def keepalives(subject: Subject) -> Iterator[Wrong]:
    """Sites behind NAT without keepalive: the router forgets them, and nobody can call in."""
    silent = {
        name
        for ends, link in subject.linked.items()
        for name in ends
        if link.via == "wireguard"
        and (subject.network.keepalive if link.keepalive is None else link.keepalive) == 0
    }
    for name, site in subject.sites.items():
        if name in silent and site.endpoint is None:
            text = (
                "no endpoint, and a link with keepalive 0: it is lost when nothing is sent for long"
            )
            yield Wrong(subject.site_keys(name), text)


def ranges(subject: Subject) -> Iterator[Wrong]:
    """Subnets that other networks probably use as well, or that belong to others."""
    usual = {ip_network(subnet): words for subnet, words in ROUTERS_CHOICES.items()}
    for claim in claims(subject):
        for subnet, words in usual.items():
            if claim.subnet.version == subnet.version and claim.subnet.overlaps(subnet):
                text = f"{claim.subnet} overlaps {subnet}, {words}: hosts in such a network"
                yield Wrong(claim.keys, f"{text} cannot reach it")
        if not claim.subnet.is_private:
            yield Wrong(claim.keys, f"{claim.subnet} are public addresses; are they yours?")


def sizes(subject: Subject) -> Iterator[Wrong]:
    """An MTU that does not fit through an internet connection of 1500 bytes."""
    stanzas = [(("network", "mtu"), subject.network.mtu)]
    for way, mtu in stanzas + [(("links", i, "mtu"), x.mtu) for i, x in enumerate(subject.links)]:
        if mtu is not None and mtu > LARGEST_MTU:
            yield Wrong(way, f"{mtu} is too large for packets of 1500 bytes: {LARGEST_MTU}")


def numbers(subject: Subject) -> Iterator[Wrong]:
    """A network of one."""
    if len(subject.sites) == 1:
        yield Wrong(("sites",), "there is only one site: nothing is linked")


def addresses(subject: Subject) -> Iterator[Wrong]:
    """Endpoints that not everybody can call."""
    for name, key, endpoint in _endpoints(subject):
        address = as_address(endpoint)
        if address is not None and not address.is_global:
            text = f"{address} is no public address: only hosts of that network can call it"
            yield Wrong(subject.site_keys(name, key), text)
        elif address is not None and is_v6(address):
            text = f"{address} is IPv6: a gateway that has only IPv4 cannot call it"
            yield Wrong(subject.site_keys(name, key), text)


def families(
    subject: Subject, found: Mapping[str, frozenset[int]] | None = None
) -> Iterator[Wrong]:
    """Pairs of sites of which one has an IPv4 endpoint only, and the other an IPv6 endpoint only.

    found: the versions of IP by DNS name; if given, only pairs with a DNS name are reported.
    """
    for ends, link in subject.linked.items():
        calls = [subject.sites[name].endpoint for name in ends]
        if link.via != "wireguard" or None in calls:
            continue
        versions = [_versions(each, found or {}) for each in calls if each is not None]
        named = any(as_address(each) is None for each in calls if each is not None)
        if sorted(map(sorted, versions)) != [[4], [6]] or named is (found is None):
            continue
        (six, four) = ends if versions[0] == {6} else ends[::-1]
        text = (
            f"only IPv6, and that of {four} only IPv4: if neither gateway has both, they cannot "
            f"connect directly{around(subject, six, [four])}"
        )
        yield Wrong(subject.site_keys(six, "endpoint"), text)


def _versions(endpoint: Endpoint, found: Mapping[str, frozenset[int]]) -> frozenset[int]:
    address = as_address(endpoint)
    if address is None:
        return found.get(endpoint.host, frozenset())
    return frozenset([address.version])


def _endpoints(subject: Subject) -> Iterator[tuple[str, str, Endpoint]]:
    for name, site in subject.sites.items():
        for key in ("endpoint", "ssh_endpoint"):
            endpoint: Endpoint | None = getattr(site, key)
            if endpoint is not None:
                yield name, key, endpoint


def unresolved(
    file: FileStanzas, resolve_all: Callable[[set[str]], Mapping[str, tuple[str, ...]]]
) -> Iterator[Wrong]:
    """DNS names of endpoints that do not resolve here, or resolve to an address of the network."""
    subject = Subject(file)
    versions: dict[str, frozenset[int]] = {}
    named = [each for each in _endpoints(subject) if as_address(each[2]) is None]
    addresses = resolve_all({endpoint.host for _, _, endpoint in named})
    for name, key, endpoint in named:
        way, found = subject.site_keys(name, key), addresses[endpoint.host]
        versions[endpoint.host] = frozenset(ip_address(text).version for text in found)
        if not found:
            yield Wrong(way, f"the name {endpoint.host} does not resolve")
        for text in found:
            address = ip_address(text)
            for claim in claims(subject):
                if claim.subnet.version == address.version and address in claim.subnet:
                    where = claim.named(name)
                    yield Wrong(way, f"{endpoint.host} is {address}, which is inside {where}")
    yield from families(subject, versions)


LOOKS = (keys, ssh_keys, keepalives, ranges, sizes, numbers, addresses, families)
