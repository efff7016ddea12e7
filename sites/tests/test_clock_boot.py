"""A real boot with the clock's units: systemd in a container, from this machine's own /usr.

The container may not set the clock (no CAP_SYS_TIME); a stand-in for Python calls the installed
script with a clock that is a file. Everything lives in mount and process namespaces that end with
the command.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cpythonplus_sites import clock
from cpythonplus_sites.commands.clock import main

pytestmark = pytest.mark.slow

NEEDED = "CPYTHONPLUS_NEED_SITES"
"""Where it is set, the boot may not be left out."""

PARTS = ("systemd-nspawn", "unshare", "mount")
USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "share")
SAVED = clock.FLOOR + 1000
TICK_S = 7
"""How far the stand-in's clock goes on between two readings."""

STAND_IN = f"""\
import importlib.util, json, os, sys

script, action = sys.argv[-2:]
spec = importlib.util.spec_from_file_location("clock", script)
clock = importlib.util.module_from_spec(spec)
spec.loader.exec_module(clock)
HANDS = "/run/hands"

def now():
    seconds = int(open(HANDS).read()) if os.path.exists(HANDS) else 100
    set_clock(seconds + {TICK_S})
    return seconds

def set_clock(seconds):
    with open(HANDS, "w") as file:
        file.write(str(seconds))

folder = os.path.dirname(clock.DEFAULT_FILE)
# os.path.ismount does not see a bind mount from the same file system.
mounted = [line.split()[4] for line in open("/proc/self/mountinfo")]
was = now()
status = clock.main([action, "--no-rtc"], now=lambda: was, is_trusted=lambda: False,
                    set_clock=set_clock)
with open(folder + "/calls", "a") as file:
    call = dict(action=action, status=status, was=was, is_mounted=folder in mounted)
    file.write(json.dumps(call) + "\\n")
sys.exit(status)
"""

CHECK = """\
[Unit]
After=multi-user.target cpythonplus-clock-tick.timer

[Service]
Type=oneshot
ExecStart=/bin/systemctl start cpythonplus-clock-tick.service
ExecStart=/bin/sh -c 'systemctl show cpythonplus-clock-restore.service time-set.target \
sysinit.target cpythonplus-clock-tick.timer -p Id -p ActiveState -p ActiveEnterTimestampMonotonic \
-p ExecMainExitTimestampMonotonic > /var/lib/cpythonplus-clock/order'
ExecStart=/bin/systemctl --no-block poweroff
"""

# A root of its own that is a mount point, which a chroot is not; and a control group of its own,
# which is taken away afterwards.
BOOT = """\
set -eu
root=$1 state=$2 machine=$3
shift 3
mount --rbind / /mnt
mount -t proc proc /mnt/proc
mount -t tmpfs tmpfs /mnt/run
mount -t cgroup2 cgroup2 /mnt/sys/fs/cgroup
group=/mnt/sys/fs/cgroup/$machine
mkdir -p "$group"
echo 0 >"$group/cgroup.procs"
status=0
chroot /mnt systemd-nspawn --quiet --directory="$root" "$@" \
    --bind="$state:/var/lib/cpythonplus-clock" --machine="$machine" --register=no --keep-unit \
    --private-network --drop-capability=CAP_SYS_TIME --console=pipe -b systemd.firstboot=no \
    systemd.unit=multi-user.target systemd.show_status=no </dev/null || status=$?
echo 0 >/mnt/sys/fs/cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} +
exit $status
"""


def make_root(root: Path) -> list[str]:
    """A root folder around this machine's /usr; returns what is to be bound into it."""
    binds = []
    for name in USR:
        if Path("/usr", name).is_dir():
            (root / "usr" / name).mkdir(parents=True)
            binds.append(f"--bind-ro=/usr/{name}")
            # systemd would unmount it at the shutdown, and then not find what it goes on with.
            kept = root / f"etc/systemd/system/usr-{name}.mount.d/kept.conf"
            kept.parent.mkdir(parents=True)
            kept.write_text("[Unit]\nDefaultDependencies=no\n")
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for folder in ("var/lib/cpythonplus-clock", "etc/systemd/system/multi-user.target.wants"):
        (root / folder).mkdir(parents=True)
    (root / "etc/os-release").write_text("ID=test\nVERSION_ID=1\n")
    (root / "etc/machine-id").write_text("uninitialized\n")
    stand_in = root / "usr/local/bin/stand-in"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(f"#!{pythons()[0]}\n{STAND_IN}")
    stand_in.chmod(0o755)
    units = root / "etc/systemd/system"
    (units / "check.service").write_text(CHECK)
    (units / "multi-user.target.wants/check.service").symlink_to("../check.service")
    return binds


def pythons() -> list[Path]:
    """The interpreters in /usr/bin, which the container sees."""
    return sorted(path for path in Path("/usr/bin").glob("python3*") if "-" not in path.name)


def propagation() -> str:
    """A root that is no mount point (chroot) has no propagation to change."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return "private" if any(line.split()[4] == "/" for line in lines) else "unchanged"


def in_namespaces(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation"]
    return subprocess.run(
        [*command, propagation(), "sh", "-c", script, "sh", *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )


def why_not() -> str | None:
    """What is missing for a boot; None where all is there."""
    for part in PARTS:
        if shutil.which(part) is None:
            return f"{part} is not to be had"
    if os.geteuid() != 0:
        return "only root boots a container"
    if not Path("/usr/lib/systemd/systemd").exists() or not pythons():
        return "this machine's /usr has no systemd or no Python"
    tried = in_namespaces("mount --rbind / /mnt && mount -t cgroup2 none /mnt/sys/fs/cgroup")
    return None if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


def shown(text: str) -> dict[str, dict[str, str]]:
    """What `systemctl show` says, by unit."""
    units = [dict(line.split("=", 1) for line in part.splitlines()) for part in text.split("\n\n")]
    return {unit["Id"]: unit for unit in units}


READ_ONLY = """\
set -eu
mount -t tmpfs -o ro,mode=0755 tmpfs "$1/usr"
"$2" -c 'import sys; from cpythonplus_sites.commands.clock import main; sys.exit(main())' \
    install --root "$1" --init systemd
"""


def test_a_read_only_usr(tmp_path: Path) -> None:
    reason = why_not()
    if reason is not None:
        if os.environ.get(NEEDED):
            pytest.fail(f"{NEEDED} is set, and {reason}")
        pytest.skip(reason)
    (tmp_path / "usr").mkdir()
    done = in_namespaces(READ_ONLY, str(tmp_path), sys.executable)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "opt/cpythonplus/clock.py").is_file()
    assert "the script is in /opt/cpythonplus" in done.stdout


def test_a_boot_and_a_shutdown(tmp_path: Path) -> None:
    reason = why_not()
    if reason is not None:
        if os.environ.get(NEEDED):
            pytest.fail(f"{NEEDED} is set, and {reason}")
        pytest.skip(reason)
    root, state = tmp_path / "root", tmp_path / "state"
    state.mkdir()
    (state / "clock").write_text(f"{SAVED}\n")
    binds = make_root(root)
    options = ["--init", "systemd", "--python", "/usr/local/bin/stand-in"]
    assert main(["install", "--root", str(root), *options]) == 0

    done = in_namespaces(BOOT, str(root), str(state), f"clock-boot-{os.getpid()}", *binds)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    units = shown((state / "order").read_text())
    restored = int(units["cpythonplus-clock-restore.service"]["ExecMainExitTimestampMonotonic"])
    time_set, sysinit = (
        int(units[name]["ActiveEnterTimestampMonotonic"])
        for name in ("time-set.target", "sysinit.target")
    )
    assert 0 < restored <= time_set <= sysinit
    assert units["cpythonplus-clock-tick.timer"]["ActiveState"] == "active"

    calls = [json.loads(line) for line in (state / "calls").read_text().splitlines()]
    assert [(call["action"], call["status"]) for call in calls] == [
        ("restore", 0),
        ("tick", 0),
        ("save", 0),
    ]
    assert all(call["is_mounted"] for call in calls)
    assert calls[0]["was"] == 100
    assert calls[1]["was"] == SAVED  # the clock as it was restored
    assert (state / "clock").read_text() == f"{SAVED + TICK_S}\n"
