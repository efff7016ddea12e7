"""Links are judged, and the likely cause is named."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import ip_interface, ip_network
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites import watching
from cpythonplus_sites.applying import apply
from cpythonplus_sites.commands.status import table
from cpythonplus_sites.fallback import Memory, Remembered
from cpythonplus_sites.health import Reach, examine, judge
from cpythonplus_sites.live import Device
from cpythonplus_sites.metrics import prometheus
from cpythonplus_sites.probing import Ping
from sites.tests.simulated import NOW_S, Simulated
from sites.tests.test_plan_and_apply import EXAMPLE, NEW_KEY, changed, wants

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network

pytestmark = pytest.mark.any_version

ALL, NONE = Ping(3, 3, 1.0), Ping(3, 0)


@pytest.mark.parametrize(
    ("age_s", "keepalive_s", "tunnel", "received", "verdict", "side", "words"),
    [
        (5, 25, ALL, True, "good", "", ""),
        (5, 25, NONE, True, "bad", "there", "routes, allowed IPs or a firewall"),
        (5, 25, NONE, False, "bad", "between", "nothing is received, though"),
        (5, 25, Ping(3, 0, error="No route to host"), False, "bad", "here", "(No route to host)"),
        (900, 25, NONE, False, "bad", "between", "clock went back"),
        (None, 25, NONE, False, "bad", "between", "there was never a handshake"),
        (None, 25, None, False, "bad", "between", "clock went back"),
        (180, 25, None, False, "good", "", ""),
        (181, 25, None, False, "bad", "between", "no recent handshake"),
        (181, 0, None, False, "unknown", "", "without traffic this is inconclusive"),
        (900, 0, ALL, False, "good", "", ""),
    ],
)
def test_verdicts(  # noqa: PLR0917
    age_s: float | None,
    keepalive_s: int,
    tunnel: Ping | None,
    received: bool,
    verdict: str,
    side: str,
    words: str,
) -> None:
    found = judge(age_s, keepalive_s, tunnel, received=received)
    assert (found.verdict, found.side) == (verdict, side)
    assert words in found.cause
    assert bool(found.cause) == (verdict != "good")


def berlin(*answers: str, network: Network = EXAMPLE) -> Simulated:
    machine = Simulated(
        settings={"net/ipv4/ip_forward": "1"},
        names={"vpn.example.org": ("198.51.100.7",)},
        answers=set(answers),
        devices={"eth1": Device("eth1", True, 1500, (ip_interface("192.168.10.1/24"),))},
    )
    assert apply(machine, wants(network)).is_good
    tunnel = machine.tunnels["wg-acme"]
    peers = tuple(replace(x, handshake_s=int(NOW_S) - 40) for x in tunnel.peers)
    machine.tunnels["wg-acme"] = replace(tunnel, peers=peers)
    return machine


def judged(machine: Simulated, network: Network = EXAMPLE, count: int = 3) -> dict[str, Reach]:
    found = examine(machine, network, wants(network), ping_count=count)
    return {reach.site: reach for reach in found}


PARIS = ("10.254.0.2", "192.168.20.1")


def test_each_link_is_judged() -> None:
    machine = berlin(*PARIS, "10.254.0.3")
    found = judged(machine)
    assert found["paris"].verdict == "good"
    assert found["paris"].handshake_age_s == 40
    assert found["oslo"].verdict == "bad"
    assert found["oslo"].lan == NONE
    assert {each.verdict for each in judged(machine, count=0).values()} == {"good"}


def test_it_asks_from_the_lan_and_with_packets_of_full_size() -> None:
    machine = berlin(*PARIS)
    judged(machine)
    asked = [each for each in machine.asked if str(each.address) == "192.168.20.1"]
    assert {str(each.source) for each in asked} == {"192.168.10.1"}
    assert [(each.size_bytes, each.whole) for each in asked] == [(84, False), (1400, True)]


def test_a_far_gateway_that_does_not_answer_the_lan() -> None:
    machine = berlin(*PARIS, "192.168.20.1!192.168.10.1")
    found = judged(machine)["paris"]
    assert (found.verdict, found.side) == ("bad", "there")
    assert "but not 192.168.10.1, its LAN address" in found.cause
    machine.answers -= {"192.168.20.1"}
    assert "far gateway's LAN address does not answer" in judged(machine)["paris"].cause


def test_a_way_that_carries_less_and_does_not_say_so() -> None:
    machine = berlin("10.254.0.2", "192.168.20.1<1345")
    found = judged(machine)["paris"]
    assert (found.verdict, found.side) == ("bad", "between")
    assert "packets of 1400 bytes are lost" in found.cause
    assert "(those of 1344 pass)" in found.cause
    assert "Set mtu = 1344" in found.cause


def test_what_nothing_would_refuse_is_told() -> None:
    machine = berlin(*PARIS)
    assert judged(machine)["paris"].note == ""
    machine.routes = [
        route
        for route in machine.routes
        if (str(route.subnet), route.kind) != ("192.168.20.0/24", "unreachable")
    ]
    found = judged(machine)
    assert (found["paris"].verdict, found["oslo"].note) == ("good", "")
    assert "what is for 192.168.20.0/24 would leave in clear text" in found["paris"].note


def test_an_own_lan_that_nothing_would_refuse_is_told() -> None:
    machine = berlin(*PARIS)
    own = ip_network("192.168.10.0/24")
    machine.routes = [route for route in machine.routes if route.subnet != own]
    notes = {reach.note for reach in judged(machine).values()}
    assert len(notes) == 1
    assert "what the others send to 192.168.10.0/24 would leave in clear text" in notes.pop()


def test_a_table_that_somebody_flushed_is_told() -> None:
    machine = berlin(*PARIS)
    machine.tables.clear()
    found = judged(machine)["paris"]
    assert found.verdict == "good"
    assert "inet cpythonplus_sites_acme is missing" in found.note


def test_what_the_timer_saw_counts_without_pings() -> None:
    machine = berlin()
    memory = Memory(received_bytes=5, received_at_s=900, answered_at_s=950)

    def remembered(looked_at_s: float) -> Reach:
        known = Remembered({"paris": memory}, looked_at_s=looked_at_s)
        watching.remember(machine, EXAMPLE, known)
        return judged(machine, count=0)["paris"]

    assert remembered(960).verdict == "good"
    machine.since_boot_s = 980
    found = remembered(975)
    assert (found.verdict, found.side) == ("bad", "between")
    assert "nothing is received for 25 s" in found.cause
    machine.since_boot_s = 2000  # too long ago
    assert remembered(975).verdict == "good"


def test_what_is_missing_is_named() -> None:
    machine = berlin()
    machine.devices["wg-acme"] = replace(machine.devices["wg-acme"], up=False)
    found = judged(machine)["paris"]
    assert "wg-acme is down" in found.cause
    assert found.side == "here"
    machine.tunnels["wg-acme"] = replace(machine.tunnels["wg-acme"], peers=())
    machine.devices["wg-acme"] = replace(machine.devices["wg-acme"], up=True)
    assert "not among the peers of wg-acme" in judged(machine)["paris"].cause
    del machine.tunnels["wg-acme"], machine.devices["wg-acme"]
    assert "wg-acme does not exist" in judged(machine)["paris"].cause


def test_a_change_of_keys_diverts_nothing() -> None:
    """The routes are where they were, and the younger session is on the other interface."""
    network = changed(EXAMPLE, "paris", next_public_key=NEW_KEY)
    machine = berlin(*PARIS, network=network)
    tunnel = machine.tunnels["wg-acme-n"]
    peers = tuple(replace(x, handshake_s=int(NOW_S) - 1) for x in tunnel.peers)
    machine.tunnels["wg-acme-n"] = replace(tunnel, peers=peers)
    assert judged(machine, network)["paris"].verdict == "good"


def test_behind_the_hub() -> None:
    links = tuple(link for link in EXAMPLE.links if "oslo" in link.ends and "berlin" in link.ends)
    paris = replace(EXAMPLE.links[0], ends=("oslo", "paris"), via="wireguard")
    network = replace(EXAMPLE, topology="hub", hub="oslo", links=(*links, paris))
    found = judged(berlin("10.254.0.3", "192.168.30.1", network=network), network)
    assert found["oslo"].verdict == "good"
    assert found["paris"].via == "via oslo"
    assert "oslo answers, but not what lies behind it" in found["paris"].cause
    found = judged(berlin(network=network), network)
    assert found["paris"].cause == found["oslo"].cause
    beyond = judged(berlin("10.254.0.3", *PARIS, network=network), network)
    assert (beyond["oslo"].verdict, beyond["paris"].verdict) == ("bad", "good")


def test_ssh() -> None:
    machine = berlin()
    machine.devices["eth1"] = Device("eth1", True, 1500, (ip_interface("192.168.30.1/24"),))
    wanted = wants(EXAMPLE, "oslo")
    assert apply(machine, wanted).failed is None
    device = machine.devices["tun7"]

    def cause() -> str:
        found = examine(machine, EXAMPLE, wanted)
        return next(each.cause for each in found if each.via == "ssh")

    assert "ssh holds tun7, but nothing comes back" in cause()
    machine.devices["tun7"] = replace(device, running=False)
    assert "no ssh process holds tun7" in cause()
    machine.devices["tun7"] = device
    machine.answers = set(PARIS)
    assert cause() == ""
    del machine.devices["tun7"]
    assert "tun7 does not exist" in cause()


# ---- what is shown ------------------------------------------------------------------------------

REACHES = (
    Reach(
        "paris", "wireguard", "good", "", 40.4, 2**20, 900, ALL, Ping(3, 2, 2.5), Ping(3, 2, 3.0)
    ),
    Reach("oslo", "wireguard", "bad", "no handshake", None, 0, 148, NONE, NONE, NONE, "between"),
    Reach("rome", "ssh", "unknown", "why"),
    Reach(
        "bonn",
        "wireguard",
        "good",
        large=Ping(3, 0, told=True),
        way="ssh",
        to_ssh=3,
        to_wireguard=2,
        note="over ssh for 12 s: why",
    ),
)


def test_table() -> None:
    head, *rows = table(REACHES[:3]).splitlines()
    assert head == (
        "site   via        handshake  ping    LAN ping         large  received  sent   state"
    )
    assert rows == [
        "paris  wireguard  40 s ago   1.0 ms  2.5 ms (2 of 3)  pass   1.0 MiB   900 B  good",
        "oslo   wireguard  never      none    none             lost   0 B       148 B  bad",
        "rome   ssh        -          -       -                -      -         -      unknown",
        "oslo (between): no handshake",
        "rome: why",
    ]
    _, row, note = table(REACHES[3:]).splitlines()
    assert row.split("  ")[:2] == ["bonn", "ssh (fallback)"]
    assert "smaller" in row
    assert note == "bonn: over ssh for 12 s: why"


def test_json() -> None:
    found = json.loads(json.dumps([reach.as_json() for reach in REACHES]))
    assert found[0]["lan"] == {
        "sent": 3,
        "received": 2,
        "time_ms": 2.5,
        "error": "",
        "told": False,
    }
    assert found[2]["tunnel"] is None
    assert found[1]["side"] == "between"


def test_prometheus_reads_it() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    name = 'a "b" \\ c\nd'
    families = list(parser.text_string_to_metric_families(prometheus(name, "berlin", REACHES)))
    samples = {
        (sample.name, sample.labels["peer"]): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["cpythonplus_sites_up", "paris"] == 1
    assert samples["cpythonplus_sites_up", "oslo"] == 0
    assert ("cpythonplus_sites_up", "rome") not in samples
    assert samples["cpythonplus_sites_fallback_active", "bonn"] == 1
    assert ("cpythonplus_sites_fallback_active", "paris") not in samples
    assert samples["cpythonplus_sites_switches_to_ssh_total", "bonn"] == 3
    assert samples["cpythonplus_sites_large_ping_loss_ratio", "oslo"] == 1
    assert ("cpythonplus_sites_large_ping_loss_ratio", "bonn") not in samples
    assert samples["cpythonplus_sites_received_bytes_total", "paris"] == 2**20
    assert samples["cpythonplus_sites_lan_ping_seconds", "paris"] == 0.0025
    assert samples["cpythonplus_sites_tunnel_ping_loss_ratio", "oslo"] == 1
    assert ("cpythonplus_sites_handshake_age_seconds", "oslo") not in samples
    assert all(family.documentation and family.type != "unknown" for family in families)
    labels = families[0].samples[0].labels
    assert (labels["network"], labels["site"], labels["via"]) == (name, "berlin", "wireguard")
