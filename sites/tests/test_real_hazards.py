"""Hazards for administrators: programs that flush, full disks, kills, other interfaces."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Site
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import FILE, PORT, Shared, everywhere, must, parsed, typed
from sites.tests.testbed.situations import linked

pytestmark = pytest.mark.slow  # machines, daemons


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path) as made:
        yield made


@pytest.fixture
def shared(bed: Bed) -> Shared:
    """The file of two sites that are linked."""
    found = Shared(bed.sites)
    found.apply()
    linked(bed)
    return found


def with_keepalive(site: Site, shared: Shared, seconds: int) -> None:
    site.gateway.write(FILE, shared.text().replace("keepalive = 25", f"keepalive = {seconds}"))


def verdicts(site: Site, status: int = 0) -> list[str]:
    return [each["verdict"] for each in parsed(site, "status", status=status)["sites"]]


@pytest.mark.usefixtures("shared")
def test_a_flushed_ruleset_is_told_and_comes_back(bed: Bed) -> None:
    berlin, _ = bed.sites
    berlin.gateway.run("nft", "flush", "ruleset")
    assert "the nftables table inet cpythonplus_sites_acme is missing" in must(berlin, "status")
    must(berlin, "apply", "--yes", "--endpoints-only")  # as the timer does it
    assert "cpythonplus_sites_acme" in berlin.gateway.run("nft", "list", "tables")
    must(berlin, "plan")


def test_a_full_disk_leaves_all_as_it_was(bed: Bed, shared: Shared) -> None:
    berlin, paris = bed.sites
    run = berlin.gateway.run
    with_keepalive(berlin, shared, 7)
    run("mount", "-o", "remount,size=16m", "/run")  # /etc is in it
    berlin.gateway.try_run("dd", "if=/dev/zero", "of=/run/full", "bs=4096")
    done = typed(berlin, "apply", "--yes")
    assert done.returncode == 1
    assert "No space left on device" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert berlin.reaches(paris)
    for words in (("status",), ("plan",), ("apply", "--yes", "--endpoints-only")):
        assert "Traceback" not in typed(berlin, *words).stderr
    run("rm", "/run/full")
    must(berlin, "apply", "--yes")
    must(berlin, "plan")
    assert berlin.reaches(paris)
    assert "\t7" in run("wg", "show", "wg-acme", "persistent-keepalive")


def test_a_command_that_was_killed_is_finished_by_the_next(bed: Bed, shared: Shared) -> None:
    berlin, paris = bed.sites
    text = shared.text().replace('"acme"', '"corp"')
    for tenths in range(2, 16, 2):
        berlin.gateway.write(FILE, text if tenths % 4 else shared.text())
        words = ("timeout", "-s", "KILL", f"{tenths / 10}")
        command = (sys.executable, "-m", "cpythonplus_sites", "apply", "--yes")
        berlin.gateway.try_run(*words, *command)
    berlin.gateway.write(FILE, shared.text())
    must(berlin, "apply", "--yes")
    must(berlin, "plan")
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    assert "corp" not in berlin.gateway.run("sh", "-c", "ip link; nft list tables; ls -R /etc")


def test_interfaces_are_renamed(bed: Bed, shared: Shared) -> None:
    """The LAN's is found by its address, and ours by its key."""
    berlin, paris = bed.sites
    run = berlin.gateway.run
    for line in ("lan0 down", "lan0 name lan9", "lan9 up"):
        run("ip", "link", "set", *line.split())
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
    must(berlin, "plan")
    assert verdicts(berlin) == ["good"]
    for line in ("wg-acme down", "wg-acme name wg-other"):
        run("ip", "link", "set", *line.split())
    assert not berlin.reaches(paris)
    must(berlin, "apply", "--yes")
    assert run("wg", "show", "interfaces").split() == ["wg-acme"]
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN after apply")
    must(berlin, "plan")
    assert shared.keys["berlin"] == run("wg", "show", "wg-acme", "public-key").strip()


@pytest.mark.usefixtures("shared")
def test_the_lan_is_moved_to_a_bridge(bed: Bed) -> None:
    berlin, paris = bed.sites
    run = berlin.gateway.run
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "link", "set", "lan0", "master", "br0")
    run("ip", "address", "flush", "dev", "lan0")
    run("ip", "address", "add", f"{berlin.gateway_address}/24", "dev", "br0")
    run("ip", "link", "set", "br0", "up")
    wait_until(lambda: berlin.reaches(paris) and paris.reaches(berlin), "LAN to LAN")
    must(berlin, "plan")
    assert verdicts(berlin) == ["good"]
    run("ip", "link", "set", "lan0", "down")
    wait_until(
        lambda: "NO-CARRIER" in run("ip", "link", "show", "br0"), "the bridge without a port"
    )
    assert verdicts(berlin, status=1) == ["bad"]


def only_ipv6(bed: Bed) -> None:
    """Not an address of IPv4 is left."""
    for site in bed.sites:
        number = site.number
        site.public, site.lan = f"[2001:db8::{number}]", f"fd00:{number}::/64"
        site.gateway_address, site.host_address = f"fd00:{number}::1", f"fd00:{number}::10"
        site.tunnel_address = f"fd00:99::{number}"
        wan = f"2001:db8::{number}"
        for machine, address, device in (
            (site.gateway, wan, "wan0"),
            (site.gateway, site.gateway_address, "lan0"),
            (site.host, site.host_address, "eth0"),
        ):
            machine.run("ip", "-4", "address", "flush", "dev", device)
            machine.run("sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=0")
            machine.run("ip", "address", "add", f"{address}/64", "dev", device, "nodad")
        site.host.run("ip", "route", "add", "default", "via", site.gateway_address)


def test_sites_that_have_ipv6_alone(bed: Bed) -> None:
    berlin, paris = bed.sites
    only_ipv6(bed)
    shared = Shared(bed.sites)
    shared.make_keys()
    text = shared.text().replace("10.254.0.0/24", "fd00:99::/64")
    assert f"[2001:db8::2]:{PORT}" in text
    for site in bed.sites:
        site.gateway.write(FILE, text)
    everywhere(bed.sites, lambda site: must(site, "apply", "--yes"))
    wait_until(lambda: berlin.reaches(paris) and paris.reaches(berlin), "LAN to LAN")
    # On a busy machine the other site's answer may come too late for one status.
    wait_until(
        lambda: all(parsed(site, "status")["sites"][0]["same_file"] for site in bed.sites),
        "the same file at both",
    )
    for site in bed.sites:
        must(site, "plan")
        (found,) = parsed(site, "status")["sites"]
        assert (found["verdict"], found["note"]) == ("good", "")
    berlin.gateway.kill("wireguard-go")
    refused = berlin.host.try_run("ping", "-n", "-c1", "-W1", paris.host_address)
    assert "Destination unreachable" in refused.stdout
