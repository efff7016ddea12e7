"""When a link moves to ssh and back, and that it does not go to and fro."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites import fallback, watching
from cpythonplus_sites.applying import apply
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands.gateway import Gateway
from cpythonplus_sites.fallback import HOLD_S, MOST_HOLD_S, Answers, Memory, Remembered, decide
from cpythonplus_sites.heard import Heard
from cpythonplus_sites.host_folder import HostFolder
from cpythonplus_sites.live import look
from cpythonplus_sites.live_route import LiveRoute
from cpythonplus_sites.model import Endpoint, Link
from cpythonplus_sites.planning import PROBE_METRIC, plan
from cpythonplus_sites.rendering import ROUTE_PROTOCOL, Host, names, render, units
from sites.tests.simulated import Simulated
from sites.tests.test_plan_and_apply import EXAMPLE, applied, changed, gateway, handshakes, wants

if TYPE_CHECKING:
    from pathlib import Path

    from cpythonplus_sites.fallback import Kind
    from cpythonplus_sites.model import Network

pytestmark = pytest.mark.any_version

BOTH = Answers(wireguard=True, ssh=True, steady=True)
SHAKY = Answers(wireguard=True, ssh=True)
ONLY_SSH = Answers(wireguard=False, ssh=True)
ONLY_WIREGUARD = Answers(wireguard=True, ssh=False)
NOBODY = Answers(wireguard=False, ssh=False)
LOOK_S = 11.0


# ---- decisions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_use", "answers", "chosen"),
    [
        ("wireguard", BOTH, "wireguard"),
        ("wireguard", SHAKY, "wireguard"),
        ("wireguard", ONLY_WIREGUARD, "wireguard"),
        ("wireguard", NOBODY, "wireguard"),
        ("wireguard", ONLY_SSH, "ssh"),
        ("ssh", ONLY_SSH, "ssh"),
        ("ssh", NOBODY, "ssh"),
        ("ssh", SHAKY, "ssh"),
        ("ssh", BOTH, "wireguard"),
        ("ssh", ONLY_WIREGUARD, "wireguard"),
    ],
)
def test_ways(in_use: Kind, answers: Answers, chosen: Kind) -> None:
    way, memory = decide(Memory(), in_use, answers, 100)
    assert way == chosen
    assert (memory.to_ssh, memory.to_wireguard) == (
        int(chosen == "ssh" != in_use),
        int(chosen == "wireguard" != in_use),
    )
    assert bool(memory.reason) == (chosen != in_use)


def test_each_return_waits_longer_where_it_fails_again_soon() -> None:
    memory, now_s = Memory(), 0.0
    way: Kind = "wireguard"
    waits = []
    for _ in range(6):
        way, memory = decide(memory, way, ONLY_SSH, now_s)
        assert way == "ssh"
        begin_s = now_s
        while way == "ssh":
            now_s += LOOK_S
            way, memory = decide(memory, way, BOTH, now_s)
        waits.append(now_s - begin_s)
        now_s += 60
    assert waits[0] == LOOK_S
    assert waits[1] >= HOLD_S
    assert waits == sorted(waits)
    assert MOST_HOLD_S <= waits[-1] <= MOST_HOLD_S + 2 * LOOK_S
    way, memory = decide(memory, way, ONLY_SSH, now_s + 2 * fallback.SOON_S)
    assert memory.hold_s == 0


def test_an_answer_that_is_missing_begins_the_wait_anew() -> None:
    memory = Memory(hold_s=60)
    _, memory = decide(memory, "ssh", BOTH, 100)
    way, memory = decide(memory, "ssh", SHAKY, 150)
    assert way == "ssh"
    way, memory = decide(memory, "ssh", BOTH, 155)
    way, memory = decide(memory, "ssh", BOTH, 165)
    assert way == "ssh"
    assert decide(memory, "ssh", BOTH, 215)[0] == "wireguard"


MEMORIES = st.builds(
    Memory,
    received_bytes=st.none() | st.integers(0),
    received_at_s=st.none() | st.floats(0, 1e9),
    way=st.sampled_from(["wireguard", "ssh"]),
    reason=st.text(),
    to_ssh=st.integers(0),
    hold_s=st.floats(0, 600),
)


@given(st.dictionaries(st.text(), MEMORIES), st.none() | st.floats(0, 1e9))
def test_memory_is_read_as_it_was_written(links: dict[str, Memory], at_s: float | None) -> None:
    remembered = Remembered(links, at_s, at_s)
    assert fallback.read(fallback.written(remembered), 1e9) == remembered


@given(
    st.none()
    | st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(["version", "links", "paris", "way", "looked_at_s", "full_at_s"]),
            inner,
            max_size=5,
        ),
        max_leaves=10,
    ).map(json.dumps)
)
def test_any_memory_is_survived(text: str | None) -> None:
    fallback.read(text, 5)


def test_memory_of_another_boot_is_none() -> None:
    remembered = Remembered({"paris": Memory(to_ssh=1)}, looked_at_s=100)
    assert fallback.read(fallback.written(remembered), 99) == Remembered()
    assert fallback.read(fallback.written(remembered), 101) == remembered


# ---- looks of the timer -------------------------------------------------------------------------


def with_fallback(network: Network = EXAMPLE) -> Network:
    """The link of Oslo and Berlin has ssh behind it."""
    link = Link(("berlin", "oslo"), "wireguard", 1400, 25, 8, "ssh")
    return replace(network, links=(network.links[0], link, network.links[2]))


NETWORK = with_fallback()
OSLO = ip_network("192.168.30.0/24")
WG, SSH = "10.254.0.3@wg-acme", "10.254.0.3@tun8"
PARIS = "10.254.0.2@wg-acme"


def running(network: Network = NETWORK, name: str = "berlin") -> Simulated:
    machine = gateway()
    applied(machine, wants(network, name))
    handshakes(machine, age_s=5)
    device_says(machine, packets=0)
    return machine


def device_says(machine: Simulated, *, packets: int, carrier: int = 1) -> None:
    folder = "/sys/class/net/tun8"
    machine.files[f"{folder}/statistics/rx_packets"] = (f"{packets}\n", 0o444)
    machine.files[f"{folder}/carrier"] = (f"{carrier}\n", 0o444)


def looked(machine: Simulated, *answers: str, network: Network = NETWORK) -> Heard:
    """One run of the timer."""
    machine.answers = set(answers)
    machine.since_boot_s += LOOK_S
    wanted = wants(network)
    heard = watching.watch(machine, network, wanted)
    if heard.calls:
        assert apply(machine, wanted, endpoints_only=True, heard=heard).is_good
    watching.remember(machine, network, heard.remembered)
    return heard


def device(machine: Simulated) -> str:
    return min((x.metric, x.device) for x in machine.routes if x.subnet == OSLO)[1]


def test_routes_move_and_come_back() -> None:
    machine = running()
    looked(machine, WG, SSH)
    assert device(machine) == "wg-acme"
    heard = looked(machine, SSH)
    assert device(machine) == "tun8"
    assert heard.switches == (
        "oslo: routes move to ssh: no answer through WireGuard, and ssh answers",
    )
    wanted = wants(NETWORK)
    assert plan(wanted, look(machine, wanted)).steps == ()  # a whole plan leaves them there
    assert looked(machine, SSH).switches == ()
    heard = looked(machine, WG, SSH)
    assert device(machine) == "wg-acme"
    assert heard.switches == ("oslo: routes move to WireGuard: WireGuard answers again",)
    memory = watching.recall(machine, NETWORK).of("oslo")
    assert (memory.way, memory.to_ssh, memory.to_wireguard) == ("wireguard", 1, 1)
    moved = [words for words in machine.ran if words[:2] == ("ip", "route")]
    assert not any("del" in words for words in moved)


def test_what_comes_through_ssh_shows_that_it_is_alive() -> None:
    """The far end answers through WireGuard still, which is dead; but it asks through ssh."""
    machine = running()
    looked(machine, WG)
    assert looked(machine).switches == ()
    device_says(machine, packets=1)
    assert looked(machine).switches != ()
    assert device(machine) == "tun8"


@pytest.mark.parametrize("carrier", [0, 1])
def test_ssh_that_is_dead_is_no_way_out(carrier: int) -> None:
    machine = running()
    device_says(machine, packets=5, carrier=carrier)
    looked(machine, WG)
    machine.since_boot_s += watching.SPARE_ALIVE_S * carrier  # held, but nothing came since
    assert looked(machine).switches == ()
    assert device(machine) == "wg-acme"


def test_a_healthy_link_costs_one_call_of_wg_and_two_of_ip() -> None:
    machine = running()
    looked(machine, WG, SSH)
    machine.ran.clear()
    machine.asked.clear()
    heard = looked(machine, WG, SSH)
    assert not heard.calls
    assert [words[0] for words in machine.ran] == ["wg", "ip", "ip"]
    assert len(machine.asked) == 2
    machine.since_boot_s += watching.FULL_S
    assert looked(machine, WG, SSH).calls


def test_a_device_that_came_up_anew_gets_its_loose_filter() -> None:
    machine = running()
    key = "net/ipv4/conf/tun8/rp_filter"
    machine.settings[key] = "1"
    looked(machine, SSH)
    assert machine.settings[key] == "2"


def test_tunnels_of_ipv6_have_routes_for_pings() -> None:
    network = replace(NETWORK, tunnel=ip_network("fd00:9::/64"))
    for number, site in enumerate(network.sites, 1):
        network = changed(network, site.name, tunnel_address=ip_address(f"fd00:9::{number}"))
    machine = running(network)
    there = ip_network("fd00:9::3/128")
    assert LiveRoute(there, "wg-acme", ROUTE_PROTOCOL, PROBE_METRIC) in machine.routes
    assert LiveRoute(there, "tun8", ROUTE_PROTOCOL, PROBE_METRIC + 1) in machine.routes
    looked(machine, "fd00:9::3@tun8", network=network)
    assert device(machine) == "tun8"
    applied(machine, wants(replace(network, links=EXAMPLE.links)))
    assert device(machine) == "wg-acme"
    assert {x.device for x in machine.routes if x.subnet == there} == {"wg-acme"}


def test_routes_move_before_names_are_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where UDP is blocked, no name may resolve, and that takes all of its time."""
    network = changed(NETWORK, "oslo", endpoint=Endpoint("oslo.example.org", 51820))
    machine = gateway()
    machine.names["oslo.example.org"] = ("203.0.113.7",)
    applied(machine, wants(network))
    handshakes(machine, age_s=5)
    device_says(machine, packets=0)
    looked(machine, WG, SSH, network=network)
    seen: list[tuple[str, str]] = []

    def resolve_all(hosts: set[str], *, timeout_s: float = 1) -> dict[str, tuple[str, ...]]:
        assert timeout_s > 0
        seen.extend((host, device(machine)) for host in hosts)
        return dict.fromkeys(hosts, ())

    monkeypatch.setattr(machine, "resolve_all", resolve_all)
    monkeypatch.setattr(apply_command, "Machine", lambda: machine)
    machine.answers = {SSH}
    machine.since_boot_s += LOOK_S
    here = Gateway(network, network.site("berlin"), wants(network), HostFolder(tmp_path))
    status = apply_command._follow(here, Namespace(no_systemd=True))
    assert (status, seen) == (1, [("oslo.example.org", "tun8")])
    assert "oslo: routes move to ssh" in capsys.readouterr().err


# ---- endpoints that move ------------------------------------------------------------------------

HUB = changed(EXAMPLE, "oslo", endpoint=Endpoint("oslo.example.org", 51820))


def spoke() -> Simulated:
    machine = gateway()
    machine.names["oslo.example.org"] = ("203.0.113.7",)
    applied(machine, wants(HUB))
    handshakes(machine, age_s=5)
    return machine


def endpoint(machine: Simulated) -> str:
    key = HUB.site("oslo").public_key
    return str(next(p.endpoint for p in machine.tunnels["wg-acme"].peers if p.public_key == key))


def test_a_peer_that_answered_and_does_not_any_more_is_looked_for_at_once() -> None:
    machine = spoke()
    looked(machine, WG, network=HUB)
    machine.names["oslo.example.org"] = ("203.0.113.8",)
    looked(machine, WG, network=HUB)
    assert endpoint(machine) == "203.0.113.7:51820"
    heard = looked(machine, network=HUB)
    assert heard.silent == {"oslo"}
    assert endpoint(machine) == "203.0.113.8:51820"


def test_a_peer_that_never_answered_a_ping_is_judged_by_what_is_received() -> None:
    machine = spoke()
    machine.names["oslo.example.org"] = ("203.0.113.8",)

    def received(count: int) -> None:
        tunnel = machine.tunnels["wg-acme"]
        peers = tuple(replace(peer, received_bytes=count) for peer in tunnel.peers)
        machine.tunnels["wg-acme"] = replace(tunnel, peers=peers)

    for count in range(1, 5):
        received(count)
        looked(machine, network=HUB)
        assert endpoint(machine) == "203.0.113.7:51820"
    looked(machine, network=HUB)
    assert endpoint(machine) == "203.0.113.7:51820"  # 11 s: a keepalive may be on its way
    looked(machine, network=HUB)
    assert endpoint(machine) == "203.0.113.8:51820"


# ---- what is rendered ---------------------------------------------------------------------------


def texts(network: Network, name: str) -> dict[str, str]:
    files = render(network, network.site(name), Host())
    return {file.path.name: file.text for file in files}


def test_the_ssh_tunnel_is_kept_ready_and_gets_no_routes() -> None:
    found = texts(NETWORK, "berlin")
    assert "route" not in found["tun8.batch"]
    assert "address replace 10.254.0.1/32 dev tun8" in found["tun8.batch"]
    assert "192.168.30.0/24 dev %i" in found["wg-acme.conf"]
    assert 'iifname "tun8" ip saddr != ' in found["acme.nft"]
    link = NETWORK.link("berlin", "oslo")
    assert names.tun_unit(NETWORK, link) in units(NETWORK, NETWORK.site("berlin"))


def test_the_timer_is_quick_where_it_can_help() -> None:
    timer = names.endpoints_unit(EXAMPLE)
    assert "OnUnitInactiveSec=10\n" in texts(NETWORK, "berlin")[timer]
    assert "OnUnitInactiveSec=60\n" in texts(EXAMPLE, "berlin")[timer]
    assert "OnUnitInactiveSec=10\n" in texts(HUB, "berlin")[timer]
