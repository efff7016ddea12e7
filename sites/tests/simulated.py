"""A gateway that only remembers: it carries out what the commands of a plan say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from ipaddress import ip_address, ip_interface, ip_network
from typing import TYPE_CHECKING

from cpythonplus_sites.leaving import VERIFY
from cpythonplus_sites.live import (
    BOOT_PROTOCOL,
    KERNEL_PROTOCOL,
    SYSTEMD_RUNS,
    Device,
    LivePeer,
    LiveTunnel,
    Unit,
    parse_endpoint,
)
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.machine import Machine, Output
from cpythonplus_sites.planning import CHECK_SSHD, END_LOST_SESSIONS
from cpythonplus_sites.probing import Ping
from cpythonplus_sites.rendering.names import UNITS
from cpythonplus_sites.sessions import PROC, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from cpythonplus_sites.model import Address
    from cpythonplus_sites.probing import Probe

GOOD = Output(0)
NOW_S = 1_800_000_000.0


@dataclass
class Simulated(Machine):
    """Knows wg, ip, nft, sysctl, systemctl and wg-quick, as far as plans use them.

    fails: program and arguments that end with a failure, as a regular expression.
    answers: addresses that answer a ping; `address@device` only through that one, `address<size`
    only to packets of up to that size.  rulesets: what iptables and nft list, by program.
    holds: tun devices that a program holds: the end of their unit leaves them there.
    ended: users whose processes were ended.  sent: what send_udp was asked for.
    """

    tunnels: dict[str, LiveTunnel] = field(default_factory=dict)
    devices: dict[str, Device] = field(default_factory=dict)
    routes: list[LiveRoute] = field(default_factory=list)
    units: dict[str, Unit] = field(default_factory=dict)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    processes: dict[int, Session] = field(default_factory=dict)
    systemd: bool = False
    fails: str = "(?!)"
    holds: set[str] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)
    ran: list[tuple[str, ...]] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    rulesets: dict[str, str] = field(default_factory=dict)
    rules: str = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n"
    asked: list[Probe] = field(default_factory=list)
    sent: list[tuple[Address, Address, tuple[tuple[int, int], ...]]] = field(default_factory=list)
    since_boot_s: float = 1000.0
    started: list[tuple[str, ...]] = field(default_factory=list)
    paused: Callable[[], object] = lambda: None

    # ---- what a Machine does ----

    def run(self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 30) -> Output:
        assert timeout_s > 0
        words = tuple(argv)
        self.ran.append(words)
        if re.search(self.fails, " ".join(words)):
            return Output(1, err="it does not want to\n")
        work: Callable[[tuple[str, ...], str], Output] = getattr(
            self, f"_{words[0].replace('-', '_')}"
        )
        return work(words[1:], stdin)

    def read(self, path: Path) -> str | None:
        if path.parts[1] == "proc" and path.parts[2].isdecimal():
            return self._of_process(path)
        if str(path).startswith("/proc/sys/"):
            return self.settings.get(str(path).removeprefix("/proc/sys/"))
        return self.files.get(str(path), (None, 0))[0]

    def mode(self, path: Path) -> int | None:
        return self.files.get(str(path), (None, None))[1]

    def exists(self, path: Path) -> bool:
        return self.systemd if path == SYSTEMD_RUNS else str(path) in self.files

    def write(self, path: Path, text: str, *, mode: int) -> None:
        self.files[str(path)] = (text, mode)

    def remove(self, path: Path) -> None:
        del self.files[str(path)]

    def listing(self, path: Path) -> tuple[str, ...]:
        if path == PROC:
            return tuple(map(str, self.processes))
        if path.parts[1] != "proc":
            below = (x.removeprefix(f"{path}/") for x in self.files if x.startswith(f"{path}/"))
            return tuple(name for name in below if "/" not in name)
        process = self.processes.get(int(path.parts[2]))
        return tuple(map(str, range(len(process.devices)))) if process else ()

    def _of_process(self, path: Path) -> str | None:
        """A file below /proc/PID."""
        process = self.processes.get(int(path.parts[2]))
        if process is None:
            return None
        if path.name == "status":
            return f"Name:\t{process.program}\nUid:\t990\t990\t990\t990\n"
        if path.name == "comm":
            return f"{process.program}\n"
        return f"pos:\t0\niff:\t{sorted(process.devices)[int(path.name)]}\n"

    def now_s(self) -> float:
        return NOW_S

    def monotonic_s(self) -> float:
        return self.since_boot_s

    def pause(self, seconds: float) -> None:
        self.since_boot_s += seconds
        self.paused()

    def echo(
        self,
        probes: Sequence[Probe],
        *,
        count: int = 3,
        interval_s: float = 0.2,
        wait_s: float = 1.0,
    ) -> list[Ping]:
        assert min(count, interval_s, wait_s) > 0
        self.asked += probes
        answered = [self._answers(probe) for probe in probes]
        return [Ping(count, count if each else 0, 1.5 if each else None) for each in answered]

    def _answers(self, probe: Probe) -> bool:
        address = str(probe.address)
        if f"{address}@{probe.device}" in self.answers:
            return True
        if probe.source is not None and f"{address}!{probe.source}" in self.answers:
            return False
        for each in self.answers:
            found, _, size = each.partition("<")
            if found == address and probe.device is None:
                return not size or probe.size_bytes <= int(size)
        return False

    def send_udp(self, source: Address, target: Address, ports: Iterable[tuple[int, int]]) -> None:
        self.sent.append((source, target, tuple(ports)))

    def start(self, argv: Sequence[str]) -> None:
        self.started.append(tuple(argv))

    def resolve(self, host: str) -> tuple[str, ...]:
        try:
            return (str(ip_address(host)),)
        except ValueError:
            return self.names.get(host, ())

    # ---- programs ----

    def _wg(self, words: tuple[str, ...], stdin: str) -> Output:
        match words:
            case ("show", "all", "dump"):
                return Output(0, "".join(map(dumped, self.tunnels.values())))
            case ("addconf", name, "/dev/stdin"):
                self.tunnels[name] = configured(self.tunnels[name], stdin)
            case ("set", name, "peer", *keys, "remove"):
                gone = set(keys) - {"remove", "peer"}
                tunnel = self.tunnels[name]
                assert gone <= {peer.public_key for peer in tunnel.peers}
                peers = tuple(peer for peer in tunnel.peers if peer.public_key not in gone)
                self.tunnels[name] = replace(tunnel, peers=peers)
            case ("set", name, "peer", key, "endpoint", endpoint):
                tunnel = self.tunnels[name]
                assert tunnel.peer(key) is not None
                self.tunnels[name] = replace(
                    tunnel,
                    peers=tuple(
                        replace(peer, endpoint=parse_endpoint(endpoint))
                        if peer.public_key == key
                        else peer
                        for peer in tunnel.peers
                    ),
                )
            case _:
                raise AssertionError(words)
        return GOOD

    def _wg_quick(self, words: tuple[str, ...], stdin: str) -> Output:
        """Brings up the interface of the file, with its peers and its PostUp routes."""
        assert not stdin
        up, path = words
        assert up == "up"
        name = path.rpartition("/")[2].removesuffix(".conf")
        text = self.files[path][0]
        self._new_tunnel(name)
        self.tunnels[name] = configured(self.tunnels[name], text)
        (address,) = re.findall(r"^Address = (.*)$", text, re.MULTILINE)
        (mtu,) = re.findall(r"^MTU = (.*)$", text, re.MULTILINE)
        self.devices[name] = Device(name, True, int(mtu), (ip_interface(address),))
        added = r"^PostUp = ip -\d (route add .*) \|\| true$"
        for command in re.findall(added, text, re.MULTILINE):
            self._ip(tuple(command.replace("%i", name).split()), "")
        return GOOD

    def _sh(self, words: tuple[str, ...], stdin: str) -> Output:
        assert not stdin
        if words[1] in (CHECK_SSHD, END_LOST_SESSIONS):
            return GOOD
        if words[1] == VERIFY:
            return Output(int(words[2] in self.devices), err=f"{words[2]} is still there\n")
        if words[1].startswith("kill -KILL "):
            for pid in words[1].split()[2:]:
                self.processes.pop(int(pid), None)
            return GOOD
        match = re.match(r"ip link add dev (\S+) type wireguard", words[1])
        assert match
        self._new_tunnel(match[1])
        return GOOD

    def _new_tunnel(self, name: str) -> None:
        assert name not in self.devices
        self.devices[name] = Device(name, up=False, mtu=1420)
        self.tunnels[name] = LiveTunnel(name, None, 0)

    def _ip(self, words: tuple[str, ...], stdin: str) -> Output:
        assert not stdin
        match words:
            case ("-j", "-d", "-N", "address", "show"):
                return Output(0, json.dumps([*map(device_json, self.devices.values())]))
            case ("-j", "-N", family, "route", "show", "table", "main"):
                there = (*self.routes, *self._connected())
                shown = [x for x in there if x.subnet.version == int(family[1])]
                return Output(0, json.dumps([*map(route_json, shown)]))
            case ("link", *rest):
                return self._ip_link(rest)
            case ("tuntap", "add", "dev", name, "mode", "tun", *user):
                assert name not in self.devices
                owner = user[1] if user else None
                self.devices[name] = Device(name, up=False, mtu=1500, owner=owner, queue=500)
            case ("address", "replace", address, "dev", name):
                device = self.devices[name]
                kept = [x for x in device.addresses if x != ip_interface(address)]
                kept.append(ip_interface(address))
                self.devices[name] = replace(device, addresses=tuple(kept))
            case ("address", "del", address, "dev", name):
                device = self.devices[name]
                kept = [x for x in device.addresses if x != ip_interface(address)]
                assert len(kept) == len(device.addresses) - 1
                self.devices[name] = replace(device, addresses=tuple(kept))
            case ("-j", "route", "get", *_) | ("-4" | "-6", "rule", "show"):
                return self._looked_up(words)
            case ("route", *rest):
                self._ip_route(rest)
            case _:
                raise AssertionError(words)
        return GOOD

    def _connected(self) -> Iterator[LiveRoute]:
        """The kernel's own routes."""
        for device in self.devices.values():
            for address in device.addresses if device.up else ():
                net = address.network
                if net.prefixlen < net.max_prefixlen and not address.is_link_local:
                    yield LiveRoute(net, device.name, KERNEL_PROTOCOL)

    def _ip_link(self, words: list[str]) -> Output:
        match words:
            case ["set", name, "mtu", mtu]:
                self.devices[name] = replace(self.devices[name], mtu=int(mtu))
            case ["set", name, "txqueuelen", length]:
                self.devices[name] = replace(self.devices[name], queue=int(length))
            case ["set", name, "up"]:
                self.devices[name] = replace(self.devices[name], up=True)
            case ["delete", "dev", name]:
                if self.devices.pop(name, None) is None:
                    return Output(1, err=f'Cannot find device "{name}"\n')
                self.tunnels.pop(name, None)
                self.routes = [route for route in self.routes if route.device != name]
            case _:
                raise AssertionError(words)
        return GOOD

    def _looked_up(self, words: tuple[str, ...]) -> Output:
        """`ip rule show`, `ip -j route get ADDRESS from ADDRESS iif DEVICE`."""
        if words[1] == "rule":
            return Output(0, self.rules)
        target, *rest = words[3:]
        assert rest[::2] == ["from", "iif"]
        on = [x for x in self.routes if ip_address(target) in x.subnet]
        best = max(on, key=lambda x: (x.subnet.prefixlen, -x.metric), default=None)
        if best is None or best.kind != "unicast":
            return Output(2, err="RTNETLINK answers: Network is unreachable\n")
        return Output(0, json.dumps([{"dst": target, "dev": best.device}]))

    def _ip_route(self, words: list[str]) -> None:
        match words:
            case ["add", subnet, "dev", name, "proto", protocol]:
                net = ip_network(subnet)
                if (net, 1024 if net.version == 6 else 0) not in {
                    (x.subnet, x.metric) for x in self.routes
                }:
                    self._replace_route(subnet, name, int(protocol))
            case ["replace", "unreachable", subnet, "proto", protocol, "metric", metric]:
                refusing = refused(subnet, protocol, metric)
                self.routes = [x for x in self.routes if x != refusing] + [refusing]
            case ["del", "unreachable", subnet, "proto", protocol, "metric", metric]:
                self.routes.remove(refused(subnet, protocol, metric))
            case ["replace", subnet, "dev", name, "proto", protocol]:
                self._replace_route(subnet, name, int(protocol))
            case ["replace", subnet, "dev", name, "proto", protocol, "metric", metric]:
                assert int(metric) > 1024
                route = LiveRoute(ip_network(subnet), name, int(protocol), int(metric))
                self.routes.append(route)
            case ["del", subnet, "dev", name, "proto", protocol, "metric", metric]:
                gone = LiveRoute(ip_network(subnet), name, int(protocol), int(metric))
                self.routes.remove(gone)
            case _:
                raise AssertionError(words)

    def _replace_route(self, text: str, device: str, protocol: int) -> None:
        """The kernel replaces the first one with this subnet and this metric, whosever it is."""
        subnet = ip_network(text)
        assert device in self.devices
        route = LiveRoute(subnet, device, protocol, 1024 if subnet.version == 6 else 0)
        for position, old in enumerate(self.routes):
            if (old.subnet, old.metric) == (subnet, route.metric):
                self.routes[position] = route
                return
        self.routes.append(route)

    def _nft(self, words: tuple[str, ...], stdin: str) -> Output:
        if words == ("-f", "-"):
            title = re.findall(r"^table (\w+ \w+) \{", stdin, re.MULTILINE)[-1]
            self.tables[title] = listing(stdin)
            return GOOD
        if words == ("-j", "list", "ruleset"):
            return Output(0, self.rulesets.get("nft", '{"nftables": []}'))
        if words[:3] == ("-j", "list", "set"):
            return Output(0, self.rulesets.get("heard", ""))
        title = " ".join(words[-2:])
        if words[:2] == ("delete", "table"):
            return GOOD if self.tables.pop(title, None) is not None else Output(1)
        return Output(0, self.tables[title]) if title in self.tables else Output(1)

    def _systemd_run(self, words: tuple[str, ...], stdin: str) -> Output:
        assert (words[:3], stdin) == (("--quiet", "--collect", "--"), "")
        return GOOD

    def _iptables_nft(self, words: tuple[str, ...], stdin: str) -> Output:
        *table, last = words
        assert (last, stdin) == ("-S", "")
        name = table[1] if table else "filter"
        text = self.rulesets.get(f"iptables-nft {name}")
        text = self.rulesets.get("iptables-nft") if text is None and name == "filter" else text
        return Output(127) if text is None else Output(0, text)

    def _unshare(self, words: tuple[str, ...], stdin: str) -> Output:
        assert words[:3] == ("--net", "sh", "-c")
        return Output(0, listing(stdin))

    def _sysctl(self, words: tuple[str, ...], stdin: str) -> Output:
        assert not stdin
        key, _, value = words[-1].partition("=")
        assert key in self.settings
        self.settings[key] = value
        return GOOD

    def _systemctl(self, words: tuple[str, ...], stdin: str) -> Output:
        assert not stdin
        match words:
            case ("is-active", name):
                active = self.units.get(name, Unit(False, False)).active
                return Output(0, "active\n") if active else Output(3, "inactive\n")
            case ("is-enabled", name):
                enabled = self.units.get(name, Unit(False, False)).enabled
                return Output(0, "enabled\n") if enabled else Output(1, "disabled\n")
            case ("start", name):
                unit = self.units.get(name, Unit(False, False))
                self.units[name] = replace(unit, active=True)
                if not unit.active:
                    self._start(name)
            case ("enable", name):
                self.units[name] = replace(self.units.get(name, Unit(False, False)), enabled=True)
            case ("restart", name):
                self.units[name] = replace(self.units.get(name, Unit(False, False)), active=True)
                self._start(name)
            case ("disable", "--now", name):
                self.units.pop(name, None)
                self._stop(name)
            case ("stop", name):
                assert name not in self.units  # what a timer has begun
            case ("list-units", *options, pattern):
                assert options == ["--all", "--full", "--plain", "--no-legend"]
                found = [name for name in self.units if fnmatchcase(name, pattern)]
                return Output(
                    0, "".join(f"{name} loaded active exited A tunnel\n" for name in found)
                )
            case _:
                assert words[0] in ("daemon-reload", "try-reload-or-restart")
        return GOOD

    def _stop(self, unit: str) -> None:
        """Takes the device away, or the table."""
        found = re.search(r"-tun@(\d+)\.service", unit)
        quick = re.fullmatch(r"wg-quick@(.*)\.service", unit)
        device = f"tun{found[1]}" if found else quick[1] if quick else None
        if device in self.devices and device not in self.holds:
            self._ip(("link", "delete", "dev", device), "")
        clamping = re.fullmatch(r"cpythonplus-sites-(.*)-clamping\.service", unit)
        if clamping:
            self.tables.pop(f"inet cpythonplus_sites_{clamping[1]}", None)

    def _start(self, unit: str) -> None:
        quick = re.fullmatch(r"wg-quick@(.*)\.service", unit)
        if quick:
            self._wg_quick(("up", f"/etc/wireguard/{quick[1]}.conf"), "")
        tun = re.search(r"-tun@(\d+)\.service", unit)
        if tun and f"tun{tun[1]}" not in self.devices:
            (user,) = re.findall(
                r"user (\S+)", self.files[f"{UNITS}/{tun.string[: tun.start()]}-tun@.service"][0]
            )
            self._ip(("tuntap", "add", "dev", f"tun{tun[1]}", "mode", "tun", "user", user), "")

    def _id(self, words: tuple[str, ...], stdin: str) -> Output:
        assert (words[0], stdin) == ("-u", "")
        return Output(0, "990\n")

    def _pkill(self, words: tuple[str, ...], stdin: str) -> Output:
        *options, user = words
        assert options in (["-u"], ["-KILL", "-u"])
        assert not stdin
        self.ended.append(user)
        return GOOD

    def _userdel(self, words: tuple[str, ...], stdin: str) -> Output:
        assert len(words) == 1
        assert not stdin
        return GOOD

    def _rm(self, words: tuple[str, ...], stdin: str) -> Output:
        option, path = words
        assert (option, stdin) == ("-f", "")
        self.files.pop(path, None)
        return GOOD

    def _systemd_sysusers(self, words: tuple[str, ...], stdin: str) -> Output:
        assert words[0] in self.files
        assert not stdin
        return GOOD


def configured(tunnel: LiveTunnel, text: str) -> LiveTunnel:
    """What `wg addconf` makes of an interface: a peer in it gets all but its endpoint anew."""
    head, *blocks = text.split("[Peer]")
    keys = dict(re.findall(r"^(\w+) = (.*)$", head, re.MULTILINE))
    peers = {peer.public_key: peer for peer in tunnel.peers}
    for block in blocks:
        values = dict(re.findall(r"^(\w+) = (.*)$", block, re.MULTILINE))
        old = tunnel.peer(values["PublicKey"]) or LivePeer(values["PublicKey"])
        keepalive = values.get("PersistentKeepalive", "off")
        endpoint = parse_endpoint(values.get("Endpoint", "")) or old.endpoint
        peers[old.public_key] = replace(
            old,
            preshared_key=values.get("PresharedKey"),
            endpoint=endpoint,
            allowed_ips=frozenset(map(ip_network, values["AllowedIPs"].split(", "))),
            keepalive_s=0 if keepalive == "off" else int(keepalive),
        )
    key, port = keys.get("PrivateKey", tunnel.private_key), keys.get("ListenPort")
    port_now = tunnel.listen_port if port is None else int(port)
    return LiveTunnel(tunnel.interface, key, port_now, tuple(peers.values()))


def dumped(tunnel: LiveTunnel) -> str:
    """As `wg show all dump` prints it."""
    name, key = tunnel.interface, tunnel.private_key or "(none)"
    lines = [[name, key, "PUBLIC", str(tunnel.listen_port), "off"]]
    for peer in tunnel.peers:
        allowed = ",".join(map(str, peer.allowed_ips)) or "(none)"
        endpoint = str(peer.endpoint) if peer.endpoint else "(none)"
        columns = [name, peer.public_key, peer.preshared_key or "(none)", endpoint, allowed]
        numbers = (peer.handshake_s, peer.received_bytes, peer.sent_bytes)
        lines.append([*columns, *map(str, numbers), str(peer.keepalive_s or "off")])
    return "".join("\t".join(line) + "\n" for line in lines)


def device_json(device: Device) -> dict[str, object]:
    """As `ip -j address show` prints it."""
    flags = ["POINTOPOINT", *["UP"] * device.up, *["NO-CARRIER"] * (not device.running)]
    entries = [{"local": str(x.ip), "prefixlen": x.network.prefixlen} for x in device.addresses]
    found = {"ifname": device.name, "flags": flags, "mtu": device.mtu, "addr_info": entries}
    if device.queue is not None:
        found["txqlen"] = device.queue
    if device.owner is not None:
        found["linkinfo"] = {"info_kind": "tun", "info_data": {"user": device.owner}}
    return found


def route_json(route: LiveRoute) -> dict[str, object]:
    """As `ip -j -N route show` prints it: no prefix length of a host, no `boot`, no metric 0."""
    single = route.subnet.prefixlen == route.subnet.max_prefixlen
    entry: dict[str, object] = {
        "dst": str(route.subnet.network_address) if single else str(route.subnet),
    }
    if route.kind == "unicast":
        entry["dev"] = route.device
    else:
        entry["type"] = {"unreachable": "7", "blackhole": "6"}[route.kind]
        entry |= {"dev": "lo"} if route.subnet.version == 6 else {}
    if route.protocol != BOOT_PROTOCOL:
        entry["protocol"] = str(route.protocol)
    if route.metric:
        entry["metric"] = route.metric
    return entry


def refused(subnet: str, protocol: str, metric: str) -> LiveRoute:
    """An `unreachable` route."""
    return LiveRoute(ip_network(subnet), "", int(protocol), int(metric), "unreachable")


def listing(rules: str) -> str:
    """As nft prints a table: not as it was written."""
    return " ".join(line for line in rules.split() if line).rpartition("table ")[2]
