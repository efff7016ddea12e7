"""Files that are there whole or not at all, and that nobody else can read."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from cpythonplus_sites.secrets import SecretError, read_secret, write_atomically

pytestmark = pytest.mark.any_version

STEPS = ("open", "write", "fchmod", "fsync", "close", "rename", "unlink")


class KilledError(BaseException):
    """Stands for the end of the process: nothing that follows has an effect."""


class Fault:
    """Makes the call with this number, of the calls that touch the disk, go wrong."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.at, self.error, self.calls = at, error, 0
        self.went_wrong = False

    def wrap(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            if self.went_wrong and isinstance(self.error, KilledError):
                raise self.error
            self.calls += 1
            if self.calls == self.at:
                self.went_wrong = True
                raise self.error
            return real(*args, **kwargs)

        return call


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_with(fault: Fault, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, fault.wrap(getattr(os, name)))
        write_atomically(path, "new", mode=0o644)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_is_as_told_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    for umask in (0o777, 0):
        before = os.umask(umask)
        try:
            write_atomically(path, f"{umask}\n", mode=mode)
        finally:
            os.umask(before)
        assert mode_of(path) == mode
        assert path.read_text() == f"{umask}\n"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_nobody_else_can_read_it_before_it_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    for name in STEPS:
        real = getattr(os, name)

        def call(*args: object, real: Callable[..., object] = real, **kwargs: object) -> object:
            result = real(*args, **kwargs)
            seen.extend(mode_of(one) for one in tmp_path.iterdir())
            return result

        monkeypatch.setattr(os, name, call)
    write_atomically(tmp_path / "file", "secret", mode=0o600)
    assert set(seen) == {0o600}


@pytest.mark.parametrize("kind", [OSError, KilledError])
@pytest.mark.parametrize("existed", [True, False])
def test_a_fault_at_any_step_leaves_the_old_or_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], *, existed: bool
) -> None:
    at = 0
    while True:
        at += 1
        path = tmp_path / str(at) / "file"
        path.parent.mkdir()
        if existed:
            path.write_text("old")
        fault = Fault(at, kind(errno.ENOSPC, "full"))
        try:
            write_with(fault, path, monkeypatch)
        except (OSError, KilledError):
            assert fault.went_wrong
        else:
            break
        left = path.read_text() if path.exists() else None
        assert left in ({"old", "new"} if existed else {None, "new"}), at
        others = [one for one in path.parent.iterdir() if one != path]
        assert all(mode_of(one) in (0o600, 0o644) for one in others)
        if kind is OSError:
            assert not others, at
    assert not fault.went_wrong
    assert at > len(STEPS)


def test_all_of_a_long_text_is_written_in_short_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:1000]))
    text = "äöü\n" * 5000
    write_atomically(tmp_path / "file", text, mode=0o600)
    assert (tmp_path / "file").read_text("utf-8") == text


def test_a_link_in_a_folder_of_ones_own_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new", mode=0o644)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_link_in_a_folder_that_others_can_change_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to("../real")
    with pytest.raises(SecretError, match="symbolic link in a folder that others can write to"):
        write_atomically(shared / "link", "new", mode=0o644)
    assert (tmp_path / "real").read_text() == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user: needs root")
class TestOwners:
    def test_a_file_keeps_its_owner_and_group(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.write_text("old")
        os.chown(path, 1234, 4321)
        write_atomically(path, "new", mode=0o640)
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)

    def test_a_secret_is_not_given_to_whoever_put_a_file_there(self, tmp_path: Path) -> None:
        folder = tmp_path / "theirs"
        folder.mkdir()
        (folder / "file").write_text("trap")
        os.chown(folder, 1234, 1234)
        os.chown(folder / "file", 1234, 1234)
        write_atomically(folder / "file", "secret", mode=0o600)
        assert (folder / "file").stat().st_uid == 0

    def test_a_secret_of_another_user_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        write_atomically(path, "secret", mode=0o600)
        os.chown(path, 1234, 1234)
        with pytest.raises(SecretError, match="belongs to user 1234"):
            read_secret(path)


class TestReadSecret:
    def test_what_was_written_without_the_line_end(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "file", "secret\n", mode=0o600)
        assert read_secret(tmp_path / "file") == "secret"

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
    def test_others_may_not_touch_it(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "file"
        write_atomically(path, "secret", mode=mode)
        with pytest.raises(SecretError, match=f"mode {mode:04o}.; chmod 600 {path}"):
            read_secret(path)

    def test_odd_files(self, tmp_path: Path) -> None:
        large, odd, pipe = tmp_path / "large", tmp_path / "odd", tmp_path / "pipe"
        write_atomically(large, "x" * 70000, mode=0o600)
        write_atomically(odd, "", mode=0o600)
        odd.write_bytes(b"\xff\xfe")
        os.mkfifo(pipe, 0o600)
        for path, message in (
            (large, "larger than"),
            (odd, "not text"),
            (pipe, "not a plain file"),
            (tmp_path, "not a plain file"),
            (large / "x", "Not a directory"),
        ):
            with pytest.raises(SecretError, match=message):
                read_secret(path)
        with pytest.raises(FileNotFoundError):
            read_secret(tmp_path / "missing")
