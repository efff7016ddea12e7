"""What root makes and later trusts is root's alone, whatever the umask is and whoever was there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cpythonplus_sites
from cpythonplus_sites import clock, clock_units, this_host
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import gateway as gateway_command
from cpythonplus_sites.commands import plan as plan_command
from cpythonplus_sites.commands.clock import main as clock_main
from cpythonplus_sites.commands.sites import main as sites_main
from cpythonplus_sites.machine import Machine
from cpythonplus_sites.secrets import SecretError
from cpythonplus_sites.trust import weak_spot
from sites.tests.programs import needs_ssh_keygen
from sites.tests.simulated import Simulated
from sites.tests.test_apply_command import FILE, PRIVATE, sites
from tests.support import under

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.any_version,
    pytest.mark.skipif(os.geteuid() != 0, reason="is about what root makes"),
]

UMASKS = pytest.mark.parametrize("umask", [0, 0o077, 0o777], ids="{:03o}".format)
SOMEBODY = 1234
INITS = ("systemd", "sysv", "cron")


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Of all that is below a folder, but for links: `0755/` of a folder, `0644` of a file."""
    return {
        str(path.relative_to(folder)): f"{stat.S_IMODE(path.stat().st_mode):04o}"
        + "/" * path.is_dir()
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


# ---- modes --------------------------------------------------------------------------------------


@UMASKS
@pytest.mark.parametrize("init", INITS)
def test_the_clocks_code_and_its_folders(tmp_path: Path, umask: int, init: str) -> None:
    root = tmp_path / "image"
    root.mkdir()
    with under(umask):
        assert clock_main(["install", "--root", str(root), "--init", init]) == 0
    found = modes(root)
    assert found["usr/local/lib/cpythonplus/clock.py"] == "0755"
    assert {mode for mode in found.values() if mode.endswith("/")} == {"0755/"}
    assert {mode for mode in found.values() if not mode.endswith("/")} <= {"0755", "0644"}


@UMASKS
def test_the_clocks_time_and_its_folder(tmp_path: Path, umask: int) -> None:
    """By the script alone, as a timer calls it."""
    words = [sys.executable, "-I", "-S", clock.__file__, "save", "--no-rtc"]
    words += ["--file", str(tmp_path / "new" / "clock"), "--floor", "0"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, umask=umask)
    assert done.returncode == 0, done.stderr
    assert modes(tmp_path) == {"new": "0755/", "new/clock": "0644"}


@needs_ssh_keygen
@UMASKS
def test_the_keys_and_the_folders_that_they_stand_in(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "etc" / "cpythonplus" / "sites"
    with under(umask):
        assert sites_main(["keygen", "--ssh", "--secret", "--host-dir", str(folder)]) == 0
    assert modes(tmp_path) == {
        "etc": "0755/",
        "etc/cpythonplus": "0755/",
        "etc/cpythonplus/sites": "0700/",
        "etc/cpythonplus/sites/preshared.secret": "0600",
        "etc/cpythonplus/sites/private.key": "0600",
        "etc/cpythonplus/sites/ssh_key": "0600",
        "etc/cpythonplus/sites/ssh_key.pub": "0644",
    }


@UMASKS
def test_what_apply_writes(tmp_path: Path, umask: int) -> None:
    with under(umask):
        Machine().write(tmp_path / "etc/wireguard/wg-acme.conf", "", mode=0o600)
        Machine().write(tmp_path / "etc/systemd/system/x.service.d/x.conf", "", mode=0o644)
    assert modes(tmp_path) == {
        "etc": "0755/",
        "etc/systemd": "0755/",
        "etc/systemd/system": "0755/",
        "etc/systemd/system/x.service.d": "0755/",
        "etc/systemd/system/x.service.d/x.conf": "0644",
        "etc/wireguard": "0700/",
        "etc/wireguard/wg-acme.conf": "0600",
    }


@UMASKS
@pytest.mark.parametrize(
    ("main", "words"),
    [(clock_main, ["status"]), (sites_main, ["check", "--file", "/nowhere"])],
)
def test_a_command_of_root_and_what_it_starts_have_the_usual_umask(
    umask: int,
    main: Callable[[list[str]], int],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with under(umask):
        main(words)
        assert Machine().run(["sh", "-c", "umask"]).out == "0022\n"
    capsys.readouterr()


# ---- what was there -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place", ["usr", "usr/local/lib/cpythonplus", "etc/systemd/system", "var/lib/cpythonplus-clock"]
)
@pytest.mark.parametrize("is_dry", [False, True])
def test_the_clock_is_not_installed_where_others_can_change_it(
    tmp_path: Path, place: str, is_dry: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    words = ["install", "--root", str(tmp_path), "--init", "systemd"]
    words += ["--dry-run"] * is_dry
    for change, message in (
        (partial(folder.chmod, 0o777), f"others can change {folder}; chmod go-w {folder}\n"),
        (partial(os.chown, folder, SOMEBODY, 0), f"{folder} belongs to user {SOMEBODY}\n"),
    ):
        change()
        before = modes(tmp_path)
        assert clock_main(words) == 1
        err = capsys.readouterr().err
        assert (err.count("\n"), err.endswith(message)) == (1, True), err
        assert modes(tmp_path) == before
        folder.chmod(0o755)
    os.chown(folder, 0, 0)
    assert clock_main(words) == 0


def test_the_clocks_code_does_not_stay_somebodys(tmp_path: Path) -> None:
    """With the right text and the right mode, but not the right owner."""
    words = ["install", "--root", str(tmp_path), "--init", "cron"]
    assert clock_main(words) == 0
    script = tmp_path / "usr/local/lib/cpythonplus/clock.py"
    os.chown(script, SOMEBODY, SOMEBODY)
    assert clock_main(words) == 0
    assert (script.stat().st_uid, script.stat().st_gid) == (0, 0)


def test_the_clock_is_not_run_by_a_python_that_others_can_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "opt" / "python"
    python.parent.mkdir()
    python.touch()
    words = ["install", "--root", str(tmp_path), "--init", "cron"]
    words += ["--python", "/opt/python"]
    python.chmod(0o777)
    assert clock_main(words) == 1
    line = f"root would run it, and others can change {python}; chmod go-w {python}"
    text = f"cpythonplus-clock: {python}: {line}; --python names another one\n"
    assert capsys.readouterr().err == text
    assert not (tmp_path / "usr").exists()
    python.chmod(0o755)
    assert clock_main(words) == 0
    # On the machine itself the folders above count, too: such as /tmp, or another below it.
    tmp_path.chmod(0o777)
    with pytest.raises(OSError, match="root would run it, and others can change"):
        clock_units.refuse_others(Path("/"), (), str(python))


def test_apply_does_not_write_where_others_can_exchange_it(tmp_path: Path) -> None:
    folder = tmp_path / "wireguard"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SecretError, match=f"others can change {folder}; chmod go-w {folder}"):
        Machine().write(folder / "wg-acme.conf", "", mode=0o600)
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    (folder / "wg-acme.conf").touch()
    os.chown(folder / "wg-acme.conf", SOMEBODY, SOMEBODY)
    Machine().write(folder / "wg-acme.conf", "", mode=0o644)
    assert (folder / "wg-acme.conf").stat().st_uid == 0


def test_keys_are_not_made_where_others_can_exchange_their_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    above = tmp_path / "cpythonplus"
    above.mkdir()
    above.chmod(0o777)
    words = ["keygen", "--host-dir", str(above / "sites")]
    assert sites_main(words) == 2
    line = f"cpythonplus-sites: others can change {above}; chmod go-w {above}\n"
    assert capsys.readouterr().err == line
    above.chmod(0o755)
    assert sites_main(words) == 0


# ---- the clock's own writer ---------------------------------------------------------------------


def save(file: Path) -> int:
    now = clock.FLOOR + 86400
    words = ["save", "--file", str(file), "--no-rtc"]
    return clock.main(words, now=lambda: now, is_trusted=lambda: False)


@pytest.mark.parametrize("plant", ["link", "second name", "pipe"])
def test_the_clock_does_not_write_through_what_is_at_its_new_name(
    tmp_path: Path, plant: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    fresh = folder / "clock.new"
    if plant == "link":
        fresh.symlink_to(victim)
    elif plant == "second name":
        os.link(victim, fresh)
    else:
        os.mkfifo(fresh)
    if save(folder / "clock") != 0:
        assert save(folder / "clock") == 0  # it was told once, and taken away
    assert victim.read_text() == "precious"
    assert [path.name for path in folder.iterdir()] == ["clock"]
    assert (folder / "clock").is_file()


def test_the_clocks_file_is_no_link_of_somebody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "clock").symlink_to(victim)
    assert save(shared / "clock") == clock.NOT_PERMITTED
    told = f"{shared}/clock: is a link in a folder that others can write to\n"
    assert capsys.readouterr().err == f"cpythonplus-clock: {told}"
    assert victim.read_text() == "precious"


# ---- what a unit of root runs -------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of root's with this package in it; what it stands in is not looked at."""
    found = tmp_path.resolve() / "venv"
    package = found / "lib" / "cpythonplus_sites"
    package.mkdir(parents=True)
    (found / "bin").mkdir()
    (found / "bin" / "python3.13").touch(0o755)
    (found / "bin" / "python").symlink_to("python3.13")
    for name in ("__init__.py", "trust.py"):
        (package / name).touch(0o644)
    monkeypatch.setattr(sys, "executable", str(found / "bin" / "python"))
    monkeypatch.setattr(os, "__file__", str(found / "lib" / "os.py"))
    monkeypatch.setattr(cpythonplus_sites, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(this_host, "weak_spot", partial(weak_spot, top=str(found.parent)))
    return found


def test_an_environment_of_roots_is_trusted(environment: Path) -> None:
    assert environment.is_dir()
    assert this_host.foreign_hand() is None


@pytest.mark.parametrize(
    "place",
    ["", "bin", "bin/python3.13", "lib", "lib/cpythonplus_sites", "lib/cpythonplus_sites/trust.py"],
)
def test_one_that_others_can_change_is_not(environment: Path, place: str) -> None:
    path = environment / place
    path.chmod(0o777)
    assert this_host.foreign_hand() == f"others can change {path}; chmod go-w {path}"
    path.chmod(0o755)
    os.chown(path, SOMEBODY, SOMEBODY)
    assert this_host.foreign_hand() == f"{path} belongs to user {SOMEBODY}"


def test_what_the_environment_stands_in_counts(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(this_host, "weak_spot", weak_spot)
    environment.parent.chmod(0o777)
    found = this_host.foreign_hand()
    assert found is not None
    assert found.startswith("others can change /")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "host"
    found.mkdir(mode=0o700)
    (found / "sites.toml").write_text(FILE)
    (found / "private.key").write_text(f"{PRIVATE}\n")
    (found / "private.key").chmod(0o600)
    return found


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    found = Simulated(settings={"net/ipv4/ip_forward": "0"}, systemd=True)
    for module in (apply_command, plan_command):
        monkeypatch.setattr(module, "Machine", lambda: found)
    return found


@pytest.mark.parametrize("action", ["plan", "apply"])
def test_no_unit_of_root_runs_what_others_can_change(
    machine: Simulated,
    folder: Path,
    environment: Path,
    action: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    yes = ["--yes"] * (action == "apply")
    environment.chmod(0o777)
    status, out, err = sites(capsys, folder, action, *yes)
    assert (status, out) == (2, "")
    assert err == (
        f"cpythonplus-sites: a unit would run {environment}/bin/python -m cpythonplus_sites as "
        f"root, and others can change {environment}; chmod go-w {environment}; install "
        "cpythonplus-sites where only root can write, as in a venv below /opt (or give "
        "--no-systemd)\n"
    )
    assert (machine.ran, machine.files) == ([], {})
    # Where none is written it does not matter.
    assert sites(capsys, folder, action, *yes, "--no-systemd")[2] == ""
    environment.chmod(0o755)
    assert sites(capsys, folder, action, *yes)[2] == ""


def test_following_endpoints_goes_on(
    machine: Simulated,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The unit is there already, and every minute a line in the journal would mend nothing."""
    assert machine.systemd
    monkeypatch.setattr(gateway_command, "foreign_hand", lambda: "no")
    status, _, told = sites(capsys, folder, "apply", "--endpoints-only")
    assert (status, "install cpythonplus-sites" in told) == (0, False)
    assert sites(capsys, folder, "apply", "--endpoints-only")[2] == ""


def test_apply_does_not_trust_a_folder_of_keys_that_others_can_exchange(
    machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.chmod(0o777)
    status, _, err = sites(capsys, folder, "apply", "--yes", "--no-systemd")
    assert (status, machine.ran) == (2, [])
    assert err == f"cpythonplus-sites: others can change {folder}; chmod 700 {folder}\n"
