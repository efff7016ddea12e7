"""The look that the timer takes every few seconds: which sites answer, and what has to be done.

A look costs one call of `wg`, two of `ip` if a link has a fallback, and a ping for each link. The
full comparison and look-up of names happen only if a site is silent, a link switches over, or the
last full look is FULL_S old.

An ssh tunnel counts as alive if packets came through it lately, and a program holds the device: it
is one TCP connection, so received packets show that packets get out. An unanswered ping through it
proves nothing, as the far gateway may answer through WireGuard; but that gateway pings through it,
too.

A peer is silent if it answered pings through WireGuard before, and does not now; or, if a firewall
never let one through, if nothing has been received from it for STALLED_S, though packets were sent:
WireGuard itself acknowledges accepted packets within 10 s (whitepaper, 6.5). Its session would live
for three minutes more, in which `wg` shows no fault.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cpythonplus_sites import fallback, live
from cpythonplus_sites.fallback import Answers, Memory, Remembered
from cpythonplus_sites.heard import Heard
from cpythonplus_sites.planning import is_fresh
from cpythonplus_sites.probing import Probe
from cpythonplus_sites.rendering.systemd import follows_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from cpythonplus_sites.fallback import Kind
    from cpythonplus_sites.live import LivePeer, LiveTunnel
    from cpythonplus_sites.live_route import LiveRoute
    from cpythonplus_sites.machine import Machine
    from cpythonplus_sites.model import Endpoint, Network
    from cpythonplus_sites.wanted import Wanted

FOLDER = Path("/run/cpythonplus-sites")
DEVICES = Path("/sys/class/net")
FULL_S = 60.0
STALLED_S = 20.0
SPARE_ALIVE_S = 25.0
"""The time of two looks of the far gateway, each of which sends through the ssh tunnel."""

AGAIN, AGAIN_S = 4, 0.7
"""The number of extra pings if the first one leaves a doubt, and the seconds between them."""

STEADY = AGAIN
"""The number of the AGAIN + 1 pings that WireGuard must answer before the return to it."""


def path(network: Network) -> Path:
    """The path of the memory, which is gone after a boot, like the times in it."""
    return FOLDER / f"{network.name}.json"


def recall(machine: Machine, network: Network) -> Remembered:
    """The memory of the last look."""
    try:
        text = machine.read(path(network))
    except (OSError, ValueError):
        text = None
    return fallback.read(text, machine.monotonic_s())


def remember(machine: Machine, network: Network, remembered: Remembered) -> None:
    """Keep the memory for the next look. Raises OSError, SecretError."""
    machine.write(path(network), fallback.written(remembered), mode=0o644)


def watch(machine: Machine, network: Network, wanted: Wanted) -> Heard:
    """Look at the links that rendering.systemd.has_watched_links means.

    Raises OSError if `wg` or `ip` fails.
    """
    before = recall(machine, network)
    tunnels = live.tunnels(machine, needed=bool(wanted.tunnels))
    spares = {each.peer: each.device for each in wanted.fallbacks}
    links = [x for x in network.links_of(wanted.site) if x.via == "wireguard"]
    sites = [link.other(wanted.site) for link in links]
    names = [name for name in sites if name in spares or follows_name(network, name)]
    carriers = {name: found for name in names if (found := _carrier(wanted, tunnels, name))}
    in_use = ways(machine, network, wanted)
    devices = {name: device for name, (device, _) in carriers.items()}
    # Sites without an interface or a peer are not pinged.
    answers = dict.fromkeys(names, Answers(wireguard=False, ssh=False))
    answers.update(_ask(machine, network, devices, spares, in_use))
    now_s = machine.monotonic_s()
    memories: dict[str, Memory] = {}
    chosen: dict[str, Kind] = {}
    switches: list[str] = []
    silent: set[str] = set()
    for name in names:
        memory = before.of(name)
        if name in spares:
            memory, answers[name] = _with_spare(machine, spares[name], memory, answers[name], now_s)
        if name in carriers:
            memory = memory.received(carriers[name][1].received_bytes, now_s)
        if name in carriers and _is_silent(memory, answers[name], before, now_s):
            silent.add(name)
        if answers[name].wireguard:
            memory = replace(memory, answered_at_s=now_s)
        if name in spares:
            way, memory = fallback.decide(memory, in_use[name], answers[name], now_s)
            if way != memory.way or memory.since_s is None:
                memory = replace(memory, way=way, since_s=machine.now_s())
            chosen[name] = way
            if way != in_use[name]:
                switches.append(_said(name, way, memory))
        memories[name] = memory
    is_due = before.full_at_s is None or now_s - before.full_at_s >= FULL_S
    is_due |= not names or len(wanted.tunnels) > 1
    calls = is_due or bool(switches) or not all(answers[name].wireguard for name in carriers)
    full_at_s = now_s if is_due else before.full_at_s
    remembered = Remembered(memories, looked_at_s=now_s, full_at_s=full_at_s)
    stuck = _stuck(machine, carriers, silent, {x for x in names if answers[x].wireguard})
    return Heard(frozenset(silent), stuck, chosen, tuple(switches), calls, remembered)


def _stuck(
    machine: Machine,
    carriers: Mapping[str, tuple[str, LivePeer]],
    silent: Collection[str],
    answering: Collection[str],
) -> dict[str, Endpoint]:
    """The endpoints of sites that are silent or without a session.

    `wg` runs again, as the pings may have started a session.
    """
    now_s = machine.now_s()
    doubtful = [
        name
        for name, (_, peer) in carriers.items()
        if name in silent or not (name in answering or is_fresh(peer, now_s))
    ]
    tunnels = live.tunnels(machine) if doubtful else {}
    found = {}
    for name in doubtful:
        device, before = carriers[name]
        peer = tunnels[device].peer(before.public_key) if device in tunnels else None
        is_new = peer is not None and peer.handshake_s != before.handshake_s
        if before.endpoint is not None and not is_new:
            found[name] = before.endpoint
    return found


def _with_spare(
    machine: Machine, device: str, memory: Memory, answers: Answers, now_s: float
) -> tuple[Memory, Answers]:
    """The memory and the answers, updated with the packets received through the ssh tunnel."""
    packets = _number(machine, device, "statistics/rx_packets")
    memory = memory.spare_received(packets, now_s)
    is_held = _number(machine, device, "carrier") == 1
    since_s = None if memory.spare_at_s is None else now_s - memory.spare_at_s
    is_alive = is_held and since_s is not None and since_s < SPARE_ALIVE_S
    return memory, replace(answers, ssh=answers.ssh or is_alive)


def _number(machine: Machine, device: str, name: str) -> int:
    """The kernel's number for a device; 0 if there is none, as for the carrier of a down device."""
    try:
        return int(machine.read(DEVICES / device / name) or 0)
    except (OSError, ValueError):
        return 0


def _said(name: str, way: Kind, memory: Memory) -> str:
    title = {"ssh": "ssh", "wireguard": "WireGuard"}[way]
    wait = f"; it will have to do so for {memory.hold_s:.0f} s before it is used again"
    wait = wait if way == "ssh" and memory.hold_s else ""
    return f"{name}: routes move to {title}: {memory.reason}{wait}"


def _is_silent(memory: Memory, answers: Answers, before: Remembered, now_s: float) -> bool:
    if answers.wireguard or before.looked_at_s is None:
        return False
    if memory.answered_at_s is not None:
        return True
    return memory.received_at_s is not None and now_s - memory.received_at_s >= STALLED_S


def _carrier(
    wanted: Wanted, tunnels: Mapping[str, LiveTunnel], name: str
) -> tuple[str, LivePeer] | None:
    """The interface, and the peer on it, of the youngest session with a site."""
    found = [
        (tunnel.interface, peer)
        for tunnel in wanted.tunnels
        for end in tunnel.peers
        if end.site == name
        and tunnel.interface in tunnels
        and (peer := tunnels[tunnel.interface].peer(end.public_key)) is not None
    ]
    return max(found, key=lambda each: each[1].handshake_s, default=None)


def ways(machine: Machine, network: Network, wanted: Wanted) -> dict[str, Kind]:
    """The current ways of the routes to sites with a fallback."""
    if not wanted.fallbacks:
        return {}
    return ways_of(live.routes(machine), network, wanted)


def ways_of(routes: Sequence[LiveRoute], network: Network, wanted: Wanted) -> dict[str, Kind]:
    """The current ways, from routes that were already read."""
    found: dict[str, Kind] = {}
    for each in wanted.fallbacks:
        subnets = set(network.site(each.peer).subnets)
        on = [route for route in routes if route.subnet in subnets]
        best = min(on, key=lambda route: route.metric, default=None)
        found[each.peer] = "ssh" if best is not None and best.device == each.device else "wireguard"
    return found


def _ask(
    machine: Machine,
    network: Network,
    carriers: Mapping[str, str],
    spares: Mapping[str, str],
    in_use: Mapping[str, Kind],
) -> dict[str, Answers]:
    """Send one ping each way; if an answer is missing, or a return is possible, some more.

    carriers, spares: the device of WireGuard and of ssh to each site, if there is one.
    """
    keys = [*carriers.items(), *spares.items()]
    first = dict(zip(keys, machine.echo(_probes(network, keys), count=1)))
    again = [
        (name, device)
        for name, device in keys
        if not first[name, device].received
        or (in_use.get(name) == "ssh" and carriers.get(name) == device)
    ]
    found = {key: ping.received for key, ping in first.items()}
    if again:
        more = machine.echo(_probes(network, again), count=AGAIN, interval_s=AGAIN_S)
        for key, ping in zip(again, more):
            found[key] += ping.received
    answers = {}
    for name in {*carriers, *spares}:
        wireguard = found.get((name, carriers.get(name, "")), 0)
        ssh = found.get((name, spares.get(name, "")), 0)
        answers[name] = Answers(wireguard > 0, ssh > 0, steady=wireguard >= STEADY)
    return answers


def _probes(network: Network, keys: Sequence[tuple[str, str]]) -> list[Probe]:
    return [Probe(network.site(name).tunnel_address, device=device) for name, device in keys]
