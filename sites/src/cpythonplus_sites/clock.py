#!/usr/bin/env python3
"""Keeps the time of a machine without a clock chip: saved every minute, restored at boot.

The file needs nothing but Python: `python3 clock.py restore` works without the package. It keeps to
the grammar of Python 3.6, since boards are old, and imports next to nothing, since it runs early in
the boot: no argparse, no pathlib, no re.

The saved file holds whole seconds since the epoch (UTC) and a newline: no time zone, no summer time
and no order of day and month can be misread, and a truncated file has no newline.
"""

import errno
import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

GOOD, BAD_STATE, WRONG_USAGE, READ_ONLY, NOT_PERMITTED, WOULD_GO_BACK, FAILED = range(7)
"""Exit statuses; HELP says what they mean."""

FLOOR = 1795651200
"""2026-11-26, when this was built, in epoch seconds: a clock with an earlier time is wrong."""
LIFETIME_S = 20 * 365 * 86400
"""A clock whose time is later than the floor plus LIFETIME_S is wrong as well."""
LEAD_S = 86400
"""The seconds by which a file may be ahead of its date: file systems round dates, or store local
time."""
DEFAULT_FILE = "/var/lib/cpythonplus-clock/clock"
"""The file is on disk, in a folder of its own, because the folder is locked."""
CHIP = "/sys/class/rtc/rtc0/since_epoch"
CHIP_DRIFT_S = 60
SIZE_LIMIT = 20
"""The bytes of the longest whole number of 64 bits, and a newline."""
LEAP_S = 366 * 86400
"""The seconds by which the clock may be set forward by hand, as after a winter in a drawer."""
BOOTTIME = getattr(time, "CLOCK_BOOTTIME", 7)
"""CLOCK_BOOTTIME, which has no name before Python 3.7; this is Linux's number."""
STALE_S = 300
"""The age in seconds from which a file cannot have been saved every minute."""
FLOOR_SOURCE = "the floor"
TIME_ERROR = 5
"""TIME_ERROR: adjtimex(2) returns it while nothing disciplines the clock."""

HELP = """\
usage: cpythonplus-clock save | restore | tick | status  [options]
       python3 clock.py  save | restore | tick | status  [options]

Keeps the time of a machine without a clock chip in a file.

  save      write the time into the file; unless the clock is synchronised, and thus known to be
            right, never an earlier one than it holds, nor one that is more than a year after it
            and the time that the machine has run
  restore   set the clock to the file's time, or to the floor; only forward. A working clock chip
            takes precedence over the file; a synchronised clock is not changed
  tick      save, without output on success: for a timer
  status    show the time of the clock, the file and the chip

options:
  --file PATH      file that holds the time ({file})
  --floor SECONDS  earliest time that can be right ({floor}, {date})
  --no-rtc         ignore the clock chip
  --force          also set the clock or the file back, and save a leap of years
  -h, --help       show this message and exit

exit status: 0 success; 1 the file or the clock cannot be right; 2 wrong usage; 3 the file system
is read-only; 4 not permitted (the clock needs CAP_SYS_TIME); 5 time would go back; 6 other failure
"""


class ClockError(Exception):
    """A failed action: a line for people, and the exit status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Settings:
    """The settings of the command line."""

    def __init__(self) -> None:
        self.file = DEFAULT_FILE
        self.floor = FLOOR
        self.chip = CHIP  # empty: none
        self.force = False

    @property
    def ceiling(self) -> int:
        """The last second that can be right; a floor below FLOOR does not lower it."""
        return max(self.floor, FLOOR) + LIFETIME_S


# ---- the file -----------------------------------------------------------------------------------


def read(path: str, settings: "Settings") -> "int | None":
    """The time in the file, epoch seconds; None if there is no file.

    A time before the floor is no error: the software may be newer than the file.
    Raises ClockError for a time that `save` cannot have written. `save` sets the file's date to the
    time in it: if the date is long before that time, the file was damaged or written by somebody
    else. A date before the floor proves nothing: the clock was wrong when the file was copied.
    """
    try:
        text, dated = _read_bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _explained(error, path) from None
    if text[-1:] != b"\n" or not text[:-1].isdigit() or text[:1] == b"0" or len(text) > SIZE_LIMIT:
        raise ClockError(BAD_STATE, f"{path}: contains no time")
    value = int(text)
    if value > settings.ceiling:
        raise ClockError(BAD_STATE, f"{path}: {shown(value)} cannot be right")
    if value - LEAD_S > dated >= settings.floor:
        fault = f"{path}: {shown(value)} cannot be right, as the file was written {shown(dated)}"
        raise ClockError(BAD_STATE, fault)
    return value


def _read_bytes(path: str) -> "tuple[bytes, int]":
    """The contents of the file, and its date."""
    # Without O_NONBLOCK, opening a pipe in the file's place would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ClockError(BAD_STATE, f"{path}: is not a regular file")
        return os.read(handle, SIZE_LIMIT + 1), int(status.st_mtime)
    finally:
        os.close(handle)


def write(path: str, seconds: int) -> None:
    """Put a time into the file so that at every moment it holds the old time or the new one.

    The data is synced before the rename: file systems that delay allocation would otherwise show an
    empty file after a power cut. Raises OSError; the file is then unchanged, unless the sync of the
    folder failed.

    The package's own writer (_base/files.py) is not available here. One temporary name is enough,
    as the folder is locked: a file of that name was left by a power cut, or by somebody else.
    """
    fresh = path + ".new"
    try:
        handle = _new_file(fresh)
        try:
            _write_all(handle, b"%d\n" % seconds)
            os.fchmod(handle, 0o644)  # whatever the umask
            _date(handle, seconds)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(fresh, path)
    except OSError:
        _remove(fresh)
        raise
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _new_file(path: str) -> int:
    # O_EXCL: an existing file may be a link, or have a second name elsewhere.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o644)
    except FileExistsError:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise
    os.unlink(path)
    return os.open(path, flags, 0o644)


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _date(handle: int, seconds: int) -> None:
    """Set the file's date to the time in it: `read` compares both."""
    try:
        os.utime(handle, (seconds, seconds))
    except OSError:
        pass  # a file system may not support dates, or refuse this user


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the next run overwrites it


def _locked_folder(path: str) -> int:
    """A descriptor of the file's folder, made if necessary, and locked until it is closed.

    The timer's save and that at shutdown may run at the same time; both write the same `.new`.
    """
    import fcntl

    folder = os.path.dirname(path)
    is_new = True
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        is_new = False
    except OSError:
        if not os.path.isdir(folder):  # a read-only file system may report that first
            raise
        is_new = False
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if is_new:
        os.fchmod(handle, 0o755)  # whatever the umask
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError:
        pass  # some network file systems have no locks
    return handle


def _explained(error: OSError, path: str) -> ClockError:
    if error.errno == errno.EROFS:
        return ClockError(READ_ONLY, f"{path}: the file system is read-only")
    status = NOT_PERMITTED if isinstance(error, PermissionError) else FAILED
    return ClockError(status, f"{path}: {error.strerror}")


# ---- the machine --------------------------------------------------------------------------------


def synchronised() -> bool:
    """Whether something keeps the clock right, by the kernel's own flag (as timedatectl).

    Only the return value of adjtimex(2) is used, so that the layout of its structure does not
    matter.
    """
    try:
        import ctypes  # the import takes longer than all the rest, and is rarely needed

        buffer = ctypes.create_string_buffer(1024)  # modes = 0: only read
        answer = ctypes.CDLL(None).adjtimex(buffer)
    except (ImportError, OSError, AttributeError):
        return False
    return 0 <= int(answer) < TIME_ERROR


def running_time() -> "float | None":
    """The seconds since the boot, suspend included, by a clock that nobody can set."""
    try:
        return time.clock_gettime(BOOTTIME)
    except OSError:
        return None


def set_system_clock(seconds: int) -> None:
    """Set CLOCK_REALTIME. Raises PermissionError without CAP_SYS_TIME."""
    time.clock_settime(time.CLOCK_REALTIME, seconds)


def read_chip(path: str, settings: Settings) -> "int | None":
    """The time of the clock chip; None if there is no chip, or its time cannot be right.

    A chip that lost its power returns an error, or begins at 1970 or 2000.
    """
    try:
        with open(path, "rb") as file:
            value = int(file.read(64))
    except (OSError, ValueError):
        return None
    return value if settings.floor <= value <= settings.ceiling else None


# ---- the actions --------------------------------------------------------------------------------


def save(
    settings: Settings,
    now: int,
    is_trusted: "Callable[[], bool]",
    running: "Callable[[], float | None]",
) -> str:
    """Write the time into the file; returns what was done. Raises ClockError."""
    if not settings.floor <= now <= settings.ceiling:
        text = f"not saved: the clock cannot be right, it says {shown(now)}"
        raise ClockError(BAD_STATE, text)
    path = _target(settings.file)
    try:
        folder = _locked_folder(path)
        try:
            return _save_locked(path, settings, now, is_trusted, running)
        finally:
            os.close(folder)
    except OSError as error:
        raise _explained(error, path) from None


def _target(path: str) -> str:
    """The file's real path: a link is followed, as the file may be on another file system.

    A link in a folder such as /tmp is refused, as somebody else may have put it there.
    """
    folder = os.stat(os.path.dirname(path)) if os.path.islink(path) else None
    if folder is not None and (
        folder.st_mode & stat.S_IWOTH or folder.st_uid not in (0, os.geteuid())
    ):
        text = f"{path}: is a link in a folder that others can write to"
        raise ClockError(NOT_PERMITTED, text)
    return os.path.realpath(path)


def _save_locked(
    path: str,
    settings: Settings,
    now: int,
    is_trusted: "Callable[[], bool]",
    running: "Callable[[], float | None]",
) -> str:
    if os.path.isdir(path):
        raise ClockError(BAD_STATE, f"{path}: is not a regular file")
    try:
        old = read(path, settings)
    except ClockError as problem:
        if problem.status != BAD_STATE:
            raise
        old = None
    if old is not None and old > now and not (settings.force or is_trusted()):
        text = "{}: not saved: it holds {}, the clock says {} and is not synchronised"
        raise ClockError(WOULD_GO_BACK, text.format(path, shown(old), shown(now)))
    ran_s = running()
    if old is not None and _leaps(settings, old, now, ran_s) and not is_trusted():
        text = (
            "{}: not saved: it holds {}, the machine has run for {} s since its boot, and the clock"
            " says {} and is not synchronised; if that is right: cpythonplus-clock save --force"
        )
        raise ClockError(BAD_STATE, text.format(path, shown(old), int(ran_s or 0), shown(now)))
    write(path, now)
    how = f"corrected from {shown(old)}" if old is not None and old > now else "saved"
    return f"{path}: {how}: {shown(now)}"


def _leaps(settings: Settings, old: int, now: int, ran_s: "float | None") -> bool:
    """Whether the clock is more than LEAP_S ahead of the file's time plus the running time.

    A saved time in the future is not corrected before the clock is synchronised again, and until
    then each boot starts from it. If the clock chip agrees with the clock, the time is accepted, as
    `restore` trusts the chip too.
    """
    # If the software is newer than the file, the clock began at the floor.
    if settings.force or ran_s is None or now - max(old, settings.floor) - ran_s <= LEAP_S:
        return False
    chip = read_chip(settings.chip, settings) if settings.chip else None
    return chip is None or abs(now - chip) > CHIP_DRIFT_S


def restore(
    settings: Settings,
    now: int,
    is_trusted: "Callable[[], bool]",
    set_clock: "Callable[[int], None]",
) -> str:
    """Set the clock forward to the latest time that has surely passed; returns what was done.

    The clock is set back only from beyond the ceiling, as after a chip without power that begins at
    2099: WireGuard's peers would remember a handshake of that time, and refuse all earlier ones.

    Raises ClockError; if only the file is at fault, the clock is set without it first.
    """
    status, fault = 0, ""
    saved = None
    try:
        saved = read(settings.file, settings)
    except ClockError as problem:
        status, fault = problem.status, str(problem)
    chip = read_chip(settings.chip, settings) if settings.chip else None
    target, source = _goal(settings, saved, chip)
    # The floor only says which times are wrong: --force does not set the clock back to it.
    back = now > settings.ceiling or (settings.force and source != FLOOR_SOURCE)
    if target == now or (target < now and not back):
        done = f"nothing to do: the clock says {shown(now)}, {source} {shown(target)}"
    elif not settings.force and is_trusted():
        done = "nothing to do: the clock is synchronised"
    else:
        _set(target, set_clock)
        done = f"clock set from {shown(now)} to {shown(target)} ({source})"
    if fault:
        raise ClockError(status, f"{fault}; {done}")
    return done


def _goal(settings: Settings, saved: "int | None", chip: "int | None") -> "tuple[int, str]":
    target, source = settings.floor, FLOOR_SOURCE
    if saved is not None and saved >= settings.floor:
        target, source = saved, settings.file
    # A drifting chip would set the clock back by seconds at every boot: if the two differ by less
    # than CHIP_DRIFT_S, the later time counts.
    if chip is not None and not 0 <= target - chip <= CHIP_DRIFT_S:
        target, source = chip, "the clock chip"
    return target, source


def _set(target: int, set_clock: "Callable[[int], None]") -> None:
    try:
        set_clock(target)
    except PermissionError:
        text = f"the clock cannot be set to {shown(target)}: needs CAP_SYS_TIME"
        raise ClockError(NOT_PERMITTED, text) from None
    except (OSError, OverflowError, ValueError) as error:
        text = f"the clock cannot be set to {shown(target)}: {error}"
        raise ClockError(FAILED, text) from None


def report(settings: Settings, now: int, is_trusted: "Callable[[], bool]") -> "tuple[int, str]":
    """The exit status and the text of `status`."""
    try:
        saved = read(settings.file, settings)
        age = now - (saved or 0)
        file = "does not exist" if saved is None else f"{shown(saved)}, {_age(age)}"
        status = GOOD if 0 <= age <= STALE_S else BAD_STATE
    except ClockError as problem:
        status, file = problem.status, str(problem)[len(settings.file) + 2 :]
    if not settings.floor <= now <= settings.ceiling:
        status = BAD_STATE
    chip = read_chip(settings.chip, settings) if settings.chip else None
    lines = (
        ("clock", shown(now) + (", synchronised" if is_trusted() else ", not synchronised")),
        ("file", f"{settings.file}: {file}"),
        ("chip", "none that works" if chip is None else shown(chip)),
        ("floor", shown(settings.floor)),
    )
    return status, "".join(f"{name + ':':<7}{text}\n" for name, text in lines)


def _age(seconds: int) -> str:
    return f"{-seconds} s ahead" if seconds < 0 else f"{seconds} s old"


def shown(seconds: int) -> str:
    """A time for people."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s since 1970"


# ---- the command line ---------------------------------------------------------------------------


def main(
    arguments: "Sequence[str] | None" = None,
    *,
    now: "Callable[[], float]" = time.time,
    is_trusted: "Callable[[], bool]" = synchronised,
    set_clock: "Callable[[int], None]" = set_system_clock,
    running: "Callable[[], float | None]" = running_time,
) -> int:
    """Carry out the command line; returns the exit status.

    now, is_trusted, set_clock, running: the clock, in epoch seconds, and the time since the boot;
    tests pass their own.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help") or "--help" in words[1:]:
        _say(sys.stdout, HELP.format(file=DEFAULT_FILE, floor=FLOOR, date=shown(FLOOR)[:10]))
        return GOOD
    try:
        action, settings = parse(words)
        moment = int(now())
        if action == "status":
            status, text = report(settings, moment, is_trusted)
            _say(sys.stdout, text)
            return status
        if action == "restore":
            done = restore(settings, moment, is_trusted, set_clock)
        else:
            done = save(settings, moment, is_trusted, running)
    except ClockError as problem:
        _say(sys.stderr, f"cpythonplus-clock: {problem}\n")
        return problem.status
    if action != "tick":
        _say(sys.stdout, done + "\n")
    return GOOD


def parse(words: "list[str]") -> "tuple[str, Settings]":
    """The action and the settings. Raises ClockError for wrong words."""
    action, rest = words[0], words[1:]
    if action in ("install", "uninstall"):
        raise ClockError(WRONG_USAGE, f"for {action}, use: cpythonplus-clock {action}")
    if action not in ("save", "restore", "tick", "status"):
        raise ClockError(WRONG_USAGE, f"unknown action {action!r}; see --help")
    settings = Settings()
    while rest:
        option, rest = rest[0], rest[1:]
        option, given, value = option.partition("=")
        if option == "--force" and not given:
            settings.force = True
        elif option == "--no-rtc" and not given:
            settings.chip = ""
        elif option in ("--file", "--floor"):
            if not given:
                value, rest = (rest[0], rest[1:]) if rest else ("", rest)
            _set_option(settings, option, value)
        else:
            raise ClockError(WRONG_USAGE, f"unknown option {option!r}; see --help")
    return action, settings


def _set_option(settings: Settings, option: str, value: str) -> None:
    if option == "--file":
        if not os.path.isabs(value):
            raise ClockError(WRONG_USAGE, f"--file: expected an absolute path, got {value!r}")
        settings.file = value
        return
    # A floor sets the clock: milliseconds, or a digit too many, would set it far into the future.
    if not _is_number(value) or int(value) > FLOOR + LIFETIME_S:
        raise ClockError(WRONG_USAGE, f"--floor: expected seconds since 1970, got {value!r}")
    settings.floor = int(value)


def _is_number(text: str) -> bool:
    return 0 < len(text) < SIZE_LIMIT and all(letter in "0123456789" for letter in text)


def _say(stream: "TextIO | None", text: str) -> None:
    """Write a text; a closed or missing stream is no error."""
    if stream is None:
        return
    # The name of a file may contain characters that a terminal would take for a command.
    shown = (x if x.isprintable() or x == "\n" else ascii(x)[1:-1] for x in text)
    try:
        stream.write("".join(shown))
        stream.flush()
    except OSError:
        # Redirect to /dev/null: else the interpreter flushes the rest at its end, and fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except ValueError:
        pass  # closed


if __name__ == "__main__":
    sys.exit(main())
