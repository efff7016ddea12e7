"""Whatever is broken, `status` does not say that all is well, and names the side at fault.

A gateway that works has one thing taken away, or added by others, in each row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address, ip_interface, ip_network
from typing import Any, NamedTuple

import pytest

from cpythonplus_sites.health import Reach
from cpythonplus_sites.live import Device
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.model import Network
from sites.tests.simulated import NOW_S, Simulated
from sites.tests.test_health import PARIS, berlin, judged
from sites.tests.test_passage import ACCEPT, match
from sites.tests.test_plan_and_apply import EXAMPLE, changed

pytestmark = pytest.mark.any_version

TUNNEL, LAN = PARIS
HOST = "192.168.20.10"
NETWORK = changed(EXAMPLE, "paris", probe=ip_address(HOST))
KERNEL, BOOT = 2, 3


class State(NamedTuple):
    """What is done to a gateway that works, and what `status` has to say of paris."""

    name: str
    breaks: Callable[[Simulated], object]
    side: str
    words: str
    network: Network = EXAMPLE


def without_answers(*gone: str) -> Callable[[Simulated], None]:
    def breaks(machine: Simulated) -> None:
        machine.answers -= set(gone)

    return breaks


def smaller_alone(machine: Simulated) -> None:
    machine.answers ^= {LAN, f"{LAN}<1345"}


def with_peer(**values: Any) -> Callable[[Simulated], None]:  # noqa: ANN401
    def breaks(machine: Simulated) -> None:
        tunnel = machine.tunnels["wg-acme"]
        first, *rest = tunnel.peers
        machine.tunnels["wg-acme"] = replace(tunnel, peers=(replace(first, **values), *rest))

    return breaks


def silent(then: Callable[[Simulated], None]) -> Callable[[Simulated], None]:
    def breaks(machine: Simulated) -> None:
        machine.answers.clear()
        then(machine)

    return breaks


def that_says_that_it_received(machine: Simulated) -> None:
    """Its WireGuard does, after 10 s, though it drops pings."""

    def speak() -> None:
        if machine.since_boot_s > 1010:
            with_peer(received_bytes=4711)(machine)

    machine.paused = speak


def with_device(name: str, **values: Any) -> Callable[[Simulated], None]:  # noqa: ANN401
    def breaks(machine: Simulated) -> None:
        machine.devices[name] = replace(machine.devices[name], **values)

    return breaks


def without_routes(*subnets: str) -> Callable[[Simulated], None]:
    def breaks(machine: Simulated) -> None:
        machine.routes = [
            x for x in machine.routes if x.kind != "unicast" or str(x.subnet) not in subnets
        ]

    return breaks


def with_route(subnet: str, device: str, protocol: int) -> Callable[[Simulated], None]:
    def breaks(machine: Simulated) -> None:
        machine.routes.insert(0, LiveRoute(ip_network(subnet), device, protocol))

    return breaks


def with_nft(
    hook: str, *rules: list[dict[str, Any]], kind: str = "filter", policy: str = "accept"
) -> Callable[[Simulated], None]:
    def breaks(machine: Simulated) -> None:
        own = {"family": "inet", "table": "theirs"}
        chain = {**own, "name": "theirs", "hook": hook, "type": kind, "policy": policy}
        entries: list[dict[str, Any]] = [{"chain": chain}]
        entries += [{"rule": {**own, "chain": "theirs", "expr": rule}} for rule in rules]
        machine.rulesets["nft"] = json.dumps({"nftables": entries})

    return breaks


def with_iptables(text: str, table: str = "filter", chain: str = "FORWARD") -> Callable[..., None]:
    def breaks(machine: Simulated) -> None:
        own = {"family": "ip", "table": table, "name": chain, "hook": chain.lower()}
        own |= {"type": "nat" if table == "nat" else "filter", "policy": "accept"}
        machine.rulesets["nft"] = json.dumps({"nftables": [{"chain": own}]})
        machine.rulesets[f"iptables-nft {table}"] = text

    return breaks


def no_device(machine: Simulated) -> None:
    del machine.devices["wg-acme"], machine.tunnels["wg-acme"]


def no_peer(machine: Simulated) -> None:
    tunnel = machine.tunnels["wg-acme"]
    machine.tunnels["wg-acme"] = replace(tunnel, peers=tunnel.peers[1:])


def no_lan(machine: Simulated) -> None:
    del machine.devices["eth1"]


def not_forwarding(machine: Simulated) -> None:
    machine.settings["net/ipv4/ip_forward"] = "0"


DROP: dict[str, Any] = {"drop": None}
MASQUERADE: dict[str, Any] = {"masquerade": None}
SNAT: dict[str, Any] = {"snat": {"addr": "203.0.113.1"}}
FRESH = int(NOW_S) - 40

STATES = (
    # What is not as `apply` has made it.
    State("no interface", no_device, "here", "wg-acme does not exist"),
    State("interface down", with_device("wg-acme", up=False), "here", "wg-acme is down"),
    State("no peer", no_peer, "here", "not among the peers"),
    State("no forwarding", not_forwarding, "here", "ip_forward is 0"),
    State(
        "allowed IPs without the LAN",
        with_peer(allowed_ips=frozenset({ip_network("10.254.0.2/32")})),
        "here",
        "lack 192.168.20.0/24",
    ),
    State(
        "allowed IPs without the end of the tunnel",
        with_peer(allowed_ips=frozenset({ip_network("192.168.20.0/24")})),
        "here",
        "lack 10.254.0.2/32",
    ),
    State("no allowed IPs", silent(with_peer(allowed_ips=frozenset())), "here", "lack 192.168"),
    State("no route to the LAN", without_routes("192.168.20.0/24"), "here", "find no route"),
    State(
        "no route to the end of the tunnel",
        without_routes("10.254.0.2/32"),
        "here",
        "no route leads to 10.254.0.2/32",
    ),
    State(
        "no route to a second LAN",
        without_routes("192.168.21.0/24"),
        "here",
        "no route leads to 192.168.21.0/24",
        changed(
            EXAMPLE, "paris", lans=(*EXAMPLE.site("paris").lans, ip_network("192.168.21.0/24"))
        ),
    ),
    State(
        "a route of another program",
        with_route("192.168.20.0/25", "eth1", BOOT),
        "here",
        "leave through eth1, not wg-acme",
    ),
    State(
        "a part of the far LAN is connected here",
        with_route("192.168.20.128/25", "eth2", KERNEL),
        "here",
        "192.168.20.128/25, a part of 192.168.20.0/24 there, is connected",
    ),
    # The LAN of this gateway.
    State("no LAN", no_lan, "here", "no interface has 192.168.10.1"),
    State("LAN down", with_device("eth1", up=False), "here", "eth1, the interface of the LAN, is"),
    State("no carrier", with_device("eth1", running=False), "here", "has no carrier"),
    State(
        "another address",
        with_device("eth1", addresses=(ip_interface("192.168.10.2/24"),)),
        "here",
        "no interface has 192.168.10.1",
    ),
    # Firewalls.
    State("forward policy", with_nft("forward", policy="drop"), "here", "drops what is forwarded"),
    State(
        "one direction",
        with_nft("forward", [match("iifname", "eth1"), ACCEPT], policy="drop"),
        "here",
        "from wg-acme to eth1",
    ),
    State(
        "prerouting",
        with_nft("prerouting", [match("iifname", "wg-acme"), DROP]),
        "here",
        "chain theirs of table inet theirs) drops",
    ),
    State("prerouting policy", with_nft("prerouting", policy="drop"), "here", "drops what is"),
    State(
        "postrouting",
        with_nft("postrouting", [match("oifname", "wg-acme"), DROP]),
        "here",
        "drops what is forwarded from eth1 to wg-acme",
    ),
    State("iptables", with_iptables("-P FORWARD DROP\n"), "here", "iptables-nft (chain FORWARD)"),
    State(
        "iptables raw",
        with_iptables(
            "-P PREROUTING ACCEPT\n-A PREROUTING -i wg-acme -j DROP\n", "raw", "PREROUTING"
        ),
        "here",
        "iptables-nft (chain PREROUTING of table raw) drops",
    ),
    State(
        "masquerade",
        with_nft("postrouting", [MASQUERADE], kind="nat"),
        "here",
        "rewrites the source of what goes from eth1 to wg-acme",
    ),
    State(
        "snat",
        with_nft("postrouting", [match("oifname", "eth1", op="!="), SNAT], kind="nat"),
        "here",
        "rewrites the source",
    ),
    State(
        "masquerade of iptables",
        with_iptables(
            "-P POSTROUTING ACCEPT\n-A POSTROUTING -s 192.168.10.0/24 -j MASQUERADE\n",
            "nat",
            "POSTROUTING",
        ),
        "here",
        "iptables-nft (chain POSTROUTING of table nat) rewrites",
    ),
    # Between the two.
    State("UDP is blocked", silent(with_peer(handshake_s=FRESH)), "between", "UDP is blocked"),
    State("no handshake any more", silent(with_peer(handshake_s=FRESH - 900)), "between", "no rec"),
    State("never a handshake", silent(with_peer(handshake_s=0)), "between", "never a handshake"),
    State("large packets", smaller_alone, "between", "packets of 1400 bytes are lost"),
    State(
        "a clock that went back",
        silent(with_peer(handshake_s=FRESH + 9000)),
        "here",
        "later than this host's clock",
    ),
    # The far gateway.
    State("it drops ICMP", silent(that_says_that_it_received), "there", "it may drop ICMP"),
    State("no LAN there", without_answers(LAN), "there", "LAN address does not"),
    State(
        "no way back", lambda m: m.answers.add(f"{LAN}!192.168.10.1"), "there", "but not 192.168"
    ),
    State("no host there", without_answers(HOST), "there", f"but not {HOST}, the host", NETWORK),
)


def working(network: Network) -> Simulated:
    machine = berlin(*PARIS, HOST, network=network)
    machine.devices["eth2"] = Device("eth2", True, 1500)
    return machine


def paris(machine: Simulated, network: Network) -> Reach:
    return judged(machine, network)["paris"]


@pytest.mark.parametrize("network", [EXAMPLE, NETWORK], ids=["plain", "with a host"])
def test_what_works_is_good(network: Network) -> None:
    found = paris(working(network), network)
    assert (found.verdict, found.cause, found.note) == ("good", "", "")


@pytest.mark.parametrize("state", STATES, ids=[state.name for state in STATES])
def test_what_is_broken_is_told(state: State) -> None:
    machine = working(state.network)
    state.breaks(machine)
    found = paris(machine, state.network)
    assert (found.verdict, found.side) == ("bad", state.side), found.cause
    assert state.words in found.cause


def test_there_are_thirty_of_them() -> None:
    assert len({state.name for state in STATES}) >= 30


@pytest.mark.parametrize(
    "breaks",
    [
        with_nft("postrouting", [match("oifname", "eth2"), MASQUERADE], kind="nat"),
        with_nft("postrouting", [match("oifname", "wg-*"), ACCEPT], [MASQUERADE], kind="nat"),
        with_nft("prerouting", [match("iifname", "eth2"), DROP]),
        with_iptables(
            "-P POSTROUTING ACCEPT\n-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\n",
            "nat",
            "POSTROUTING",
        ),
        with_route("192.168.20.128/25", "wg-acme", BOOT),
        with_route("192.168.0.0/16", "eth2", KERNEL),
    ],
    ids=[
        "masquerade to the provider",
        "an exemption",
        "of another interface",
        "docker",
        "ours",
        "wider",
    ],
)
def test_what_does_no_harm_is_good(breaks: Callable[[Simulated], None]) -> None:
    machine = working(EXAMPLE)
    breaks(machine)
    assert paris(machine, EXAMPLE).verdict == "good"


def test_a_host_that_answers_past_a_gateway_that_answers_nothing() -> None:
    machine = working(NETWORK)
    machine.answers = {HOST}
    with_peer(handshake_s=FRESH)(machine)
    found = paris(machine, NETWORK)
    assert (found.verdict, found.cause) == ("good", "")
    assert (
        f"but {HOST}" in found.note or f"{HOST}, the host that the file names, does" in found.note
    )
