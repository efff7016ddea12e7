"""Installs the clock's script and its units on a machine, and reports what else sets its clock.

The root folder is an argument, so that an image can be prepared, and a test run, on another
machine. Nothing is started here.
"""

from __future__ import annotations

import errno
import os
import pkgutil
import shlex
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from cpythonplus_sites import clock
from cpythonplus_sites.files import make_folder, replace_file, replace_link
from cpythonplus_sites.trust import weak_spot

Init = Literal["systemd", "sysv", "cron"]

PLACES = tuple(map(PurePosixPath, ("/usr/local/lib/cpythonplus", "/opt/cpythonplus")))
"""The folders for the script; the second one is for machines whose /usr is read-only."""

SCRIPT = PLACES[0] / "clock.py"
UNITS = PurePosixPath("/etc/systemd/system")
PYTHON = "/usr/bin/python3"
NAME = "cpythonplus-clock"


@dataclass(frozen=True)
class File:
    """A file to install at an absolute path: a text with a mode, or a link to `target`."""

    path: PurePosixPath
    text: str = ""
    mode: int = 0o644
    target: str | None = None


@dataclass(frozen=True)
class Conflict:
    """Something else on the machine that keeps or sets its time.

    harmful: it can take the clock back, or stop it from being restored.
    """

    what: str
    effect: str
    remedy: str
    harmful: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.effect}; {self.remedy}"


# ---- the installed files ------------------------------------------------------------------------


def files(init: Init, python: str = PYTHON, place: PurePosixPath = PLACES[0]) -> tuple[File, ...]:
    """Everything that an installation consists of, with the script in the folder `place`."""
    script = _script(place)
    command = shlex.join([python, "-I", "-S", str(script.path)])
    if init == "systemd":
        return (script, *_units(command, place), *_links())
    if init == "sysv":
        return (
            script,
            File(PurePosixPath(f"/etc/init.d/{NAME}"), SYSV.format(command=command), 0o755),
            File(PurePosixPath(f"/etc/cron.d/{NAME}"), CRON_TICK.format(command=command)),
        )
    text = CRON_RESTORE.format(command=command) + CRON_TICK.format(command=command)
    return (script, File(PurePosixPath(f"/etc/cron.d/{NAME}"), text))


def place_for(root: Path) -> PurePosixPath:
    """The folder for the script: the one that has it, else the first one that can be written.

    If no folder can be written, the first one: writing there reports the reason.
    """
    there = [place for place in PLACES if _exists(below(root, place / SCRIPT.name))]
    for place in (*there, *PLACES):
        here = below(root, place)
        if is_there(here / SCRIPT.name, _script(place)) or not is_read_only(here):
            return place
    return PLACES[0]


def is_read_only(path: Path) -> bool:
    """Whether a path, or its nearest existing parent, is on a read-only file system."""
    while not _exists(path) and path != path.parent:
        path = path.parent
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False  # writing there reports the error


def _script(place: PurePosixPath) -> File:
    return File(place / SCRIPT.name, script_text(), 0o755)


def script_text() -> str:
    """The source of clock.py, also from a package in an archive."""
    data = pkgutil.get_data("cpythonplus_sites", "clock.py")
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), clock.__file__)
    return data.decode()


def _units(command: str, place: PurePosixPath) -> list[File]:
    # In a unit, `%` and `$` begin a specifier and a variable.
    command = command.replace("%", "%%").replace("$", "$$")
    folders = f"{PurePosixPath(clock.DEFAULT_FILE).parent} {place}"
    return [
        File(UNITS / f"{NAME}-{name}", text.format(command=command, folders=folders))
        for name, text in UNIT_TEXTS.items()
    ]


def _links() -> list[File]:
    """The links that `systemctl enable` would make; it cannot run in an image."""
    return [
        File(UNITS / f"{target}.wants" / f"{NAME}-{unit}", target=f"../{NAME}-{unit}")
        for unit, target in WANTED_BY.items()
    ]


WANTED_BY = {
    "restore.service": "sysinit.target",
    "save.service": "sysinit.target",
    "tick.timer": "timers.target",
}

UNIT_TEXTS = {
    # The unit comes before time-set.target, which promises the others that the clock is not set
    # back any more. DefaultDependencies would order it behind sysinit.target, and so behind every
    # unit that reads the time early.
    "restore.service": """\
[Unit]
Description=Restore the clock of a machine without a clock chip
Documentation=man:clock_settime(2)
DefaultDependencies=no
RequiresMountsFor={folders}
After=systemd-remount-fs.service
Wants=time-set.target
Before=time-set.target sysinit.target
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={command} restore
SyslogIdentifier=cpythonplus-clock

[Install]
WantedBy=sysinit.target
""",
    # Units stop in the reverse order of their start: this one after the services, since those start
    # behind sysinit.target, and before the file system that RequiresMountsFor names is unmounted.
    "save.service": """\
[Unit]
Description=Save the clock when the machine goes down
DefaultDependencies=no
RequiresMountsFor={folders}
After=systemd-remount-fs.service cpythonplus-clock-restore.service
Before=sysinit.target
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStop={command} save
TimeoutStopSec=10
SyslogIdentifier=cpythonplus-clock

[Install]
WantedBy=sysinit.target
""",
    # systemd itself would write three lines into the journal every minute; the script's own output
    # has level err.
    "tick.service": """\
[Unit]
Description=Save the clock
RequiresMountsFor={folders}
After=cpythonplus-clock-restore.service

[Service]
Type=oneshot
ExecStart={command} tick
TimeoutStartSec=30
SyslogIdentifier=cpythonplus-clock
SyslogLevel=err
LogLevelMax=warning
""",
    # The timer is monotonic, so that setting the clock does not affect it.
    "tick.timer": """\
[Unit]
Description=Save the clock every minute

[Timer]
OnActiveSec=1min
OnUnitActiveSec=1min
AccuracySec=5s

[Install]
WantedBy=timers.target
""",
}

SYSV = """\
#!/bin/sh
### BEGIN INIT INFO
# Provides:          cpythonplus-clock
# Required-Start:    $local_fs
# Required-Stop:     $local_fs
# X-Start-Before:    networking
# Default-Start:     S
# Default-Stop:      0 6
# Short-Description: Keeps the time of a machine without a clock chip
### END INIT INFO
case "$1" in
    start) {command} restore ;;
    stop) {command} save ;;
    restart | force-reload) ;;
    status) {command} status ;;
    *)
        echo "usage: $0 start | stop | restart | status" >&2
        exit 2
        ;;
esac
"""
CRON_RESTORE = "@reboot root {command} restore\n"
CRON_TICK = "* * * * * root {command} tick\n"


# ---- installing ---------------------------------------------------------------------------------


def install(root: Path, wanted: tuple[File, ...]) -> list[PurePosixPath]:
    """Write the files below `root`; returns the paths of those that had to be changed.

    The umask does not affect the modes of files and new folders. Raises OSError.
    """
    changed = []
    for file in wanted:
        path = below(root, file.path)
        _refuse_outside(root, path.parent)
        if is_there(path, file):
            continue
        make_folder(path.parent)
        if file.target is not None:
            replace_link(path, file.target)
        else:
            # Root runs the file, so root must own it, and a link in its place is replaced.
            data, mode = file.text.encode(), file.mode
            replace_file(path, data, mode=mode, keep_owner=False, follow=False)
        changed.append(file.path)
    return changed


def refuse_others(root: Path, wanted: tuple[File, ...], python: str) -> None:
    """Raise OSError if somebody other than root could change what root is going to run.

    The interpreter, the folders of the files and that of the saved time are checked. Missing paths,
    and paths outside of an image, are not.
    """
    top = root.resolve()
    folders = dict.fromkeys(file.path.parent for file in wanted)
    for path in (*folders, PurePosixPath(clock.DEFAULT_FILE).parent, PurePosixPath(python)):
        here = below(root, path)
        inside = here.resolve().is_relative_to(top)
        found = weak_spot(here, top=str(top)) if inside else None
        if found is not None:
            is_python = path == PurePosixPath(python)
            text = f"root would {'run' if is_python else 'trust'} it, and {found}"
            text += "; --python names another one" * is_python
            raise OSError(errno.EPERM, text, str(here))


def uninstall(root: Path) -> list[PurePosixPath]:
    """Remove all files that `install` may have written; the saved time stays. Raises OSError."""
    removed = []
    inits: tuple[Init, ...] = ("systemd", "sysv", "cron")
    everything = {file.path for init in inits for at in PLACES for file in files(init, place=at)}
    for path in sorted(everything):
        here = below(root, path)
        if _exists(here):
            _refuse_outside(root, here.parent)
            here.unlink()
            removed.append(path)
    for place in (below(root, each) for each in PLACES):
        if place / SCRIPT.name in [below(root, path) for path in removed]:
            with suppress(OSError):  # the folder has files of others
                place.rmdir()
    return removed


def _refuse_outside(root: Path, folder: Path) -> None:
    """Raise OSError if a link on the way leads out of the root folder of an image.

    An absolute link in an image means a path in the image; followed from here, it leads to this
    machine's own files.
    """
    if not folder.resolve().is_relative_to(root.resolve()):
        raise OSError(errno.EXDEV, f"resolves to {folder.resolve()}, outside {root}", str(folder))


def not_there(root: Path, wanted: tuple[File, ...]) -> list[PurePosixPath]:
    """The paths that `install` would write. Raises OSError."""
    return [file.path for file in wanted if not is_there(below(root, file.path), file)]


def is_there(path: Path, file: File) -> bool:
    """Whether a file is already as wanted."""
    if file.target is not None:
        return _target(path) == file.target
    if path.is_symlink() or not path.is_file():
        return False
    status = path.stat()
    if status.st_mode & 0o7777 != file.mode or status.st_uid not in (0, os.geteuid()):
        return False
    return path.read_bytes() == file.text.encode()


def _target(path: Path) -> str | None:
    """The target of a link; None if the path is no link."""
    try:
        return str(path.readlink())
    except OSError:
        return None


def below(root: Path, path: PurePosixPath) -> Path:
    """An absolute path, below `root` as the root folder."""
    return root / path.relative_to("/")


def missing(root: Path, wanted: tuple[File, ...]) -> list[PurePosixPath]:
    """The files that do not exist. Their contents may differ, as with another Python."""
    return [file.path for file in wanted if not _exists(below(root, file.path))]


def _exists(path: Path) -> bool:
    """Whether a path exists, a broken link included; false if permission is denied.

    On some versions, pathlib raises an exception for the latter.
    """
    try:
        path.lstat()
    except OSError:
        return False
    return True


def init_of(root: Path) -> Init:
    """The init system of the machine with this root folder."""
    if any(_exists(root / place / "systemd/systemd") for place in ("usr/lib", "lib")):
        return "systemd"
    return "sysv" if _exists(root / "etc/init.d/rcS") else "cron"


# ---- other programs that set the clock ----------------------------------------------------------


def conflicts(root: Path) -> list[Conflict]:
    """The other programs on this machine that set the time. Unreadable files count as absent."""
    found = [_timesyncd(root), _fake_hwclock(root), _chrony(root), _hwclock(root)]
    return [conflict for conflict in found if conflict is not None]


def _timesyncd(root: Path) -> Conflict | None:
    own = root / "var/lib/systemd/timesync/clock"
    if not (_exists(own) or _is_enabled(root, "systemd-timesyncd.service")):
        return None
    return Conflict(
        "systemd-timesyncd",
        f"moves the clock forward to the time of its own file /{own.relative_to(root)}",
        "can stay: neither goes back, the later time wins",
        harmful=False,
    )


def _fake_hwclock(root: Path) -> Conflict | None:
    units = ("fake-hwclock.service", "fake-hwclock-load.service", "fake-hwclock-save.service")
    enabled = [unit for unit in units if _is_enabled(root, unit)]
    script = root / "etc/init.d/fake-hwclock"
    hourly = root / "etc/cron.hourly/fake-hwclock"
    if not (enabled or _exists(script) or _exists(hourly)):
        return None
    how = f"systemctl disable {' '.join(enabled)}, or " if enabled else ""
    return Conflict(
        "fake-hwclock",
        "also restores the clock at boot, from a time saved only every hour",
        f"{how}apt-get purge fake-hwclock",
        harmful=True,
    )


def _chrony(root: Path) -> Conflict | None:
    for name in ("etc/default/chrony", "etc/sysconfig/chronyd", "etc/conf.d/chronyd"):
        for line in _lines(root / name):
            if "-s" in line.partition("=")[2].strip(" \"'").split():
                return Conflict(
                    "chrony -s",
                    "sets the clock from the chip, or to the drift file's time",
                    f"remove -s from /{name}",
                    harmful=True,
                )
    for name in ("etc/chrony/chrony.conf", "etc/chrony.conf"):
        steps = [line for line in _lines(root / name) if line.split()[0] == "makestep"]
        if steps:
            return Conflict(
                f"chrony, {steps[0]!r}",
                "steps the clock, also backwards, after an answer from a server",
                "can stay: the clock is right then, and the next save corrects the file",
                harmful=False,
            )
    return None


def _hwclock(root: Path) -> Conflict | None:
    units = ("hwclock-save.service", "hwclock.service", "hwclock.sh.service")
    enabled = [unit for unit in units if _is_enabled(root, unit)]
    script = root / "etc/init.d/hwclock.sh"
    if not enabled and not _exists(script):
        return None
    how = f"systemctl disable {' '.join(enabled)}" if enabled else "update-rc.d hwclock.sh remove"
    return Conflict(
        enabled[0] if enabled else "hwclock.sh",
        "reads or writes a clock chip; without a working one it fails or sets a wrong time",
        f"without a chip: {how}",
        harmful=False,
    )


def _is_enabled(root: Path, unit: str) -> bool:
    mask = root / "etc/systemd/system" / unit
    if _target(mask) == "/dev/null":
        return False
    return any(
        _exists(link)
        for folder in ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
        for link in (root / folder).glob(f"*.wants/{unit}")
    )


def _lines(path: Path) -> list[str]:
    """The lines of a configuration file, without comments and empty ones."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and line[0] not in "#!;%"]
