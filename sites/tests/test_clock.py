"""The clock file, and what is done with it; the clock itself is a parameter."""

import ast
import contextlib
import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpythonplus_sites import clock, toml

pytestmark = pytest.mark.any_version

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "cpythonplus_sites" / "clock.py"
FLOOR = clock.FLOOR
NOW = FLOOR + 86400


@dataclass
class Box:
    """A machine: its clock, its clock file, and whether something keeps the clock right."""

    folder: Path
    now: float = NOW + 0.9
    is_trusted: bool = False
    refuses: Exception | None = None
    running_s: float | None = 60
    moves: list[int] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.folder / "clock"

    def set_clock(self, seconds: int) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.moves.append(seconds)
        self.now = seconds

    def __call__(self, action: str, *options: str) -> int:
        words = [action, "--file", str(self.file), "--no-rtc", *options]
        return clock.main(
            words,
            now=lambda: self.now,
            is_trusted=lambda: self.is_trusted,
            set_clock=self.set_clock,
            running=lambda: self.running_s,
        )


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "state")


def holding(box: Box, data: bytes | int, *, dated: int | None = None) -> Box:
    """Put data into the file. dated: as what it holds, if not otherwise."""
    box.folder.mkdir(exist_ok=True)
    box.file.write_bytes(data if isinstance(data, bytes) else b"%d\n" % data)
    if dated is None:
        dated = data if isinstance(data, int) else NOW
    os.utime(box.file, (dated, dated))
    return box


def names(box: Box) -> list[str]:
    return [path.name for path in box.folder.iterdir()]


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for the disk, hundreds of times."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


# ---- save and restore ---------------------------------------------------------------------------


def test_what_is_saved_is_restored(box: Box) -> None:
    assert box("save") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % NOW
    assert box.file.stat().st_mode & 0o777 == 0o644
    box.now = 0
    assert box("restore") == clock.GOOD
    assert box.moves == [NOW]


def test_nothing_else_is_left_in_the_folder(box: Box) -> None:
    for _ in range(3):
        assert box("save") == clock.GOOD
    assert names(box) == ["clock"]


def test_the_first_boot_begins_at_the_floor(box: Box) -> None:
    box.now = 12
    assert box("restore") == clock.GOOD
    assert box.moves == [FLOOR]


def test_the_clock_is_not_set_back(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    holding(box, NOW - 10)
    assert box("restore") == clock.GOOD
    assert box.moves == []
    assert "nothing to do" in capsys.readouterr().out
    assert box("restore", "--force") == clock.GOOD
    assert box.moves == [NOW - 10]


def test_the_floor_sets_no_clock_back(box: Box) -> None:
    assert box("restore", "--force") == clock.GOOD
    assert box.moves == []


def test_a_synchronised_clock_is_left_alone(box: Box) -> None:
    holding(box, NOW + 500).is_trusted = True
    assert box("restore") == clock.GOOD
    assert box.moves == []
    assert box("restore", "--force") == clock.GOOD
    assert box.moves == [NOW + 500]


def test_the_file_is_not_set_back(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    holding(box, NOW + 60)
    assert box("tick") == clock.WOULD_GO_BACK
    assert "not synchronised" in capsys.readouterr().err
    assert box.file.read_bytes() == b"%d\n" % (NOW + 60)
    assert box("save", "--force") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % NOW


def test_a_file_from_the_future_is_corrected_by_a_clock_that_is_right(
    box: Box, capsys: pytest.CaptureFixture[str]
) -> None:
    holding(box, NOW + 10 * 365 * 86400).is_trusted = True
    assert box("save") == clock.GOOD
    assert "corrected from" in capsys.readouterr().out
    assert box.file.read_bytes() == b"%d\n" % NOW


@pytest.mark.parametrize("now", [0, FLOOR - 1, FLOOR + clock.LIFETIME_S + 1, 2**40, -5])
def test_a_clock_that_cannot_be_right_is_not_saved(box: Box, now: int) -> None:
    holding(box, NOW).now = now
    box.is_trusted = True
    assert box("save", "--force") == clock.BAD_STATE
    assert box.file.read_bytes() == b"%d\n" % NOW


YEARS = 86400 * 365


def test_a_leap_of_years_is_not_saved(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    holding(box, NOW).now = NOW + 5 * YEARS
    assert box("tick") == clock.BAD_STATE
    told = capsys.readouterr().err
    assert f"it holds {clock.shown(NOW)}, the machine has run for 60 s since its boot" in told
    assert told.endswith("if that is right: cpythonplus-clock save --force\n")
    assert box.file.read_bytes() == b"%d\n" % NOW
    box.now = NOW + 60  # and the next tick that is right is saved as before
    assert box("tick") == clock.GOOD
    box.now = NOW + 5 * YEARS
    assert box("save", "--force") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % (NOW + 5 * YEARS)


@pytest.mark.parametrize(
    ("ahead_s", "running_s", "is_trusted"),
    [
        (5 * YEARS, 5 * YEARS, False),  # it has run for that long, and could not save
        (clock.LEAP_S + 60, 60, False),  # set by hand, after months without power
        (5 * YEARS, 60, True),  # by a time server
        (5 * YEARS, None, False),  # a kernel that does not say
    ],
)
def test_what_may_be_no_leap_is_saved(
    box: Box, ahead_s: int, running_s: float | None, is_trusted: bool
) -> None:
    holding(box, NOW).now = NOW + ahead_s
    box.running_s, box.is_trusted = running_s, is_trusted
    assert box("tick") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % (NOW + ahead_s)


def test_a_leap_counts_from_the_floor_where_the_file_is_older(box: Box) -> None:
    holding(box, FLOOR - 3 * YEARS).now = FLOOR + 60
    assert box("tick") == clock.GOOD


@pytest.mark.parametrize(("off_s", "status"), [(0, clock.GOOD), (86400, clock.BAD_STATE)])
def test_a_chip_bears_witness(box: Box, off_s: int, status: int) -> None:
    """Off for years, with a clock chip and without a network."""
    holding(box, NOW).now = NOW + 5 * YEARS
    chip = box.folder / "since_epoch"
    chip.write_text(f"{NOW + 5 * YEARS - off_s}\n")
    settings = clock.Settings()
    settings.file, settings.chip = str(box.file), str(chip)
    call = (settings, int(box.now), lambda: False, lambda: 60.0)
    if status == clock.GOOD:
        clock.save(*call)
    else:
        with pytest.raises(clock.ClockError, match="not synchronised"):
            clock.save(*call)


def test_the_kernel_says_how_long_it_runs() -> None:
    ran_s = clock.running_time()
    assert ran_s is not None
    assert ran_s == pytest.approx(float(Path("/proc/uptime").read_text().split()[0]), abs=60)


def test_a_tick_says_nothing_when_all_is_well(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    assert box("tick") == clock.GOOD
    assert capsys.readouterr() == ("", "")


# ---- what the file may be -----------------------------------------------------------------------

NO_TIME = {
    "empty": b"",
    "torn": b"%d" % NOW,
    "torn early": b"17",
    "only the newline": b"\n",
    "negative": b"-1793491200\n",
    "signed": b"+1793491200\n",
    "fraction": b"1793491200.5\n",
    "spaces": b" 1793491200 \n",
    "two lines": b"1793491200\n1793491201\n",
    "dos": b"1793491200\r\n",
    "underscores": b"1_793_491_200\n",
    "leading zero": b"01793491200\n",
    "hexadecimal": b"0x6ae6\n",
    "local time": b"2026-11-22 02:37:05\n",
    "a torn date": b"2026-09-21 1",
    "summer time": b"Sun Oct 25 02:30:00 CEST 2026\n",
    "other digits": "١٧٩٣٤٩١٢٠٠\n".encode(),
    "not utf-8": b"\xff\xfe\x80\n",
    "zeros of a lost block": b"\0" * 11,
    "huge": b"9" * 5000 + b"\n",
    "larger than 64 bits": b"99999999999999999999\n",
    "far future": b"%d\n" % (FLOOR + clock.LIFETIME_S + 1),
    "2099": b"4070908800\n",
}


@pytest.mark.parametrize("data", NO_TIME.values(), ids=NO_TIME)
def test_what_is_no_time_is_told_and_replaced(
    box: Box, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    holding(box, data).now = 100
    assert box("restore") == clock.BAD_STATE
    assert box.moves == [FLOOR]
    assert capsys.readouterr().err.startswith(f"cpythonplus-clock: {box.file}: ")
    box.now = NOW
    assert box("save") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % NOW


@settings(deadline=None)  # it writes files
@given(st.binary(max_size=40) | st.from_regex(rb"[0-9]{1,25}\n?", fullmatch=True))
def test_no_file_takes_the_clock_out_of_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    box = holding(Box(tmp_path_factory.getbasetemp() / "any"), data)
    box.now = 100
    assert box("restore") in (clock.GOOD, clock.BAD_STATE)
    assert FLOOR <= box.now <= FLOOR + clock.LIFETIME_S


@pytest.mark.parametrize("seconds", [NOW + 19 * YEARS, NOW + YEARS, NOW + clock.LEAD_S + 1])
def test_a_time_long_after_the_files_date_is_not_restored(
    box: Box, seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit that flipped, or a time that somebody wrote; no save has left it."""
    holding(box, seconds, dated=NOW).now = 100
    assert box("restore") == clock.BAD_STATE
    assert box.moves == [FLOOR]
    told = (
        f"{clock.shown(seconds)} cannot be right, as the file was written {clock.shown(NOW)}; clock"
    )
    assert told in capsys.readouterr().err
    assert box("status") == clock.BAD_STATE
    assert "cannot be right, as the file was written" in capsys.readouterr().out
    box.now = NOW + 60  # and it stands in nobody's way
    assert box("save") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % (NOW + 60)


@pytest.mark.parametrize(
    ("seconds", "dated"),
    [
        (NOW + clock.LEAD_S, NOW),  # a file system that has dates in local time
        (NOW, NOW + 10 * YEARS),  # copied later, or by a clock that was wrong
        (NOW + 10 * YEARS, FLOOR - 1),  # copied before the clock was right, as to a RAM disk
        (NOW + 10 * YEARS, 0),
        (NOW + 10 * YEARS, NOW + 10 * YEARS),  # that old may software become
    ],
)
def test_a_date_that_says_nothing_against_the_time(box: Box, seconds: int, dated: int) -> None:
    holding(box, seconds, dated=dated).now = 100
    assert box("restore") == clock.GOOD
    assert box.moves == [seconds]


@pytest.mark.parametrize("now", [NOW, NOW + 10 * YEARS])
def test_a_save_dates_the_file_as_what_it_holds(
    box: Box, now: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the clock of the file system, which may be a server's."""
    box.now = now
    assert box("save") == clock.GOOD
    assert int(box.file.stat().st_mtime) == now

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "not the owner's")

    monkeypatch.setattr(os, "utime", refuse)
    assert box("save") == clock.GOOD


def test_a_time_before_the_floor_is_an_older_softwares(box: Box) -> None:
    holding(box, FLOOR - 86400 * 90).now = 100
    assert box("restore") == clock.GOOD
    assert box.moves == [FLOOR]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "EST5EDT", "<+14>-14"])
def test_the_time_zone_does_not_matter(
    box: Box, zone: str, monkeypatch: pytest.MonkeyPatch, timezone_after: None
) -> None:
    assert box("save") == clock.GOOD
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    assert box("save") == clock.GOOD
    box.now = 0
    assert box("restore") == clock.GOOD
    assert box.moves == [NOW]


@pytest.fixture
def timezone_after() -> Iterator[None]:
    yield
    time.tzset()


def test_a_link_stays_a_link(box: Box, tmp_path: Path) -> None:
    elsewhere = tmp_path / "data"
    elsewhere.mkdir()
    box.folder.mkdir()
    box.file.symlink_to(elsewhere / "kept")
    assert box("save") == clock.GOOD
    assert box.file.is_symlink()
    assert (elsewhere / "kept").read_bytes() == b"%d\n" % NOW


def test_a_link_in_place_of_the_new_file_is_not_written_through(box: Box, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("of somebody else")
    box.folder.mkdir()
    (box.folder / "clock.new").symlink_to(other)
    assert box("save") == clock.FAILED
    assert other.read_text() == "of somebody else"
    assert box("save") == clock.GOOD  # it was taken away
    assert names(box) == ["clock"]


def test_a_link_to_itself_ends(box: Box) -> None:
    box.folder.mkdir()
    box.file.symlink_to(box.file)
    assert box("restore") == clock.FAILED
    assert box("save") == clock.FAILED


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_told(box: Box, make: Callable[[Path], None]) -> None:
    box.folder.mkdir()
    make(box.file)
    box.now = 100
    assert box("restore") == clock.BAD_STATE
    assert box.moves == [FLOOR]


def test_a_folder_is_not_replaced(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    box.file.mkdir(parents=True)
    assert box("save") == clock.BAD_STATE
    assert "not a regular file" in capsys.readouterr().err
    assert names(box) == ["clock"]


# ---- what may go wrong on the way ---------------------------------------------------------------

STEPS = ["mkdir", "open", "write", "fsync", "close", "rename"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (errno.EROFS, clock.READ_ONLY),
        (errno.EACCES, clock.NOT_PERMITTED),
        (errno.ENOSPC, clock.FAILED),
        (errno.EIO, clock.FAILED),
    ],
)
def test_a_step_that_fails_leaves_the_old_time(
    box: Box, step: str, reason: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step != "mkdir":
        holding(box, NOW - 60)
    fail_at(monkeypatch, step, reason)
    result = box("save")
    monkeypatch.undo()
    assert result == status
    if step == "mkdir":
        assert not box.folder.exists()
        return
    assert names(box) == ["clock"]
    assert box.file.read_bytes() == b"%d\n" % (NOW - 60)
    assert box("save") == clock.GOOD


def fail_at(monkeypatch: pytest.MonkeyPatch, step: str, reason: int) -> None:
    """Have a call of `os` fail; only the one for the new file, where there are several."""
    real_open, real_close = os.open, os.close
    fresh: list[int] = []

    def opened(path: str, flags: int, mode: int = 0o777) -> int:
        is_new = bool(flags & os.O_CREAT)
        if is_new and step == "open":
            raise OSError(reason, os.strerror(reason))
        handle = real_open(path, flags, mode)
        if is_new:
            fresh.append(handle)
        return handle

    def closed(handle: int) -> None:
        real_close(handle)
        if step == "close" and handle in fresh:
            fresh.clear()
            raise OSError(reason, os.strerror(reason))

    def failed(*_arguments: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "close", closed)
    if step not in ("open", "close"):
        monkeypatch.setattr(os, step, failed)


class PowerCut(BaseException):
    """Nothing runs after it, no clean-up either."""


@pytest.mark.parametrize("after", range(9))
def test_a_power_cut_leaves_the_old_time_or_the_new_one(
    box: Box, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of `os` that changes the disk is the last one, once."""
    holding(box, NOW - 60)
    left = iter(range(after))

    def cut_off(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            if next(left, None) is None:
                raise PowerCut
            return real(*arguments)

        return call

    for name in ("mkdir", "write", "fsync", "rename", "unlink"):
        monkeypatch.setattr(os, name, cut_off(getattr(os, name)))
    with contextlib.suppress(PowerCut):
        assert box("save") == clock.GOOD
    monkeypatch.undo()
    assert box.file.read_bytes() in (b"%d\n" % (NOW - 60), b"%d\n" % NOW)
    box.now = NOW + 60
    assert box("save") == clock.GOOD
    assert names(box) == ["clock"]


def test_the_data_is_on_the_disk_before_its_name(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str) -> Callable[..., object]:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            calls.append(name)
            return real(*arguments)

        return call

    for name in ("write", "fsync", "rename"):
        monkeypatch.setattr(os, name, noted(name))
    assert box("save") == clock.GOOD
    assert calls == ["write", "fsync", "rename", "fsync"]


def test_a_short_write_goes_on(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    assert box("save") == clock.GOOD
    assert box.file.read_bytes() == b"%d\n" % NOW


def test_what_cannot_be_read_is_told(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    holding(box, NOW)
    monkeypatch.setattr(os, "read", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "bad")))
    assert box("restore") == clock.FAILED
    assert box("save") == clock.FAILED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PermissionError(errno.EPERM, "no"), clock.NOT_PERMITTED),
        (OSError(errno.EINVAL, "odd"), clock.FAILED),
        (OverflowError("a clock of 32 bits"), clock.FAILED),
    ],
)
def test_a_clock_that_cannot_be_set_is_told(
    box: Box, error: Exception, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    holding(box, NOW + 5).refuses = error
    assert box("restore") == status
    assert "the clock cannot be set to" in capsys.readouterr().err


# ---- the clock chip -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "saved", "expected"),
    [
        (NOW, NOW - 60, NOW),  # it works, and counts more than the file
        (NOW, NOW + 86400, NOW),
        (NOW, NOW + 30, NOW + 30),  # its drift takes the clock not back
        (0, NOW, NOW),  # it lost its power
        (946684800, NOW, NOW),
        (FLOOR + clock.LIFETIME_S + 1, NOW, NOW),
        ("", NOW, NOW),
        ("soon", NOW, NOW),
        (None, NOW, NOW),
    ],
)
def test_a_chip_that_works_counts_more(box: Box, chip: object, saved: int, expected: int) -> None:
    holding(box, saved)
    settings = clock.Settings()
    settings.file = str(box.file)
    settings.chip = str(box.folder / "since_epoch")
    if chip is not None:
        Path(settings.chip).write_text(f"{chip}\n")
    clock.restore(settings, 100, lambda: False, box.set_clock)
    assert box.moves == [expected]


@pytest.mark.parametrize("saved", [NOW, None])
def test_a_clock_beyond_the_ceiling_is_set_back(box: Box, saved: int | None) -> None:
    """By a chip without power, as the kernel took it over at boot."""
    if saved is not None:
        holding(box, saved)
    settings = clock.Settings()
    settings.file = str(box.file)
    settings.chip = str(box.file.parent.parent / "since_epoch")
    late = settings.ceiling + 1
    Path(settings.chip).write_text(f"{late}\n")
    done = clock.restore(settings, late, lambda: False, box.set_clock)
    assert box.moves == [saved or FLOOR]
    assert done.startswith(f"clock set from {clock.shown(late)}")
    clock.restore(settings, late - 1, lambda: False, box.set_clock)
    assert len(box.moves) == 1  # that one may be right
    clock.restore(settings, late, lambda: True, box.set_clock)
    assert len(box.moves) == 1


def test_the_kernel_is_only_asked() -> None:
    """The flag of this machine's clock, whatever it is, from a call that changes nothing."""
    assert clock.synchronised() in (True, False)


# ---- status, and the command line ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "status", "text"),
    [
        (NOW, 0, "0 s old"),
        (NOW - 299, 0, "299 s old"),
        (NOW - 301, 1, "301 s old"),
        (NOW + 2, 1, "2 s ahead"),
        (b"", 1, "contains no time"),
        (None, 1, "does not exist"),
    ],
)
def test_status(
    box: Box, saved: int | bytes | None, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if saved is not None:
        holding(box, saved)
    assert box("status") == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"clock: {clock.shown(NOW)}, not synchronised"
    assert lines[1].startswith(f"file:  {box.file}: ")
    assert lines[1].endswith(text)
    assert lines[2:] == ["chip:  none that works", f"floor: {clock.shown(FLOOR)}"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sav"], "unknown action 'sav'"),
        (["--file"], "unknown action '--file'"),
        (["save", "--fiel", "/x"], "unknown option '--fiel'"),
        (["save", "--force=1"], "unknown option '--force'"),
        (["save", "more"], "unknown option 'more'"),
        (["save", "--file"], "--file: expected an absolute path, got ''"),
        (["save", "--file=clock"], "--file: expected an absolute path, got 'clock'"),
        (["save", "--floor", ""], "--floor: expected seconds since 1970, got ''"),
        (["save", "--floor", "2026-11-01"], "--floor: expected seconds since 1970"),
        (["restore", "--floor", f"{FLOOR}000"], "--floor: expected seconds since 1970"),
        (["install"], "for install, use: cpythonplus-clock install"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert clock.main(words) == clock.WRONG_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"cpythonplus-clock: {message}")
    assert err.count("\n") == 1


def test_help_names_every_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert clock.main(["--help"]) == clock.GOOD
    assert re.findall(r"^  (\w+) ", capsys.readouterr().out, re.MULTILINE) == [
        "save",
        "restore",
        "tick",
        "status",
    ]


def test_another_floor(box: Box) -> None:
    box.now = 100
    assert box("restore", f"--floor={FLOOR + 5}") == clock.GOOD
    assert box.moves == [FLOOR + 5]


def test_a_lower_floor_does_not_lower_the_ceiling(box: Box) -> None:
    assert box("save", "--floor=0") == clock.GOOD


# ---- the file itself ----------------------------------------------------------------------------


def test_it_is_a_plain_script(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(SOURCE)]
    file = tmp_path / "clock"
    floor = str(int(time.time()) - 10)  # so that the machine's clock is right for it
    done = subprocess.run(
        [*command, "save", "--file", str(file), "--floor", floor], check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert file.read_bytes()[:-1].isdigit()


def test_a_reader_that_has_gone_away_is_no_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(SOURCE), "--help"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_entry_point_imports_next_to_nothing() -> None:
    """It runs at boot, where each module costs milliseconds."""
    scripts = toml.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    module, _, function = scripts["cpythonplus-clock"].partition(":")
    assert function == "main"
    program = f"import sys; old = {{*sys.modules}}; import {module} as entry"
    program += "; sys.argv[1:] = ['tick', '--help']; sys.stdout = None; entry.main()"
    program += "; print(*{*sys.modules} - old, file=sys.__stdout__)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    new = set(done.stdout.decode().split())
    assert module in new
    package = "cpythonplus_sites"
    script = f"{package}.clock"
    assert new <= {package, f"{package}.commands", module, script, "errno", "time"}


def test_it_keeps_to_an_old_grammar_and_to_the_standard_library() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 6))
    imported = {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert imported == {"ctypes", "errno", "fcntl", "os", "stat", "sys", "time"}
    later = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {node.module for node in later} == {"collections.abc", "typing"}  # TYPE_CHECKING
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for note in [node.returns, *(a.annotation for a in node.args.args)]:
                # `int | None` is evaluated where it is not quoted, and new.
                assert not isinstance(note, (ast.BinOp, ast.Subscript)), ast.unparse(node)


def test_the_floor_is_not_older_than_the_newest_release() -> None:
    """A release moves it: a clock that says less than the day of the release is wrong."""
    assert FLOOR % 86400 == 0
    text = (ROOT.parent / "CHANGELOG.md").read_text("utf-8")
    days = re.findall(r"^## \S+ \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    floor = datetime.fromtimestamp(FLOOR, timezone.utc).date().isoformat()
    assert max(days, default=floor) <= floor


def test_the_pages_have_the_floor_of_the_code() -> None:
    pages = ("reference/clock.md", "how-to/clock-without-a-chip.md")
    texts = [(ROOT / "docs" / page).read_text("utf-8") for page in pages]
    told = [date for text in texts for date in re.findall(r"[Ff]loor[*]*: ([0-9-]{10})", text)]
    assert told == [clock.shown(FLOOR)[:10]] * len(pages)
