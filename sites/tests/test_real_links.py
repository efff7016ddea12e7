"""Sites linked as their users do it: real daemons and kernels, LAN to LAN, and what goes wrong."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import (
    FILE,
    PORT,
    Shared,
    everywhere,
    live_state,
    must,
    parsed,
    reach_each_other,
    typed,
)
from sites.tests.testbed.situations import move

pytestmark = pytest.mark.slow  # machines, daemons

NAME = "gateway.paris.example"
# Drops what tells a sender that its packets are too large, as many firewalls do.
NO_ICMP = """
add table ip bed
add chain ip bed sent { type filter hook output priority 0; }
add rule ip bed sent icmp type destination-unreachable drop
"""


@pytest.fixture
def bed(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path, getattr(request, "param", 2)) as made:
        yield made


three = pytest.mark.parametrize("bed", [3], indirect=True, ids=["three"])


def test_two_sites_are_linked_and_applying_again_changes_nothing(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites, preshared=True)
    for site in bed.sites:  # as the tutorial does it
        shared.keys[site.name] = must(site, "keygen").split('"')[1]
    must(berlin, "keygen", "--secret")
    secret = berlin.gateway.run("cat", "/etc/cpythonplus/sites/preshared.secret")
    paris.gateway.write("/root/carried", secret, mode=0o600)
    must(paris, "keygen", "--secret-from", "/root/carried")
    shared.carry()
    must(berlin, "check")
    must(berlin, "plan", status=1)
    must(berlin, "apply", "--yes")
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    before = live_state(berlin)
    must(berlin, "plan")
    must(berlin, "apply", "--yes")
    assert live_state(berlin) == before
    must(berlin, "status")


def test_a_network_is_renamed(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    text = shared.text().replace('"acme"', '"corp"').replace("10.254.0.", "10.77.0.")
    for site in bed.sites:
        site.gateway.write(FILE, text)
        must(site, "apply", "--yes")
        must(site, "plan")
        state = live_state(site) + site.gateway.run("ip", "route")
        assert not any(old in state for old in ("acme", "10.254."))
    wait_until(
        lambda: berlin.reaches(paris) and paris.reaches(berlin), "LAN to LAN by the new name"
    )


@three
def test_a_third_site_is_added_without_a_lost_ping(bed: Bed) -> None:
    berlin, paris, rome = bed.sites
    shared = Shared([berlin, paris])
    shared.apply()
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    pings = berlin.ping(paris)
    pings.more(10)
    shared.sites.append(rome)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "the third LAN from and to both")
    pings.more(10)
    assert pings.lost() == []
    shared.sites.remove(rome)
    everywhere([berlin, paris], lambda site: site.gateway.write(FILE, shared.text()))
    everywhere([berlin, paris], lambda site: must(site, "apply", "--yes"))
    assert not berlin.reaches(rome)
    pings.more(10)
    assert pings.lost() == []


def test_a_daemon_that_was_killed_is_replaced(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    paris.gateway.kill("wireguard-go")
    assert not berlin.reaches(paris)
    must(paris, "plan", status=1)
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN after the daemon's end")


def test_a_gateway_that_was_taken_down_stays_so_until_it_is_applied(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    done = typed(paris, "down")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "remove wg-acme (interrupts traffic)" in done.stdout
    assert berlin.reaches(paris)
    must(paris, "down", "--yes")
    assert "wg-acme" not in paris.gateway.run("ip", "-br", "link")
    assert "cpythonplus" not in paris.gateway.run("nft", "list", "tables")
    assert not berlin.reaches(paris)
    must(paris, "apply", "--yes", "--endpoints-only")  # as a timer that was late
    assert "wg-acme" not in paris.gateway.run("ip", "-br", "link")
    assert must(paris, "down", "--yes").startswith("paris: nothing to do\n")
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN after down and apply")


def test_two_that_apply_at_once_are_both_done(bed: Bed) -> None:
    """The timer and a person, with names that no resolver answers for."""
    berlin, paris = bed.sites
    silent = f"gateway.silent.example:{PORT}"
    shared = Shared(bed.sites, endpoints={"berlin": None, "paris": silent})
    shared.make_keys()
    shared.carry()
    berlin.gateway.write("/etc/resolv.conf", f"nameserver {paris.public}\n")
    drop = "add table ip t; add chain ip t c { type filter hook input priority 0; policy drop; }"
    paris.gateway.run("nft", drop)  # not even an ICMP error comes back
    words = [("apply", "--yes"), ("apply", "--yes"), ("apply", "--yes", "--endpoints-only")]
    with ThreadPoolExecutor(len(words)) as pool:
        done = list(pool.map(lambda each: typed(berlin, *each), words))
    assert "wg-acme" in berlin.gateway.run("ip", "-br", "link")
    for each in done:
        assert "Traceback" not in each.stderr
        assert "has been changing" not in each.stderr
    for each in done[:2]:
        # That the name does not resolve is said, and is all.
        assert "gateway.silent.example does not resolve" in each.stdout
        assert each.returncode == 1
        assert "then stopped" not in each.stdout


def test_a_gateway_that_starts_again_is_linked_again(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    # What is left of a gateway after a start is its files.
    paris.gateway.kill("wireguard-go")
    paris.gateway.run("nft", "flush", "ruleset")
    paris.gateway.run("sysctl", "-qw", "net.ipv4.ip_forward=0")
    paris.gateway.run("ip", "address", "flush", "dev", "wan0")
    paris.gateway.run("ip", "address", "add", f"{paris.public}/24", "dev", "wan0")
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN after the start")


def test_an_endpoint_is_found_where_its_name_leads_now(bed: Bed) -> None:
    berlin, paris = bed.sites
    # Only berlin can begin: it has to find out by itself.
    shared = Shared(bed.sites, endpoints={"berlin": None, "paris": f"{NAME}:{PORT}"})
    hosts = berlin.gateway.read("/etc/hosts")
    berlin.gateway.write("/etc/hosts", f"{hosts}\n203.0.113.99 {NAME}\n")
    paris.gateway.write("/etc/hosts", f"{hosts}\n{paris.public} {NAME}\n")
    shared.apply()
    assert not berlin.reaches(paris)
    must(berlin, "apply", "--yes", "--endpoints-only")
    assert not berlin.reaches(paris)
    berlin.gateway.write("/etc/hosts", f"{hosts}\n{paris.public} {NAME}\n")
    must(berlin, "apply", "--yes", "--endpoints-only")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN at the name's new address")


def test_a_gateway_moves_while_packets_flow(bed: Bed) -> None:
    _, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    move(paris, "203.0.113.77")
    shared.endpoints["paris"] = f"203.0.113.77:{PORT}"
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN at the new address")


def test_an_overlapping_file_is_refused_and_nothing_is_touched(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    paris.lan = "192.168.10.128/25"
    berlin.gateway.write(FILE, shared.text())
    before = live_state(berlin)
    done = typed(berlin, "apply", "--yes")
    assert done.returncode == 2
    assert "192.168.10.128/25" in done.stderr
    assert "Traceback" not in done.stderr
    assert live_state(berlin) == before
    assert berlin.reaches(paris)


@three
def test_spokes_reach_each_other_through_the_hub(bed: Bed) -> None:
    berlin, paris, rome = bed.sites
    shared = Shared(bed.sites, hub=berlin, endpoints={"paris": None, "rome": None})
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "every LAN from every LAN")
    (peer,) = paris.gateway.run("wg", "show", "all", "peers").splitlines()
    assert shared.keys["berlin"] in peer
    hops = paris.host.run("ping", "-n", "-c1", "-W5", "-R", rome.host_address)
    assert berlin.tunnel_address in hops


def test_a_large_transfer_passes_where_icmp_is_dropped(bed: Bed) -> None:
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")
    for site in bed.sites:
        site.gateway.run("nft", "-f", "-", stdin=NO_ICMP)
    # A packet of the LAN's size vanishes, and nobody tells.
    large = berlin.host.try_run("ping", "-nc1", "-W1", "-Mdo", "-s1472", paris.host_address)
    assert "0 received" in large.stdout
    assert "mtu" not in large.stdout
    paris.host.start("iperf3", "-s", "-1", "--forceflush")
    wait_until(lambda: bool(paris.host.run("ss", "-ltnH", "sport = 5201")), "the server")
    berlin.host.run("iperf3", "-c", paris.host_address, "-n", "4M", timeout=60)


@three
def test_status_names_the_link_that_is_down(bed: Bed) -> None:
    berlin, paris, rome = bed.sites
    shared = Shared(bed.sites)
    shared.apply()
    wait_until(lambda: reach_each_other(bed.sites), "every LAN from every LAN")
    wait_until(lambda: typed(berlin, "status").returncode == 0, "a good status")
    bed.internet.run("ip", "link", "set", f"to-{rome.name}", "down")
    sites = parsed(berlin, "status", status=1)["sites"]
    verdicts = {site["site"]: site["verdict"] for site in sites}
    assert verdicts == {paris.name: "good", rome.name: "bad"}
    assert rome.name in must(berlin, "status", status=1).splitlines()[-1]
