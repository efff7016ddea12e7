"""Links are judged, and the likely cause is named."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpythonplus_sites.applying import apply
from cpythonplus_sites.commands.status import table
from cpythonplus_sites.health import Ping, Reach, examine, judge, parse_ping
from cpythonplus_sites.machine import Output
from cpythonplus_sites.metrics import prometheus
from sites.tests.simulated import NOW_S, Simulated
from sites.tests.test_plan_and_apply import EXAMPLE, wants

if TYPE_CHECKING:
    from cpythonplus_sites.model import Network

pytestmark = pytest.mark.any_version

IPUTILS = """\
PING 10.9.0.1 (10.9.0.1) 56(84) bytes of data.

--- 10.9.0.1 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 402ms
rtt min/avg/max/mdev = 0.049/0.186/0.323/0.137 ms
"""
BUSYBOX = """\
3 packets transmitted, 3 packets received, 0% packet loss
round-trip min/avg/max = 0.045/0.060/0.077 ms
"""
ALL, NONE = Ping(3, 3, 1.0), Ping(3, 0)


def test_pings_are_read() -> None:
    assert parse_ping(IPUTILS, 3) == Ping(3, 2, 0.186)
    assert parse_ping(BUSYBOX, 3) == Ping(3, 3, 0.060)
    assert parse_ping("3 packets transmitted, 0 received, 100% packet loss", 3) == NONE


@given(st.text() | st.from_regex(r"\d+ received\n.*= [\d.]+/[\d.]+/[\d.]+"))
def test_any_ping_is_survived(text: str) -> None:
    assert 0 <= parse_ping(text, 3).received <= 3


@pytest.mark.parametrize(
    ("age_s", "keepalive_s", "tunnel", "lan", "verdict", "words"),
    [
        (5, 25, ALL, ALL, "good", ""),
        (5, 25, ALL, NONE, "bad", "LAN address does not answer"),
        (5, 25, NONE, NONE, "bad", "routes, allowed IPs or a firewall"),
        (900, 25, NONE, NONE, "bad", "clock went back"),
        (None, 25, NONE, NONE, "bad", "there was never a handshake"),
        (None, 25, None, None, "bad", "clock went back"),
        (180, 25, None, None, "good", ""),
        (181, 25, None, None, "bad", "no recent handshake"),
        (181, 0, None, None, "unknown", "without traffic this is inconclusive"),
        (900, 0, ALL, ALL, "good", ""),
    ],
)
def test_verdicts(  # noqa: PLR0917
    age_s: float | None,
    keepalive_s: int,
    tunnel: Ping | None,
    lan: Ping | None,
    verdict: str,
    words: str,
) -> None:
    found, cause = judge(age_s, keepalive_s, tunnel, lan)
    assert found == verdict
    assert words in cause
    assert bool(cause) == (verdict != "good")


@dataclass
class Pinged(Simulated):
    """answers: what a ping gets an answer from."""

    answers: set[str] = field(default_factory=set)

    def _ping(self, words: tuple[str, ...], stdin: str) -> Output:
        assert not stdin
        answered = words[-1] in self.answers
        return Output(0, IPUTILS) if answered else Output(1, "3 packets transmitted, 0 received")


def berlin(*answers: str, network: Network = EXAMPLE) -> Pinged:
    machine = Pinged(
        settings={"net/ipv4/ip_forward": "1"},
        names={"vpn.example.org": ("198.51.100.7",)},
        answers=set(answers),
    )
    assert apply(machine, wants(network)).is_good
    tunnel = machine.tunnels["wg-acme"]
    peers = tuple(replace(x, handshake_s=int(NOW_S) - 40) for x in tunnel.peers)
    machine.tunnels["wg-acme"] = replace(tunnel, peers=peers)
    return machine


def judged(machine: Pinged, network: Network = EXAMPLE, count: int = 3) -> dict[str, Reach]:
    found = examine(machine, network, wants(network), ping_count=count)
    return {reach.site: reach for reach in found}


def test_each_link_is_judged() -> None:
    machine = berlin("10.254.0.2", "192.168.20.1", "10.254.0.3")
    found = judged(machine)
    assert found["paris"].verdict == "good"
    assert found["paris"].handshake_age_s == 40
    assert found["oslo"].verdict == "bad"
    assert found["oslo"].lan == NONE
    assert {each.verdict for each in judged(machine, count=0).values()} == {"good"}


def test_what_is_missing_is_named() -> None:
    machine = berlin()
    machine.devices["wg-acme"] = replace(machine.devices["wg-acme"], up=False)
    assert "wg-acme is down" in judged(machine)["paris"].cause
    machine.tunnels["wg-acme"] = replace(machine.tunnels["wg-acme"], peers=())
    machine.devices["wg-acme"] = replace(machine.devices["wg-acme"], up=True)
    assert "not among the peers of wg-acme" in judged(machine)["paris"].cause
    del machine.tunnels["wg-acme"], machine.devices["wg-acme"]
    assert "wg-acme does not exist" in judged(machine)["paris"].cause


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


def test_ssh() -> None:
    machine = berlin()
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
    machine.answers = {"10.254.0.2", "192.168.20.1"}
    assert cause() == ""
    del machine.devices["tun7"]
    assert "tun7 does not exist" in cause()


# ---- what is shown ------------------------------------------------------------------------------

REACHES = (
    Reach("paris", "wireguard", "good", "", 40.4, 2**20, 900, ALL, Ping(3, 2, 2.5)),
    Reach("oslo", "wireguard", "bad", "there was never a handshake", None, 0, 148, NONE, NONE),
    Reach("rome", "ssh", "unknown", "why"),
)


def test_table() -> None:
    assert table(REACHES) == (
        "site   via        handshake  ping    LAN ping         received  sent   state\n"
        "paris  wireguard  40 s ago   1.0 ms  2.5 ms (2 of 3)  1.0 MiB   900 B  good\n"
        "oslo   wireguard  never      none    none             0 B       148 B  bad\n"
        "rome   ssh        -          -       -                -         -      unknown\n"
        "oslo: there was never a handshake\n"
        "rome: why\n"
    )


def test_json() -> None:
    found = json.loads(json.dumps([reach.as_json() for reach in REACHES]))
    assert found[0]["lan"] == {"sent": 3, "received": 2, "time_ms": 2.5}
    assert found[2]["tunnel"] is None


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
    assert samples["cpythonplus_sites_received_bytes_total", "paris"] == 2**20
    assert samples["cpythonplus_sites_lan_ping_seconds", "paris"] == 0.0025
    assert samples["cpythonplus_sites_tunnel_ping_loss_ratio", "oslo"] == 1
    assert ("cpythonplus_sites_handshake_age_seconds", "oslo") not in samples
    assert all(family.documentation and family.type != "unknown" for family in families)
    labels = families[0].samples[0].labels
    assert (labels["network"], labels["site"], labels["via"]) == (name, "berlin", "wireguard")
