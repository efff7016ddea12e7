"""A key changes while three sites talk to each other, as a user would do it on the gateways."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Site

pytestmark = pytest.mark.slow  # machines, daemons, handshakes

FILE = "/etc/cpythonplus/sites/sites.toml"
NETWORK = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"
"""
STANZA = """
[sites.{site.name}]
lan = ["{site.lan}"]
gateway = "{site.gateway_address}"
tunnel_address = "{site.tunnel_address}"
{endpoint}"""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path, 3) as made:
        yield made


def typed(site: Site, *words: str) -> str:
    done = site.gateway.try_run(sys.executable, "-m", "cpythonplus_sites", *words)
    if done.returncode != 0:
        pytest.fail(f"{site.name}: {words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def carry(origin: Site, *others: Site) -> None:
    """The file of one gateway to the others, applied there."""
    text = origin.gateway.run("cat", FILE)

    def take(site: Site) -> None:
        site.gateway.write(FILE, text)
        typed(site, "apply", "--yes", "--no-systemd")

    with ThreadPoolExecutor(len(others)) as pool:
        list(pool.map(take, others))


def linked(*sites: Site) -> None:
    """The sites as after the tutorial; the second is behind NAT."""
    first, behind_nat, *_ = sites
    text = NETWORK
    for site in sites:
        endpoint = "" if site is behind_nat else f'endpoint = "{site.public}:51820"\n'
        text += STANZA.format(site=site, endpoint=endpoint)
    first.gateway.write(FILE, text)
    typed(first, "keygen", "--site", first.name, "--secret")
    secret = typed(first, "keygen", "--show-secret")
    for site in sites[1:]:
        site.gateway.write("/tmp/secret", secret, mode=0o600)
        site.gateway.write(FILE, first.gateway.run("cat", FILE))
        typed(site, "keygen", "--site", site.name, "--secret-from", "/tmp/secret")
        first.gateway.write(FILE, site.gateway.run("cat", FILE))
    carry(first, *sites)


def test_a_key_changes_without_a_lost_ping(bed: Bed) -> None:
    berlin, paris, rome = bed.sites
    linked(berlin, paris, rome)
    pairs = [(berlin, paris), (paris, berlin), (rome, berlin), (paris, rome)]
    for one, other in pairs:
        namespaces.wait_until(partial(one.reaches, other), f"{one.name} to {other.name}")
    old = berlin.gateway.run("wg", "show", "wg-acme", "public-key")
    pings = [one.ping(other) for one, other in pairs]

    typed(berlin, "rotate", "begin", "--yes", "--no-systemd")
    carry(berlin, rome, paris)
    typed(berlin, "rotate", "switch", "--yes", "--no-systemd")
    carry(berlin, paris, rome)
    typed(berlin, "rotate", "finish", "--yes", "--no-systemd")
    carry(berlin, paris, rome)

    for each in pings:
        each.more(20)
        each.stop()
    assert [each.lost() for each in pings] == [[], [], [], []]
    assert berlin.gateway.run("wg", "show", "wg-acme", "public-key") != old
    for site in bed.sites:
        assert site.gateway.run("wg", "show", "interfaces").split() == ["wg-acme"]
        assert old.strip() not in site.gateway.run("wg", "show", "all", "dump")
        typed(site, "plan", "--no-systemd")


def test_a_change_that_was_aborted_leaves_nothing(bed: Bed) -> None:
    berlin, paris, _ = bed.sites
    linked(berlin, paris)
    namespaces.wait_until(partial(berlin.reaches, paris), "LAN to LAN")
    old = berlin.gateway.run("wg", "show", "wg-acme", "public-key")
    typed(berlin, "rotate", "begin", "--yes", "--no-systemd")
    carry(berlin, paris)
    typed(berlin, "rotate", "abort", "--yes", "--no-systemd")
    carry(berlin, paris)
    typed(berlin, "rotate", "finish", "--yes", "--no-systemd")
    carry(berlin, paris)
    for site in (berlin, paris):
        assert site.gateway.run("wg", "show", "interfaces").split() == ["wg-acme"]
        typed(site, "plan", "--no-systemd")
    assert berlin.gateway.run("wg", "show", "wg-acme", "public-key") == old
    assert typed(berlin, "rotate", "finish") == "berlin: no key is being changed\n"
    assert berlin.reaches(paris)
