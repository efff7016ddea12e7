"""The wanted state of one gateway, derived from the network and the files made from it.

The module has values only, and no I/O: planning compares them with the current state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cpythonplus_sites import rotation
from cpythonplus_sites.record import NOTHING, Record, once
from cpythonplus_sites.rendering import closed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import PurePath

    from cpythonplus_sites.model import Address, Endpoint, Network, Site, Subnet

_TABLE = re.compile(r"^\s*table\s+(ip|ip6|inet)\s+([\w-]+)\s*\{", re.MULTILINE)
_SETTING = re.compile(r"^\s*-?([\w./*-]+)\s*=\s*(.*?)\s*$")


class File(Protocol):
    """A file as it has to be on the host; rendering makes it."""

    @property
    def path(self) -> PurePath:
        """The path of the file."""

    @property
    def text(self) -> str:
        """The whole contents."""

    @property
    def mode(self) -> int:
        """The permission bits."""

    @property
    def secret(self) -> bool:
        """Whether it carries a key."""


@dataclass(frozen=True)
class PlainFile:
    """A File of our own making."""

    path: PurePath
    text: str
    mode: int = 0o644
    secret: bool = False


@dataclass(frozen=True)
class Peer:
    """Another gateway: a peer of one of this host's WireGuard interfaces."""

    site: str
    public_key: str
    allowed_ips: tuple[Subnet, ...]
    keepalive_s: int = 0
    endpoint: Endpoint | None = None
    preshared_key: str | None = None
    more_endpoints: tuple[Endpoint, ...] = ()

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints, in the order in which they are tried."""
        return () if self.endpoint is None else (self.endpoint, *self.more_endpoints)


@dataclass(frozen=True)
class Tunnel:
    """One WireGuard interface of this gateway.

    mtu: bytes.  spare: it exists only during a change of keys.
    """

    interface: str
    private_key: str
    listen_port: int
    address: Address
    mtu: int
    peers: tuple[Peer, ...]
    spare: bool = False


@dataclass(frozen=True)
class SshTunnel:
    """The tun device at this end of a link over ssh; systemd runs the ssh process."""

    device: str
    site: str
    address: Address
    mtu: int


@dataclass(frozen=True)
class Fallback:
    """The way to a neighbour while WireGuard gets no answer: the tun device of an ssh tunnel.

    address: the neighbour's end of both.
    """

    peer: str
    device: str
    address: Address


@dataclass(frozen=True)
class Way:
    """The way to a subnet: through a device, or, if that is None, the peer's best interface."""

    subnet: Subnet
    peer: str
    device: str | None = None


@dataclass(frozen=True)
class Table:
    """An nftables table that is ours alone; `rules` defines all of it."""

    family: str
    name: str
    rules: str

    @property
    def title(self) -> str:
        """The table as nft names it."""
        return f"{self.family} {self.name}"


@dataclass(frozen=True)
class Wanted:
    """The wanted state of the gateway of `site`.

    lans: those of the site itself.  range: that of the tunnels' own addresses.
    routes: subnets, and the tunnels that lead there.
    units: systemd units, to be enabled and running.  changing_units: patterns; other units that
    match one are stopped.  tunnel_user: owns the tun devices.
    own_keys: this host's private keys; an interface with one of them is ours to remove.
    incomplete: the parts that could not be determined, a line each.
    withdrawn: files that are rewritten if they exist, and not made if they do not.
    closed: subnets that no default route may take, by routes with the metric closed_metric.
    fallbacks: those of links whose routes move to ssh and back.
    record: the file with everything that was set up here; None: none is kept.  before: the record
    that counts if the file is missing.  kept: files that an option made, and that stay without it.
    remarks: the operation, and what it requires of other gateways, a line each.
    """

    site: str
    range: Subnet
    tunnels: tuple[Tunnel, ...] = ()
    ssh: tuple[SshTunnel, ...] = ()
    lans: tuple[Subnet, ...] = ()
    routes: tuple[Way, ...] = ()
    rotation: tuple[rotation.Tunnel, ...] = ()
    files: tuple[File, ...] = ()
    units: tuple[str, ...] = ()
    changing_units: tuple[str, ...] = ()
    tunnel_user: str | None = None
    own_keys: frozenset[str] = frozenset()
    incomplete: tuple[str, ...] = ()
    withdrawn: tuple[File, ...] = ()
    closed: tuple[Subnet, ...] = ()
    closed_metric: int = 0
    fallbacks: tuple[Fallback, ...] = ()
    record: PurePath | None = None
    before: Record = NOTHING
    kept: tuple[PurePath, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def written(self) -> Record:
        """Return the record of everything that the file wants here."""
        ends = [*(x.address for x in self.tunnels), *(x.address for x in self.ssh)]
        paths = [x.path for x in (*self.files, *self.withdrawn)]
        return Record(
            files=once(map(str, (*paths, *self.kept))),
            units=self.units,
            tables=tuple(table.title for table in self.tables),
            users=(self.tunnel_user,) if self.tunnel_user else (),
            metrics=(str(self.closed_metric),) if self.closed_metric else (),
            addresses=once(map(str, ends)),
        )

    @property
    def devices(self) -> frozenset[str]:
        """The names of the network devices that are ours."""
        return frozenset([x.interface for x in self.tunnels] + [x.device for x in self.ssh])

    @property
    def tables(self) -> tuple[Table, ...]:
        """The nftables tables that the files define."""
        found = []
        for file in self.files:
            if file.path.suffix == ".nft":
                found += [Table(m[1], m[2], file.text) for m in _TABLE.finditer(file.text)]
        return tuple(found)

    @property
    def sysctls(self) -> Mapping[str, str]:
        """The kernel settings in the files; keys as paths below /proc/sys."""
        # With two interfaces to a site, a packet may come in by the one that its route does not
        # use.
        is_pair = len(self.tunnels) > 1 or self.fallbacks
        pair = [x.interface for x in self.tunnels] if is_pair else []
        pair += [x.device for x in self.fallbacks]
        found = {f"net/ipv4/conf/{name}/rp_filter": "2" for name in pair}
        for file in self.files:
            if file.path.parent.name == "sysctl.d":
                matches = filter(None, map(_SETTING.match, file.text.splitlines()))
                found |= {sysctl_path(m[1]): " ".join(m[2].split()) for m in matches}
        return found


def sysctl_path(key: str) -> str:
    """`net.ipv4.ip_forward` as a path below /proc/sys.

    sysctl.d(5): if the first separator is a slash, the key is such a path already.
    """
    first = re.search(r"[./]", key)
    if first is None or first[0] == "/":
        return key
    return key.translate(str.maketrans("./", "/."))


def is_for_systemd(file: File) -> bool:
    """Whether the file is useless without systemd."""
    return str(file.path).startswith("/etc/systemd/")


@dataclass(frozen=True)
class Keys:
    """The secrets of this gateway.

    next_private: the key that a rotation changes to.  preshared: returns the key of two sites, from
    the result of `preshared_ends`; None: there are none.  public, next_public: the public halves.
    """

    private: str
    next_private: str | None = None
    preshared: Callable[[str, str], str] | None = None
    public: str | None = None
    next_public: str | None = None

    @property
    def own(self) -> frozenset[str]:
        """The private keys of this host."""
        return frozenset(filter(None, (self.private, self.next_private)))


def want(
    network: Network,
    site: Site,
    keys: Keys,
    *,
    stage: rotation.Stage | None = None,
    files: Iterable[File] = (),
    withdrawn: Iterable[File] = (),
    units: Iterable[str] = (),
    changing_units: Iterable[str] = (),
    tunnel_user: str | None = None,
    own_subnets: Iterable[Subnet] = (),
    record: PurePath | None = None,
    kept: Iterable[PurePath] = (),
) -> Wanted:
    """The wanted state of the gateway of `site`.

    stage: that of the change of its own key; by default as the file says.
    own_subnets: as in rendering.Host.
    The other parameters are as in Wanted.
    """
    files = tuple(files)
    tunnels = rotation.wanted_tunnels(network, site.name, stage)
    known = {peer.site for tunnel in tunnels for peer in tunnel.peers}
    return Wanted(
        site=site.name,
        range=network.tunnel,
        tunnels=tuple(_tunnel(network, site, tunnel, keys) for tunnel in tunnels),
        ssh=tuple(_ssh_tunnels(network, site)),
        lans=site.lans,
        routes=tuple(_ways(network, site, known)),
        rotation=tunnels,
        files=files,
        units=tuple(units),
        changing_units=tuple(changing_units),
        tunnel_user=tunnel_user,
        own_keys=keys.own,
        incomplete=tuple(_without_key(network, site)),
        withdrawn=tuple(withdrawn),
        closed=closed.subnets(network, site, own_subnets),
        closed_metric=closed.metric(network),
        fallbacks=tuple(_fallbacks(network, site)),
        record=record,
        kept=tuple(kept),
    )


def preshared_ends(
    network: Network, name: str, far: str, own_key: str | None, far_key: str | None = None
) -> tuple[str, str] | None:
    """The two texts from which the preshared key of two sites is derived; None if one is missing.

    own_key, far_key: the public keys of both interfaces (the far one's: by default that of the
    file).
    """
    if network.preshared_of_names:
        return name, far
    far_key = far_key or network.site(far).public_key
    return None if own_key is None or far_key is None else (own_key, far_key)


def _tunnel(network: Network, site: Site, tunnel: rotation.Tunnel, keys: Keys) -> Tunnel:
    is_next = tunnel.key == "next"
    private = keys.next_private if is_next else keys.private
    public = (keys.next_public if is_next else keys.public) or site.public_key
    if private is None:
        raise LookupError(f"{tunnel.interface} requires the next private key, which is missing")
    peers = (
        Peer(
            site=peer.site,
            public_key=peer.public_key,
            allowed_ips=peer.allowed_ips,
            keepalive_s=peer.keepalive_s,
            endpoint=peer.endpoint,
            more_endpoints=peer.more_endpoints,
            preshared_key=keys.preshared(*ends) if keys.preshared and ends else None,
        )
        for peer in tunnel.peers
        for ends in [preshared_ends(network, site.name, peer.site, public, peer.public_key)]
    )
    address = site.tunnel_address
    port, mtu = tunnel.listen_port, tunnel.mtu
    return Tunnel(tunnel.interface, private, port, address, mtu, tuple(peers), tunnel.spare)


def _ssh_tunnels(network: Network, site: Site) -> Iterator[SshTunnel]:
    for link in network.links_of(site.name):
        if link.has_ssh:
            device, far = f"tun{link.tunnel_number}", link.other(site.name)
            yield SshTunnel(device, far, site.tunnel_address, link.mtu)


def _fallbacks(network: Network, site: Site) -> Iterator[Fallback]:
    for link in network.links_of(site.name):
        if link.fallback is not None:
            far = network.site(link.other(site.name))
            yield Fallback(far.name, f"tun{link.tunnel_number}", far.tunnel_address)


def _ways(network: Network, site: Site, known: set[str]) -> Iterator[Way]:
    """The ways to all subnets; a peer that is left out gets none: packets to it would be lost."""
    for route in network.routes_from(site.name):
        if route.link.via == "ssh":
            yield Way(route.subnet, route.peer, f"tun{route.link.tunnel_number}")
        elif route.peer in known:
            yield Way(route.subnet, route.peer)


def _without_key(network: Network, site: Site) -> Iterator[str]:
    for link in network.links_of(site.name):
        far = network.site(link.other(site.name))
        if link.via == "wireguard" and far.public_key is None:
            yield f"{far.name}: it has no public key yet, so it is left out"
