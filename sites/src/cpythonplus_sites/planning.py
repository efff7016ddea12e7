"""The ordered steps that make a gateway as its file says. No I/O.

    record of what is made -> keys, units and devices of links over ssh that are wanted no more
      -> files -> units, for the next boot -> routes that refuse what has no tunnel -> kernel
      settings -> firewall table -> interfaces -> peers -> endpoints -> routes -> units
      -> interfaces and refusing routes that are left over -> what has an old name, and its record

Keys and devices that let a site in are removed before the filter of its packets (leaving.py). The
refusing routes are set before forwarding is enabled, and are removed after everything that forwards
(closing.py). Peers that stay are not touched: `wg addconf` gets only those that differ. It adds no
routes, so routes are separate steps; a route is moved by `ip route replace`, which leaves no moment
without one. A missing interface is brought up first, and the rest is planned from its new state:
wg-quick sets most of it.

Every command may be repeated. Anything that somebody else has set up is never changed; if it is in
the way, it is reported (`Plan.obstacles`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import closing, leaving, rotation
from cpythonplus_sites.live import BOOT_PROTOCOL, KERNEL_PROTOCOL, NOWHERE, parse_address
from cpythonplus_sites.model import Endpoint
from cpythonplus_sites.rendering import ROUTE_PROTOCOL
from cpythonplus_sites.rendering.ssh import FOLDER as SSH_FOLDER
from cpythonplus_sites.rendering.ssh import QUEUE_PACKETS
from cpythonplus_sites.rendering.wireguard import FOLDER, MARK
from cpythonplus_sites.steps import Command, Plan, Step
from cpythonplus_sites.steps import ip as _ip
from cpythonplus_sites.wanted import PlainFile, is_for_systemd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpythonplus_sites.live import Device, Live, LivePeer, LiveTunnel
    from cpythonplus_sites.live_route import LiveRoute
    from cpythonplus_sites.model import Address, Subnet
    from cpythonplus_sites.record import Record
    from cpythonplus_sites.wanted import Peer, Tunnel, Wanted

CHECK_SSHD = (
    "systemctl -q is-active ssh.service sshd.service || exit 0; PATH=$PATH:/usr/sbin sshd -t"
)
END_LOST_SESSIONS = """\
for pid in $(pgrep -u "$0"); do
    ls -l "/proc/$pid/fd" 2>/dev/null | grep -q /dev/net/tun || kill "$pid"
done"""
"""A shell script that ends the processes of a tunnel user that have no device open.

An ssh or sshd whose device was deleted closes the channel, but keeps the unusable connection: the
client does not connect again by itself.
"""

END_OF_RENAMED = 'rm -f "/run/wireguard/$0.sock"; sleep 1'
"""A shell script that ends the wireguard-go of a renamed interface, which frees its port."""

FORWARD_IPV6 = "net/ipv6/conf/all/forwarding"
IPV6 = 6
CLOCK_SLACK_S = 5
"""The seconds by which a clock is set back in normal operation."""

PRESHARED_CHANGES = (
    "which comes from the secret and the keys of both sites (up to version 0.2, and with"
    ' preshared = "names", from their names): within three minutes the link is down, until {0} has'
    " the same"
)
PORT_TAKEN = (
    "UDP port {0}, which {1} needs for a change of keys, is in use by another program or interface;"
    " second_port of this site in the file can name another"
)
OTHER_KEYS = (
    "{0} lets sites in over ssh, and is not of this network: it belongs to another one of this"
    " gateway, or is left over from an old name; then remove it"
)
LAN_REFUSED = (
    "{0}, a LAN of this site, is not connected, and this gateway has no route to it: what the"
    " other sites send there is refused"
)

LAST_UNITS = ("-clamping.service", "-unreachable.service")
"""The units that must run while a link is up, or a forbidden packet could pass."""

PROBE_METRIC = 4000
"""The metric of routes for pings, which is behind that of the routes for packets."""

IPV6_METRIC = 1024
"""The metric that Linux gives an IPv6 route without one."""


def plan(wanted: Wanted, live: Live, *, endpoints_only: bool = False) -> Plan:
    """Compare the wanted state with the current one.

    endpoints_only: only the steps that a timer may take by itself: follow DNS names, move routes in
    a change of keys or to and from a fallback, restore the `unreachable` routes, and restore our
    nftables table if somebody has flushed all tables.
    """
    return _Planner(wanted, live).plan(endpoints_only=endpoints_only)


def strangers(wanted: Wanted, live: Live) -> Iterator[str]:
    """A line for each interface of another program that has the name of one in the plan."""
    return _Planner(wanted, live).strangers()


def own_tunnels(wanted: Wanted, live: Live) -> list[LiveTunnel]:
    """This host's interfaces, by key, that the file no longer mentions."""
    return _Planner(wanted, live).own_left_over()


class _Planner:
    def __init__(self, wanted: Wanted, live: Live) -> None:
        self.wanted = wanted
        self.live = live
        self.obstacles = list(wanted.incomplete)
        self.notes: list[str] = []
        self.doomed = {device.name for device in leaving.left_over(wanted, live)}

    def plan(self, *, endpoints_only: bool) -> Plan:
        strangers = [*self.strangers(), *(() if endpoints_only else self.connected())]
        if strangers:
            # Half of the steps would do more harm than none.
            return Plan((), (*self.obstacles, *strangers))
        closed = closing.close(self.wanted, self.live)
        by_itself = [closed, self.loose_filters(), self.endpoints()]
        by_itself += [self.probe_routes(), self.moved_routes(), self.tables(flushed=True)]
        parts = by_itself if endpoints_only else self.parts()
        steps = tuple(step for part in parts for step in part)
        if not endpoints_only:
            there = (self.live.devices, self.live.routes)
            self.notes += map(OTHER_KEYS.format, self.live.other_keys)
            self.notes += map(LAN_REFUSED.format, closing.not_connected(self.wanted, *there))
        remarks = () if endpoints_only else self.wanted.remarks
        return Plan(steps, tuple(self.obstacles), (*remarks, *self.notes))

    def parts(self) -> list[Iterator[Step]]:
        return [
            self.record(self.live.recorded.joined(self.wanted.written)),
            leaving.withdraw_keys(self.wanted, self.live),
            leaving.forget(self.live),
            self.stale_units(last=False),
            leaving.remove_devices(self.wanted, self.live),
            self.files(),
            self.enabled(),
            closing.close(self.wanted, self.live),
            self.settings(),
            self.tables(),
            self.left_over_devices(in_the_way=True),
            self.missing_devices(),
            self.device_settings(),
            self.peers(),
            self.endpoints(),
            self.probe_routes(),
            self.missing_routes(),
            self.stale_routes(),
            self.units(),
            self.left_over_devices(in_the_way=False),
            self.stale_units(last=True),
            closing.reopen(self.wanted, self.live),
            self.of_old_names(),
            self.record(self.wanted.written),
        ]

    # ---- things with an old name ----------------------------------------------------------------

    def record(self, record: Record) -> Iterator[Step]:
        """Write the record: before anything is made, and after unwanted things are gone."""
        path = self.wanted.record
        if path is not None and record != self.live.recorded:
            file = PlainFile(path, record.text(), 0o600)
            yield Step(f"record in {path} what is set up here", file=file)

    def of_old_names(self) -> Iterator[Step]:
        """Remove recorded things except units and interfaces; they may be gone already."""
        gone = self.live.gone
        for metric in filter(str.isdecimal, gone.metrics):
            yield from closing.reopen(
                replace(self.wanted, closed=(), closed_metric=int(metric)), self.live
            )
        for table in gone.tables:
            delete = Command(("nft", "delete", "table", *table.split()), tolerated=True)
            yield Step(f"remove the nftables table {table}", (delete,))
        paths = [path for path in gone.files if self._is_our_file(Path(path))]
        for path in paths:
            yield Step(f"remove {path}", (Command(("rm", "-f", path)), *self._take_over(path)))
        if self.live.systemd and any(path.startswith("/etc/systemd/") for path in paths):
            yield Step("reload the units of systemd", (Command(("systemctl", "daemon-reload")),))
        for user in gone.users:
            delete = Command(("userdel", user), tolerated=True)
            yield Step(f"remove the user {user}", (delete,))

    def _is_our_file(self, path: Path) -> bool:
        there = self.live.files.get(path)
        if there is None or path.parent == Path(SSH_FOLDER):  # removed before
            return False
        return path.parent != Path(FOLDER) or MARK in there.text

    # ---- things of others -----------------------------------------------------------------------

    def strangers(self) -> Iterator[str]:
        """Lines on interfaces of another program that have the name of one in the plan."""
        own_keys = {None, *self.wanted.own_keys}
        for tunnel in self.wanted.tunnels:
            name = tunnel.interface
            device, live = self.live.devices.get(name), self.live.tunnels.get(name)
            if device is not None and live is None:
                yield f"{name} exists, but is not a WireGuard interface"
            elif (
                device and live and live.private_key not in own_keys and self._is_elsewhere(device)
            ):
                yield f"{name} exists, but its key and addresses are not those of this network"
            path = Path(FOLDER / f"{name}.conf")
            there = self.live.files.get(path)
            if there is not None and there.text.strip() and MARK not in there.text:
                yield f"{path} exists, but was not written by cpythonplus: move it away"
        for link in self.wanted.ssh:
            device = self.live.devices.get(link.device)
            ours = (self.wanted.tunnel_user, *self.live.gone.users)
            if device and device.owner not in ours and self._is_elsewhere(device):
                yield f"{link.device} exists, but its addresses are not those of this network"

    def connected(self) -> Iterator[str]:
        """LANs of other sites that are a network of this host; our routes would hide it."""
        wanted = {way.subnet for way in self.wanted.routes}
        ours = self.wanted.devices | {tunnel.interface for tunnel in self._left_over()}
        for route in self.live.routes:
            is_connected = route.protocol == KERNEL_PROTOCOL and route.kind not in NOWHERE
            if is_connected and route.device not in ours and route.subnet in wanted:
                yield _not_ours(route)

    def _is_elsewhere(self, device: Device) -> bool:
        """Whether a device has addresses, but none in the range of our tunnels."""
        found = [x.ip for x in device.addresses if not x.is_link_local]
        return bool(found) and not any(_is_in(ip, self.wanted.range) for ip in found)

    # ---- files, kernel, firewall ----------------------------------------------------------------

    def files(self) -> Iterator[Step]:
        changed_units = False
        present = [x for x in self.wanted.withdrawn if self.live.files.get(Path(x.path))]
        done = leaving.changed_keys(self.wanted, self.live)
        for file in (*self.wanted.files, *present):
            if file in done or (is_for_systemd(file) and not self.live.systemd):
                continue
            there = self.live.files.get(Path(file.path))
            if there is not None and (there.text, there.mode) == (file.text, file.mode):
                continue
            changed_units |= is_for_systemd(file)
            path = str(file.path)
            word = "write" if there is None else "change"
            if there is not None and there.text == file.text:
                word = f"set mode {file.mode:04o} of"
            yield Step(f"{word} {path}", tuple(self._take_over(path)), file=file)
        if changed_units:
            yield Step("reload the units of systemd", (Command(("systemctl", "daemon-reload")),))

    def _take_over(self, path: str) -> Iterator[Command]:
        """The commands after which a changed file takes effect."""
        if path.startswith("/etc/sysusers.d/") and path not in self.live.gone.files:
            yield Command(("systemd-sysusers", path), tolerated=True)
        elif path.startswith("/etc/ssh/sshd_config.d/") and self.live.systemd:
            # A running sshd that reloads an invalid file may end, and lock everybody out.
            yield Command(("sh", "-c", CHECK_SSHD))
            # The unit is `ssh` on Debian, and `sshd` on others.
            yield Command(("systemctl", "try-reload-or-restart", "ssh.service"), tolerated=True)
            yield Command(("systemctl", "try-reload-or-restart", "sshd.service"), tolerated=True)

    def loose_filters(self) -> Iterator[Step]:
        """Set rp_filter again for devices that came up anew, if a link has a fallback."""
        found = {x.device for x in self.wanted.fallbacks}
        found |= {x.interface for x in self.wanted.tunnels} if found else set()
        yield from self.settings({f"net/ipv4/conf/{name}/rp_filter" for name in found})

    def settings(self, only: set[str] | None = None) -> Iterator[Step]:
        """Set kernel settings; each may fail alone, as in a container with read-only /proc/sys."""
        accepting: list[Step] = []
        for key, value in self.wanted.sysctls.items():
            if only is not None and key not in only:
                continue
            there = self.live.sysctls.get(key)
            if there == value:
                continue
            if there is None:
                if "/conf/" not in key:  # an interface's settings appear when it is made
                    self.obstacles.append(f"{key}: this kernel has no such setting")
                continue
            set_it = Command(("sysctl", "-q", "-w", f"{key}={value}"))
            step = Step(f"set {key} to {value} (it is {there})", (set_it,), optional=True)
            if key.endswith("/accept_ra"):
                accepting.append(step)
                continue
            if key == FORWARD_IPV6:
                step, accepting = _guarded(step, accepting), []
            yield step
        yield from accepting

    def tables(self, *, flushed: bool = False) -> Iterator[Step]:
        """Load the tables; flushed: only removed ones, as by `nft -f /etc/nftables.conf`.

        The timer loads them, so that packets from ssh links do not stay unfiltered.  A gateway that
        was taken down has no interface of ours, and keeps none of our tables.
        """
        ours = {*(x.interface for x in self.wanted.tunnels), *(x.device for x in self.wanted.ssh)}
        if flushed and ours.isdisjoint(self.live.devices):
            return
        for table in self.wanted.tables:
            there, meant = self.live.tables.get(table.title, (None, None))
            if there is not None and (flushed or meant in (None, there)):
                continue
            # Replace the table in one transaction, so that the rules are never missing.
            start = f"table {table.title}\ndelete table {table.title}\n"
            word = "load" if there is None else "change"
            load = Command(("nft", "-f", "-"), stdin=start + table.rules)
            yield Step(f"{word} the nftables table {table.title}", (load,), optional=flushed)

    # ---- interfaces -----------------------------------------------------------------------------

    def missing_devices(self) -> Iterator[Step]:
        for tunnel in self.wanted.tunnels:
            name = tunnel.interface
            device = self.live.devices.get(name)
            if self._is_taken(tunnel):
                self._tell_taken(tunnel)
            elif device is None:
                # After a rename of its interface, wireguard-go runs until its socket is gone.
                is_held = name in self.live.tunnels
                end = (Command(("sh", "-c", END_OF_RENAMED, name)),) if is_held else ()
                yield Step(f"bring up {name}", (*end, *self._bring_up(name)))
        for link in self.wanted.ssh:
            if link.device not in self.live.devices:
                yield Step(
                    f"create {link.device} for the ssh link to {link.site}",
                    (*self._make_user(), self._make_tun(link.device), *self._end_lost_sessions()),
                )

    def _is_taken(self, tunnel: Tunnel) -> bool:
        """Whether somebody else has the port of a second interface."""
        live = self.live.tunnels.get(tunnel.interface)
        is_there = live is not None and live.listen_port == tunnel.listen_port
        return tunnel.spare and tunnel.listen_port in self.live.ports and not is_there

    def _tell_taken(self, tunnel: Tunnel) -> None:
        """Report a taken port; it matters only if a change of keys is to use the interface."""
        text = PORT_TAKEN.format(tunnel.listen_port, tunnel.interface)
        used = [x for x in self.wanted.rotation if x.spare for peer in x.peers if peer.preferred]
        (self.obstacles if used else self.notes).append(text)

    def _bring_up(self, name: str) -> tuple[Command, ...]:
        path = next((f.path for f in self.wanted.files if f.path.name == f"{name}.conf"), None)
        if path is None:
            # Without the kernel module, the implementation in user space is used.
            make = f"ip link add dev {name} type wireguard 2>/dev/null || wireguard-go {name}"
            return (Command(("sh", "-c", make)),)
        if self.live.systemd:
            # `start` would do nothing: after its daemon was killed the unit still counts as active.
            return (Command(("systemctl", "restart", f"wg-quick@{name}.service")),)
        return (Command(("wg-quick", "up", str(path))),)

    def _make_user(self) -> Iterator[Command]:
        """Make the tunnel user again: the run that wrote the file may have ended before that."""
        for file in self.wanted.files:
            yield from self._take_over(str(file.path)) if "sysusers" in str(file.path) else ()

    def _make_tun(self, device: str) -> Command:
        """Make a tun device for the user without rights as which ssh opens it."""
        ending = f"-tun@{device.removeprefix('tun')}.service"
        unit = next((unit for unit in self.wanted.units if unit.endswith(ending)), None)
        if unit is not None and self.live.systemd:
            return Command(("systemctl", "restart", unit))
        user = ("user", self.wanted.tunnel_user) if self.wanted.tunnel_user else ()
        return Command(("ip", "tuntap", "add", "dev", device, "mode", "tun", *user))

    def _end_lost_sessions(self) -> Iterator[Command]:
        user = self.wanted.tunnel_user
        if user is not None:
            yield Command(("sh", "-c", END_LOST_SESSIONS, user), tolerated=True)

    def device_settings(self) -> Iterator[Step]:
        ours = [(x.interface, x.address, x.mtu) for x in self.wanted.tunnels]
        ours += [(x.device, x.address, x.mtu) for x in self.wanted.ssh]
        queues = {link.device for link in self.wanted.ssh}
        for name, address, mtu in ours:
            device = self.live.devices.get(name)
            if device is None or name in self.doomed or not self._is_ours(name):
                continue
            yield from self._addresses(device, str(address))
            if device.mtu != mtu:
                yield _ip(f"set the MTU of {name} to {mtu}", "link", "set", name, "mtu", str(mtu))
            if not device.up:
                yield _ip(f"set {name} up", "link", "set", name, "up")
            if name in queues and device.queue not in (None, QUEUE_PACKETS):
                title = f"set the queue of {name} to {QUEUE_PACKETS} packets"
                yield _ip(title, "link", "set", name, "txqueuelen", str(QUEUE_PACKETS))

    def _is_ours(self, name: str) -> bool:
        return name in self.live.tunnels or name in {x.device for x in self.wanted.ssh}

    def _addresses(self, device: Device, address: str) -> Iterator[Step]:
        wanted = ip_interface(address)
        if wanted.ip not in {x.ip for x in device.addresses}:
            yield _ip(
                f"add the address {address} to {device.name}",
                *("address", "replace", str(wanted), "dev", device.name),
            )
        for other in device.addresses:
            was_ours = str(other.ip) in self.live.gone.addresses
            if other.ip != wanted.ip and (was_ours or _is_in(other.ip, self.wanted.range)):
                yield _ip(
                    f"remove the address {other} from {device.name}",
                    *("address", "del", str(other), "dev", device.name),
                    interrupts=True,
                )

    def left_over_devices(self, *, in_the_way: bool) -> Iterator[Step]:
        """Remove unwanted interfaces with this host's key: with an old name, or of a rotation."""
        missing = [x for x in self.wanted.tunnels if x.interface not in self.live.devices]
        ports = {tunnel.listen_port for tunnel in missing}
        for tunnel in self._left_over():
            if (tunnel.listen_port in ports) is in_the_way:
                name = tunnel.interface
                yield Step(f"remove {name}", tuple(self._remove(name)), interrupts=in_the_way)

    def own_left_over(self) -> list[LiveTunnel]:
        """This host's interfaces that the file does not mention, for `down`."""
        return self._left_over()

    def _left_over(self) -> list[LiveTunnel]:
        wanted = {tunnel.interface for tunnel in self.wanted.tunnels}
        own = self.wanted.own_keys
        paths = map(Path, self.live.gone.files)
        recorded = {path.stem for path in paths if path.parent == Path(FOLDER)}
        return [
            tunnel
            for tunnel in self.live.tunnels.values()
            if (tunnel.private_key in own or self._is_of_a_rotation(tunnel.interface))
            and tunnel.interface not in wanted
            and not (
                self._is_of_another_network(tunnel.interface) and tunnel.interface not in recorded
            )
        ]

    def _is_of_a_rotation(self, name: str) -> bool:
        """Whether an interface is a rotation's, by name and address: an aborted key is deleted."""
        spares = {rotation.spare_interface(x.interface) for x in self.wanted.tunnels if not x.spare}
        device = self.live.devices.get(name)
        if name not in spares or device is None:
            return False
        found = {x.ip for x in device.addresses if not x.is_link_local}
        return bool(found) and found <= {x.address for x in self.wanted.tunnels}

    def _is_of_another_network(self, name: str) -> bool:
        device = self.live.devices.get(name)
        return device is not None and self._is_elsewhere(device)

    def _remove(self, name: str) -> Iterator[Command]:
        if self.live.systemd:
            unit = f"wg-quick@{name}.service"
            yield Command(("systemctl", "disable", "--now", unit), tolerated=True)
        yield Command(("ip", "link", "delete", "dev", name), tolerated=True)

    # ---- peers ----------------------------------------------------------------------------------

    def peers(self) -> Iterator[Step]:
        for tunnel in self.wanted.tunnels:
            live = self.live.tunnels.get(tunnel.interface)
            if live is None or self._is_taken(tunnel):
                continue
            changes, interrupts = self._differences(tunnel, live)
            if changes:
                title = f"{tunnel.interface}: {', '.join(changes)}"
                yield Step(title, tuple(self._set(tunnel, live)), interrupts=interrupts)

    def _set(self, tunnel: Tunnel, live: LiveTunnel) -> Iterator[Command]:
        """Set only the differences. Rejected: `wg syncconf` with all peers.

        It removes the allowed IPs of each peer and sets them again; packets in between are lost,
        also of peers that stay: 5 of 12,000 packets beside 3,000 calls.
        """
        # A new private key ends every session, but the time of the last handshake would stay, and
        # a route would be moved to a dead session: remove all peers first.
        stay = live.peers if live.private_key == tunnel.private_key else ()
        wanted = {peer.public_key: peer for peer in tunnel.peers}
        there = {peer.public_key: peer for peer in stay if peer.public_key in wanted}
        gone = [peer.public_key for peer in live.peers if peer.public_key not in there]
        if gone:
            words = (word for key in gone for word in ("peer", key, "remove"))
            yield Command(("wg", "set", tunnel.interface, *words))
        lines = list(self._interface(tunnel, live))
        for key, peer in wanted.items():
            if key not in there or _peer_differences(peer, there[key]):
                lines += self._peer(peer, new=key not in there)
        if lines:
            # The keys go over standard input: on a command line everybody could read them.
            argv = ("wg", "addconf", tunnel.interface, "/dev/stdin")
            yield Command(argv, stdin="\n".join(lines) + "\n")

    def _differences(self, tunnel: Tunnel, live: LiveTunnel) -> tuple[list[str], bool]:
        changes = []
        if live.private_key != tunnel.private_key:
            changes.append("set the private key")
        if live.listen_port != tunnel.listen_port:
            changes.append(f"listen on port {tunnel.listen_port}")
        interrupts = bool(changes)
        for peer in tunnel.peers:
            there = live.peer(peer.public_key)
            if there is None:
                changes.append(f"add peer {peer.site}")
                continue
            words = _peer_differences(peer, there)
            interrupts |= "the preshared key" in words
            changes += [f"change {' and '.join(words)} of {peer.site}"] if words else []
            if "the preshared key" in words and None not in (
                peer.preshared_key,
                there.preshared_key,
            ):
                changes.append(PRESHARED_CHANGES.format(peer.site))
        wanted = {peer.public_key for peer in tunnel.peers}
        gone = [peer for peer in live.peers if peer.public_key not in wanted]
        changes += [f"remove peer {peer.public_key}" for peer in gone]
        return changes, interrupts or any(self._is_fresh(peer) for peer in gone)

    def _interface(self, tunnel: Tunnel, live: LiveTunnel) -> Iterator[str]:
        values = {
            "PrivateKey": (tunnel.private_key, live.private_key),
            "ListenPort": (tunnel.listen_port, live.listen_port),
        }
        changed = [f"{key} = {want}" for key, (want, there) in values.items() if want != there]
        yield from ["[Interface]", *changed] if changed else []

    def _peer(self, peer: Peer, *, new: bool) -> Iterator[str]:
        """The lines of a peer. Only a new peer gets its endpoint here; else `endpoints` sets it."""
        yield from ("[Peer]", f"PublicKey = {peer.public_key}")
        if peer.preshared_key is not None:
            yield f"PresharedKey = {peer.preshared_key}"
        yield f"AllowedIPs = {', '.join(map(str, peer.allowed_ips))}"
        yield f"PersistentKeepalive = {peer.keepalive_s or 'off'}"
        if new and (found := self._resolved(peer)):
            yield f"Endpoint = {found[0]}"

    def endpoints(self) -> Iterator[Step]:
        """Follow names whose address changed; a peer with a session from elsewhere stays."""
        for tunnel in self.wanted.tunnels:
            live = self.live.tunnels.get(tunnel.interface)
            for peer in tunnel.peers:
                there = live.peer(peer.public_key) if live else None
                if there is None or peer.endpoint is None:
                    continue
                found = self._resolved(peer)
                self._tell_unusable(peer, has_others=bool(found))
                if found and there.endpoint not in found:
                    yield from self._endpoint(tunnel.interface, peer, there, found[0])
                elif found and there.endpoint == self.live.stuck.get(peer.site):
                    yield from self._next_endpoint(tunnel.interface, peer, there, found)

    def _tell_unusable(self, peer: Peer, *, has_others: bool) -> None:
        """Report unusable endpoints: as obstacles, or as notes if the peer has others."""
        for endpoint in peer.endpoints:
            found = self.live.addresses.get(endpoint.host, ())
            if not self._usable(endpoint):
                where = f"resolves to {', '.join(found)}, in a LAN or the tunnel range: not used"
                text = f"{peer.site}: {endpoint.host} {where if found else 'does not resolve'}"
                (self.notes if has_others else self.obstacles).append(text)

    def _next_endpoint(
        self, interface: str, peer: Peer, there: LivePeer, found: list[Endpoint]
    ) -> Iterator[Step]:
        """Try all endpoints in turn, the first again after the last, one at each timer's look."""
        after = found[(found.index(there.endpoint) + 1) % len(found)] if there.endpoint else None
        if after is not None and after != there.endpoint:
            yield self._set_endpoint(interface, peer, after, is_quiet=True)

    def _endpoint(
        self, interface: str, peer: Peer, there: LivePeer, found: Endpoint
    ) -> Iterator[Step]:
        if (
            there.endpoint is not None
            and self._is_fresh(there)
            and peer.site not in self.live.silent
        ):
            age_s = max(0, round(self.live.now_s - there.handshake_s))
            self.notes.append(
                f"{peer.site}: its endpoint is {there.endpoint}, not {found}, but"
                " the last handshake was "
                f"{age_s} s ago: unchanged"
            )
            return
        yield self._set_endpoint(interface, peer, found)

    def _set_endpoint(
        self, interface: str, peer: Peer, found: Endpoint, *, is_quiet: bool = False
    ) -> Step:
        argv = ("wg", "set", interface, "peer", peer.public_key, "endpoint", str(found))
        title = f"{interface}: set the endpoint of {peer.site} to {found}"
        return Step(title, (Command(argv),), is_quiet=is_quiet)

    def _resolved(self, peer: Peer) -> list[Endpoint]:
        """All addresses of a peer's endpoints, in their order."""
        found = (each for endpoint in peer.endpoints for each in self._usable(endpoint))
        return list(dict.fromkeys(found))

    def _usable(self, endpoint: Endpoint) -> list[Endpoint]:
        found = map(parse_address, self.live.addresses.get(endpoint.host, ()))
        return [Endpoint(x, endpoint.port) for x in found if not self._is_inside(x)]

    def _is_inside(self, address: str) -> bool:
        """Whether packets to an address would go into a tunnel, and so loop.

        Also true for this site's own LANs and this host, which are no other gateway.
        """
        try:
            found = ip_address(address)
        except ValueError:  # with a zone
            return False
        around = (ip_network((found, length), strict=False) for length in self._lengths(found))
        is_here = found.is_loopback or found.is_multicast or found.is_unspecified
        own = (self.wanted.range, *self.wanted.lans)
        is_own = any(_is_in(found, subnet) for subnet in own)
        return is_here or is_own or any(each in self._ways for each in around)

    @cached_property
    def _ways(self) -> dict[Subnet, str]:
        """The neighbour that leads to each subnet."""
        return {way.subnet: way.peer for way in self.wanted.routes}

    def _lengths(self, address: Address) -> set[int]:
        """The prefix lengths of the subnets behind tunnels."""
        return {x.prefixlen for x in self._ways if x.version == address.version}

    def _is_fresh(self, peer: LivePeer) -> bool:
        return is_fresh(peer, self.live.now_s)

    # ---- routes ---------------------------------------------------------------------------------

    @cached_property
    def wanted_routes(self) -> dict[Subnet, str]:
        """The device for each subnet, by the current sessions."""
        spares = self._spares_in_use()
        fixed = {way.peer: way.device for way in self.wanted.routes}
        devices = {
            peer: device or spares.get(peer) or self._carrier(peer)
            for peer, device in fixed.items()
        }
        return {way.subnet: devices[way.peer] for way in self.wanted.routes}

    @cached_property
    def _routes_to(self) -> dict[Subnet, list[LiveRoute]]:
        found: dict[Subnet, list[LiveRoute]] = {}
        for route in self.live.routes:
            found.setdefault(route.subnet, []).append(route)
        return found

    def _spares_in_use(self) -> dict[str, str]:
        """The ssh devices of fallbacks in use: by the timer's decision, or by current routes."""
        spares = {each.peer: each.device for each in self.wanted.fallbacks}
        subnets = {way.subnet: way.peer for way in self.wanted.routes if way.peer in spares}
        on = {
            subnets[route.subnet]
            for route in self.live.routes
            if route.subnet in subnets
            and route.device == spares[subnets[route.subnet]]
            and route.metric < PROBE_METRIC
        }
        chosen = {peer: self.live.ways.get(peer) for peer in spares}
        return {
            peer: device
            for peer, device in spares.items()
            if chosen[peer] == "ssh" or (chosen[peer] is None and peer in on)
        }

    @cached_property
    def _alive(self) -> set[tuple[str, str]]:
        """The interfaces and public keys of the current sessions."""
        return {
            (tunnel.interface, end.public_key)
            for tunnel in self.live.tunnels.values()
            for end in tunnel.peers
            if self._is_fresh(end)
        }

    @cached_property
    def _on(self) -> dict[str, str]:
        """The interface of ours that the routes to each neighbour have now."""
        names = {tunnel.interface for tunnel in self.wanted.tunnels}
        return {
            self._ways[route.subnet]: route.device
            for route in reversed(self.live.routes)
            if route.subnet in self._ways and route.device in names and route.metric < PROBE_METRIC
        }

    def _carrier(self, peer: str) -> str:
        return rotation.carrier(self.wanted.rotation, peer, self._alive, self._on.get(peer))

    def missing_routes(self) -> Iterator[Step]:
        for subnet, device in self.wanted_routes.items():
            is_there = device in self.live.devices and device not in self.doomed
            if is_there and self._is_ours(device):
                yield from self._route(subnet, device)

    def moved_routes(self) -> Iterator[Step]:
        """Move routes between our interfaces: in a change of keys, and to and from a fallback."""
        if len(self.wanted.tunnels) > 1:
            yield from self.missing_routes()
            return
        spares = {each.peer for each in self.wanted.fallbacks}
        subnets = {way.subnet for way in self.wanted.routes if way.peer in spares}
        for subnet, device in self.wanted_routes.items():
            if subnet in subnets and device in self.live.devices and self._is_ours(device):
                yield from self._route(subnet, device)

    def probe_routes(self) -> Iterator[Step]:
        """Set routes for pings through the way that is not in use.

        IPv6 sends nothing through a device without a route to the target; IPv4 does
        (probing.Probe).
        """
        there = {(x.subnet, x.device, x.metric) for x in self.live.routes}
        for subnet, device, metric in self._probes():
            if device in self.live.devices and (subnet, device, metric) not in there:
                words = _route_words("replace", subnet, device)
                title = f"route {subnet} through {device}, for pings alone"
                yield _ip(title, *words, "metric", str(metric))

    def _probes(self) -> Iterator[tuple[Subnet, str, int]]:
        for each in self.wanted.fallbacks:
            if each.address.version == IPV6:
                names = [x.interface for x in self.wanted.tunnels if not x.spare]
                for number, device in enumerate((*names, each.device)):
                    yield ip_network(each.address), device, PROBE_METRIC + number

    def _route(self, subnet: Subnet, device: str) -> Iterator[Step]:
        there = self._routes_to.get(subnet, [])
        metric = IPV6_METRIC if subnet.version == IPV6 else 0
        leading = (route for route in there if route.kind not in NOWHERE)
        best = min(leading, key=lambda route: route.metric, default=None)
        if best is not None and best.device == device and best.metric <= metric:
            return
        foreign = [x for x in there if x.metric <= metric and not self._may_replace(x, metric)]
        if foreign:
            self.obstacles.append(_not_ours(foreign[0]))
            return
        word = "route" if best is None else f"move from {best.device}"
        yield _ip(f"{word} {subnet} through {device}", *_route_words("replace", subnet, device))

    def stale_routes(self) -> Iterator[Step]:
        """Remove stale routes, after the peers: packets from a leaving site are refused first."""
        wanted, probes = self.wanted_routes, set(self._probes())
        going = {tunnel.interface for tunnel in self._left_over()}
        going |= leaving.going(self.wanted, self.live)
        for route in self.live.routes:
            if route.device in going or route.kind in NOWHERE or not self._did_set(route):
                continue
            if (route.subnet, route.device, route.metric) in probes:
                continue
            if route.subnet in wanted and not self._is_second(route, wanted[route.subnet]):
                continue
            words = _route_words("del", route.subnet, route.device, route.protocol)
            yield _ip(
                f"remove the route to {route.subnet} through {route.device}",
                *(*words, "metric", str(route.metric)),
            )

    def _is_second(self, route: LiveRoute, device: str) -> bool:
        """Whether a route is a second one beside the right one, which it could hide or outlive."""
        metric = IPV6_METRIC if route.subnet.version == IPV6 else 0
        there = self._routes_to.get(route.subnet, [])
        right = [x for x in there if (x.device, x.metric) == (device, metric)]
        return bool(right) and route not in right

    def _may_replace(self, route: LiveRoute, metric: int) -> bool:
        """Whether `ip route replace` may replace a route: one with the same metric."""
        return self._did_set(route) or (
            route.device in self.wanted.devices and route.metric == metric
        )

    def _did_set(self, route: LiveRoute) -> bool:
        """Whether we set a route: it has our mark, or wg-quick set it, which marks nothing."""
        if route.protocol == ROUTE_PROTOCOL:
            device = self.live.devices.get(route.device)
            # A removed link over ssh may have left the route; another network may have such, too.
            was_ours = device is not None and any(
                _is_in(x.ip, self.wanted.range) for x in device.addresses
            )
            return route.device in self.wanted.devices or (
                was_ours and route.device.startswith("tun")
            )
        tunnel = self.live.tunnels.get(route.device)
        if route.protocol != BOOT_PROTOCOL or tunnel is None:
            return False
        allowed = {subnet for peer in tunnel.peers for subnet in peer.allowed_ips}
        return route.device in self.wanted.devices and route.subnet in allowed

    # ---- systemd --------------------------------------------------------------------------------

    def stale_units(self, *, last: bool) -> Iterator[Step]:
        """Stop stale units before their devices and the nftables table for them are removed.

        last: the units that stay as long as an interface does, and WireGuard's.
        """
        for name, unit in self.live.units.items():
            is_last = name.startswith("wg-quick@") or name.endswith(LAST_UNITS)
            if name in self.wanted.units or is_last is not last:
                continue
            if not (unit.active or unit.enabled):
                continue
            stop = Command(("systemctl", "disable", "--now", name))
            yield Step(
                f"disable and stop {name}",
                (stop,),
                interrupts=unit.active and not name.endswith(".timer"),
            )

    def enabled(self) -> Iterator[Step]:
        """Enable units before any is started: a start may take minutes, or fail."""
        for name in self.wanted.units if self.live.systemd else ():
            unit = self.live.units.get(name)
            if unit is None or not unit.enabled:
                yield Step(f"enable {name}", (Command(("systemctl", "enable", name)),))

    def units(self) -> Iterator[Step]:
        for name in self.wanted.units if self.live.systemd else ():
            unit = self.live.units.get(name)
            interface = name.removeprefix("wg-quick@").removesuffix(".service")
            # If the interface was brought up by hand, starting its unit would fail.
            if not (unit and unit.active) and interface not in self.live.tunnels:
                yield Step(f"start {name}", (Command(("systemctl", "start", name)),))


def _guarded(forwarding: Step, accepting: list[Step]) -> Step:
    """Join the steps: if accept_ra cannot be set, forwarding would remove the default route."""
    if not accepting:
        return forwarding
    commands = [command for step in (*accepting, forwarding) for command in step.commands]
    title = ", ".join(step.description for step in (*accepting, forwarding))
    return Step(title, tuple(commands), interrupts=True, optional=True)


def _peer_differences(peer: Peer, there: LivePeer) -> list[str]:
    differences = {
        "the preshared key": peer.preshared_key != there.preshared_key,
        "the allowed IPs": frozenset(peer.allowed_ips) != there.allowed_ips,
        "the keepalive": peer.keepalive_s != there.keepalive_s,
    }
    return [what for what, differs in differences.items() if differs]


def is_fresh(peer: LivePeer, now_s: float) -> bool:
    """Whether there is a session. A handshake in the future is from before a clock step back."""
    age_s = now_s - peer.handshake_s
    return peer.handshake_s > 0 and -CLOCK_SLACK_S < age_s < rotation.FRESH_S


def _not_ours(route: LiveRoute) -> str:
    if route.kind in NOWHERE:
        return f"{route.subnet} is not reached: other software has set a route of type {route.kind}"
    return f"{route.subnet} is reached through {route.device}, by a route of other software"


def _is_in(address: Address, subnet: Subnet) -> bool:
    return address.version == subnet.version and address in subnet


def _route_words(
    verb: str, subnet: Subnet, device: str, protocol: int = ROUTE_PROTOCOL
) -> tuple[str, ...]:
    return ("route", verb, str(subnet), "dev", device, "proto", str(protocol))
