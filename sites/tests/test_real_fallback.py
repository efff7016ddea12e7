"""What heals by itself: UDP that is blocked, addresses that change; and what is said meanwhile."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Pings, Site
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import (
    FILE,
    PORT,
    Shared,
    everywhere,
    must,
    parsed,
    reach_each_other,
    typed,
)
from sites.tests.testbed.units import Timer, Unit, render_units

pytestmark = pytest.mark.slow  # machines, daemons

HEAL_S = 30
RATE = 20
LINK = """
[[links]]
between = ["berlin", "paris"]
fallback = "ssh"
tunnel_number = 7
"""
RELAY = """
[[links]]
between = ["paris", "rome"]
via = "berlin"
"""
NO_UDP = """
add table bridge bed
add chain bridge bed between { type filter hook forward priority 0; }
add rule bridge bed between meta l4proto udp drop
"""
SMALL_PATH = """
add table bridge bed
add chain bridge bed between { type filter hook forward priority 0; }
add rule bridge bed between ip length > 1400 drop
"""
DOCKER = """
add table ip filter
add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }
add chain ip filter DOCKER-USER
add rule ip filter FORWARD counter jump DOCKER-USER
add rule ip filter FORWARD oifname "docker0" ct state related,established counter accept
add rule ip filter FORWARD iifname "docker0" oifname != "docker0" counter accept
"""
FIGURES = os.environ.get("CPYTHONPLUS_SITES_FIGURES")
"""A file to which each test adds what it measured."""


@pytest.fixture
def bed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path, getattr(request, "param", 2)) as made:
        yield made


three = pytest.mark.parametrize("bed", [3], indirect=True, ids=["three"])


def noted(what: str, heal_s: float, pings: Pings | None = None) -> None:
    """Keep a figure for the table."""
    lost = None if pings is None else len(pings.lost())
    if FIGURES:
        with Path(FIGURES).open("a") as file:
            line = {"what": what, "heal_s": round(heal_s, 1), "lost": lost, "per_second": RATE}
            file.write(json.dumps(line) + "\n")


def with_fallback(bed: Bed) -> Shared:
    """WireGuard in use, ssh ready behind it, and the timer running at both ends."""
    shared = Shared(bed.sites, after=LINK)
    for site in bed.sites:
        printed = must(site, "keygen", "--ssh").splitlines()
        values = dict(line.replace('"', "").split(" = ") for line in printed)
        shared.keys[site.name] = values["public_key"]
        host_key = site.gateway.read("/etc/ssh/ssh_host_ed25519_key.pub").strip()
        more = f'ssh_public_key = "{values["ssh_public_key"]}"\nssh_host_key = "{host_key}"\n'
        shared.more[site.name] = more
    berlin, paris = bed.sites
    shared.more[paris.name] += f'ssh_endpoint = "{paris.public}:22"\n'
    shared.apply()
    everywhere(bed.sites, render_units)
    paris.gateway.run("mkdir", "-p", "/run/sshd")
    paris.gateway.start("/usr/sbin/sshd", "-D", "-e")
    Unit(berlin.gateway, "cpythonplus-sites-acme-ssh@.service", "7").supervise()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    wait_until(lambda: answers(berlin, paris, "tun7"), "a ping through the ssh tunnel")
    return shared


PROBE = """
import sys
from ipaddress import ip_address
from cpythonplus_sites.probing import Probe, echo
(ping,) = echo([Probe(ip_address(sys.argv[1]), device=sys.argv[2])], count=1)
sys.exit(not ping.received)
"""


def answers(site: Site, far: Site, device: str) -> bool:
    """To a ping through this device; ping -I would not hear what comes back through another."""
    words = (sys.executable, "-c", PROBE, far.tunnel_address, device)
    return site.gateway.try_run(*words).returncode == 0


def devices(bed: Bed) -> list[str]:
    """Through which device each end sends to the other LAN."""
    found = []
    for one, other in (bed.sites, bed.sites[::-1]):
        (route,) = json.loads(one.gateway.run("ip", "-j", "route", "get", other.host_address))
        found.append(route["dev"])
    return found


def healed(pings: Pings, what: str) -> float:
    """Seconds until pings come back, from now on, where they have just been cut."""
    begin = time.monotonic()
    wait_until(lambda: len(pings.silent()) > 0, "the end of answers")
    silent = len(pings.answered())
    wait_until(lambda: len(pings.answered()) > silent + RATE, what, timeout=120)
    return time.monotonic() - begin


def test_ssh_takes_over_where_udp_is_blocked_and_gives_back(bed: Bed) -> None:
    with_fallback(bed)
    timers = [Timer(site.gateway, "cpythonplus-sites-acme-endpoints") for site in bed.sites]
    assert {timer.interval_s for timer in timers} == {10}
    berlin, paris = bed.sites
    for timer in timers:
        timer.start()
        timer.ran(1)
    assert devices(bed) == ["wg-acme", "wg-acme"]
    pings = berlin.ping(paris, per_second=RATE)
    pings.more(10)
    bed.internet.run("nft", "-f", "-", stdin=NO_UDP)
    took_s = healed(pings, "LAN to LAN over ssh")
    noted("UDP blocked: WireGuard to ssh", took_s, pings)
    assert devices(bed) == ["tun7", "tun7"]
    assert took_s <= HEAL_S
    for site in bed.sites:
        (far,) = parsed(site, "status")["sites"]
        assert (far["verdict"], far["way"], far["to_ssh"]) == ("good", "ssh", 1)
        assert "no answer through WireGuard" in far["note"]
    assert "ssh (fallback)" in must(berlin, "status")
    must(berlin, "plan", "--no-systemd")  # which does not want the routes back
    assert "routes move to ssh" in timers[0].text()
    lost = pings.lost()
    begin = time.monotonic()
    bed.internet.run("nft", "delete", "table", "bridge", "bed")
    wait_until(lambda: devices(bed) == ["wg-acme", "wg-acme"], "the return", timeout=120)
    took_s = time.monotonic() - begin
    pings.more(RATE)
    noted("UDP open again: ssh to WireGuard", took_s)
    noted("lost while it returned", took_s, pings)
    assert took_s <= HEAL_S
    assert pings.lost() == lost  # a route is replaced, there is no moment without one
    metrics = must(berlin, "status", "--format", "prometheus")
    assert 'switches_to_wireguard_total{network="acme",site="berlin",peer="paris"' in metrics
    assert "routes move to WireGuard: WireGuard answers again" in timers[0].text()


def test_one_direction_alone_moves(bed: Bed) -> None:
    """The end whose packets are lost sends them over ssh; the other one need not."""
    with_fallback(bed)
    berlin, _ = bed.sites
    rule = NO_UDP.replace("meta l4proto udp", f"ip saddr {berlin.public} meta l4proto udp")
    for site in bed.sites:
        must(site, "apply", "--endpoints-only")
    bed.internet.run("nft", "-f", "-", stdin=rule)
    must(berlin, "apply", "--endpoints-only")
    assert devices(bed)[0] == "tun7"
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN, out and back by different ways")


def test_a_spoke_behind_nat_follows_its_hub(bed: Bed) -> None:
    """Only the spoke can call; nothing tells it, but that nobody answers any more."""
    berlin, paris = bed.sites
    name = "hub.example"
    shared = Shared(bed.sites, endpoints={"berlin": None, "paris": f"{name}:{PORT}"})
    hosts = berlin.gateway.read("/etc/hosts")
    for site in bed.sites:
        site.gateway.write("/etc/hosts", f"{hosts}\n{paris.public} {name}\n")
    shared.apply()
    # As a router between them would have it: what was not asked for does not get in.
    berlin.gateway.run("nft", "-f", "-", stdin=BEHIND_NAT)
    render_units(berlin)
    timer = Timer(berlin.gateway, "cpythonplus-sites-acme-endpoints")
    assert timer.interval_s == 10
    timer.start()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    timer.ran(2)
    pings = berlin.ping(paris, per_second=RATE)
    pings.more(10)
    move(paris, "203.0.113.77")
    berlin.gateway.write("/etc/hosts", f"{hosts}\n203.0.113.77 {name}\n")
    took_s = healed(pings, "LAN to LAN at the hub's new address")
    noted("hub changes its address, spoke behind NAT", took_s, pings)
    assert took_s <= HEAL_S


def test_a_hub_follows_its_spoke(bed: Bed) -> None:
    berlin, paris = bed.sites
    name = "hub.example"
    shared = Shared(bed.sites, endpoints={"berlin": None, "paris": f"{name}:{PORT}"})
    hosts = berlin.gateway.read("/etc/hosts")
    for site in bed.sites:
        site.gateway.write("/etc/hosts", f"{hosts}\n{paris.public} {name}\n")
    shared.apply()
    render_units(berlin)
    timer = Timer(berlin.gateway, "cpythonplus-sites-acme-endpoints")
    timer.start()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    timer.ran(1)
    pings = paris.ping(berlin, per_second=RATE)  # traffic from the side that does not know
    pings.more(10)
    move(berlin, "203.0.113.78")
    took_s = healed(pings, "LAN to LAN at the spoke's new address")
    noted("spoke changes its address", took_s, pings)
    assert took_s <= HEAL_S


BEHIND_NAT = """
add table ip nat
add chain ip nat in { type filter hook input priority 0; }
add rule ip nat in iifname "wan0" ct state new drop
"""


def move(site: Site, address: str) -> None:
    """Another address at the provider."""
    run = site.gateway.run
    run("ip", "address", "del", f"{site.public}/24", "dev", "wan0")
    run("ip", "address", "add", f"{address}/24", "dev", "wan0")
    run("ip", "route", "replace", "default", "via", "203.0.113.1")


def test_status_says_within_seconds_that_nothing_arrives(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    (far,) = parsed(berlin, "status")["sites"]
    assert (far["verdict"], far["side"]) == ("good", "")
    bed.internet.run("nft", "-f", "-", stdin=NO_UDP)
    begin = time.monotonic()
    (far,) = parsed(berlin, "status", status=1)["sites"]
    took_s = time.monotonic() - begin
    noted("UDP blocked, said by status", took_s)
    assert far["handshake_age_s"] < 180
    assert (far["side"], "nothing is received" in far["cause"]) == ("between", True)
    assert paris.name in must(berlin, "status", status=1).splitlines()[-1]


def test_a_path_that_carries_less_is_said(bed: Bed) -> None:
    berlin, _ = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    bed.internet.run("nft", "-f", "-", stdin=SMALL_PATH)
    assert reach_each_other(bed.sites)  # small packets pass
    begin = time.monotonic()
    (far,) = parsed(berlin, "status", status=1)["sites"]
    noted("PMTU 1400, ICMP dropped, said by status", time.monotonic() - begin)
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
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
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
