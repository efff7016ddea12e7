"""Without a tunnel nothing leaves in clear text: packets are counted where they would leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Site
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import FILE, Shared, must, typed
from sites.tests.testbed.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # machines, daemons

PREFIX = "fd00:{}:"
PINGS = 20
"""Sent by each host, of IPv4 and of IPv6, in each situation."""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path) as made:
        for site in made.sites:
            add_ipv6(site)
        yield made


def add_ipv6(site: Site) -> None:
    """A LAN of IPv6, and a default route to the internet that would take what is for the others."""
    lan = PREFIX.format(site.number)
    for machine, lines in (
        (
            site.gateway,
            [
                f"address add {lan}:1/64 dev lan0 nodad",
                f"address add 2001:db8::{site.number}/64 dev wan0 nodad",
                "route add default via 2001:db8::ff",
            ],
        ),
        (
            site.host,
            [f"address add {lan}:10/64 dev eth0 nodad", f"route add default via {lan}:1"],
        ),
    ):
        machine.run("ip", "-6", "-batch", "-", stdin="\n".join(lines))
    # The file of the bed has one LAN a site.
    site.lan = f'{site.lan}", "{lan}:/64'


def link(bed: Bed) -> None:
    internet = bed.internet
    internet.run("ip", "address", "replace", "2001:db8::ff/64", "dev", "public", "nodad")
    Shared(bed.sites).apply()
    one, other = bed.sites
    wait_until(lambda: one.reaches(other), "LAN to LAN")
    wait_until(lambda: pinged(one, PREFIX.format(other.number) + ":10", 1) == 1, "IPv6")


def pinged(site: Site, address: str, count: int = PINGS) -> int:
    """Send pings from the host of the LAN; how many came back."""
    argv = ("ping", "-nq", "-i", "0.02", "-W", "1", "-c", str(count), address)
    out = site.host.try_run(*argv).stdout
    return int(out.partition(" received")[0].rpartition(" ")[2])


def killed(site: Site) -> None:
    site.gateway.kill("wireguard-go")


def down(site: Site) -> None:
    site.gateway.run("wg-quick", "down", "wg-acme")


def deleted(site: Site) -> None:
    site.gateway.run("ip", "link", "delete", "dev", "wg-acme")


def unplugged(site: Site) -> None:
    """And the tunnel goes; then the cable is back, without it."""
    site.gateway.run("ip", "link", "set", "wan0", "down")
    killed(site)
    plugged(site)


def plugged(site: Site) -> None:
    site.gateway.run("ip", "link", "set", "wan0", "up")
    site.gateway.run("ip", "route", "replace", "default", "via", "203.0.113.1")
    site.gateway.run("ip", "address", "replace", f"2001:db8::{site.number}/64", "dev", "wan0")
    site.gateway.run("ip", "-6", "route", "replace", "default", "via", "2001:db8::ff")


def booted(site: Site) -> None:
    """The network is up, and the tunnel is not: what is there is what its unit sets."""
    site.gateway.run("ip", "link", "set", "wan0", "down")
    killed(site)
    for version in ("-4", "-6"):
        site.gateway.run("ip", version, "route", "flush", "type", "unreachable")
    unit = "cat /etc/cpythonplus/sites/*-unreachable.batch | ip -force -batch -"
    site.gateway.try_run("sh", "-c", unit)
    plugged(site)


@pytest.mark.parametrize("breaks", [killed, down, deleted, unplugged, booted])
def test_no_packet_leaves_in_clear_text(bed: Bed, breaks: Callable[[Site], None]) -> None:
    berlin, paris = bed.sites
    link(bed)
    pings = berlin.ping(paris, per_second=50)
    pings.more(10)
    tap = Tap(berlin.gateway, "wan0")
    breaks(berlin)
    targets = (paris.host_address, PREFIX.format(paris.number) + ":10", paris.tunnel_address)
    answered = [pinged(berlin, target) for target in targets]
    berlin.gateway.try_run("ping", "-nc3", "-i0.1", "-W1", paris.host_address)
    # What the tap has seen by now is all there was: this one it has to see.
    berlin.gateway.run("ping", "-nc1", "-W5", "203.0.113.1")
    wait_until(lambda: tap.count(target=("203.0.113.1",)) > 0, "the tap")
    leaked = tap.count(target=targets)
    assert leaked == 0
    assert answered == [0, 0, 0]
    assert len(pings.silent()) > PINGS
    must(berlin, "apply", "--yes")
    wait_until(lambda: berlin.reaches(paris), "LAN to LAN afterwards")


SECOND = "192.168.99.0/24"
"""A LAN behind another router."""

OFF, WITHOUT = "link set lan0 down", "address flush dev lan0"


@pytest.mark.parametrize("lines", [[OFF], [WITHOUT], [WITHOUT, OFF], [f"route del {SECOND}"]])
def test_no_packet_for_an_own_lan_that_is_off_leaves_in_clear_text(
    bed: Bed, lines: list[str]
) -> None:
    """Packets from the tunnel for which the gateway has no interface."""
    berlin, paris = bed.sites
    paris.gateway.run("ip", "route", "add", SECOND, "via", paris.host_address)
    paris.lan = f'{paris.lan}", "{SECOND}'
    link(bed)
    tap = Tap(paris.gateway, "wan0")
    for line in lines:
        paris.gateway.run("ip", *line.split())
    targets = [paris.host_address, PREFIX.format(paris.number) + ":10", "192.168.99.5"]
    gone = targets[2:] if SECOND in lines[0] else targets
    assert [pinged(berlin, target) for target in gone] == [0] * len(gone)
    paris.gateway.run("ping", "-nc1", "-W5", "203.0.113.1")
    wait_until(lambda: tap.count(target=("203.0.113.1",)) > 0, "the tap")
    assert tap.count(target=targets) == 0
    must(paris, "status", status=1)


def test_a_cable_that_is_pulled_under_traffic(bed: Bed) -> None:
    """The tunnel stays, and its packets have nowhere to go: not in clear text either."""
    berlin, paris = bed.sites
    link(bed)
    pings = berlin.ping(paris, per_second=50)
    pings.more(10)
    tap = Tap(bed.internet, f"to-{berlin.name}")
    bed.internet.run("ip", "link", "set", f"to-{paris.name}", "down")
    assert pinged(berlin, paris.host_address) == 0
    bed.internet.run("ip", "link", "set", f"to-{paris.name}", "up")
    pings.more(10)
    pings.stop()
    assert tap.count(target=(paris.public,)) > 0
    leaked = tap.count(target=(paris.host_address,))
    assert leaked == 0


def test_a_site_that_leaves_reaches_nobody_any_more(bed: Bed) -> None:
    berlin, paris = bed.sites
    link(bed)
    shared = Shared(bed.sites)
    for site in bed.sites:
        key = site.gateway.run("wg", "show", "wg-acme", "public-key")
        shared.keys[site.name] = key.strip()
    shared.sites.remove(paris)
    paris.host.start("ping", "-n", "-i", "0.02", berlin.host_address)
    tap = Tap(berlin.host, "eth0")
    wait_until(lambda: tap.count(source=(paris.host_address,)) > 10, "packets of paris")
    berlin.gateway.write(FILE, shared.text())
    must(berlin, "apply", "--yes")
    tap = Tap(berlin.host, "eth0")
    assert pinged(paris, berlin.host_address) == 0
    berlin.host.run("ping", "-nc1", "-W5", berlin.gateway_address)
    wait_until(lambda: tap.count(target=(berlin.gateway_address,)) > 0, "the tap")
    delivered = tap.count(source=(paris.host_address,))
    assert delivered == 0
    must(berlin, "plan")
    assert "unreachable 192.168.20.0/24" not in berlin.gateway.run("ip", "route")


def test_what_cannot_be_set_is_told_and_the_rest_is_done(bed: Bed) -> None:
    """As in a container whose /proc/sys cannot be written."""
    berlin, paris = bed.sites
    shared = Shared(bed.sites)
    shared.make_keys()
    shared.carry()
    must(paris, "apply", "--yes")
    berlin.gateway.run("mount", "--bind", "-o", "ro", "/proc/sys", "/proc/sys")
    done = typed(berlin, "apply", "--yes")
    assert done.returncode == 1
    assert "! set net/ipv4/ip_forward to 1 (it is 0): sysctl:" in done.stdout
    assert "stopped" not in done.stdout
    ping = ("ping", "-nc1", "-W5", "-I", berlin.gateway_address, paris.gateway_address)
    wait_until(lambda: berlin.gateway.try_run(*ping).returncode == 0, "a ping of the gateway")
