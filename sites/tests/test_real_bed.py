"""The bed itself: what its machines see of each other, and that nothing of them is ever left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sites.tests.testbed import by_hand, namespaces
from sites.tests.testbed.bed import Bed
from tests.support import child_environment

pytestmark = pytest.mark.slow  # machines, daemons

ROOT = Path(__file__).resolve().parent.parent.parent

# A test that is killed while its machines run, one of them with a daemon in the background.
KILLED = """
import os, signal, sys
from pathlib import Path
from sites.tests.testbed.bed import Bed
bed = Bed(Path(sys.argv[1]), 2).__enter__()
paris = bed.sites[1].gateway
paris.start("sleep", "86403")
paris.run("sh", "-c", "sleep 86403 >/dev/null 2>&1 &")
print(os.stat(f"/proc/{paris.pid}/ns/net").st_ino, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    namespaces.require()
    with Bed(tmp_path) as made:
        yield made


def in_network(inode: int) -> list[int]:
    """The processes, of all that there are, which are in this network."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns" / "net").stat().st_ino == inode:
                found.append(int(folder.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def test_a_killed_test_leaves_nothing(tmp_path: Path) -> None:
    namespaces.require()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env=child_environment(),
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    inode = int(done.stdout)
    assert inode != Path("/proc/self/ns/net").stat().st_ino
    namespaces.wait_until(lambda: not in_network(inode), "the end of what was in that network")


def test_a_bed_that_ended_leaves_nothing(tmp_path: Path) -> None:
    namespaces.require()
    with Bed(tmp_path) as made:
        berlin, paris = made.sites
        by_hand.ByHand(made.sites).up()
        pings = berlin.ping(paris)
        pings.more(1)
        networks = [
            Path(f"/proc/{machine.pid}/ns/net").stat().st_ino
            for site in made.sites
            for machine in (site.gateway, site.host)
        ]
        assert all(in_network(inode) for inode in networks)
    assert not pings.process.is_running()
    namespaces.wait_until(lambda: not any(map(in_network, networks)), "the end of all machines")


def test_lans_are_apart_without_a_tunnel_and_together_with_one(bed: Bed) -> None:
    berlin, paris = bed.sites
    berlin.gateway.run("ping", "-n", "-c1", "-W5", paris.public)
    assert not berlin.reaches(paris)
    by_hand.ByHand(bed.sites).up()
    namespaces.wait_until(lambda: berlin.reaches(paris), "a ping from LAN to LAN")


def test_a_lost_ping_is_counted(bed: Bed) -> None:
    berlin, paris = bed.sites
    by_hand.ByHand(bed.sites).up()
    pings = berlin.ping(paris)
    pings.more(5)
    assert pings.lost() == []
    drop = "add table ip t; add chain ip t c { type filter hook forward priority 0; policy drop; }"
    paris.gateway.run("nft", drop)
    before = len(pings.answered())
    namespaces.wait_until(lambda: len(pings.silent()) > 2, "pings without an answer")
    paris.gateway.run("nft", "delete table ip t")
    pings.more(5)
    assert len(pings.lost()) > 0
    assert min(pings.lost()) > before - 1


def test_a_daemon_that_was_killed_is_replaced(bed: Bed) -> None:
    berlin, paris = bed.sites
    by_hand.ByHand(bed.sites).up()
    namespaces.wait_until(lambda: berlin.reaches(paris), "a ping from LAN to LAN")
    paris.gateway.kill("wireguard-go")
    assert not berlin.reaches(paris)
    paris.gateway.try_run("wg-quick", "down", by_hand.INTERFACE)
    paris.gateway.run("wg-quick", "up", by_hand.INTERFACE)
    namespaces.wait_until(lambda: berlin.reaches(paris), "a ping after the daemon's end")


def test_machines_have_files_and_processes_of_their_own(bed: Bed) -> None:
    berlin, paris = (site.gateway for site in bed.sites)
    berlin.write("/etc/only-here", "berlin's\n", mode=0o600)
    assert berlin.read("/etc/only-here") == "berlin's\n"
    assert berlin.run("stat", "-c", "%a", "/etc/only-here") == "600\n"
    assert paris.try_run("cat", "/etc/only-here").returncode != 0
    assert not Path("/etc/only-here").exists()
    berlin.start("sleep", "86404")
    namespaces.wait_until(lambda: len(berlin.pids("sleep")) == 1, "sleep")
    assert paris.pids("sleep") == []
    assert os.getpid() not in berlin.pids("python3")


@pytest.mark.parametrize("needed", [False, True])
def test_what_is_missing_skips_or_fails(monkeypatch: pytest.MonkeyPatch, needed: bool) -> None:
    monkeypatch.setattr(namespaces, "PROGRAMS", ("ip", "no-such-program"))
    monkeypatch.setenv(namespaces.NEEDED, "1" if needed else "")
    outcome = pytest.fail.Exception if needed else pytest.skip.Exception
    with pytest.raises(outcome, match=r"no-such-program|need root"):
        namespaces.require()
