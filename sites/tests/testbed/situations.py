"""What happens to linked sites; tests look at it, benchmarks/sites/healing measures it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import PORT, Shared, reach_each_other
from sites.tests.testbed.units import Timer, render_units

if TYPE_CHECKING:
    from sites.tests.testbed.bed import Bed, Pings, Site

HUB = "hub.example"
_BETWEEN = """
add table bridge bed
add chain bridge bed between {{ type filter hook forward priority 0; }}
add rule bridge bed between {} drop
"""
NO_UDP = _BETWEEN.format("meta l4proto udp")
SMALL_PATH = _BETWEEN.format("ip length > 1400")
"""What is larger than 1400 bytes vanishes, and nobody tells the sender."""
_BEHIND_NAT = """
add table ip nat
add chain ip nat from_outside { type filter hook input priority 0; }
add rule ip nat from_outside iifname "wan0" ct state new drop
"""


def between(bed: Bed, rules: str) -> None:
    """Have the internet drop packets."""
    bed.internet.run("nft", "-f", "-", stdin=rules)


def open_again(bed: Bed) -> None:
    """Have it pass them all."""
    bed.internet.run("nft", "delete", "table", "bridge", "bed")


def behind_nat(site: Site) -> None:
    """As a router between would have it: what the gateway did not ask for does not get in."""
    site.gateway.run("nft", "-f", "-", stdin=_BEHIND_NAT)


def move(site: Site, address: str) -> None:
    """Another address at the provider."""
    run = site.gateway.run
    run("ip", "address", "del", f"{site.public}/24", "dev", "wan0")
    run("ip", "address", "add", f"{address}/24", "dev", "wan0")
    run("ip", "route", "replace", "default", "via", "203.0.113.1")


class Named:
    """berlin calls paris, its hub, by a name; nobody can call berlin."""

    def __init__(self, bed: Bed) -> None:
        self.berlin, self.paris = bed.sites
        self._hosts = self.berlin.gateway.read("/etc/hosts")
        for site in bed.sites:
            self.leads_to(self.paris.public, at=site)

    def leads_to(self, *addresses: str, at: Site) -> None:
        """What the name resolves to on a gateway."""
        lines = "".join(f"{address} {HUB}\n" for address in addresses)
        at.gateway.write("/etc/hosts", f"{self._hosts}\n{lines}")

    def apply(self) -> Timer:
        """Link them; returns berlin's timer, which runs."""
        endpoints = {"berlin": None, "paris": f"{HUB}:{PORT}"}
        Shared([self.berlin, self.paris], endpoints=endpoints).apply()
        render_units(self.berlin)
        return _started(self.berlin)


def timers(bed: Bed) -> list[Timer]:
    """The timers of all gateways, whose units are rendered; each of them ran once."""
    found = [_started(site) for site in bed.sites]
    for timer in found:
        timer.ran(1)
    return found


def _started(site: Site) -> Timer:
    timer = Timer(site.gateway, "cpythonplus-sites-acme-endpoints")
    timer.start()
    return timer


def linked(bed: Bed) -> None:
    """Wait until each LAN reaches each other one."""
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN")


def cut(pings: Pings, seconds: float = 0) -> None:
    """Wait for the end of answers, and until there was none for so long."""
    count = max(1, seconds * pings.per_second)
    wait_until(lambda: len(pings.silent()) >= count, "the end of answers")


def healed(pings: Pings, what: str, *, timeout: float = 120) -> float:
    """Seconds until as many pings came back as are sent in one, where they have just been cut."""
    begin = time.monotonic()
    cut(pings)
    pings.more(pings.per_second + 1, what=what, timeout=timeout)
    return time.monotonic() - begin
