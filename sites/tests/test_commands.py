"""What all commands have in common: what a terminal gets, and where wrong usage is told."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from cpythonplus_sites.commands import clock, sites
from sites.tests.site_texts import GOOD
from tests.support import child_environment

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.any_version

NAME = "\x1b]0;title\x07\x9b2J\r\u202e"
SHOWN = "\\x1b]0;title\\x07\\x9b2J\\r\\u202e"


def is_plain(text: str) -> bool:
    return text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("main", "words"),
    [(sites.main, ["check", "--file", NAME]), (sites.main, [NAME]), (clock.main, [NAME])],
)
def test_wrong_usage_is_one_line_that_a_terminal_does_not_obey(
    main: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    told = "".join(capsys.readouterr())
    assert "title" in told
    assert is_plain(told)


def test_the_name_of_a_file_does_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert clock.main(["status", "--no-rtc", "--file", f"/{NAME}"]) == 1
    told = capsys.readouterr().out
    assert SHOWN in told
    assert is_plain(told)


def test_a_picture_is_not_written_through_a_link(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    victim, path, file = tmp_path / "victim", shared / "picture", tmp_path / "sites.toml"
    victim.write_text("precious")
    file.write_text(GOOD)
    path.symlink_to(victim)
    assert (
        sites.main(["diagram", "--file", str(file), "--format", "svg", "--output", str(path)]) == 2
    )
    assert "is a symbolic link in a folder that others can write to" in capsys.readouterr().err
    path.unlink()
    os.link(victim, path)
    assert (
        sites.main(["diagram", "--file", str(file), "--format", "svg", "--output", str(path)]) == 0
    )
    assert victim.read_text() == "precious"
    assert not path.samefile(victim)


def tune(stdout: IO[bytes] | int) -> tuple[int, bytes]:
    """The status of an action that prints a few lines, and what it writes on standard error."""
    command = [sys.executable, "-m", "cpythonplus_sites", "tune"]
    done = subprocess.run(
        command,
        check=False,
        env=child_environment(),
        timeout=60,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )
    return done.returncode, done.stderr


def test_a_reader_that_has_gone_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert tune(writer) == (0, b"")
    finally:
        os.close(writer)


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        line = b"cpythonplus-sites: standard output: No space left on device\n"
        assert tune(full) == (2, line)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_stream_that_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, name, None)
    assert sites.main([]) == 0
    assert sites.main(["nonsense"]) == 2


def test_the_version_is_that_of_the_distribution(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"1.2.3 of {name}")
    assert sites.main(["--version"]) == 0
    assert capsys.readouterr().out == "cpythonplus-sites 1.2.3 of cpythonplus-sites\n"
