"""Whether each site is reached, end to end, and which side is at fault if it is not.

The pings come first: they are traffic, and so start a handshake if one is due. They go to the far
gateway's end of the tunnel, and, as packets from hosts of the LAN would, from this gateway's
address in the LAN to the far one's: a small packet, and one of the tunnel's full size that must not
be fragmented. WireGuard's counters are read before and after. If packets were sent and nothing was
received in between, the way is dead, minutes before its session ends.

A gateway's own pings do not show whether it forwards packets of its LAN; `passage` checks that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from cpythonplus_sites import live, watching
from cpythonplus_sites.closing import is_own, not_connected, unguarded
from cpythonplus_sites.passage import Packet, Passage
from cpythonplus_sites.planning import CLOCK_SLACK_S
from cpythonplus_sites.probing import HEADERS, Ping, Probe
from cpythonplus_sites.rendering.closed import contains
from cpythonplus_sites.rotation import FRESH_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cpythonplus_sites.agreement import Agreement
    from cpythonplus_sites.fallback import Kind, Memory, Remembered
    from cpythonplus_sites.live import LivePeer
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Address, Link, Network, Site
    from cpythonplus_sites.wanted import Wanted

Verdict = Literal["good", "bad", "unknown"]
Side = Literal["", "here", "there", "between"]

SIZES = (576, 1024, 1152, 1216, *range(1248, 1500, 8), 2048, 4096, 8192)
"""The sizes in bytes of the packets that find the largest one to pass."""

KEEPALIVE_S = 11.0
"""A second more than WireGuard takes to acknowledge received packets (whitepaper, 6.5)."""

POLL_S = 0.5
REMEMBERED_S = 30.0
"""The seconds for which the results of the timer's look count."""


@dataclass(frozen=True)
class Reach:
    """The verdict on one other site.

    via: `wireguard`, `ssh`, or the site through which it is reached.  handshake_age_s: the age of
    the youngest session with it; None: there never was one, or the link has no sessions.
    tunnel: pings of the far gateway's end of the tunnel.  lan, large: pings of its address in the
    LAN, from this gateway's, small and of the tunnel's full size; None if none was sent.  host:
    pings of the site's probe host.
    cause, side: the probable fault, and who has it; empty if there is none.
    way: the one in use, for a link with a fallback; way_since_s: since when, since the epoch.
    to_ssh, to_wireguard: the number of switches since the boot.  note: additional information.
    same_file: whether the site has the same site file as this one; None: not known.
    """

    site: str
    via: str
    verdict: Verdict
    cause: str = ""
    handshake_age_s: float | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None
    tunnel: Ping | None = None
    lan: Ping | None = None
    large: Ping | None = None
    side: Side = ""
    way: str = ""
    way_since_s: float | None = None
    to_ssh: int | None = None
    to_wireguard: int | None = None
    note: str = ""
    same_file: bool | None = None
    host: Ping | None = None

    def as_json(self) -> dict[str, Any]:
        """The fields for programs."""
        return asdict(self)


NO_PEER = "it is not among the peers of {0}; cpythonplus-sites apply adds it"
NO_DEVICE = "{0} does not exist; cpythonplus-sites apply brings it up"
DOWN = "{0} is down; cpythonplus-sites apply brings it up"
NO_KEY = "it has no public key in the file yet (cpythonplus-sites keygen there)"
NEVER = (
    "there was never a handshake: the endpoint or its port is wrong or closed, the"
    " keys do not match, the far "
    "gateway is down, or a clock went back (WireGuard then refuses the handshake)"
)
STALE = (
    "no recent handshake: the far gateway is down or its address changed, or a clock went back "
    "(WireGuard then refuses the handshake)"
)
CLOCK_WENT_BACK = (
    "its last handshake is later than this host's clock, which went back: WireGuard then refuses "
    "the handshake; set the clock (cpythonplus-clock status)"
)
STALLED = (
    "nothing is received{0}, though packets are sent: UDP is blocked, the far gateway is down, or "
    "its address changed"
)
SILENT = (
    "its packets arrive, but no answer to a ping: routes, allowed IPs or a firewall of the far "
    "gateway (it may drop ICMP); is its file the same?"
)
HOST_SILENT = (
    "the far gateway answers, but not {0}, the host that the file names to be asked: it is off, "
    "has no route back, or the far gateway does not forward"
)
ONLY_HOST = "the far gateway answers no ping, but {0}, the host that the file names, does"
NOT_ALLOWED = (
    "its allowed IPs on {0} lack {1}: packets for it are not sent, and those from it are dropped; "
    "cpythonplus-sites apply sets them"
)
NO_ROUTE = "no route leads to {0} through a tunnel; cpythonplus-sites apply sets it"
HIDDEN = (
    "{0}, a part of {1} there, is connected to this host through {2}: what is for it stays here"
)
NOT_SENT = "a ping cannot be sent ({0}): routes or a firewall of this gateway"
LAN_SILENT = (
    "the tunnel works, but the far gateway's LAN address does not answer: that address in the "
    "file, its subnets, or a firewall there"
)
NOT_BACK = (
    "the far gateway's LAN address answers this gateway, but not {0}, its LAN address: allowed "
    "IPs, the route back or a firewall there; is its file the same?"
)
LARGE_LOST = (
    "packets of {0} bytes are lost, though nobody says that they are too large{1}: the way carries "
    "less, and what tells so (ICMP) is dropped; connections will hang. {2}"
)
SSH_UNUSED = "no ssh process holds {0}: its log says why (journalctl -u '*-ssh@*'); or sshd's there"
SSH_SILENT = "ssh holds {0}, but nothing comes back: the far end's device, routes or firewall"
SSH_UNKNOWN = "ssh holds the device; only a ping can tell more"
BEYOND = "{0} answers, but not what lies behind it: its forwarding, or its own link to {1}"
IDLE = "no recent handshake, and no keepalive: without traffic this is inconclusive"
FELL_BACK = "over ssh{0}: {1}"
UNGUARDED = (
    "without the tunnel, what is for {0} would leave in clear text: the unreachable route is "
    "missing; the timer, or cpythonplus-sites apply, sets it"
)

OWN_UNGUARDED = (
    "without its interface, what the others send to {0} would leave in clear text: the unreachable "
    "route is missing; the timer, or cpythonplus-sites apply, sets it"
)
NO_TABLE = (
    "the nftables table {0} is missing, as after nft flush ruleset: segments are not made smaller, "
    "and what comes over ssh is not filtered; the timer, or cpythonplus-sites apply, loads it"
)
NO_WAY = (
    "this gateway has no route to {0}, a LAN of this site: it is not connected, or lies behind "
    "another router; what the other sites send there is refused"
)


@dataclass(frozen=True)
class _Pings:
    """The pings of one site; None: not sent."""

    tunnel: Ping | None = None
    lan: Ping | None = None
    large: Ping | None = None
    host: Ping | None = None


@dataclass(frozen=True)
class _Opinion:
    verdict: Verdict
    cause: str = ""
    side: Side = ""


_GOOD = _Opinion("good")


def examine(
    machine: Machine,
    network: Network,
    wanted: Wanted,
    *,
    ping_count: int = 3,
    agreement: Agreement | None = None,
) -> tuple[Reach, ...]:
    """Judge how this gateway reaches every other site.  ping_count: 0 sends no pings.

    agreement: the site files of the others.
    """
    found = _Judge(machine, network, wanted, ping_count).examine()
    if agreement is None:
        return found
    return tuple(
        replace(
            reach,
            note="; ".join(filter(None, (reach.note, agreement.note(reach.site)))),
            same_file=agreement.is_same(reach.site),
        )
        for reach in found
    )


class _Judge:
    def __init__(self, machine: Machine, network: Network, wanted: Wanted, ping_count: int) -> None:
        self.machine = machine
        self.network = network
        self.wanted = wanted
        self.count = ping_count
        self.site = network.site(wanted.site)
        self.devices = live.devices(machine)
        self.before = live.tunnels(machine, needed=bool(wanted.tunnels))
        self.tunnels = self.before
        self.ways: Mapping[str, Kind] = watching.ways(machine, network, wanted)
        self.passage = Passage(machine, self.site, self.devices)
        self.remembered: Remembered = watching.recall(machine, network)
        versions = {subnet.version for subnet in wanted.closed}
        self.routes = live.routes(machine, versions)
        leading = [route for route in self.routes if route.kind == "unicast"]
        self.led = {x.subnet for x in leading if x.device in wanted.devices}
        self.connected = [
            route
            for route in leading
            if route.protocol == live.KERNEL_PROTOCOL and route.device not in wanted.devices
        ]
        self.wanted_subnets = {way.subnet for way in wanted.routes}
        self.unguarded = unguarded(wanted, self.routes)
        self.not_connected = not_connected(wanted, self.devices, self.routes)
        self.missing_tables = live.missing_tables(machine, wanted)

    def examine(self) -> tuple[Reach, ...]:
        """Ping all sites, and judge each."""
        others = [each for each in self.network.sites if self._link(each) is not None]
        pings = self._ask(others)
        if self.count:
            self._count_received(pings)
        found = {
            other.name: self._direct(link, pings[other.name])
            for other in others
            if (link := self.network.link(self.site.name, other.name)) is not None
        }
        for other in others:
            if other.name not in found:
                via = self.network.relay(self.site.name, other.name) or str(self.network.hub)
                found[other.name] = self._beyond(other, found[via], pings[other.name])
        return tuple(
            self._with_passage(self._with_guard(other, found[other.name])) for other in others
        )

    def _link(self, other: Site) -> Link | None:
        """The link on which packets to the other site leave."""
        if other.name == self.site.name:
            return None
        return self.network.first_link(self.site.name, other.name)

    def _device(self, link: Link) -> str:
        """The device through which the link's packets leave now."""
        is_ssh = link.via == "ssh" or self.ways.get(link.other(self.site.name)) == "ssh"
        return f"tun{link.tunnel_number}" if is_ssh else self._carrier(link.other(self.site.name))

    def _used(self, link: Link) -> list[str]:
        """The devices that a link's packets may use; the one through which they leave is first."""
        found = [self._device(link)]
        if link.via == "wireguard":
            found += [tunnel.interface for tunnel in self.wanted.tunnels]
        if link.has_ssh:
            found.append(f"tun{link.tunnel_number}")
        return list(dict.fromkeys(found))

    def _carrier(self, name: str) -> str:
        """The WireGuard interface of the youngest session; in a change of keys there are two."""
        found = [
            (peer.handshake_s, tunnel.interface)
            for tunnel in self.wanted.tunnels
            for peer in self._peers_on(tunnel.interface, name)
        ]
        return max(found, default=(0, self.site.interface), key=lambda each: each[0])[1]

    # ---- pings ----------------------------------------------------------------------------------

    def _ask(self, others: Sequence[Site]) -> dict[str, _Pings]:
        if not self.count:
            return {other.name: _Pings() for other in others}
        probes = {other.name: self._probes(other) for other in others}
        flat = [probe for each in probes.values() for probe in each]
        found = iter(self.machine.echo(flat, count=self.count))
        return {name: _Pings(*(next(found) for _ in each)) for name, each in probes.items()}

    def _probes(self, other: Site) -> list[Probe]:
        source = self._source(other)
        size = self._size(other)
        asked = [
            Probe(other.tunnel_address),
            Probe(other.gateway, source),
            Probe(other.gateway, source, size_bytes=size, whole=True),
        ]
        if other.probe is not None:
            has_kind = source is not None and source.version == other.probe.version
            asked.append(Probe(other.probe, source if has_kind else None))
        return asked

    def _count_received(self, pings: Mapping[str, _Pings]) -> None:
        """Read WireGuard's counters again, up to KEEPALIVE_S for sites that answered no ping.

        If a far gateway drops pings, WireGuard there still acknowledges them within KEEPALIVE_S
        (whitepaper, 6.5). If UDP is blocked, nothing comes.
        """
        end = self.machine.monotonic_s() + KEEPALIVE_S
        while True:
            self.tunnels = live.tunnels(self.machine, needed=bool(self.wanted.tunnels))
            waiting = [name for name, found in pings.items() if self._may_speak(name, found)]
            if not waiting or self.machine.monotonic_s() >= end:
                return
            self.machine.pause(POLL_S)

    def _may_speak(self, name: str, found: _Pings) -> bool:
        """Whether a neighbour with a session has neither answered a ping nor sent anything yet."""
        link = self.network.link(self.site.name, name)
        if link is None or "ssh" in (link.via, self.ways.get(name)):
            return False
        tunnel = found.tunnel
        is_silent = tunnel is not None and not tunnel.received and not tunnel.error
        age_s = self._age_s(self._peers(name))
        return is_silent and age_s is not None and age_s <= FRESH_S and not self._received(name)

    def _source(self, other: Site) -> Address | None:
        """This gateway's address in the LAN, if it is set and of the other's IP version."""
        own = self.site.gateway
        has = any(own in {x.ip for x in device.addresses} for device in self.devices.values())
        return own if has and own.version == other.gateway.version else None

    def _size(self, other: Site) -> int:
        """The bytes of the largest packet that the tunnel to the other site takes."""
        link = self._link(other)
        assert link is not None  # noqa: S101
        device = self.devices.get(self._device(link))
        return device.mtu if device is not None and device.mtu else link.mtu

    def _fitting(self, other: Site, size: int) -> int | None:
        """The largest of the usual sizes, or `size`, that gets through whole; None: none does."""
        least = HEADERS[other.gateway.version] + 8
        sizes = [*(each for each in SIZES if least < each < size), size]
        source = self._source(other)
        probes = [Probe(other.gateway, source, size_bytes=x, whole=True) for x in sizes]
        found = self.machine.echo(probes, count=2)
        return max((x for x, ping in zip(sizes, found) if ping.received), default=None)

    # ---- judgement ------------------------------------------------------------------------------

    def _direct(self, link: Link, pings: _Pings) -> Reach:
        """The verdict on a site at the other end of a link."""
        name = link.other(self.site.name)
        way = self.ways.get(name)
        memory = self.remembered.of(name)
        if "ssh" in (link.via, way):
            opinion = self._judge_ssh(name, f"tun{link.tunnel_number}", pings)
        else:
            opinion = self._judge_wireguard(link, pings)
        opinion, note = self._with_host(name, opinion, pings)
        reach = Reach(
            name,
            link.via,
            opinion.verdict,
            opinion.cause,
            tunnel=pings.tunnel,
            lan=pings.lan,
            large=pings.large,
            host=pings.host,
            side=opinion.side,
            note=note,
        )
        if link.via == "wireguard":
            reach = self._with_counters(reach)
        return reach if way is None else self._with_way(reach, way, memory)

    def _with_counters(self, reach: Reach) -> Reach:
        peers = self._peers(reach.site)
        return replace(
            reach,
            handshake_age_s=self._age_s(peers),
            received_bytes=sum(peer.received_bytes for peer in peers) if peers else None,
            sent_bytes=sum(peer.sent_bytes for peer in peers) if peers else None,
        )

    def _with_way(self, reach: Reach, way: Kind, memory: Memory) -> Reach:
        is_known = memory.way == way and memory.since_s is not None
        since_s = memory.since_s if is_known else None
        note = reach.note
        if way == "ssh":
            age_s = None if since_s is None else max(0.0, self.machine.now_s() - since_s)
            ago = "" if age_s is None else f" for {age_s:.0f} s"
            fell_back = FELL_BACK.format(ago, memory.reason or "routes were found there")
            note = "; ".join(filter(None, (note, fell_back)))
        return replace(
            reach,
            way=way,
            way_since_s=since_s,
            to_ssh=memory.to_ssh,
            to_wireguard=memory.to_wireguard,
            note=note,
        )

    def _peers_on(self, interface: str, name: str) -> list[LivePeer]:
        keys = [
            peer.public_key
            for tunnel in self.wanted.tunnels
            if tunnel.interface == interface
            for peer in tunnel.peers
            if peer.site == name
        ]
        there = self.tunnels.get(interface)
        return [peer for key in keys if there and (peer := there.peer(key))]

    def _peers(self, name: str) -> list[LivePeer]:
        """The site's peers: in a change of keys there are two, on two interfaces."""
        return [
            peer
            for tunnel in self.wanted.tunnels
            for peer in self._peers_on(tunnel.interface, name)
        ]

    def _age_s(self, peers: Sequence[LivePeer]) -> float | None:
        """The age of the youngest handshake; one in the future, after a clock step, is ignored."""
        now_s = self.machine.now_s()
        seen = [now_s - peer.handshake_s for peer in peers if peer.handshake_s]
        return min((max(0.0, age) for age in seen if age > -CLOCK_SLACK_S), default=None)

    def _missing(self, name: str) -> _Opinion | None:
        """The fault that keeps WireGuard from even sending a handshake; None if there is none."""
        interface = self.site.interface
        device = self.devices.get(interface)
        if self.network.site(name).public_key is None:
            return _Opinion("bad", NO_KEY, "there")
        if device is None:
            return _Opinion("bad", NO_DEVICE.format(interface), "here")
        if not device.up:
            return _Opinion("bad", DOWN.format(interface), "here")
        return None if self._peers(name) else _Opinion("bad", NO_PEER.format(interface), "here")

    def _judge_wireguard(self, link: Link, pings: _Pings) -> _Opinion:
        name = link.other(self.site.name)
        missing = self._missing(name)
        if missing is not None:
            return missing
        peers = self._peers(name)
        age_s = self._age_s(peers)
        verdict = judge(age_s, link.keepalive_s, pings.tunnel, received=self._received(name))
        if verdict.cause == NEVER and any(peer.handshake_s for peer in peers):
            return _Opinion("bad", CLOCK_WENT_BACK, "here")
        if verdict.verdict == "good" and pings.tunnel is None:
            return self._judge_memory(name)
        return self._judge_lan(name, pings) if verdict == _GOOD else verdict

    def _received(self, name: str) -> bool:
        """Whether WireGuard received something from the site during the pings."""
        before = self.before.get(self._carrier(name))
        return any(
            before is None
            or (old := before.peer(peer.public_key)) is None
            or old.received_bytes != peer.received_bytes
            for peer in self._peers(name)
        )

    def _judge_memory(self, name: str) -> _Opinion:
        """The opinion without pings, from the timer's last look (watching.py)."""
        memory, now_s = self.remembered.of(name), self.machine.monotonic_s()
        seen_s = [x for x in (memory.received_at_s, memory.answered_at_s) if x is not None]
        looked_s = self.remembered.looked_at_s
        if looked_s is None or now_s - looked_s > REMEMBERED_S or not seen_s:
            return _GOOD
        for_s = looked_s - max(seen_s)
        if for_s < watching.STALLED_S:
            return _GOOD
        return _Opinion("bad", STALLED.format(f" for {for_s:.0f} s"), "between")

    def _with_host(self, name: str, opinion: _Opinion, pings: _Pings) -> tuple[_Opinion, str]:
        """The opinion corrected by the pings of the probe host, and a note about it.

        If the host answers, packets pass, even if the gateway itself answers nothing.
        """
        host = self.network.site(name).probe
        if pings.host is None or host is None:
            return opinion, ""
        if pings.host.received and opinion.cause in (SILENT, STALLED.format(""), LAN_SILENT):
            return _GOOD, ONLY_HOST.format(host)
        if not pings.host.received and opinion == _GOOD:
            return _Opinion("bad", HOST_SILENT.format(host), "there"), ""
        return opinion, ""

    def _judge_ssh(self, far: str, name: str, pings: _Pings) -> _Opinion:
        device = self.devices.get(name)
        if device is None:
            return _Opinion("bad", NO_DEVICE.format(name), "here")
        if not device.up:
            return _Opinion("bad", DOWN.format(name), "here")
        if not device.running:
            return _Opinion("bad", SSH_UNUSED.format(name), "between")
        if pings.tunnel is None:
            return _Opinion("unknown", SSH_UNKNOWN)
        if not pings.tunnel.received:
            return _Opinion("bad", SSH_SILENT.format(name), "there")
        return self._judge_lan(far, pings)

    def _judge_lan(self, name: str, pings: _Pings) -> _Opinion:
        """The opinion if the tunnel answers: the LAN should answer too, to packets of any size."""
        if pings.lan is None:
            return _GOOD
        other, source = self.network.site(name), self._source(self.network.site(name))
        if not pings.lan.received:
            if source is not None:
                (plain,) = self.machine.echo([Probe(other.gateway)], count=2)
                if plain.received:
                    return _Opinion("bad", NOT_BACK.format(source), "there")
            return _Opinion("bad", LAN_SILENT, "there")
        large = pings.large
        if large is None or large.received or large.told:
            return _GOOD
        size = self._size(other)
        fitting = self._fitting(other, size)
        if fitting == size:
            return _GOOD  # it was lost by chance
        passed = "" if fitting is None else f" (those of {fitting} pass)"
        remedy = "" if fitting is None else f"Set mtu = {fitting} for this link or the network"
        cause = LARGE_LOST.format(size, passed, remedy).strip()
        return _Opinion("bad", cause, "between")

    def _beyond(self, other: Site, hub: Reach, pings: _Pings) -> Reach:
        """The verdict on a site that is reached through the hub or a relay."""
        if pings.tunnel is not None and pings.tunnel.received:
            opinion = self._judge_lan(other.name, pings)
        elif pings.tunnel is None or hub.verdict == "bad":
            opinion = _Opinion(hub.verdict, hub.cause, hub.side)
        else:
            opinion = _Opinion("bad", BEYOND.format(hub.site, other.name), "there")
        opinion, note = self._with_host(other.name, opinion, pings)
        return Reach(
            other.name,
            f"via {hub.site}",
            opinion.verdict,
            opinion.cause,
            tunnel=pings.tunnel,
            lan=pings.lan,
            large=pings.large,
            host=pings.host,
            side=opinion.side,
            note="; ".join(filter(None, (hub.note, note))),
        )

    def _with_guard(self, other: Site, reach: Reach) -> Reach:
        """The verdict with notes on packets that would leave unencrypted without a tunnel."""
        missing = [str(lan) for lan in other.lans if lan in self.unguarded]
        own = [str(subnet) for subnet in self.unguarded if is_own(self.wanted, subnet)]
        notes = [reach.note, UNGUARDED.format(", ".join(missing)) if missing else ""]
        notes += [OWN_UNGUARDED.format(", ".join(own))] if own else []
        notes += map(NO_TABLE.format, self.missing_tables)
        return replace(reach, note="; ".join(filter(None, notes)))

    def _with_passage(self, reach: Reach) -> Reach:
        """The verdict with faults of this gateway's forwarding, which pings do not show."""
        if reach.side == "here" or reach.cause == NO_KEY:
            return reach
        other = self.network.site(reach.site)
        link = self._link(other)
        assert link is not None  # noqa: S101
        # Routes may be moving between our devices, in a change of keys or to a fallback, and the
        # far gateway may send through another device than this gateway does.
        others = {x.interface for x in self.wanted.tunnels} | {f"tun{link.tunnel_number}"}
        first = next(
            (
                fault
                for device in self._used(link)
                for fault in self.passage.faults(other, device, others)
            ),
            None,
        )
        first = first or next(self._not_routed(other, link), None)
        first = first or next(self._not_passed_on(other, link), None)
        if first is None and self.not_connected:
            first = NO_WAY.format(", ".join(map(str, self.not_connected)))
        return reach if first is None else replace(reach, verdict="bad", cause=first, side="here")

    def _not_routed(self, other: Site, link: Link) -> Iterator[str]:
        """Yield the routes and AllowedIPs that this gateway lacks for the way to a site."""
        neighbour = link.other(self.site.name)
        subnets = [subnet for subnet in other.subnets if subnet in self.wanted_subnets]
        missing = [str(subnet) for subnet in subnets if subnet not in self.led]
        if missing:
            yield NO_ROUTE.format(", ".join(missing))
        for route in self.connected:
            inside = (lan for lan in other.lans if contains(lan, route.subnet))
            yield from (HIDDEN.format(route.subnet, lan, route.device) for lan in inside)
        if link.via != "wireguard" or self.ways.get(neighbour) == "ssh":
            return
        carrier = self._carrier(neighbour)
        for peer in self._peers_on(carrier, neighbour):
            lacking = [str(subnet) for subnet in subnets if subnet not in peer.allowed_ips]
            if lacking:
                yield NOT_ALLOWED.format(carrier, ", ".join(lacking))

    def _not_passed_on(self, other: Site, link: Link) -> Iterator[str]:
        """Yield the packets between two neighbours that this gateway, as hub or relay, drops."""
        here = self.site.name
        for third in self.network.sites:
            onward = self.network.link(here, third.name)
            is_passed_on = self.network.first_link(other.name, third.name) == link
            if third.name in (here, other.name) or not (onward and is_passed_on):
                continue
            if link.other(here) == other.name and other.gateway.version == third.gateway.version:
                ways = (self._device(link), self._device(onward))
                yield from self.passage.dropped(Packet(*ways, other.gateway, third.gateway))


def judge(
    age_s: float | None, keepalive_s: int, tunnel: Ping | None, *, received: bool = False
) -> _Opinion:
    """Judge a WireGuard link whose interface and peer are there.

    age_s: the age of the last handshake; None: never.  received: whether anything came during the
    pings. An answer to a ping outweighs everything else.
    """
    if tunnel is not None and tunnel.received:
        return _GOOD
    if age_s is None:
        return _Opinion("bad", NEVER, "between")
    fresh = age_s <= FRESH_S
    if tunnel is not None and fresh:
        return _silent(tunnel, received=received)
    if tunnel is None and fresh:
        return _GOOD
    is_known = tunnel is not None or keepalive_s
    return _Opinion("bad", STALE, "between") if is_known else _Opinion("unknown", IDLE)


def _silent(tunnel: Ping, *, received: bool) -> _Opinion:
    """The opinion if a session is alive, and no ping is answered."""
    if received:
        return _Opinion("bad", SILENT, "there")
    if tunnel.error:
        return _Opinion("bad", NOT_SENT.format(tunnel.error), "here")
    return _Opinion("bad", STALLED.format(""), "between")
