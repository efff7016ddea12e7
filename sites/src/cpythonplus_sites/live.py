"""The state of this gateway: interfaces, peers, routes, settings, units and files.

Everything is read through a Machine. Unknown lines and fields are skipped, and a missing program
leaves its part empty. Interfaces and routes are an exception: if they were taken for missing, they
would be set up anew, and those of others replaced.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.machine import NOT_FOUND_STATUS, TIMED_OUT_STATUS
from cpythonplus_sites.model import Endpoint
from cpythonplus_sites.record import NOTHING, Record, parse
from cpythonplus_sites.sessions import sessions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from ipaddress import IPv4Interface, IPv6Interface

    from cpythonplus_sites.fallback import Kind
    from cpythonplus_sites.heard import Heard
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Subnet
    from cpythonplus_sites.sessions import Session
    from cpythonplus_sites.wanted import Table, Wanted

INTERFACE_COLUMNS = 5
PEER_COLUMNS = 9
KERNEL_PROTOCOL = 2
"""The protocol of routes to connected networks: the kernel sets them for a device's address."""

BOOT_PROTOCOL = 3
"""The protocol of routes that were added without one, as wg-quick does (rtnetlink(7))."""

ROUTE_KINDS = {"1": "unicast", "6": "blackhole", "7": "unreachable", "8": "prohibit", "9": "throw"}
"""The kinds of routes by their numbers, which `ip -N` prints (rtnetlink(7))."""

NOWHERE = ("blackhole", "unreachable", "prohibit", "throw")
_ELEMENTS = re.compile(r"\n\s*elements = \{[^}]*\}|[ \t]*# count \d+$", re.MULTILINE)
"""The elements of a set that packets fill."""

SYSTEMD_RUNS = Path("/run/systemd/system")
SSH_FOLDER = Path("/etc/ssh/cpythonplus-sites")
"""Equal to rendering.ssh.FOLDER, which is not imported here."""

PROC_NET = Path("/proc/net")
PROC_SYS = Path("/proc/sys")


@dataclass(frozen=True)
class LivePeer:
    """A peer of an interface.  handshake_s: the last one, seconds since the epoch; 0: never."""

    public_key: str
    preshared_key: str | None = None
    endpoint: Endpoint | None = None
    allowed_ips: frozenset[Subnet] = frozenset()
    handshake_s: int = 0
    received_bytes: int = 0
    sent_bytes: int = 0
    keepalive_s: int = 0


@dataclass(frozen=True)
class LiveTunnel:
    """A WireGuard interface."""

    interface: str
    private_key: str | None
    listen_port: int
    peers: tuple[LivePeer, ...] = ()

    def peer(self, public_key: str) -> LivePeer | None:
        """The peer with this key."""
        return next((peer for peer in self.peers if peer.public_key == public_key), None)


@dataclass(frozen=True)
class Device:
    """A network device of any kind.

    running: it has a carrier (a tun: a program holds it).  owner: the user who may open it, for a
    tun.  queue: its length in packets.
    """

    name: str
    up: bool
    mtu: int
    addresses: tuple[IPv4Interface | IPv6Interface, ...] = ()
    running: bool = True
    owner: str | None = None
    queue: int | None = None


@dataclass(frozen=True)
class Unit:
    """A systemd unit."""

    active: bool
    enabled: bool


@dataclass(frozen=True)
class LiveFile:
    """The current state of a file of ours.  mode: permission bits."""

    text: str
    mode: int


@dataclass(frozen=True)
class Live:
    """The state of a gateway, as far as Wanted needs it.

    tables: title -> (its rules, the rules that it would have if loaded anew), both as nft prints
    them; None if nft cannot print them.  addresses: DNS name -> its addresses.
    stuck: sites without a session, and the endpoint at which they were tried so far.
    silent: sites from which nothing comes through WireGuard.  ways: those of links with a
    fallback, if they were decided now.  ports: UDP ports in use, if a second interface is wanted.
    recorded: everything that `apply` has set up here; gone: the part that is not wanted any more.
    other_keys: other files with keys that may log in for tunnels.
    """

    now_s: float
    tunnels: Mapping[str, LiveTunnel] = field(default_factory=dict)
    devices: Mapping[str, Device] = field(default_factory=dict)
    routes: tuple[LiveRoute, ...] = ()
    sysctls: Mapping[str, str | None] = field(default_factory=dict)
    tables: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    files: Mapping[Path, LiveFile | None] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    systemd: bool = False
    sessions: tuple[Session, ...] = ()
    silent: Collection[str] = ()
    stuck: Mapping[str, Endpoint] = field(default_factory=dict)
    ways: Mapping[str, Kind] = field(default_factory=dict)
    ports: Collection[int] = ()
    recorded: Record = NOTHING
    gone: Record = NOTHING
    other_keys: tuple[str, ...] = ()


def look(
    machine: Machine,
    wanted: Wanted,
    *,
    systemd: bool = True,
    heard: Heard | None = None,
    endpoints_only: bool = False,
    addresses: Mapping[str, tuple[str, ...]] | None = None,
) -> Live:
    """Read the state that planning needs. Needs root for the keys.

    Raises OSError for odd files, and if interfaces or routes cannot be read.

    systemd: False: as if it did not run here.  heard: the result of the timer's look.
    endpoints_only: leave out the parts that such a plan does not use.
    addresses: the result of an earlier `resolved`.
    """
    systemd = systemd and machine.exists(SYSTEMD_RUNS)
    found = devices(machine)
    user = wanted.tunnel_user
    recorded = _recorded(machine, wanted)
    gone = recorded.without(wanted.written)
    owned = user is not None and user in {device.owner for device in found.values()}
    return Live(
        now_s=machine.now_s(),
        tunnels=tunnels(machine, needed=bool(wanted.tunnels)),
        devices=found,
        routes=routes(
            machine, {x.subnet.version for x in wanted.routes} | {x.version for x in wanted.closed}
        ),
        sysctls={key: _setting(machine, key) for key in wanted.sysctls},
        tables={
            table.title: _rules(machine, table, compare=not endpoints_only)
            for table in wanted.tables
        },
        units=_units(machine, wanted, gone.units) if systemd and not endpoints_only else {},
        files={
            path: _file(machine, path)
            for path in (
                *(Path(file.path) for file in (*wanted.files, *wanted.withdrawn)),
                *map(Path, gone.files),
            )
        },
        addresses=resolved(machine, wanted, addresses or {}),
        systemd=systemd,
        sessions=sessions(machine, user) if user is not None and owned else (),
        silent=heard.silent if heard else (),
        stuck=heard.stuck if heard else {},
        ways=heard.ways if heard else {},
        ports=udp_ports(machine) if any(x.spare for x in wanted.tunnels) else (),
        recorded=recorded,
        gone=gone,
        other_keys=() if endpoints_only else _other_keys(machine, wanted, recorded),
    )


def _other_keys(machine: Machine, wanted: Wanted, recorded: Record) -> tuple[str, ...]:
    known = {*recorded.files, *(str(x.path) for x in (*wanted.files, *wanted.withdrawn))}
    found = (SSH_FOLDER / name for name in machine.listing(SSH_FOLDER) if name.endswith(".keys"))
    return tuple(str(path) for path in found if str(path) not in known)


def _recorded(machine: Machine, wanted: Wanted) -> Record:
    if wanted.record is None:
        return wanted.written
    text = machine.read(Path(wanted.record))
    return wanted.before if text is None else parse(text)


def resolved(
    machine: Machine, wanted: Wanted, known: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, tuple[str, ...]]:
    """The addresses of the peers' endpoint hosts; only those that are not `known` are looked up.

    It may take RESOLVE_TIMEOUT_S: call it before the lock is taken.
    """
    known = known or {}
    return {**known, **machine.resolve_all(endpoint_hosts(wanted) - set(known))}


def endpoint_hosts(wanted: Wanted) -> set[str]:
    """The hosts of the peers' endpoints: DNS names and addresses."""
    peers = (peer for tunnel in wanted.tunnels for peer in tunnel.peers)
    return {endpoint.host for peer in peers for endpoint in peer.endpoints}


# ---- WireGuard ----------------------------------------------------------------------------------


def tunnels(machine: Machine, *, needed: bool = False) -> dict[str, LiveTunnel]:
    """All WireGuard interfaces. Raises OSError if `wg` is needed, but does not run."""
    output = machine.run(["wg", "show", "all", "dump"])
    if needed and output.status in (NOT_FOUND_STATUS, TIMED_OUT_STATUS):
        raise OSError(output.reason)
    return parse_dump(output.out)


def parse_dump(text: str) -> dict[str, LiveTunnel]:
    """Read `wg show all dump` (wg(8)): tab-separated, a line for each interface and each peer."""
    found: dict[str, LiveTunnel] = {}
    peers: dict[str, list[LivePeer]] = {}
    for line in text.splitlines():
        name, *columns = line.split("\t")
        if len(columns) >= PEER_COLUMNS - 1:
            peers.setdefault(name, []).append(_peer(columns))
        elif len(columns) == INTERFACE_COLUMNS - 1:
            found[name] = LiveTunnel(name, _or_none(columns[0]), _number(columns[2]))
    return {
        name: LiveTunnel(name, x.private_key, x.listen_port, tuple(peers.get(name, ())))
        for name, x in found.items()
    }


def _peer(columns: list[str]) -> LivePeer:
    key, preshared, endpoint, allowed, handshake, received, sent, keepalive = columns[:8]
    return LivePeer(
        public_key=key,
        preshared_key=_or_none(preshared),
        endpoint=parse_endpoint(endpoint),
        allowed_ips=frozenset(_subnets(allowed.split(","))),
        handshake_s=_number(handshake),
        received_bytes=_number(received),
        sent_bytes=_number(sent),
        keepalive_s=_number(keepalive),
    )


def _or_none(text: str) -> str | None:
    return None if text in ("(none)", "(hidden)", "") else text


def _number(text: str) -> int:
    """The number in a text; `off` and anything else count as 0."""
    return int(text) if text.isascii() and text.isdecimal() else 0


def parse_endpoint(text: str) -> Endpoint | None:
    """Read `203.0.113.1:51820` or `[2001:db8::1]:51820`."""
    host, _, port = text.rpartition(":")
    if not host or not _number(port):
        return None
    return Endpoint(host.removeprefix("[").removesuffix("]"), _number(port))


def _subnets(texts: Iterable[str]) -> Iterator[Subnet]:
    for text in texts:
        try:
            yield ip_network(text, strict=False)
        except ValueError:
            continue


# ---- iproute2 -----------------------------------------------------------------------------------


def devices(machine: Machine) -> dict[str, Device]:
    """All network devices with their addresses. Raises OSError if they cannot be read."""
    return parse_devices(_ip_json(machine, "-d", "-N", "address", "show"))


def parse_devices(text: str) -> dict[str, Device]:
    """Read `ip -j -d address show`."""
    found = {}
    for entry in _json_list(text):
        name, mtu, flags = entry.get("ifname"), entry.get("mtu"), entry.get("flags")
        if not isinstance(name, str):
            continue
        flags = flags if isinstance(flags, list) else []
        found[name] = Device(
            name=name,
            up="UP" in flags,
            mtu=mtu if isinstance(mtu, int) else 0,
            addresses=tuple(_addresses(entry.get("addr_info"))),
            running="NO-CARRIER" not in flags,
            owner=_owner(entry),
            queue=_number_or_none(entry.get("txqlen")),
        )
    return found


def _owner(entry: dict[str, Any]) -> str | None:
    link = entry.get("linkinfo")
    data = link.get("info_data") if isinstance(link, dict) else None
    user = data.get("user") if isinstance(data, dict) else None
    return None if user is None else str(user)


def _number_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _addresses(entries: object) -> Iterator[IPv4Interface | IPv6Interface]:
    for entry in entries if isinstance(entries, list) else ():
        try:
            yield ip_interface(f"{entry['local']}/{entry['prefixlen']}")
        except (ValueError, KeyError, TypeError):
            continue


def routes(machine: Machine, needed: Collection[int] = ()) -> tuple[LiveRoute, ...]:
    """The main routing table, IPv4 and IPv6.

    needed: the versions of IP whose tables must be readable; the kernel may lack other versions.
    Raises OSError if a table cannot be read.
    """
    found: list[LiveRoute] = []
    for version in (4, 6):
        try:
            text = _ip_json(machine, "-N", f"-{version}", "route", "show", "table", "main")
        except OSError:
            if version in needed:
                raise
            continue
        found += parse_routes(text)
    return tuple(found)


def parse_routes(text: str) -> tuple[LiveRoute, ...]:
    """Read `ip -j -N route show`, without the default route and routes with several next hops."""
    return tuple(filter(None, map(_route, _json_list(text))))


def _route(entry: dict[str, Any]) -> LiveRoute | None:
    target, kind = entry.get("dst"), str(entry.get("type", "unicast"))
    kind = ROUTE_KINDS.get(kind, kind)
    device = "" if kind in NOWHERE else entry.get("dev")
    if not isinstance(target, str) or not isinstance(device, str) or target == "default":
        return None
    try:
        subnet = ip_network(target, strict=False)
    except ValueError:
        return None
    # iproute2 leaves out the protocol if it is `boot`.
    protocol = _number(str(entry.get("protocol", BOOT_PROTOCOL)))
    return LiveRoute(subnet, device, protocol, _number(str(entry.get("metric", 0))), kind)


def _ip_json(machine: Machine, *words: str) -> str:
    """The output of `ip -j`. Raises OSError if it fails, as busybox's `ip`, which has no -j."""
    output = machine.run(["ip", "-j", *words])
    if output.status != 0:
        raise OSError(f"ip -j {' '.join(words)}: {output.reason}")
    try:
        json.loads(output.out or "[]")
    except ValueError:
        raise OSError(f"ip -j {' '.join(words)}: its output is not JSON") from None
    return output.out


def _json_list(text: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []


# ---- the rest -----------------------------------------------------------------------------------


def udp_ports(machine: Machine) -> frozenset[int]:
    """The local UDP ports in use, WireGuard's too (proc_net_udp(5))."""
    found = set()
    for name in ("udp", "udp6"):
        for line in (machine.read(PROC_NET / name) or "").splitlines()[1:]:
            _, local, *_ = [*line.split(), "", ""]
            found.add(int(local.rpartition(":")[2] or "0", 16))
    return frozenset(found)


def _setting(machine: Machine, key: str) -> str | None:
    try:
        text = machine.read(PROC_SYS / key)
    except OSError:
        return None
    return None if text is None else " ".join(text.split())


def missing_tables(machine: Machine, wanted: Wanted) -> tuple[str, ...]:
    """The titles of the wanted nftables tables that do not exist, as after a flush."""
    found = ((table.title, _rules(machine, table, compare=False)) for table in wanted.tables)
    return tuple(title for title, (there, _) in found if there is None)


def _rules(machine: Machine, table: Table, *, compare: bool) -> tuple[str | None, str | None]:
    """The current rules and, if `compare`, the wanted ones, both as nft prints them.

    nft prints rules differently from how they are written, and each version in its own way. So it
    loads ours into a network namespace that ends with the program, and prints them there.
    """
    listing = ["nft", "-s", "list", "table", table.family, table.name]
    there = machine.run(listing)
    found = _ELEMENTS.sub("", there.out) if there.status == 0 else None
    if not compare:
        return found, None
    aside = ["unshare", "--net", "sh", "-c", f"nft -f - && {' '.join(listing)}"]
    meant = machine.run(aside, stdin=table.rules)
    return found, meant.out if meant.status == 0 else None


def _units(machine: Machine, wanted: Wanted, gone: Sequence[str]) -> dict[str, Unit]:
    """The wanted units, and behind them the unwanted ones, the last one first.

    gone: the recorded units that are unwanted. Other loaded units that match
    `wanted.changing_units` are unwanted, too.
    """
    names = [*wanted.units, *gone[::-1]]
    for pattern in wanted.changing_units:
        argv = ["systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", pattern]
        names += [line.split()[0] for line in machine.run(argv).out.splitlines() if line.strip()]
    return {name: _unit(machine, name) for name in dict.fromkeys(names)}


def _unit(machine: Machine, name: str) -> Unit:
    active = machine.run(["systemctl", "is-active", name]).out.strip()
    enabled = machine.run(["systemctl", "is-enabled", name]).out.strip()
    return Unit(active in ("active", "activating", "reloading"), enabled == "enabled")


def _file(machine: Machine, path: Path) -> LiveFile | None:
    text = machine.read(path)
    mode = machine.mode(path)
    return None if text is None or mode is None else LiveFile(text, mode)


def parse_address(text: str) -> str:
    """An address in its canonical form, so that addresses can be compared as text."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text
