"""Whether each site is reached: by the age of the handshake, and by a ping through the tunnel.

The pings come first: they are traffic, and so make a handshake where one is due. What is asked is
the far gateway's end of the tunnel, and its address in the LAN, which needs routes and forwarding.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cpythonplus_sites import live
from cpythonplus_sites.planning import CLOCK_SLACK_S
from cpythonplus_sites.rotation import FRESH_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpythonplus_sites.live import Device, LivePeer
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Address, Link, Network, Site
    from cpythonplus_sites.wanted import Wanted

Verdict = Literal["good", "bad", "unknown"]

PING_INTERVAL_S = 0.2
PING_WAIT_S = 1.0
PARALLEL_PINGS = 16

_RECEIVED = re.compile(r"(\d+)(?: packets)? received")
_TIMES = re.compile(r"= [\d.]+/([\d.]+)/[\d.]+")


@dataclass(frozen=True)
class Ping:
    """What came back of `sent` packets.  time_ms: the mean round trip, None without an answer."""

    sent: int
    received: int
    time_ms: float | None = None


@dataclass(frozen=True)
class Reach:
    """How it is with one other site.

    via: `wireguard`, `ssh`, or the site through which it is reached.  handshake_age_s: of the
    youngest session with it; None: there never was one, or the link has none.
    tunnel, lan: pings of the far gateway; None where none was sent.
    cause: what is likely wrong; empty where nothing is.
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

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


NO_PEER = "it is not among the peers of {0}; cpythonplus-sites apply adds it"
NO_DEVICE = "{0} does not exist; cpythonplus-sites apply brings it up"
DOWN = "{0} is down; cpythonplus-sites apply brings it up"
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
SILENT = (
    "a handshake, but no answer to a ping: routes, allowed IPs or a firewall, here or there; or "
    "the far gateway was cut off less than three minutes ago"
)
LAN_SILENT = (
    "the tunnel works, but the far gateway's LAN address does not answer: that address in the "
    "file, its subnets, or a firewall there"
)
SSH_UNUSED = "no ssh process holds {0}: its log says why (journalctl -u '*-ssh@*'); or sshd's there"
SSH_SILENT = "ssh holds {0}, but nothing comes back: the far end's device, routes or firewall"
BEYOND = "{0} answers, but not what lies behind it: its forwarding, or its own link to {1}"
IDLE = "no recent handshake, and no keepalive: without traffic this is inconclusive"


def examine(
    machine: Machine, network: Network, wanted: Wanted, *, ping_count: int = 3
) -> tuple[Reach, ...]:
    """Judge how this gateway reaches every other site.  ping_count: 0 sends none."""
    site = network.site(wanted.site)
    others = [other for other in network.sites if _link(network, site, other) is not None]
    pings = _pings(machine, others, ping_count)
    tunnels = live.tunnels(machine, needed=bool(wanted.tunnels))
    devices = live.devices(machine)
    judge = _Judge(network, wanted, tunnels, devices, machine.now_s())
    direct = {
        other.name: judge.direct(link, pings[other.tunnel_address], pings[other.gateway])
        for other in others
        if (link := network.link(site.name, other.name)) is not None
    }
    found = []
    for other in others:
        if other.name in direct:
            found.append(direct[other.name])
        else:
            hub = direct[str(network.hub)]
            found.append(_beyond(other, hub, pings[other.tunnel_address], pings[other.gateway]))
    return tuple(found)


def _link(network: Network, site: Site, other: Site) -> Link | None:
    """The link on which what goes to the other site leaves."""
    if other.name == site.name:
        return None
    link = network.link(site.name, other.name)
    return link or (network.link(site.name, network.hub) if network.hub else None)


class _Judge:
    def __init__(
        self,
        network: Network,
        wanted: Wanted,
        tunnels: dict[str, live.LiveTunnel],
        devices: dict[str, Device],
        now_s: float,
    ) -> None:
        self.network = network
        self.wanted = wanted
        self.tunnels = tunnels
        self.devices = devices
        self.now_s = now_s

    def direct(self, link: Link, tunnel: Ping | None, lan: Ping | None) -> Reach:
        """A site at the other end of a link."""
        name = link.other(self.wanted.site)
        if link.via == "ssh":
            verdict, cause = self._judge_ssh(f"tun{link.tunnel_number}", tunnel, lan)
            return Reach(name, "ssh", verdict, cause, tunnel=tunnel, lan=lan)
        peers = self._peers(name)
        seen = [self.now_s - peer.handshake_s for peer in peers if peer.handshake_s]
        # Of a handshake after now, which was before the clock went back, nobody knows the age.
        ages = [max(0.0, age_s) for age_s in seen if age_s > -CLOCK_SLACK_S]
        age_s = min(ages, default=None)
        verdict, cause = self._judge_device(name, known=bool(peers))
        if not cause:
            verdict, cause = judge(age_s, link.keepalive_s, tunnel, lan)
        if cause == NEVER and seen:
            cause = CLOCK_WENT_BACK
        return Reach(
            name,
            "wireguard",
            verdict,
            cause,
            handshake_age_s=age_s,
            received_bytes=sum(peer.received_bytes for peer in peers) if peers else None,
            sent_bytes=sum(peer.sent_bytes for peer in peers) if peers else None,
            tunnel=tunnel,
            lan=lan,
        )

    def _peers(self, name: str) -> list[LivePeer]:
        """In a change of keys there are two, on two interfaces."""
        found = []
        for tunnel in self.wanted.tunnels:
            there = self.tunnels.get(tunnel.interface)
            keys = [peer.public_key for peer in tunnel.peers if peer.site == name]
            found += [peer for key in keys if there and (peer := there.peer(key))]
        return found

    def _judge_device(self, name: str, *, known: bool) -> tuple[Verdict, str]:
        interface = self.network.site(self.wanted.site).interface
        device = self.devices.get(interface)
        if self.network.site(name).public_key is None:
            return "bad", "it has no public key in the file yet (cpythonplus-sites keygen there)"
        if device is None:
            return "bad", NO_DEVICE.format(interface)
        if not device.up:
            return "bad", DOWN.format(interface)
        return ("unknown", "") if known else ("bad", NO_PEER.format(interface))

    def _judge_ssh(self, name: str, tunnel: Ping | None, lan: Ping | None) -> tuple[Verdict, str]:
        device = self.devices.get(name)
        if device is None:
            return "bad", NO_DEVICE.format(name)
        if not device.up:
            return "bad", DOWN.format(name)
        if not device.running:
            return "bad", SSH_UNUSED.format(name)
        if tunnel is None:
            return "unknown", "ssh holds the device; only a ping can tell more"
        if not tunnel.received:
            return "bad", SSH_SILENT.format(name)
        return _judge_lan(lan)


def judge(
    age_s: float | None, keepalive_s: int, tunnel: Ping | None, lan: Ping | None
) -> tuple[Verdict, str]:
    """Judge a WireGuard link whose interface and peer are there.

    age_s: of the last handshake; None: never.  An answer to a ping outweighs everything.
    """
    if tunnel is not None and tunnel.received:
        return _judge_lan(lan)
    if age_s is None:
        return "bad", NEVER
    fresh = age_s <= FRESH_S
    if tunnel is not None:
        return "bad", SILENT if fresh else STALE
    if fresh:
        return "good", ""
    return ("bad", STALE) if keepalive_s else ("unknown", IDLE)


def _judge_lan(lan: Ping | None) -> tuple[Verdict, str]:
    if lan is not None and not lan.received:
        return "bad", LAN_SILENT
    return "good", ""


def _beyond(site: Site, hub: Reach, tunnel: Ping | None, lan: Ping | None) -> Reach:
    """A site that is reached through the hub."""
    via = f"via {hub.site}"
    if tunnel is None or hub.verdict == "bad":
        return Reach(site.name, via, hub.verdict, hub.cause, tunnel=tunnel, lan=lan)
    if not tunnel.received:
        cause = BEYOND.format(hub.site, site.name)
        return Reach(site.name, via, "bad", cause, tunnel=tunnel, lan=lan)
    return Reach(site.name, via, *_judge_lan(lan), tunnel=tunnel, lan=lan)


# ---- ping ---------------------------------------------------------------------------------------


def _pings(machine: Machine, sites: Sequence[Site], count: int) -> dict[Address, Ping | None]:
    """All at the same time, so that it takes as long as one."""
    addresses = [address for site in sites for address in (site.tunnel_address, site.gateway)]
    if count <= 0 or not addresses:
        return dict.fromkeys(addresses)
    with ThreadPoolExecutor(min(PARALLEL_PINGS, len(addresses))) as pool:
        found = pool.map(lambda address: ping(machine, address, count), addresses)
        return dict(zip(addresses, found))


def ping(machine: Machine, address: Address, count: int) -> Ping | None:
    """Send `count` packets; None where there is no ping on this host."""
    argv = ["ping", "-n", "-q", "-c", str(count), "-i", str(PING_INTERVAL_S)]
    argv += ["-W", f"{PING_WAIT_S:g}", str(address)]
    output = machine.run(argv, timeout_s=count * PING_INTERVAL_S + PING_WAIT_S + 5)
    if output.status in (126, 127):
        return None
    return parse_ping(output.out, count)


def parse_ping(text: str, sent: int) -> Ping:
    """Read the summary of iputils' or busybox' ping; what is not understood is no answer."""
    received, times = _RECEIVED.search(text), _TIMES.search(text)
    count = min(sent, int(received[1][:9])) if received else 0
    try:
        time_ms = float(times[1]) if times and count else None
    except ValueError:
        time_ms = None
    return Ping(sent, count, time_ms)
