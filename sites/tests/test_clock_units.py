"""What `cpythonplus-clock install` writes, and what it finds on a machine."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from cpythonplus_sites import clock, clock_units
from cpythonplus_sites.commands.clock import main

pytestmark = pytest.mark.any_version

INITS: tuple[clock_units.Init, ...] = ("systemd", "sysv", "cron")


def contents(root: Path) -> dict[str, str]:
    """Every file and link below a folder."""
    return {
        str(path.relative_to(root)): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        for path in root.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def install(root: Path, *options: str) -> int:
    return main(["install", "--root", str(root), *options])


# ---- installing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("init", INITS)
def test_what_is_installed_is_taken_away(tmp_path: Path, init: str) -> None:
    put(tmp_path, "etc/systemd/system/other.service", "[Unit]\n")
    put(tmp_path, "var/lib/cpythonplus-clock/clock", "1793491200\n")
    before = contents(tmp_path)
    assert install(tmp_path, "--init", init) == 0
    assert contents(tmp_path) != before
    script = tmp_path / "usr/local/lib/cpythonplus/clock.py"
    assert script.read_text() == Path(clock.__file__).read_text()
    assert script.stat().st_mode & 0o777 == 0o755
    assert main(["uninstall", "--root", str(tmp_path)]) == 0
    assert contents(tmp_path) == before


def test_a_link_in_an_image_does_not_lead_out_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image, machine = tmp_path / "image", tmp_path / "machine"
    put(machine, "local/lib/cpythonplus/clock.py", "of the machine")
    (image / "usr").mkdir(parents=True)
    (image / "usr/local").symlink_to(machine / "local")
    before = contents(machine)
    assert install(image, "--init", "cron") == 1
    assert main(["uninstall", "--root", str(image)]) == 1
    assert contents(machine) == before
    assert f"outside {image}" in capsys.readouterr().err


def test_a_link_inside_of_an_image_is_followed(tmp_path: Path) -> None:
    put(tmp_path, "var/usrlocal/lib/x")
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr/local").symlink_to("../var/usrlocal")
    assert install(tmp_path, "--init", "cron") == 0
    assert (tmp_path / "var/usrlocal/lib/cpythonplus/clock.py").is_file()


def test_a_dry_run_that_may_not_look_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(path: Path, _file: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(clock_units, "is_there", refused)
    assert install(tmp_path, "--dry-run") == 1
    script = tmp_path / "usr/local/lib/cpythonplus/clock.py"
    assert capsys.readouterr().err == f"cpythonplus-clock: {script}: Permission denied\n"


def test_a_working_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["install", "--root", "image"]) == 2
    assert capsys.readouterr().err == "cpythonplus-clock: image: No such file or directory\n"


@pytest.mark.parametrize("init", INITS)
def test_the_second_time_there_is_nothing_to_do(
    tmp_path: Path, init: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, "--init", init)
    before = contents(tmp_path)
    capsys.readouterr()
    assert install(tmp_path, "--init", init) == 0
    assert capsys.readouterr().out == "nothing to do: everything is installed\n"
    assert contents(tmp_path) == before


def test_what_was_changed_is_mended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(tmp_path, "--init", "systemd")
    whole = contents(tmp_path)
    units = tmp_path / "etc/systemd/system"
    (units / "cpythonplus-clock-save.service").write_text("[Unit]\n")
    (units / "timers.target.wants/cpythonplus-clock-tick.timer").unlink()
    capsys.readouterr()
    assert install(tmp_path, "--init", "systemd", "--dry-run") == 0
    told = capsys.readouterr().out
    assert install(tmp_path, "--init", "systemd") == 0
    assert capsys.readouterr().out == told.replace("would write", "wrote")
    assert told.count("\n") == 2
    assert contents(tmp_path) == whole


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert install(tmp_path, "--dry-run") == 0
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["install", "--root", "/nowhere/at/all"], "/nowhere/at/all: no such folder"),
        (["install", "--init", "upstart"], "argument --init: invalid choice"),
        (["install", "--python", "python3"], "--python: expected an absolute path, got 'python3'"),
        (["uninstall", "now"], "unrecognized arguments: now"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"cpythonplus-clock: {message}")


def test_a_place_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "usr", "a file")
    assert install(tmp_path, "--init", "cron") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    for action in ("install", "uninstall", "status", "save, restore, tick"):
        assert f"\n  {action}" in text
    assert main(["restart"]) == 2


def test_the_scripts_own_actions_are_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The latest floor, in 2046: no machine's clock is right.
    floor = str(clock.FLOOR + clock.LIFETIME_S)
    words = ["save", "--file", str(tmp_path / "clock"), "--floor", floor]
    assert main(words) == clock.BAD_STATE
    assert "the clock cannot be right" in capsys.readouterr().err
    assert main(["status", *words[1:]]) == clock.BAD_STATE
    out = capsys.readouterr().out.splitlines()
    assert out[1] == f"file:  {tmp_path}/clock: does not exist"
    assert len(out) >= 5


@pytest.mark.parametrize(("init", "is_told"), [("systemd", True), ("cron", False)])
def test_what_still_runs_is_to_be_ended_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], init: str, is_told: bool
) -> None:
    monkeypatch.setattr(clock_units, "uninstall", lambda _root: [clock_units.SCRIPT])
    monkeypatch.setattr(clock_units, "init_of", lambda _root: init)
    assert main(["uninstall"]) == 0
    printed = capsys.readouterr().out
    assert ("systemctl stop cpythonplus-clock-tick.timer; systemctl daemon-reload" in printed) is (
        is_told
    )


def read_only(monkeypatch: pytest.MonkeyPatch, *folders: str) -> None:
    """As the file systems of folders in an image are."""

    def told(path: Path) -> bool:
        return any(f"/{folder}/" in f"{path}/" for folder in folders)

    monkeypatch.setattr(clock_units, "is_read_only", told)


@pytest.mark.parametrize("init", INITS)
def test_where_usr_is_read_only_the_script_is_in_opt(
    tmp_path: Path,
    init: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    read_only(monkeypatch, "usr")
    assert install(tmp_path, "--init", init, "--dry-run") == 0
    dry = capsys.readouterr().out
    assert install(tmp_path, "--init", init) == 0
    out = capsys.readouterr().out
    assert out.startswith(dry.replace("would write", "wrote"))
    assert "the script is in /opt/cpythonplus, as /usr/local/lib/cpythonplus is read-only" in out
    found = contents(tmp_path)
    assert found["opt/cpythonplus/clock.py"] == Path(clock.__file__).read_text()
    assert not any(name.startswith("usr/") for name in found)
    starters = [text for name, text in found.items() if name.startswith("etc") and " -S " in text]
    assert starters
    assert all("/opt/cpythonplus/clock.py" in text for text in starters)
    assert not any("/usr/local" in text for text in starters)
    assert install(tmp_path, "--init", init) == 0
    assert capsys.readouterr().out == "nothing to do: everything is installed\n"
    # It stays there when /usr can be written for once.
    monkeypatch.undo()
    assert install(tmp_path, "--init", init) == 0
    assert contents(tmp_path) == found
    assert main(["uninstall", "--root", str(tmp_path)]) == 0
    assert contents(tmp_path) == {}
    assert not (tmp_path / "opt/cpythonplus").exists()


def test_a_script_of_the_image_is_used_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install(tmp_path, "--init", "cron") == 0
    read_only(monkeypatch, "usr")
    assert clock_units.place_for(tmp_path) == clock_units.PLACES[0]
    (tmp_path / "usr/local/lib/cpythonplus/clock.py").write_text("of an older version")
    assert clock_units.place_for(tmp_path) == clock_units.PLACES[1]


def test_a_mount_that_holds_the_script_is_waited_for(tmp_path: Path) -> None:
    wanted = clock_units.files("systemd", place=PurePosixPath("/opt/cpythonplus"))
    texts = [file.text for file in wanted if "RequiresMountsFor" in file.text]
    assert len(texts) == 3
    line = "RequiresMountsFor=/var/lib/cpythonplus-clock /opt/cpythonplus\n"
    assert all(line in text for text in texts)


def test_nothing_that_can_be_written_is_one_line_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read_only(monkeypatch, "usr", "opt", "etc")

    def refused(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(clock_units, "make_folder", refused)
    assert install(tmp_path, "--init", "cron") == 1
    told = capsys.readouterr().err
    folder = tmp_path / "usr/local/lib/cpythonplus"
    assert told.startswith(f"cpythonplus-clock: {folder}: Read-only file system; make it writable")
    assert told.endswith("--root DIR\n")


# ---- the units ----------------------------------------------------------------------------------


def unit(name: str, python: str = clock_units.PYTHON) -> dict[str, dict[str, list[str]]]:
    """A unit as section, key, words; a key that stands twice has the words of both."""
    path = clock_units.UNITS / f"cpythonplus-clock-{name}"
    (text,) = (file.text for file in clock_units.files("systemd", python) if file.path == path)
    parsed: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line:
            key, _, value = line.partition("=")
            parsed.setdefault(section, {}).setdefault(key, []).extend(value.split())
    return parsed


MOUNTS = [str(Path(clock.DEFAULT_FILE).parent), "/usr/local/lib/cpythonplus"]
"""What holds the time, and what holds the script."""


def test_the_clock_is_right_before_anybody_is_told_so() -> None:
    options = unit("restore.service")["Unit"]
    assert {"time-set.target", "sysinit.target"} <= set(options["Before"])
    assert options["Wants"] == ["time-set.target"]
    assert options["DefaultDependencies"] == ["no"]
    assert options["RequiresMountsFor"] == MOUNTS


def test_the_save_at_shutdown_comes_while_the_disk_is_there() -> None:
    options = unit("save.service")
    assert options["Unit"]["Conflicts"] == ["shutdown.target"]
    assert "shutdown.target" in options["Unit"]["Before"]
    assert options["Unit"]["RequiresMountsFor"] == MOUNTS
    assert options["Service"]["ExecStop"][-1] == "save"
    assert options["Service"]["RemainAfterExit"] == ["yes"]


def test_every_unit_is_enabled_where_it_says() -> None:
    links = {
        file.path: file.target for file in clock_units.files("systemd") if file.target is not None
    }
    for name, target in clock_units.WANTED_BY.items():
        assert unit(name)["Install"]["WantedBy"] == [target]
        link = clock_units.UNITS / f"{target}.wants" / f"cpythonplus-clock-{name}"
        assert links.pop(link) == f"../cpythonplus-clock-{name}"
    assert links == {}


def test_an_odd_path_of_python_is_quoted() -> None:
    command = unit("tick.service", "/opt/100% $new/python")["Service"]["ExecStart"]
    assert " ".join(command).startswith("'/opt/100%% $$new/python' -I -S /usr/local/")


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not to be had"
)
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """In a root of its own, with the targets and mounts of this machine's systemd."""
    assert install(tmp_path, "--init", "systemd") == 0
    put(tmp_path, "usr/bin/python3", "#!/bin/sh\n")
    (tmp_path / "usr/bin/python3").chmod(0o755)
    shutil.copytree(
        Path("/usr/lib/systemd/system"), tmp_path / "usr/lib/systemd/system", symlinks=True
    )
    names = [f"cpythonplus-clock-{name}" for name in clock_units.UNIT_TEXTS]
    done = subprocess.run(
        ["systemd-analyze", f"--root={tmp_path}", "--man=no", "verify", *names],
        check=False,
        capture_output=True,
        text=True,
    )
    own = [line for line in done.stderr.splitlines() if "cpythonplus" in line]
    assert own == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("init", ["sysv", "cron"])
def test_other_scripts_are_accepted_by_the_shell(tmp_path: Path, init: str) -> None:
    install(tmp_path, "--init", init)
    script = tmp_path / "etc/init.d/cpythonplus-clock"
    if init == "sysv":
        subprocess.run(["sh", "-n", str(script)], check=True)
        assert subprocess.run([str(script), "jump"], check=False, stderr=-3).returncode == 2
    lines = (tmp_path / "etc/cron.d/cpythonplus-clock").read_text().splitlines()
    command = "root /usr/bin/python3 -I -S /usr/local/lib/cpythonplus/clock.py"
    assert f"* * * * * {command} tick" in lines
    assert (f"@reboot {command} restore" in lines) == (init == "cron")


# ---- what starts services, and what else sets the clock -----------------------------------------


@pytest.mark.parametrize(
    ("path", "init"),
    [
        ("usr/lib/systemd/systemd", "systemd"),
        ("lib/systemd/systemd", "systemd"),
        ("etc/init.d/rcS", "sysv"),
        ("etc/passwd", "cron"),
    ],
)
def test_what_starts_services_is_found(tmp_path: Path, path: str, init: str) -> None:
    put(tmp_path, path)
    assert clock_units.init_of(tmp_path) == init


WANTS = "etc/systemd/system/sysinit.target.wants"


@pytest.mark.parametrize(
    ("files", "what", "harmful"),
    [
        ({"var/lib/systemd/timesync/clock": ""}, "systemd-timesyncd", False),
        ({f"{WANTS}/systemd-timesyncd.service": ""}, "systemd-timesyncd", False),
        ({f"{WANTS}/fake-hwclock.service": ""}, "fake-hwclock", True),
        ({f"{WANTS}/fake-hwclock-load.service": ""}, "fake-hwclock", True),
        ({"etc/cron.hourly/fake-hwclock": ""}, "fake-hwclock", True),
        ({"etc/default/chrony": 'DAEMON_OPTS="-F 1 -s"\n'}, "chrony -s", True),
        ({"etc/sysconfig/chronyd": "OPTIONS='-s -u x'\n"}, "chrony -s", True),
        (
            {"etc/chrony/chrony.conf": "# makestep\n\nmakestep 1 3\n"},
            "chrony, 'makestep 1 3'",
            False,
        ),
        ({f"{WANTS}/hwclock-save.service": ""}, "hwclock-save.service", False),
        ({"etc/init.d/hwclock.sh": ""}, "hwclock.sh", False),
    ],
)
def test_what_else_sets_the_clock_is_told(
    tmp_path: Path,
    files: dict[str, str],
    what: str,
    harmful: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for path, text in files.items():
        put(tmp_path, path, text)
    (found,) = clock_units.conflicts(tmp_path)
    assert (found.what, found.harmful) == (what, harmful)
    assert install(tmp_path, "--init", "systemd") == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(found)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"etc/default/chrony": 'DAEMON_OPTS="-F -something"\n# DAEMON_OPTS="-s"\n'},
        {"etc/chrony.conf": "pool pool.ntp.org iburst\n! makestep 1 3\n"},
        {"usr/lib/systemd/system/systemd-timesyncd.service": "[Unit]\n"},
    ],
)
def test_what_does_not_set_it_is_not_told(tmp_path: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        put(tmp_path, path, text)
    assert clock_units.conflicts(tmp_path) == []


def test_a_masked_unit_does_not_set_it(tmp_path: Path) -> None:
    put(tmp_path, f"{WANTS}/systemd-timesyncd.service")
    (tmp_path / "etc/systemd/system/systemd-timesyncd.service").symlink_to("/dev/null")
    assert clock_units.conflicts(tmp_path) == []


def test_what_may_not_be_looked_at_counts_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """timesyncd's folder may be private, and `status` need not be root's."""

    put(tmp_path, "var/lib/systemd/timesync/clock")
    assert clock_units.conflicts(tmp_path) != []

    def guarded(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def call(path: Path, **options: bool) -> os.stat_result:
            if "timesync" in path.parts:
                raise PermissionError(errno.EACCES, "no")
            return real(path, **options)

        return call

    for name in ("stat", "lstat"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))
    assert clock_units.conflicts(tmp_path) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    wanted = clock_units.files("systemd")
    clock_units.install(tmp_path, wanted)
    assert clock_units.missing(tmp_path, wanted) == []
    gone = PurePosixPath("/etc/systemd/system/cpythonplus-clock-tick.timer")
    clock_units.below(tmp_path, gone).unlink()
    assert clock_units.missing(tmp_path, wanted) == [gone]
