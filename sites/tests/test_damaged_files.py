"""Files that the commands read, damaged in every way: each line names the file, no traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath

import pytest

from cpythonplus_sites import clock, fallback
from cpythonplus_sites.applying import carry_out
from cpythonplus_sites.commands.sites import main
from cpythonplus_sites.fallback import Memory, Remembered
from cpythonplus_sites.machine import MOST_BYTES, Machine, Output
from cpythonplus_sites.secrets import SecretError, read_secret
from cpythonplus_sites.steps import Command, Step
from cpythonplus_sites.wanted import PlainFile
from sites.tests.site_texts import GOOD
from tests.damage import damaged, of_other_types

pytestmark = pytest.mark.any_version

KEY = "YmVybGluYmVybGluYmVybGluYmVybGluYmVybGluYmU=\n"


def test_site_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sites.toml"
    deep = (b"a = " + b"[" * 5000, b"a = " + b"[" * 400 + b"]" * 400, b"a." * 5000 + b"a = 1")
    for data in [*damaged(GOOD.encode()), *deep]:
        path.write_bytes(data)
        status = main(["check", "--file", str(path)])
        out, err = capsys.readouterr()
        assert path.read_bytes() == data
        assert status in (0, 1, 2), data
        if status:
            told = (out + err).splitlines()
            assert all(line.startswith(f"{path}:") for line in told), (data, told)
            assert told


def test_secrets(tmp_path: Path) -> None:
    path = tmp_path / "private.key"
    path.touch(mode=0o600)
    for data in damaged(KEY.encode()):
        path.write_bytes(data)
        message = ""
        try:
            read_secret(path)
        except SecretError as error:
            message = str(error)
        assert not message or message.startswith(str(path))


def test_the_clocks_time(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    settings = clock.Settings()
    for data in damaged(b"1800000000\n"):
        path.write_bytes(data)
        os.utime(path, (1_800_000_000, 1_800_000_000))
        message = ""
        try:
            clock.read(str(path), settings)
        except clock.ClockError as error:
            message = str(error)
        assert not message or message.startswith(str(path))


def test_what_was_remembered_of_links() -> None:
    """It is nothing where it cannot be read: the links are looked at anew."""
    right = fallback.written(Remembered({"paris": Memory(to_ssh=1)}, 100.0, 90.0))
    assert fallback.read(right, 1e9).links
    for data in [*damaged(right.encode()), *of_other_types(json.loads(right))]:
        assert isinstance(fallback.read(data.decode("utf-8", "surrogateescape"), 1e9), Remembered)


class Failing(Machine):
    """Programs fail; files are real ones."""

    def run(self, argv: object, *, stdin: str = "", timeout_s: float = 30) -> Output:
        del argv, stdin, timeout_s
        return Output(1)


def test_a_damaged_file_is_put_back_as_it_was(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "wg.conf"
    for data in (b"\xff\xfe\0", b"a\r\nb\r", b""):
        path.write_bytes(data)
        step = Step("", file=PlainFile(PurePosixPath(path), "new"), commands=(Command(("false",)),))
        assert carry_out(Failing(), step) is not None
        assert path.read_bytes() == data


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert Machine().read(tmp_path / "fifo") == ""
    with (tmp_path / "long").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("long", "loop", "zero", "."):
        with pytest.raises(OSError, match=r"too large|symbolic links|directory") as caught:
            Machine().read(tmp_path / name)
        assert str(caught.value.filename) == str(tmp_path / name)


def test_a_setting_of_the_kernel() -> None:
    """A call that asks for megabytes is refused there."""
    assert Machine().read(Path("/proc/sys/kernel/ostype")) == "Linux\n"
