"""What a gateway's own settings and firewall do to forwarded packets."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.model import Link, Relay
from cpythonplus_sites.passage import Packet, parse_iptables, parse_nft, verdict
from sites.tests.test_health import PARIS, berlin, judged
from sites.tests.test_plan_and_apply import EXAMPLE, changed

if TYPE_CHECKING:
    from cpythonplus_sites.health import Reach
    from sites.tests.simulated import Simulated

pytestmark = pytest.mark.any_version

PACKET = Packet("eth1", "wg-acme", ip_address("192.168.10.2"), ip_address("192.168.20.1"))
DOCKER = """\
-P INPUT ACCEPT
-P FORWARD DROP
-P OUTPUT ACCEPT
-N DOCKER
-N DOCKER-USER
-N DOCKER-ISOLATION-STAGE-1
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o docker0 -j DOCKER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i docker0 -o docker0 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DROP
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-USER -j RETURN
"""
UFW = """\
-P FORWARD DROP
-N ufw-before-forward
-N ufw-user-forward
-N ufw-reject-forward
-A FORWARD -j ufw-before-forward
-A FORWARD -j ufw-reject-forward
-A ufw-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-forward -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-forward -j ufw-user-forward
"""


@pytest.mark.parametrize(
    ("rules", "more", "expected"),
    [
        (DOCKER, "", "drop"),
        (UFW, "", "drop"),
        (DOCKER, "-A DOCKER-USER -i wg-acme -j ACCEPT\n", "drop"),
        (DOCKER.replace("USER -j RETURN", "USER -o wg-acme -j ACCEPT"), "", "accept"),
        (DOCKER.replace("USER -j RETURN", "USER -o wg+ -j ACCEPT"), "", "accept"),
        (DOCKER.replace("USER -j RETURN", "USER -m mark --mark 5 -j ACCEPT"), "", ""),
        (DOCKER.replace("USER -j RETURN", "USER -m mark --mark 5 -j DROP"), "", "drop"),
        (DOCKER.replace("FORWARD DROP", "FORWARD ACCEPT"), "", "accept"),
        (UFW, "-A ufw-user-forward -i eth1 -o wg-acme -j ACCEPT\n", "accept"),
        (UFW, "-A ufw-user-forward -s 192.168.10.0/24 -j ACCEPT\n", "accept"),
        (UFW, "-A ufw-user-forward ! -s 192.168.10.0/24 -j ACCEPT\n", "drop"),
        (UFW, "-A ufw-user-forward ! -s 10.0.0.0/8 -j ACCEPT\n", "accept"),
        (UFW, "-A ufw-user-forward -d 192.168.20.0/24 -p udp -j ACCEPT\n", "drop"),
        (UFW, "-A ufw-user-forward -m set --match-set x src -j ACCEPT\n", ""),
        (UFW, "-A ufw-user-forward -g nowhere\n", ""),
        (UFW, '-A ufw-user-forward -i eth1 -m comment --comment "a b" -j ACCEPT\n', "accept"),
        (UFW, "-A ufw-user-forward -j LOG --log-prefix x\n", "drop"),
        (UFW, "-A ufw-user-forward -m conntrack ! --ctstate NEW -j ACCEPT\n", "drop"),
        (UFW, "-A ufw-user-forward -m conntrack --ctstate NEW -j ACCEPT\n", "accept"),
    ],
)
def test_iptables(rules: str, more: str, expected: str) -> None:
    assert verdict(parse_iptables(rules + more, PACKET), "FORWARD") == expected


def match(key: str, value: object, *, op: str = "==", of: str = "meta") -> dict[str, Any]:
    return {"match": {"op": op, "left": {of: {"key": key}}, "right": value}}


def nft(*rules: list[dict[str, Any]], policy: str = "drop") -> str:
    own = {"family": "inet", "table": "filter"}
    entries: list[dict[str, Any]] = [
        {"metainfo": {}},
        {"chain": {**own, "name": "forward", "hook": "forward", "policy": policy}},
        {"chain": {**own, "name": "aside"}},
        *({"rule": {**own, "chain": "forward", "expr": rule}} for rule in rules),
    ]
    return json.dumps({"nftables": entries})


ADDRESS = {"payload": {"protocol": "ip", "field": "saddr"}}
LAN = {"prefix": {"addr": "192.168.10.0", "len": 24}}
ACCEPT: dict[str, Any] = {"accept": None}


@pytest.mark.parametrize(
    ("rules", "policy", "expected"),
    [
        ([], "drop", "drop"),
        ([], "accept", "accept"),
        ([[{"reject": None}]], "accept", "drop"),
        ([[match("state", ["established", "related"], of="ct", op="in"), ACCEPT]], "drop", "drop"),
        ([[match("state", {"set": ["new"]}, of="ct"), ACCEPT]], "drop", "accept"),
        ([[match("iifname", "eth1"), match("oifname", "wg-*"), ACCEPT]], "drop", "accept"),
        ([[match("iifname", {"set": ["eth0", "eth1"]}), ACCEPT]], "drop", "accept"),
        ([[match("iifname", "eth1", op="!="), ACCEPT]], "drop", "drop"),
        ([[{"match": {"op": "==", "left": ADDRESS, "right": LAN}}, ACCEPT]], "drop", "accept"),
        ([[match("status", "dnat", of="ct", op="in"), ACCEPT]], "drop", "drop"),
        ([[match("status", "assured", of="ct", op="in"), ACCEPT]], "drop", ""),
        ([[match("mark", 5), ACCEPT]], "drop", ""),
        ([[{"vmap": {}}]], "drop", ""),
        ([[{"xt": {"name": "set"}}, ACCEPT]], "drop", ""),
        ([[{"jump": {"target": "aside"}}], [{"counter": {}}, ACCEPT]], "drop", "accept"),
        ([[{"jump": {"target": "nowhere"}}]], "drop", ""),
    ],
)
def test_nft(rules: list[list[dict[str, Any]]], policy: str, expected: str) -> None:
    ((title, chains, base),) = parse_nft(nft(*rules, policy=policy), PACKET)
    assert (title, base) == ("inet filter", "forward")
    assert verdict(chains, base) == expected


@given(st.text())
def test_anything_is_survived(text: str) -> None:
    parse_iptables(text, PACKET)
    list(parse_nft(text, PACKET))


WORDS = st.sampled_from(
    [
        "-A",
        "-P",
        "-N",
        "FORWARD",
        "DROP",
        "-j",
        "ACCEPT",
        "!",
        "-i",
        "eth1",
        "-m",
        "-s",
        "10.0.0.0/8",
    ]
)


@given(st.lists(st.lists(WORDS, max_size=8), max_size=6))
def test_any_words_are_survived(lines: list[list[str]]) -> None:
    chains = parse_iptables("\n".join(map(" ".join, lines)), PACKET)
    for name in chains:
        assert verdict(chains, name) in ("accept", "drop", "")


KEYS = ("family", "table", "name", "hook", "policy", "expr", "match", "jump", "target", "vmap")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["ip", "inet", "forward", "drop"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*KEYS, "left", "right", "op", "set", "meta", "ct", "payload", "prefix", "key"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_ruleset_is_survived(data: object) -> None:
    for text in (json.dumps(data), json.dumps({"nftables": [{"rule": data}, {"chain": data}]})):
        for _, chains, base in parse_nft(text, PACKET):
            verdict(chains, base)


# ---- what status says ---------------------------------------------------------------------------


def paris(machine: Simulated) -> Reach:
    return judged(machine)["paris"]


def test_forwarding_that_is_off() -> None:
    machine = berlin(*PARIS)
    machine.settings["net/ipv4/ip_forward"] = "0"
    assert (paris(machine).verdict, paris(machine).side) == ("bad", "here")
    assert "net.ipv4.ip_forward is 0" in paris(machine).cause


def test_docker() -> None:
    machine = berlin(*PARIS)
    base = {"family": "ip", "table": "filter", "name": "FORWARD"}
    chain = {"chain": {**base, "hook": "forward", "policy": "drop"}}
    machine.rulesets = {"nft": json.dumps({"nftables": [chain]}), "iptables-nft": DOCKER}
    found = paris(machine)
    assert (found.verdict, found.side) == ("bad", "here")
    assert "iptables-nft (chain FORWARD) drops" in found.cause
    assert "iptables-nft -I DOCKER-USER -i eth1 -o wg-acme -j ACCEPT" in found.cause
    machine.rulesets["iptables-nft"] = UFW
    assert "ufw route allow in on eth1 out on wg-acme and ufw route" in paris(machine).cause
    machine.rulesets["iptables-nft"] = "-P FORWARD DROP\n"
    assert "iptables-nft -I FORWARD -i eth1 -o wg-acme -j ACCEPT" in paris(machine).cause
    machine.rulesets["iptables-nft"] = DOCKER.replace("FORWARD DROP", "FORWARD ACCEPT")
    assert paris(machine).verdict == "good"
    del machine.rulesets["iptables-nft"]
    assert "nft (chain FORWARD of table ip filter) drops" in paris(machine).cause


def firewalld(*zone: list[dict[str, Any]]) -> str:
    """As it writes its chains for the interfaces of a zone."""
    own = {"family": "inet", "table": "firewalld"}
    reject = {"reject": {"type": "icmpx", "expr": "admin-prohibited"}}
    chains: dict[str, list[list[dict[str, Any]]]] = {
        "filter_FORWARD": [
            [match("state", {"set": ["established", "related"]}, of="ct"), ACCEPT],
            [match("status", "dnat", of="ct", op="in"), ACCEPT],
            [match("iifname", "lo"), ACCEPT],
            [{"jump": {"target": "filter_FORWARD_ZONES"}}],
            [reject],
        ],
        "filter_FORWARD_ZONES": [
            [match("iifname", "eth0"), {"goto": {"target": "filter_FWD_public"}}],
            [{"goto": {"target": "filter_FWD_internal"}}],
        ],
        "filter_FWD_internal": [*zone, [reject]],
    }
    entries: list[dict[str, Any]] = [{"chain": {**own, "name": name}} for name in chains]
    entries[0]["chain"].update(hook="forward", policy="accept")
    for name, rules in chains.items():
        entries += [{"rule": {**own, "chain": name, "expr": rule}} for rule in rules]
    return json.dumps({"nftables": entries})


def test_firewalld() -> None:
    machine = berlin(*PARIS)
    machine.rulesets = {"nft": firewalld()}
    found = paris(machine)
    assert (found.verdict, found.side) == ("bad", "here")
    assert "nft (chain filter_FORWARD of table inet firewalld) drops" in found.cause
    assert "firewall-cmd --zone=internal with --change-interface=eth1," in found.cause
    both = ([match("oifname", "eth1"), ACCEPT], [match("oifname", "wg-*"), ACCEPT])
    machine.rulesets = {"nft": firewalld(*both)}
    assert paris(machine).verdict == "good"


def test_the_way_that_is_not_in_use() -> None:
    """The far gateway may send through it, and by itself: it judges its own direction."""
    link = Link(("berlin", "paris"), "wireguard", 1400, 25, 8, "ssh")
    network = replace(EXAMPLE, links=(link, *(x for x in EXAMPLE.links if x.ends != link.ends)))
    machine = berlin(*PARIS, network=network)
    ways = ("eth1", "wg-acme"), ("wg-acme", "eth1"), ("eth1", "tun8"), ("tun8", "eth1")
    rules = [[match("iifname", one), match("oifname", other), ACCEPT] for one, other in ways]
    machine.rulesets = {"nft": nft(*rules)}
    assert judged(machine, network)["paris"].verdict == "good"
    machine.rulesets = {"nft": nft(*rules[:3])}
    found = judged(machine, network)["paris"]
    assert (found.verdict, found.side) == ("bad", "here")
    assert "drops what is forwarded from tun8 to eth1" in found.cause


@pytest.mark.parametrize("is_hub", [True, False])
def test_a_hub_and_a_relay_that_do_not_pass_on(is_hub: bool) -> None:
    links = tuple(link for link in EXAMPLE.links if "berlin" in link.ends)
    network = replace(EXAMPLE, topology="hub", hub="berlin", links=links)
    if not is_hub:
        relays = (Relay(("oslo", "paris"), "berlin"),)
        network = replace(EXAMPLE, links=links, relays=relays)
    machine = berlin(*PARIS, network=network)
    ways = ("eth1", "wg-acme"), ("wg-acme", "eth1"), ("wg-acme", "wg-acme")
    rules = [[match("iifname", one), match("oifname", other), ACCEPT] for one, other in ways]
    machine.rulesets = {"nft": nft(*rules)}
    assert judged(machine, network)["paris"].verdict == "good"
    machine.rulesets = {"nft": nft(*rules[:2])}
    found = judged(machine, network)["paris"]
    assert (found.verdict, found.side) == ("bad", "here")
    assert found.cause.endswith("from wg-acme to wg-acme: let it accept wg-acme to wg-acme")
    mesh = berlin(*PARIS)
    mesh.rulesets = machine.rulesets
    assert judged(mesh)["paris"].verdict == "good"


def test_a_chain_of_nobody_we_know() -> None:
    machine = berlin(*PARIS)
    machine.rulesets = {"nft": nft()}
    assert paris(machine).cause.endswith(
        "from eth1 to wg-acme: let it accept eth1 to wg-acme, and back"
    )


def test_a_lan_that_is_not_connected() -> None:
    machine = berlin(*PARIS)
    del machine.devices["eth1"]
    assert "no interface has 192.168.10.1" in paris(machine).cause


@pytest.mark.parametrize(
    ("up", "words"),
    [
        (False, "eth1, the interface of the LAN, is down"),
        (True, "eth1, the interface of the LAN, has no carrier"),
    ],
)
def test_a_lan_that_is_off(up: bool, words: str) -> None:
    machine = berlin(*PARIS)
    machine.devices["eth1"] = replace(machine.devices["eth1"], up=up, running=not up)
    found = paris(machine)
    assert (found.verdict, found.side) == ("bad", "here")
    assert found.cause.startswith(words)


def test_a_second_lan_without_a_way_to_it() -> None:
    second = ip_network("192.168.11.0/24")
    lans = (*EXAMPLE.site("berlin").lans, second)
    network = changed(EXAMPLE, "berlin", lans=lans)
    machine = berlin(*PARIS, network=network)
    found = judged(machine, network)["paris"]
    assert (found.verdict, found.side) == ("bad", "here")
    assert found.cause.startswith("this gateway has no route to 192.168.11.0/24, a LAN of this")
    machine.routes.append(LiveRoute(second, "eth1", 4))
    assert judged(machine, network)["paris"].verdict == "good"


def test_a_rule_that_diverts() -> None:
    machine = berlin(*PARIS)
    machine.rules += "100:\tfrom 192.168.10.0/24 lookup 77\n"
    machine.routes = [x for x in machine.routes if x.device != "wg-acme"]
    found = paris(machine)
    assert found.side == "here"
    assert "find no route (Network is unreachable)" in found.cause
    assert "ip rule has: 100: from 192.168.10.0/24 lookup 77" in found.cause
