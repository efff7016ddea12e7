"""Links over ssh: alone, and ready behind WireGuard."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import Shared, everywhere, must
from sites.tests.testbed.situations import linked
from sites.tests.testbed.units import Unit, render_units

if TYPE_CHECKING:
    from sites.tests.testbed.bed import Bed, Site
    from sites.tests.testbed.namespaces import Process

LINK = """
[[links]]
between = ["berlin", "paris"]
{}
tunnel_number = 7
"""
# As the rendered files say it, and as it is here, so that a test takes seconds.
PATIENCE = ("AliveInterval 5", "AliveInterval 1")
PROBE = """
import sys
from ipaddress import ip_address
from cpythonplus_sites.probing import Probe, echo
(ping,) = echo([Probe(ip_address(sys.argv[1]), device=sys.argv[2])], count=1)
sys.exit(not ping.received)
"""


def link_by_ssh(bed: Bed) -> tuple[Shared, Process]:
    """Keys, files and units on both gateways; berlin is the client, for paris has the endpoint.

    Returns the file, and what calls ssh there, with what it prints.
    """
    berlin, paris = bed.sites
    shared = Shared(bed.sites, after=LINK.format('via = "ssh"'))
    shared.make_ssh_keys(server=paris)
    shared.carry()
    everywhere(bed.sites, _put_files)
    _start_server(paris)
    client = Unit(berlin.gateway, _template(berlin, "-ssh@"), "7").supervise()
    linked(bed)
    return shared, client


def with_fallback(bed: Bed) -> Shared:
    """WireGuard in use, and ssh ready behind it."""
    berlin, paris = bed.sites
    shared = Shared(bed.sites, after=LINK.format('fallback = "ssh"'))
    shared.make_ssh_keys(server=paris)
    shared.apply()
    everywhere(bed.sites, render_units)
    _start_server(paris)
    Unit(berlin.gateway, _template(berlin, "-ssh@"), "7").supervise()
    linked(bed)
    wait_until(lambda: answers(berlin, paris, "tun7"), "a ping through the ssh tunnel")
    return shared


def answers(site: Site, far: Site, device: str) -> bool:
    """To a ping through this device; ping -I would not hear what comes back through another."""
    words = (sys.executable, "-c", PROBE, far.tunnel_address, device)
    return site.gateway.try_run(*words).returncode == 0


def _put_files(site: Site) -> None:
    """Render into a folder, copy that over the root as the README says, and start what is once."""
    gateway = site.gateway
    must(site, "render", "--out", "/run/rendered")
    gateway.run("cp", "-r", "/run/rendered/etc/.", "/etc")
    gateway.run("sh", "-c", "systemd-sysusers /etc/sysusers.d/cpythonplus-*.conf")
    gateway.run("sh", "-c", "sysctl -qp $(grep -l ip_forward /etc/sysctl.d/*cpythonplus*)")
    Unit(gateway, _template(site, "-tun@"), "7").start_oneshot()
    ssh_files = "grep -lR AliveInterval /etc/ssh | xargs sed -i 's/{}/{}/'"
    gateway.run("sh", "-c", ssh_files.format(*PATIENCE))


def _template(site: Site, kind: str) -> str:
    """The name of the rendered template unit of a kind."""
    found = site.gateway.run("sh", "-c", "cd /etc/systemd/system && ls -d *@.service")
    (name,) = [name for name in found.split() if kind.strip("@") in name]
    return name


def _start_server(site: Site) -> None:
    site.gateway.write("/etc/ssh/sshd_config.d/00-no-root.conf", "PermitRootLogin no\n")
    site.gateway.run("mkdir", "-p", "/run/sshd")
    site.gateway.start("/usr/sbin/sshd", "-D", "-e")
