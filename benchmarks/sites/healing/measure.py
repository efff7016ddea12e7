"""One figure: one situation on one side, in machines of its own; the result is one line of JSON.

    python -m benchmarks.sites.healing.measure NAME SIDE

The side is that of this interpreter, whose cpythonplus-sites is measured, or wg-quick.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.sites.healing.results import LIMIT_S, Found
from benchmarks.sites.healing.sides import Links, Ours, WgQuick
from sites.tests.testbed import by_ssh, situations
from sites.tests.testbed.bed import Bed
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import FILE, PORT, Shared, must, typed
from sites.tests.testbed.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sites.tests.testbed.bed import Pings, Site

CUT_S = 2
"""How long it stays broken where somebody has to type a command."""
RENAMED_S = 200
CARRIED = "/etc/carried"
WATCHED_S = 3
"""How long it is watched whether packets of a site that was removed still come."""


@contextmanager
def _bed(count: int = 2) -> Iterator[Bed]:
    with tempfile.TemporaryDirectory() as folder, Bed(Path(folder), count) as made:
        yield made


def _links(side: str, sites: Sequence[Site]) -> Links:
    return WgQuick(sites) if side == "wg-quick" else Ours(sites)


@contextmanager
def _linked(side: str, count: int = 2, more: int = 0) -> Iterator[tuple[Bed, Links, Pings]]:
    """Sites that are linked, `more` that are not, and 20 pings a second between the first two."""
    with _bed(count + more) as bed:
        links = _links(side, bed.sites[:count])
        links.up()
        berlin, paris = bed.sites[:2]
        wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
        pings = _begun_pings(berlin, paris)
        yield bed, links, pings


def _healed(pings: Pings) -> float | None:
    """Seconds from now until pings come back; None where they do not."""
    begin = time.monotonic()
    try:
        pings.more(1, timeout=LIMIT_S)
    except pytest.fail.Exception:
        return None
    return time.monotonic() - begin


def _broken(breaks: Callable[[Site, Links], None], side: str) -> Found:
    """The tunnel's end at one gateway is lost; two seconds later somebody brings it back."""
    with _linked(side) as (bed, links, pings):
        berlin, paris = bed.sites
        tap = Tap(berlin.gateway, "wan0")
        breaks(berlin, links)
        situations.cut(pings, CUT_S)
        leaked = tap.count(target=(paris.host_address,))
        begin = time.monotonic()
        links.repair(berlin)
        _healed(pings)
        heal_s = time.monotonic() - begin
        return Found(heal_s=heal_s, lost=len(pings.lost()), leaked=leaked)


def _kill(site: Site, _: Links) -> None:
    site.gateway.kill("wireguard-go")


def _down(site: Site, links: Links) -> None:
    site.gateway.run("wg-quick", "down", links.interface)


def _cable(side: str) -> Found:
    with _linked(side) as (bed, _, pings):
        berlin, paris = bed.sites
        taps = [Tap(berlin.gateway, "wan0"), Tap(bed.internet, f"to-{berlin.name}")]
        bed.internet.run("ip", "link", "set", f"to-{paris.name}", "down")
        situations.cut(pings, CUT_S)
        bed.internet.run("ip", "link", "set", f"to-{paris.name}", "up")
        heal_s = _healed(pings)
        leaked = sum(tap.count(target=(paris.host_address,)) for tap in taps)
        return Found(heal_s=heal_s, lost=len(pings.lost()), leaked=leaked)


def _moves(side: str, *, hub: bool) -> Found:
    with _bed() as bed:
        berlin, paris = bed.sites
        named = situations.Named(bed)
        links = _links(side, bed.sites)
        links.up_by_name(named)
        mover, caller = (paris, berlin) if hub else (berlin, paris)
        if hub:
            situations.behind_nat(berlin)
        # From the side that is not told.
        wait_until(lambda: caller.reaches(mover), "LAN to LAN")
        pings = _begun_pings(caller, mover)
        address = "203.0.113.77"
        situations.move(mover, address)
        if hub:
            named.leads_to(address, at=berlin)
        return _after_the_cut(pings)


def _own_lan_down(side: str) -> Found:
    """Count packets that go on to the provider, out of the tunnel for a LAN that is off."""
    with _linked(side) as (bed, _, pings):
        _, paris = bed.sites
        tap = Tap(paris.gateway, "wan0")
        paris.gateway.run("ip", "address", "del", f"{paris.gateway_address}/24", "dev", "lan0")
        paris.gateway.run("ip", "link", "set", "lan0", "down")
        situations.cut(pings, CUT_S)
        return Found(leaked=tap.count(target=(paris.host_address,)))


def _second_address(side: str) -> Found:
    """The name has both addresses all the time."""
    second = "203.0.113.77"
    with _bed() as bed:
        berlin, paris = bed.sites
        named = situations.Named(bed)
        named.leads_to(paris.public, second, at=berlin)
        _links(side, bed.sites).up_by_name(named)
        situations.behind_nat(berlin)
        wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
        pings = _begun_pings(berlin, paris)
        situations.move(paris, second)
        return _after_the_cut(pings)


def _split_dns(side: str) -> Found:
    """The name leads into the far LAN while a session is alive, and it is looked up again.

    By hand as reresolve-dns.sh of wireguard-tools does it, which asks for no session.
    """
    with _bed() as bed:
        berlin, paris = bed.sites
        named = situations.Named(bed)
        links = _links(side, bed.sites)
        links.up_by_name(named)
        wait_until(lambda: berlin.reaches(paris), "LAN to LAN")
        named.leads_to(paris.gateway_address, at=berlin)
        run = berlin.gateway.run
        if side == "wg-quick":
            key = run("wg", "show", links.interface, "peers").strip()
            endpoint = f"{paris.gateway_address}:{PORT}"
            run("wg", "set", links.interface, "peer", key, "endpoint", endpoint)
        else:
            typed(berlin, "apply", "--endpoints-only", "--yes")
        counter = f"/sys/class/net/{links.interface}/statistics/tx_packets"
        before = int(berlin.gateway.read(counter))
        berlin.gateway.try_run("ping", "-n", "-c", "1", "-W", "1", paris.host_address)
        time.sleep(WATCHED_S)
        return Found(looped=int(berlin.gateway.read(counter)) - before)


def _renamed(side: str) -> Found | None:
    """Longer than a session of WireGuard lives."""
    if side == "wg-quick":
        return None
    with _bed() as bed:
        berlin, paris = bed.sites
        shared, pings = _with_secret(bed), _begun_pings(berlin, paris)
        shared.names[paris.name] = "lyon"
        for site in (paris, berlin):
            _apply(site, shared)
            time.sleep(RENAMED_S if site is paris else 0)
        healed = _healed(pings) is not None
        pings.more(pings.per_second)
        return Found(heal_s=0.0 if healed else None, lost=len(pings.lost()))


def _hardware(side: str) -> Found | None:
    """Count what is lost until the new machine, which gets the file at once, has applied it."""
    if side == "wg-quick":
        return None
    with _bed() as bed:
        berlin, paris = bed.sites
        shared, pings = _with_secret(bed), _begun_pings(berlin, paris)
        del shared.keys[paris.name]
        shared.make_keys()
        begin = time.monotonic()
        for site in (berlin, paris):
            _apply(site, shared)
        healed = _healed(pings) is not None
        heal_s = time.monotonic() - begin if healed else None
        pings.more(pings.per_second)
        return Found(heal_s=heal_s, lost=len(pings.lost()))


def _begun_pings(here: Site, there: Site) -> Pings:
    """Return pings that have run for some packets already."""
    pings = here.ping(there)
    pings.more(10)
    return pings


def _apply(site: Site, shared: Shared) -> None:
    site.gateway.write(FILE, shared.text())
    must(site, "apply", "--yes")


def _with_secret(bed: Bed) -> Shared:
    """Link all by WireGuard with preshared keys."""
    shared = Shared(bed.sites, preshared=True)
    first, *others = bed.sites
    must(first, "keygen", "--secret")
    secret = must(first, "keygen", "--show-secret")
    for site in others:
        site.gateway.write(CARRIED, secret, mode=0o600)
        must(site, "keygen", "--secret-from", CARRIED)
    shared.apply()
    situations.linked(bed)
    return shared


def _after_the_cut(pings: Pings) -> Found:
    begin = time.monotonic()
    situations.cut(pings)
    healed = _healed(pings) is not None
    took_s = time.monotonic() - begin
    lost = len(pings.lost()) if healed else len(pings.silent())
    return Found(heal_s=took_s if healed else None, lost=lost)


def _udp_blocked(side: str) -> Found:
    if side == "now":
        with _fallback() as (bed, pings):
            situations.between(bed, situations.NO_UDP)
            return _after_the_cut(pings)
    with _linked(side) as (bed, _, pings):
        situations.between(bed, situations.NO_UDP)
        return _after_the_cut(pings)


def _udp_open(side: str) -> Found:
    if side == "now":
        with _fallback() as (bed, pings):
            situations.between(bed, situations.NO_UDP)
            _after_the_cut(pings)
            lost = len(pings.lost())
            situations.open_again(bed)
            begin = time.monotonic()
            ways = [("ip", "route", "get", site.host_address) for site in reversed(bed.sites)]
            wait_until(
                lambda: all(
                    "wg-acme" in site.gateway.run(*way)
                    for site, way in zip(bed.sites, ways, strict=True)
                ),
                "the return to WireGuard",
                timeout=LIMIT_S,
            )
            heal_s = time.monotonic() - begin
            pings.more(pings.per_second)
            return Found(heal_s=heal_s, lost=len(pings.lost()) - lost)
    with _linked(side) as (bed, _, pings):
        situations.between(bed, situations.NO_UDP)
        situations.cut(pings, 30)
        situations.open_again(bed)
        before = len(pings.silent())
        return Found(heal_s=_healed(pings), lost=len(pings.silent()) - before)


@contextmanager
def _fallback() -> Iterator[tuple[Bed, Pings]]:
    with _bed() as bed:
        by_ssh.with_fallback(bed)
        situations.timers(bed)
        berlin, paris = bed.sites
        pings = _begun_pings(berlin, paris)
        yield bed, pings


def _added(side: str) -> Found:
    with _linked(side, 3, more=1) as (bed, links, pings):
        *old, new = bed.sites
        begin = time.monotonic()
        links.add(new)
        wait_until(lambda: all(site.reaches(new) for site in old), "the fourth LAN")
        took_s = time.monotonic() - begin
        pings.more(pings.per_second)
        return Found(heal_s=took_s, lost=len(pings.lost()))


def _removed(side: str) -> Found:
    with _linked(side) as (bed, links, _):
        berlin, paris = bed.sites
        paris.ping(berlin).more(10)
        links.remove(paris, at=berlin)
        return Found(delivered=_arriving(paris, berlin))


def _removed_by_ssh(side: str) -> Found | None:
    if side == "wg-quick":
        return None
    with _bed() as bed:
        berlin, paris = bed.sites
        shared, _ = by_ssh.link_by_ssh(bed)
        must(paris, "apply", "--yes")
        berlin.ping(paris).more(10)
        shared.sites.remove(berlin)
        shared.after = ""
        _apply(paris, shared)
        return Found(delivered=_arriving(berlin, paris))


def _arriving(one: Site, other: Site) -> int:
    """Packets of one LAN that arrive in the other one, which 20 a second are sent to."""
    tap = Tap(other.host, "eth0")
    time.sleep(WATCHED_S)
    return tap.count(source=(one.host_address,))


def _said(rules: str, words: tuple[str, ...], side: str) -> Found:
    """Ask a gateway just after that."""
    with _linked(side) as (bed, links, _):
        situations.between(bed, rules)
        begin = time.monotonic()
        well, text = links.asked(bed.sites[0])
        took_s = time.monotonic() - begin
        said = not well and any(word in text.lower() for word in words)
        return Found(said=said, said_s=took_s if said else None)


MEASURED: dict[str, Callable[[str], Found | None]] = {
    "daemon": partial(_broken, _kill),
    "down": partial(_broken, _down),
    "cable": _cable,
    "hub-moves": partial(_moves, hub=True),
    "spoke-moves": partial(_moves, hub=False),
    "udp-blocked": _udp_blocked,
    "udp-open": _udp_open,
    "site-added": _added,
    "site-removed": _removed,
    "ssh-site-removed": _removed_by_ssh,
    "own-lan-down": _own_lan_down,
    "second-address": _second_address,
    "split-dns": _split_dns,
    "renamed": _renamed,
    "hardware": _hardware,
    "udp-said": partial(_said, situations.NO_UDP, ("received", "handshake")),
    "pmtu-said": partial(_said, situations.SMALL_PATH, ("mtu",)),
}


def main() -> None:
    """Measure, print."""
    name, side = sys.argv[1:]
    try:
        found = MEASURED[name](side)
    except pytest.fail.Exception as error:
        raise SystemExit(str(error)) from None
    print(json.dumps(None if found is None else asdict(found)))


if __name__ == "__main__":
    main()
