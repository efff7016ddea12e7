"""A link over ssh: no root log-in at either end, and what it takes to come back."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sites.tests.testbed import namespaces
from sites.tests.testbed.bed import Bed, Site
from sites.tests.testbed.by_ssh import link_by_ssh
from sites.tests.testbed.namespaces import wait_until
from sites.tests.testbed.network import FILE, must, reach_each_other
from sites.tests.testbed.situations import between, open_again
from sites.tests.testbed.tap import Tap

pytestmark = pytest.mark.slow  # machines, daemons

REFUSED = "open failed"
"""What ssh prints of a tun device that the server does not open."""

SILENT_INTERNET = """
add table bridge bed
add chain bridge bed between { type filter hook forward priority 0; policy drop; }
"""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path) as made:
        yield made


def has_carrier(site: Site) -> bool:
    """Whether a program has the tun device open."""
    return "NO-CARRIER" not in site.gateway.run("ip", "link", "show", "tun7")


def owners(site: Site, program: str) -> set[str]:
    return set(site.gateway.run("ps", "-o", "user:32=", "-C", program).split())


def test_sites_are_linked_over_ssh_without_root(bed: Bed) -> None:
    berlin, paris = bed.sites
    link_by_ssh(bed)
    (user,) = owners(berlin, "ssh")
    assert user != "root"
    # The server's part that has the connection is that user's, and a command is refused.
    assert user in owners(paris, "sshd,sshd-session")  # the latter from OpenSSH 9.8 on
    assert "root" not in paris.gateway.run("sh", "-c", "cat /etc/ssh/cpythonplus-sites/*.keys")


def test_a_site_that_leaves_is_cut_off(bed: Bed) -> None:
    """It goes on calling, and has an open session: neither may bring a packet into the LAN."""
    berlin, paris = bed.sites
    shared, client = link_by_ssh(bed)
    must(paris, "apply", "--yes")
    assert reach_each_other(bed.sites)
    berlin.host.start("ping", "-n", "-i", "0.02", paris.host_address)
    before = Tap(paris.host, "eth0")
    wait_until(lambda: before.count(source=(berlin.host_address,)) > 10, "packets of berlin")
    shared.sites.remove(berlin)
    shared.after = ""
    paris.gateway.write(FILE, shared.text())
    printed = must(paris, "apply", "--yes")
    after = Tap(paris.host, "eth0")
    assert not berlin.reaches(paris)
    assert delivered(berlin, paris, after) == 0
    assert "remove tun7" in printed
    wait_until(lambda: "Permission denied" in client.text(), "a call that is refused")
    assert delivered(berlin, paris, after) == 0
    assert "tun7" not in paris.gateway.run("ip", "link")
    assert paris.gateway.try_run("pgrep", "-u", "sites-acme").stdout == ""
    must(paris, "plan")


def delivered(one: Site, other: Site, tap: Tap) -> int:
    """Packets of one LAN that the tap in the other one has seen so far."""
    other.host.run("ping", "-nc1", "-W5", other.gateway_address)
    wait_until(lambda: tap.count(target=(other.gateway_address,)) > 0, "the tap")
    return tap.count(source=(one.host_address,))


def test_a_changed_key_ends_the_session_of_the_old_one(bed: Bed) -> None:
    _, paris = bed.sites
    shared, _ = link_by_ssh(bed)
    must(paris, "apply", "--yes")
    assert reach_each_other(bed.sites)
    other = paris.gateway.read("/etc/ssh/ssh_host_ed25519_key.pub").strip()
    old = shared.more["berlin"].splitlines()[0]
    shared.more["berlin"] = shared.more["berlin"].replace(old, f'ssh_public_key = "{other}"', 1)
    paris.gateway.write(FILE, shared.text())
    assert "and end 1 session" in must(paris, "apply", "--yes")
    assert not has_carrier(paris)


def test_a_link_that_the_server_takes_down_stays_down(bed: Bed) -> None:
    """Its sshd holds the device at that moment, and the client calls again and again."""
    berlin, paris = bed.sites
    _, client = link_by_ssh(bed)
    must(paris, "down", "--yes")
    assert "tun7" not in paris.gateway.run("ip", "-br", "link")
    calls = client.text().count(REFUSED)
    wait_until(lambda: client.text().count(REFUSED) > calls + 2, "calls that are refused")
    assert "tun7" not in paris.gateway.run("ip", "-br", "link")
    assert not has_carrier(berlin)
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN after down and apply")


def test_a_device_that_was_deleted_is_made_anew_and_called_again(bed: Bed) -> None:
    berlin, paris = bed.sites
    link_by_ssh(bed)
    paris.gateway.run("ip", "link", "delete", "dev", "tun7")
    wait_until(lambda: not has_carrier(berlin), "the client's end of a channel that was closed")
    assert berlin.gateway.pids("ssh")  # still connected, and content with that
    must(paris, "apply", "--yes")
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN over the new device")


def test_a_client_that_goes_silent_gives_the_device_back(bed: Bed) -> None:
    berlin, paris = bed.sites
    link_by_ssh(bed)
    berlin.gateway.kill("ssh", signal.SIGSTOP)
    wait_until(lambda: not has_carrier(paris), "the server's end of a stopped client")
    berlin.gateway.kill("ssh", signal.SIGCONT)
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN after the client's silence")


def test_a_client_that_vanished_is_replaced(bed: Bed) -> None:
    berlin, paris = bed.sites
    link_by_ssh(bed)
    # Its last words do not get through, so that the server takes it for alive.
    between(bed, SILENT_INTERNET)
    berlin.gateway.kill("ssh")
    assert has_carrier(paris)
    open_again(bed)
    wait_until(lambda: reach_each_other(bed.sites), "LAN to LAN with a new client")
