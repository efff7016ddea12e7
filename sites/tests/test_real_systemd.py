"""One gateway under a real systemd: a container that boots twice; the other end is a namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

import cpythonplus_sites
from sites.tests.testbed import namespaces
from sites.tests.testbed.namespaces import Machine, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow  # boots

USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "share")
SOURCE = Path(cpythonplus_sites.__file__).parents[1]
# A root that is a mount point, which a chroot's is not, and a control group that goes with it.
BOOT = """\
set -eu
root=$1
shift
mount --rbind / /mnt
mount -t proc proc /mnt/proc
mount -t tmpfs tmpfs /mnt/run
mountpoint -q /mnt/sys/fs/cgroup || mount -t cgroup2 cgroup2 /mnt/sys/fs/cgroup
group=/mnt/sys/fs/cgroup/cpp-sites-systemd
mkdir -p "$group"
echo 0 >"$group/cgroup.procs"
status=0
chroot /mnt systemd-nspawn --quiet --directory="$root" "$@" --machine=cpp-sites --register=no \
    --keep-unit --network-bridge=internet --bind=/dev/net/tun --console=pipe \
    --capability=CAP_NET_ADMIN,CAP_NET_RAW -b systemd.firstboot=no \
    systemd.unit=multi-user.target systemd.show_status=no </dev/null || status=$?
echo 0 >/mnt/sys/fs/cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} +
exit $status
"""
FILES = {
    "etc/os-release": "ID=test\nVERSION_ID=1\n",
    "etc/machine-id": "uninitialized\n",
    "etc/systemd/system.conf.d/path.conf": (
        f"[Manager]\nDefaultEnvironment=PYTHONPATH={SOURCE} PYTHONDONTWRITEBYTECODE=1\n"
    ),
    # Debian 11 and 12 have it made by the package's own script.
    "etc/sysusers.d/sshd.conf": 'u sshd - "sshd" /run/sshd\n',
    "etc/systemd/network/10-wan.network": "[Match]\nName=host0\n[Network]\n"
    "Address=203.0.113.1/24\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n",
    "etc/systemd/network/20-lan.network": "[Match]\nName=lo\n[Network]\nAddress=192.168.10.1/24\n",
}
FOLDER = "etc/cpythonplus/sites"
HEAD = """\
[network]
name = "acme"
tunnel = "10.254.0.0/24"
topology = "hub"
hub = "berlin"
keepalive = 1
preshared = false
"""
STANZA = """
[sites.{name}]
lan = ["192.168.{number}0.0/24"]
gateway = "192.168.{number}0.1"
tunnel_address = "10.254.0.{number}"
endpoint = "203.0.113.{number}:51820"
public_key = "{key}"
"""
LINK = """\
ssh_endpoint = "203.0.113.2:22"

[[links]]
between = ["berlin", "rome"]
via = "ssh"
tunnel_number = 7
"""
CALL = (
    *("ssh", "-F", "none", "-i", "/run/rome", "-N", "-w", "8:7", "sites-acme@203.0.113.1"),
    *("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
    *("-o", "Tunnel=point-to-point", "-o", "ExitOnForwardFailure=yes", "-o", "BatchMode=yes"),
)
ROME = """\
ip address add 192.168.30.1/32 dev lo
ip link set tun8 up
ip route add 192.168.10.1/32 dev tun8 src 192.168.30.1
"""
HAND = """\
[Interface]
PrivateKey = {private}
ListenPort = 51820
Address = 10.254.0.2/32
[Peer]
PublicKey = {public}
Endpoint = 203.0.113.1:51820
AllowedIPs = 192.168.10.0/24, 10.254.0.1/32
"""
INTERNET = """\
ip link add internet type bridge
ip link set internet up
ip address add 203.0.113.2/24 dev internet
ip address add 192.168.20.1/24 dev lo
"""
PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"


class Gateway:
    """The container while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", f"--target={self.pid}", "--all", "--root", "--wd", "env", "-i", PATH]
        settings = [f"PYTHONPATH={SOURCE}", "PYTHONDONTWRITEBYTECODE=1"]
        command = [*enter, *settings, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=180)

    def sites(self, *words: str, status: int = 0) -> str:
        done = self.run(sys.executable, "-m", "cpythonplus_sites", *words)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def shown(self, unit: str, *keys: str) -> str:
        return self.run("systemctl", "show", unit, *(f"--property={key}" for key in keys)).stdout

    def echoes(self) -> int:
        """How many pings it has been sent so far, answered or not."""
        lines = self.run("cat", "/proc/net/snmp").stdout.splitlines()
        names, values = (line.split() for line in lines if line.startswith("Icmp:"))
        return int(values[names.index("InEchos")])

    def reaches_paris(self) -> bool:
        ping = ("ping", "-c1", "-W1", "-I", "192.168.10.1", "192.168.20.1")
        return self.run(*ping).returncode == 0

    def is_up(self) -> bool:
        state = self.run("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")


def make_root(root: Path) -> list[str]:
    """A root folder around this machine's /usr; returns what is to be bound into it."""
    bound = [Path("/usr", name) for name in USR if Path("/usr", name).is_dir()]
    outside = {Path(sys.prefix), Path(sys.base_prefix), SOURCE} - {Path("/usr")}
    for name in USR:
        if Path("/", name).is_symlink():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(f"usr/{name}")
    for folder in bound:
        (root / folder.relative_to("/")).mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("var", "root", "etc/ssh"):
        (root / name).mkdir()
    return [f"--bind-ro={folder}" for folder in (*bound, *sorted(outside))]


def first_process(pid: int) -> int | None:
    """Of the container: the first one called systemd below `pid`."""
    with suppress(OSError, ProcessLookupError):
        if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
            return pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return next(filter(None, map(first_process, map(int, children))), None)
    return None


def missing(what: str) -> NoReturn:
    """Skip the test, or fail it where CPYTHONPLUS_NEED_SITES says that it has to run."""
    if os.environ.get(namespaces.NEEDED):
        pytest.fail(f"{namespaces.NEEDED} is set, and {what}")
    pytest.skip(what)


@contextmanager
def booted(paris: Machine, root: Path, binds: list[str]) -> Iterator[Gateway]:
    """Boot and, in the end, power off; the container may not come up here."""
    log = root.with_suffix(".log")
    spaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=unchanged"]
    command = ["nsenter", f"--net=/proc/{paris.pid}/ns/net", *spaces, "sh", "-c", BOOT, "sh"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, str(root), *binds], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    found: list[Gateway] = []

    def is_up() -> bool:
        if process.poll() is not None:
            missing(f"systemd-nspawn does not boot here: {log.read_text()[-1000:]}")
        pid = first_process(process.pid)
        found[:] = [Gateway(pid)] if pid else []
        return bool(found) and found[0].is_up()

    try:
        wait_until(is_up, "the container's boot")
        yield found[0]
        found[0].run("systemctl", "poweroff")
        process.wait(150)  # a unit may take 90 s
    finally:
        process.kill()
        process.wait()


def write_file(root: Path, text: str) -> None:
    (root / FOLDER / "sites.toml").write_text(text)


def begin(paris: Machine, gateway: Gateway) -> str:
    """Keys for both ends, and paris's end by hand; returns the file of two sites."""
    berlin = gateway.sites("keygen").split('"')[1]
    private = paris.run("wg", "genkey").strip()
    public = paris.run("wg", "pubkey", stdin=private).strip()
    configuration = HAND.format(private=private, public=berlin)
    paris.write("/etc/wireguard/wg-hand.conf", configuration, mode=0o600)
    paris.run("wg-quick", "up", "wg-hand")
    sites = (("berlin", 1, berlin), ("paris", 2, public))
    return HEAD + "".join(STANZA.format(name=n, number=i, key=key) for n, i, key in sites)


def test_apply_under_systemd_and_a_boot_afterwards(tmp_path: Path) -> None:
    namespaces.require()
    if shutil.which("systemd-nspawn") is None:
        missing("there is no systemd-nspawn")
    root = tmp_path / "root"
    binds = make_root(root)
    with Machine("paris", tmp_path) as paris:
        paris.run("sh", "-ec", INTERNET)
        with booted(paris, root, binds) as gateway:
            two = begin(paris, gateway)
            write_file(root, two)
            gateway.sites("apply", "--yes")
            gateway.sites("plan")
            wait_until(gateway.reaches_paris, "paris's LAN address")
            gateway.sites("status")
            a_site_by_ssh_comes_and_goes(paris, gateway, root, two)
            a_site_that_called_over_ssh_is_cut_off(paris, gateway, root, two)
            a_killed_daemon_is_replaced(gateway)
            gateway.run("systemctl", "disable", "wg-quick@wg-acme.service")
        with booted(paris, root, binds) as gateway:
            nothing_leaves_in_clear_text(gateway)
            gateway.sites("apply", "--yes")
            wait_until(gateway.reaches_paris, "paris's LAN address after a boot")
            what_is_on_trial(gateway, root, two)
        with booted(paris, root, binds) as gateway:
            wait_until(gateway.reaches_paris, "paris's LAN address after a second boot")
            goes_back_after_a_boot(gateway, root, two)
            a_gateway_is_taken_down_and_comes_back(gateway)


def a_site_by_ssh_comes_and_goes(paris: Machine, gateway: Gateway, root: Path, two: str) -> None:
    """Nothing listens there: ssh is started again. WireGuard's unit is let alone meanwhile."""
    unit = "cpythonplus-sites-acme-ssh@7.service"
    before = gateway.shown("wg-quick@wg-acme", "InvocationID", "ActiveState")
    assert "ActiveState=active" in before
    gateway.sites("keygen", "--ssh")
    key = paris.run("wg", "genkey").strip()
    rome = STANZA.format(name="rome", number=3, key=paris.run("wg", "pubkey", stdin=key).strip())
    write_file(root, two + rome + LINK)
    gateway.sites("apply", "--yes")
    gateway.sites("plan")
    assert "=enabled" in gateway.shown(unit, "UnitFileState")
    assert "Restart=always" in gateway.shown(unit, "Restart")
    assert "tun7" in gateway.run("ip", "-br", "link").stdout
    write_file(root, two)
    gateway.sites("apply", "--yes")
    gateway.sites("plan")
    assert "ActiveState=inactive" in gateway.shown(unit, "ActiveState")
    assert "=enabled" not in gateway.shown(unit, "UnitFileState")
    assert "tun7" not in gateway.run("ip", "-br", "link").stdout
    assert gateway.shown("wg-quick@wg-acme", "InvocationID", "ActiveState") == before
    assert gateway.reaches_paris()


def a_site_that_called_over_ssh_is_cut_off(
    paris: Machine, gateway: Gateway, root: Path, two: str
) -> None:
    """Berlin's sshd holds the device of a site that is taken out of the file."""
    for name in ("ssh/sshd_config", "pam.d", "security"):
        gateway_has, here = root / "etc" / name, Path("/etc", name)
        if here.is_dir():
            shutil.copytree(here, gateway_has, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(here, gateway_has)
    assert gateway.run("ssh-keygen", "-A").returncode == 0
    gateway.run("systemd-sysusers")
    gateway.run("systemctl", "reset-failed", "ssh.service")  # without a configuration until now
    started = gateway.run("systemctl", "restart", "ssh.service")
    assert started.returncode == 0, started.stderr
    paris.run("ssh-keygen", "-qt", "ed25519", "-N", "", "-f", "/run/rome")
    public = paris.read("/run/rome.pub").strip()
    key = paris.run("wg", "pubkey", stdin=paris.run("wg", "genkey")).strip()
    rome = STANZA.format(name="rome", number=3, key=key) + f'ssh_public_key = "{public}"\n'
    server = 'endpoint = "203.0.113.1:51820"\n'
    server += 'ssh_endpoint = "203.0.113.1:22"\n'
    links = LINK[LINK.index("[[links]]") :]
    write_file(root, two.replace(server.splitlines(keepends=True)[0], server) + rome + links)
    gateway.sites("apply", "--yes")
    paris.start(*CALL)
    wait_until(lambda: "tun8" in paris.run("ip", "-br", "link"), "rome's call")
    paris.run("sh", "-ec", ROME)
    paris.start("ping", "-n", "-i", "0.05", "-I", "192.168.30.1", "192.168.10.1")
    before = gateway.echoes()
    wait_until(lambda: gateway.echoes() > before, "packets of rome")
    write_file(root, two)
    gateway.sites("apply", "--yes")
    before = gateway.echoes()
    paris.try_run("ping", "-nc20", "-i0.05", "-W1", "-I", "192.168.30.1", "192.168.10.1")
    assert gateway.echoes() == before
    assert "tun7" not in gateway.run("ip", "-br", "link").stdout
    assert gateway.run("pgrep", "-u", "sites-acme").stdout == ""
    gateway.sites("plan")


def nothing_leaves_in_clear_text(gateway: Gateway) -> None:
    """Without a tunnel, whatever networkd has done to routes that are not its own."""
    assert "wg-acme" not in gateway.run("ip", "-br", "link").stdout
    assert "unreachable 192.168.20.0/24" in gateway.run("ip", "route").stdout
    assert gateway.run("networkctl", "reconfigure", "host0").returncode == 0
    assert gateway.run("systemctl", "restart", "systemd-networkd.service").returncode == 0
    wait_until(lambda: "configured" in gateway.run("networkctl", "status", "host0").stdout, "host0")
    assert "unreachable 192.168.20.0/24" in gateway.run("ip", "route").stdout


def a_killed_daemon_is_replaced(gateway: Gateway) -> None:
    """As the timer does it every minute."""
    gateway.run("pkill", "-KILL", "-x", "wireguard-go")
    wait_until(lambda: not gateway.reaches_paris(), "the daemon's end")
    gateway.run("systemctl", "start", "cpythonplus-sites-acme-endpoints.service")
    wait_until(gateway.reaches_paris, "paris's LAN address after the daemon's end")


def what_is_on_trial(gateway: Gateway, root: Path, two: str) -> None:
    """For far longer than until the boot that follows."""
    (root / "root/sites.toml").write_text(two.replace("keepalive = 1", "keepalive = 2"))
    gateway.sites("apply", "--yes", "--confirm", "2h", "--file", "/root/sites.toml")
    assert "every 2 seconds" in gateway.run("wg", "show").stdout


def goes_back_after_a_boot(gateway: Gateway, root: Path, two: str) -> None:
    """The timer does, as nobody has confirmed."""
    wait_until(
        lambda: "every 1 second" in gateway.run("wg", "show").stdout,
        "the file from before",
        timeout=180,
    )
    before = (root / FOLDER / "sites.toml").read_text()
    assert before == two
    wait_until(lambda: not (root / FOLDER / "unconfirmed.json").exists(), "the end of the trial")
    gateway.sites("plan")


def a_gateway_is_taken_down_and_comes_back(gateway: Gateway) -> None:
    gateway.sites("down", "--yes")
    for unit in ("wg-quick@wg-acme.service", "cpythonplus-sites-acme-endpoints.timer"):
        shown = gateway.shown(unit, "ActiveState", "UnitFileState")
        assert "ActiveState=active" not in shown
        assert "=enabled" not in shown
    assert "wg-acme" not in gateway.run("ip", "-br", "link").stdout
    assert "cpythonplus" not in gateway.run("nft", "list", "tables").stdout
    assert not gateway.reaches_paris()
    gateway.sites("plan", status=1)
    gateway.sites("apply", "--yes")
    wait_until(gateway.reaches_paris, "paris's LAN address after down and apply")
    gateway.sites("plan")
