"""What heals by itself: UDP that is blocked, addresses that change; and what is said meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed
from sites.tests.testbed.by_ssh import with_fallback
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import (
    FILE,
    Shared,
    everywhere,
    must,
    parsed,
    reach_each_other,
    typed,
)
from sites.tests.testbed.situations import (
    NO_UDP,
    SMALL_PATH,
    Named,
    behind_nat,
    between,
    healed,
    linked,
    move,
    open_again,
    timers,
)

pytestmark = pytest.mark.slow  # machines, daemons

HEAL_S = 30
WIREGUARD = "wg-acme"
RELAY = """
[[links]]
between = ["paris", "rome"]
via = "berlin"
"""
DOCKER = """
add table ip filter
add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }
add chain ip filter DOCKER-USER
add rule ip filter FORWARD counter jump DOCKER-USER
add rule ip filter FORWARD oifname "docker0" ct state related,established counter accept
add rule ip filter FORWARD iifname "docker0" oifname != "docker0" counter accept
"""


@pytest.fixture
def bed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path, getattr(request, "param", 2)) as made:
        yield made


three = pytest.mark.parametrize("bed", [3], indirect=True, ids=["three"])


def devices(bed: Bed) -> list[str]:
    """Through which device each end sends to the other LAN."""
    found = []
    for one, other in (bed.sites, bed.sites[::-1]):
        (route,) = json.loads(one.gateway.run("ip", "-j", "route", "get", other.host_address))
        found.append(route["dev"])
    return found


def test_ssh_takes_over_where_udp_is_blocked_and_gives_back(bed: Bed) -> None:
    with_fallback(bed)
    berlin, paris = bed.sites
    running = timers(bed)
    assert {timer.interval_s for timer in running} == {10}
    assert devices(bed) == [WIREGUARD, WIREGUARD]
    pings = berlin.ping(paris)
    pings.more(10)
    between(bed, NO_UDP)
    assert healed(pings, "LAN to LAN over ssh") <= HEAL_S
    assert devices(bed) == ["tun7", "tun7"]
    for site in bed.sites:
        (far,) = parsed(site, "status")["sites"]
        assert (far["verdict"], far["way"], far["to_ssh"]) == ("good", "ssh", 1)
        assert "no answer through WireGuard" in far["note"]
    assert "ssh (fallback)" in must(berlin, "status")
    must(berlin, "plan", "--no-systemd")  # which does not want the routes back
    assert "routes move to ssh" in running[0].text()
    lost = pings.lost()
    open_again(bed)
    returned = [WIREGUARD, WIREGUARD]
    assert wait_until(lambda: devices(bed) == returned, "the return", timeout=120) <= HEAL_S
    pings.more(20)
    assert pings.lost() == lost  # a route is replaced, there is no moment without one
    metrics = must(berlin, "status", "--format", "prometheus")
    assert 'switches_to_wireguard_total{network="acme",site="berlin",peer="paris"' in metrics
    assert "routes move to WireGuard: WireGuard answers again" in running[0].text()


def test_one_direction_alone_moves(bed: Bed) -> None:
    """The end whose packets are lost sends them over ssh; the other one need not."""
    with_fallback(bed)
    berlin, _ = bed.sites
    for site in bed.sites:
        must(site, "apply", "--endpoints-only")
    between(bed, NO_UDP.replace("meta l4proto udp", f"ip saddr {berlin.public} meta l4proto udp"))
    must(berlin, "apply", "--endpoints-only")
    assert devices(bed)[0] == "tun7"
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN, out and back by different ways")


def test_a_spoke_behind_nat_follows_its_hub(bed: Bed) -> None:
    """Only the spoke can call; nothing tells it, but that nobody answers any more."""
    berlin, paris = bed.sites
    named = Named(bed)
    timer = named.apply()
    assert timer.interval_s == 10
    behind_nat(berlin)
    linked(bed)
    timer.ran(2)
    pings = berlin.ping(paris)
    pings.more(10)
    move(paris, "203.0.113.77")
    named.leads_to("203.0.113.77", at=berlin)
    assert healed(pings, "LAN to LAN at the hub's new address") <= HEAL_S


def test_a_hub_follows_its_spoke(bed: Bed) -> None:
    berlin, paris = bed.sites
    timer = Named(bed).apply()
    linked(bed)
    timer.ran(1)
    pings = paris.ping(berlin)  # traffic from the side that does not know
    pings.more(10)
    move(berlin, "203.0.113.78")
    assert healed(pings, "LAN to LAN at the spoke's new address") <= HEAL_S


def test_status_says_within_seconds_that_nothing_arrives(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    linked(bed)
    (far,) = parsed(berlin, "status")["sites"]
    assert (far["verdict"], far["side"]) == ("good", "")
    between(bed, NO_UDP)
    (far,) = parsed(berlin, "status", status=1)["sites"]
    assert far["handshake_age_s"] < 180
    assert (far["side"], "nothing is received" in far["cause"]) == ("between", True)
    assert paris.name in must(berlin, "status", status=1).splitlines()[-1]


def test_a_path_that_carries_less_is_said(bed: Bed) -> None:
    berlin, _ = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    linked(bed)
    between(bed, SMALL_PATH)
    assert reach_each_other(bed.sites)  # small packets pass
    (far,) = parsed(berlin, "status", status=1)["sites"]
    assert (far["verdict"], far["side"]) == ("bad", "between")
    assert "packets of 1420 bytes are lost" in far["cause"]
    assert "Set mtu = 1328" in far["cause"]  # 1400 less 60, filled up to a multiple of 16
    # As it says:
    shared.after = ""
    text = shared.text().replace("mtu = 1420", "mtu = 1328")
    for site in bed.sites:
        site.gateway.write(FILE, text)
    everywhere(bed.sites, lambda site: must(site, "apply", "--yes"))
    must(berlin, "status")


def test_a_firewall_of_this_gateway_is_named(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    linked(bed)
    berlin.gateway.run("nft", "-f", "-", stdin=DOCKER)
    assert not berlin.reaches(paris)
    (far,) = parsed(berlin, "status", status=1)["sites"]
    assert far["side"] == "here"
    assert "FORWARD" in far["cause"]
    done = typed(berlin, "apply", "--yes")
    assert (done.returncode, "FORWARD" in done.stdout) == (1, True)
    for one, other in (("lan0", "wg-acme"), ("wg-acme", "lan0")):
        rule = f"insert rule ip filter FORWARD iifname {one} oifname {other} accept"
        berlin.gateway.run("nft", rule)
    must(berlin, "status")
    berlin.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
    (far,) = parsed(berlin, "status", status=1)["sites"]
    assert "net.ipv4.ip_forward is 0" in far["cause"]
    berlin.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    berlin.gateway.run("ip", "rule", "add", "from", berlin.lan, "lookup", "77")
    berlin.gateway.run("ip", "route", "add", "default", "via", "203.0.113.1", "table", "77")
    (far,) = parsed(berlin, "status", status=1)["sites"]
    assert "leave through wan0, not wg-acme; ip rule has: " in far["cause"]


@three
def test_two_sites_that_only_a_third_one_links(bed: Bed) -> None:
    berlin, paris, rome = bed.sites
    shared = Shared(bed.sites, endpoints={"paris": None, "rome": None}, after=RELAY)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "every LAN from every LAN")
    hops = paris.host.run("ping", "-n", "-c1", "-W5", "-R", rome.host_address)
    assert berlin.tunnel_address in hops
    (far,) = (x for x in parsed(paris, "status")["sites"] if x["site"] == "rome")
    assert (far["verdict"], far["via"]) == ("good", "via berlin")
    assert len(paris.gateway.run("wg", "show", "all", "peers").splitlines()) == 1
