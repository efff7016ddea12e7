"""A gateway whose IPv6 default route comes from router advertisements keeps it when it forwards."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Site
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import Shared, must, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # machines, daemons

# Type 134, lifetime 1800 s, no options (RFC 4861, section 4.2); the kernel adds the checksum.
ROUTER = """\
import socket, struct, sys, time
out = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
to = ("ff02::1", 0, 0, socket.if_nametoindex(sys.argv[1]))
while True:
    try:
        out.sendto(struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0), to)
    except OSError:  # until its address is known to be nobody else's
        pass
    time.sleep(0.2)
"""
SYSCTL = "/etc/sysctl.d/60-cpythonplus-sites-acme.conf"


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path) as made:
        yield made


def default_routes(site: Site) -> str:
    return site.gateway.run("ip", "-6", "route", "show", "default")


def test_the_default_route_is_kept(bed: Bed) -> None:
    berlin, paris = bed.sites
    for setting in ("wan0.accept_ra=1", "wan0.accept_ra_defrtr=1", "all.forwarding=0"):
        berlin.gateway.run("sysctl", "-qw", f"net.ipv6.conf.{setting}")
    bed.internet.start(sys.executable, "-ISc", ROUTER, "public")
    wait_until(lambda: "proto ra" in default_routes(berlin), "a default route by advertisement")
    shared = Shared(bed.sites)
    paris.lan = f'{paris.lan}", "fd00:2::/64'
    shared.make_keys()
    shared.carry()
    steps = parsed(berlin, "plan", status=1)["steps"]
    (step,) = [step for step in steps if "forwarding" in step["description"]]
    assert step["interrupts"]
    must(berlin, "apply", "--yes")
    assert "proto ra" in default_routes(berlin)
    assert berlin.gateway.run("sysctl", "-n", "net.ipv6.conf.all.forwarding") == "1\n"
    assert "net/ipv6/conf/wan0/accept_ra = 2" in berlin.gateway.read(SYSCTL)
    must(berlin, "plan")
    # While the line is down there is no such route, and the file stays as it is.
    berlin.gateway.run("ip", "link", "set", "wan0", "down")
    must(berlin, "plan")
    # As at a boot, where systemd-sysctl reads the file.
    for setting in ("all.forwarding=0", "wan0.accept_ra=1"):
        berlin.gateway.run("sysctl", "-qw", f"net.ipv6.conf.{setting}")
    berlin.gateway.run("sysctl", "-qp", SYSCTL)
    berlin.gateway.run("ip", "link", "set", "wan0", "up")
    wait_until(lambda: "proto ra" in default_routes(berlin), "a default route after a boot")
