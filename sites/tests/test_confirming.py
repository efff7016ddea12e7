"""What is applied on trial goes back by itself, also after another boot, unless it is confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cpythonplus_sites import confirming
from cpythonplus_sites.commands import apply as apply_command
from cpythonplus_sites.commands import confirm as confirm_command
from cpythonplus_sites.commands.sites import main
from cpythonplus_sites.host_folder import HostFolder
from sites.tests.simulated import Simulated
from sites.tests.test_apply_command import FILE, folder, machine, sites

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["folder", "machine"]
"""Fixtures."""

pytestmark = pytest.mark.any_version

HOST = HostFolder(Path("/etc/cpythonplus/sites"))


def host(applied: str | None = "OLD") -> Simulated:
    found = Simulated()
    if applied is not None:
        found.write(HOST.sites_path, applied, mode=0o644)
    return found


def test_the_file_from_before_is_put_aside() -> None:
    machine = host()
    found = confirming.begin(machine, HOST, 300)
    assert machine.read(HOST.before_path) == "OLD"
    assert confirming.trial(machine, HOST) == found
    assert (found.left_s(machine, HOST), found.has_before) == (300, True)
    machine.since_boot_s += 301
    assert found.left_s(machine, HOST) == 0
    confirming.end(machine, HOST)
    assert confirming.trial(machine, HOST) is None
    assert machine.read(HOST.before_path) is None


def test_another_boot_is_late() -> None:
    machine = host()
    found = confirming.begin(machine, HOST, 300)
    (marks,) = (path for path in machine.files if path.startswith("/run/"))
    del machine.files[marks]
    assert found.left_s(machine, HOST) == 0


def test_a_trial_within_a_trial_goes_back_to_what_was_confirmed() -> None:
    machine = host()
    confirming.begin(machine, HOST, 300)
    machine.write(HOST.sites_path, "FIRST TRIAL", mode=0o644)
    machine.since_boot_s += 100
    found = confirming.begin(machine, HOST, 300)
    assert machine.read(HOST.before_path) == "OLD"
    assert found.left_s(machine, HOST) == 300


def test_where_nothing_was_applied_before() -> None:
    machine = host(None)
    assert not confirming.begin(machine, HOST, 300).has_before


def test_a_damaged_note_is_late() -> None:
    machine = host()
    confirming.begin(machine, HOST, 300)
    for text in ("", "[]", '{"until_s": "x"}'):
        machine.write(HOST.trial_path, text, mode=0o600)
        found = confirming.trial(machine, HOST)
        assert found is not None
        assert (found.left_s(machine, HOST), found.has_before) == (0, True)


def tried(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, str, str]:
    """Apply a file of one's own, not the copy in the host folder."""
    own = folder.parent / "own.toml"
    own.write_text(FILE)
    return sites(capsys, folder, "apply", "--yes", *more, "--file", str(own))


class TestApply:
    def test_the_copy_that_it_would_go_back_to_is_refused(
        self, machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A copy that was edited in place is no way back: the file from before is lost."""
        status, _, err = sites(capsys, folder, "apply", "--yes", "--confirm", "5m")
        assert status == 2
        assert "edit a copy in another folder" in err
        assert machine.ran == []

    def test_a_process_of_its_own_waits(
        self, machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sites(capsys, folder, "apply", "--yes")
        _, out, _ = tried(capsys, folder, "--confirm", "5m")
        assert "on trial for 300 s: cpythonplus-sites confirm keeps it" in out
        (words,) = machine.started
        assert words[-5:] == ("confirm", "--wait", "--host-dir", str(folder), "--no-systemd")
        found = confirming.trial(machine, HostFolder(folder))
        assert found is not None
        assert found.has_before

    def test_systemd_has_a_unit_for_it(
        self,
        machine: Simulated,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        machine.systemd = True
        monkeypatch.setattr(apply_command, "need_trusted_program", lambda *_: None)
        tried(capsys, folder, "--confirm", "1h")
        assert machine.started == []
        (words,) = (words for words in machine.ran if words[0] == "systemd-run")
        assert words[-4:] == ("confirm", "--wait", "--host-dir", str(folder))

    def test_another_apply_confirms(
        self, machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        tried(capsys, folder, "--confirm", "10s")
        _, out, _ = sites(capsys, folder, "apply", "--yes")
        assert "is confirmed by this apply" in out
        assert confirming.trial(machine, HostFolder(folder)) is None

    def test_the_timer_goes_back_when_it_is_late(
        self,
        machine: Simulated,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        went: list[bool] = []

        def go_back(_folder: HostFolder, *, no_systemd: bool) -> int:
            went.append(no_systemd)
            return 0

        monkeypatch.setattr(apply_command, "go_back", go_back)
        tried(capsys, folder, "--confirm", "10s")
        sites(capsys, folder, "apply", "--endpoints-only")
        assert went == []
        machine.since_boot_s += 11
        sites(capsys, folder, "apply", "--endpoints-only", "--no-systemd")
        assert went == [True]

    @pytest.mark.parametrize("text", ["5", "0m", "0s", "25h", "1d", "-5m", "5 m"])
    def test_wrong_limits(
        self, machine: Simulated, folder: Path, capsys: pytest.CaptureFixture[str], text: str
    ) -> None:
        status, _, err = sites(capsys, folder, "apply", "--yes", f"--confirm={text}")
        assert (status, "expected a time from 1s to 24h" in err) == (2, True)
        assert machine.ran == []


class TestConfirm:
    @pytest.fixture
    def confirm(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, machine: Simulated
    ) -> Callable[..., int]:
        monkeypatch.setattr(confirm_command, "Machine", lambda: machine)
        monkeypatch.setattr(confirm_command, "need_root", lambda _: None)
        return lambda *words: main(["confirm", "--host-dir", str(folder), *words])

    def test_keeps_what_is_applied(
        self, confirm: Callable[..., int], machine: Simulated, folder: Path
    ) -> None:
        assert confirm() == 1
        assert confirm("--go-back") == 1
        confirming.begin(machine, HostFolder(folder), 300)
        assert confirm() == 0
        assert confirm("--wait") == 0

    def test_waits_and_goes_back(
        self,
        confirm: Callable[..., int],
        machine: Simulated,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            machine.since_boot_s += seconds

        monkeypatch.setattr("time.sleep", sleep)
        monkeypatch.setattr(apply_command, "go_back", lambda *_, **__: 7)
        confirming.begin(machine, HostFolder(folder), 12.5)
        assert confirm("--wait") == 7
        assert sum(slept) == 12.5
