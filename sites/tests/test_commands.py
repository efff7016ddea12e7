"""What all commands have in common: what a terminal gets, and where wrong usage is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites.commands import clock, sites
from sites.tests.site_texts import GOOD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert sites.main(["diagram", "--file", str(file), "--svg", str(path)]) == 2
    assert "is a symbolic link in a folder that others can change" in capsys.readouterr().err
    path.unlink()
    os.link(victim, path)
    assert sites.main(["diagram", "--file", str(file), "--svg", str(path)]) == 0
    assert victim.read_text() == "precious"
    assert not path.samefile(victim)
