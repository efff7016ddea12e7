"""The one writer of files, as somebody meets it who can put things into the folder before."""

import errno
import fcntl
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpythonplus._base import files
from cpythonplus._base.files import (
    UnsafeFileError,
    make_folder,
    remove_left_over,
    replace_file,
    replace_link,
    write_output,
)
from tests.support import under

pytestmark = pytest.mark.any_version

NOBODY = 65534
STEPS = ("open", "write", "fchown", "fchmod", "fsync", "close", "link", "rename", "unlink")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="plays another user: needs root")


@pytest.fixture(params=["a file without a name", "a name from the beginning", "no /proc"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is made on different file systems and in a bare chroot."""
    if request.param == "a name from the beginning":
        monkeypatch.setattr(files, "_without_name", lambda *_: None)
    elif request.param == "no /proc":
        monkeypatch.setattr(files, "_linked", lambda *_: False)
    return str(request.param)


def write_whole(path: Path, text: str) -> None:
    replace_file(path, text.encode(), mode=0o644)


@pytest.fixture(params=[write_whole, write_output], ids=["replace_file", "write_output"])
def write(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    found: Callable[[Path, str], None] = request.param
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """Somebody's file, which nobody of all these may touch."""
    path = tmp_path / "victim"
    path.write_text("precious")
    before = path.stat()
    yield path
    after = path.stat()
    assert path.read_text() == "precious"
    assert (after.st_ino, after.st_mode, after.st_uid) == (
        before.st_ino,
        before.st_mode,
        before.st_uid,
    )


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that each user can come to, unlike pytest's own."""
    found = Path(tempfile.mkdtemp(prefix="cpythonplus-test-"))
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def in_child(do: Callable[[], object], *, uid: int | None = None) -> int:
    """Do it in a process of its own, perhaps another user's; its status as os.waitpid gives it."""
    pid = os.fork()
    if pid == 0:
        try:
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            do()
            os._exit(0)
        except BaseException:  # noqa: BLE001  # nothing of pytest is to run here
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# ---- what it does -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_the_mode_is_as_told_whatever_the_umask(tmp_path: Path, way: str, mode: int) -> None:
    assert way
    path = tmp_path / "file"
    for value in (0o777, 0o077, 0):
        with under(value):
            replace_file(path, str(value).encode(), mode=mode)
        assert (mode_of(path), path.read_text()) == (mode, str(value))
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("value", [0o077, 0o022, 0])
def test_a_report_has_the_mode_of_the_umask_and_then_keeps_its_own(
    tmp_path: Path, way: str, value: int
) -> None:
    assert way
    path = tmp_path / "report"
    with under(value):
        write_output(path, "ä\udc80\n")
    assert mode_of(path) == 0o666 & ~value
    assert path.read_bytes() == "ä\\udc80\n".encode()
    path.chmod(0o640)
    write_output(path, "new")
    assert (mode_of(path), path.read_text()) == (0o640, "new")
    assert names(tmp_path) == {"report"}


def test_the_old_file_stays_for_whoever_has_it_open(
    tmp_path: Path, way: str, write: Callable[[Path, str], None]
) -> None:
    assert way
    path = tmp_path / "file"
    path.write_text("old")
    with path.open() as old:
        write(path, "new")
        assert (old.read(), path.read_text()) == ("old", "new")


def test_a_link_in_a_folder_of_ones_own_is_followed(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    """One after the other, relative and absolute, to what is there and to what is not."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "first").symlink_to("inner/second")
    (inner / "second").symlink_to(tmp_path / "third")
    (tmp_path / "third").symlink_to("inner/../real")
    for text in ("one", "two"):
        write(tmp_path / "first", text)
        assert (tmp_path / "real").read_text() == text
    assert all((tmp_path / name).is_symlink() for name in ("first", "inner/second", "third"))


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127])
def test_a_name_as_long_as_can_be(
    tmp_path: Path, way: str, write: Callable[[Path, str], None], name: str
) -> None:
    assert way
    for text in ("one", "two"):
        write(tmp_path / name, text)
        assert (tmp_path / name).read_text() == text
    assert names(tmp_path) == {name}


def test_a_name_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("file"), "text")
    assert (tmp_path / "file").read_text() == "text"


def test_errors_carry_the_path(tmp_path: Path, write: Callable[[Path, str], None]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for path, number in (
        (tmp_path, errno.EISDIR),
        (tmp_path / "none" / "file", errno.ENOENT),
        (tmp_path / "file" / "file", errno.ENOTDIR),
        (tmp_path / "loop", errno.ELOOP),
        (tmp_path / ("x" * 300), errno.ENAMETOOLONG),
    ):
        with pytest.raises(OSError) as raised:  # noqa: PT011  # the number says which
            write(path, "text")
        assert (raised.value.errno, raised.value.filename) == (number, str(path))
        assert str(raised.value) == f"[Errno {number}] {os.strerror(number)}: '{path}'"
    assert names(tmp_path) == {"file", "loop"}


# ---- what somebody has put there ----------------------------------------------------------------


def test_a_link_at_the_name_on_the_way_is_not_followed(
    shared: Path,
    victim: Path,
    way: str,
    write: Callable[[Path, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even by somebody who knows what is going to be drawn."""
    assert way
    monkeypatch.setattr(os, "urandom", lambda length: b"\x12" * length)
    for plant in (
        lambda path: path.symlink_to(victim),
        lambda path: path.hardlink_to(victim),
        os.mkfifo,
        Path.mkdir,
    ):
        planted = shared / ".file.12121212.new"
        plant(planted)
        before = planted.lstat().st_ino
        path = shared / "file"
        path.touch()
        is_left_over = stat.S_ISREG(planted.lstat().st_mode)
        if is_left_over:  # a hard link to this user's own file: just one more name to take away
            write(path, "text")
        else:
            with pytest.raises(FileExistsError):
                write(path, "text")
            assert planted.lstat().st_ino == before
            planted.rmdir() if planted.is_dir() else planted.unlink()
        assert names(shared) == {"file"}


def test_a_link_at_the_name_itself_is_refused_where_others_can_put_one(
    shared: Path, victim: Path, write: Callable[[Path, str], None]
) -> None:
    (shared / "file").symlink_to(victim)
    with pytest.raises(UnsafeFileError, match="symbolic link in a folder that others can write to"):
        write(shared / "file", "text")
    assert names(shared) == {"file"}


def test_what_a_link_of_ones_own_leads_to_is_looked_at_too(
    tmp_path: Path, shared: Path, victim: Path, write: Callable[[Path, str], None]
) -> None:
    (tmp_path / "mine").symlink_to(shared / "file")
    (shared / "file").symlink_to(victim)
    with pytest.raises(UnsafeFileError):
        write(tmp_path / "mine", "text")


def test_a_second_name_of_a_file_is_not_written_through(
    shared: Path, victim: Path, way: str, write: Callable[[Path, str], None]
) -> None:
    assert way
    (shared / "file").hardlink_to(victim)
    write(shared / "file", "text")
    assert (shared / "file").read_text() == "text"


@as_root
def test_a_link_of_somebody_else_on_the_way_is_refused(
    tmp_path: Path, shared: Path, write: Callable[[Path, str], None]
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (shared / "theirs").symlink_to(inner)
    os.lchown(shared / "theirs", NOBODY, NOBODY)
    with pytest.raises(
        UnsafeFileError, match="leads through a symbolic link that belongs to another user"
    ):
        write(shared / "theirs" / "file", "text")
    assert names(inner) == set()
    os.lchown(shared / "theirs", 0, 0)
    write(shared / "theirs" / "file", "text")
    assert names(inner) == {"file"}


@as_root
def test_an_installed_link_is_replaced_and_not_followed(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "file").symlink_to(victim)
    replace_file(tmp_path / "file", b"text", mode=0o644, follow=False)
    assert not (tmp_path / "file").is_symlink()
    (tmp_path / ".link.new").symlink_to("left")
    for target in ("one", "two"):
        replace_link(tmp_path / "link", target)
        assert str((tmp_path / "link").readlink()) == target
    assert names(tmp_path) == {"file", "link", "victim"}


def test_an_error_of_the_last_step_carries_the_path_alone(
    tmp_path: Path, write: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    real = os.rename

    def renamed(fresh: str, name: str, **folders: int) -> None:
        (tmp_path / "file").unlink()
        (tmp_path / "file").mkdir()
        real(fresh, name, **folders)

    monkeypatch.setattr(os, "rename", renamed)
    with pytest.raises(IsADirectoryError) as raised:
        write(tmp_path / "file", "text")
    assert str(raised.value) == f"[Errno 21] Is a directory: '{tmp_path}/file'"
    assert names(tmp_path) == {"file"}


def test_a_folder_in_its_place(tmp_path: Path, write: Callable[[Path, str], None]) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "file", "text")
    assert names(tmp_path) == {"file"}


# ---- devices and FIFOs --------------------------------------------------------------------------


def reading(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def test_a_fifo_of_ones_own_is_written_into_wherever_it_is(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "link").symlink_to("pipe")
    for made, named in ((tmp_path / "pipe", tmp_path / "link"), (shared / "pipe",) * 2):
        os.mkfifo(made)
        reader = reading(made)
        write_output(named, "report\n")
        assert os.read(reader, 100) == b"report\n"
        os.close(reader)
        assert made.is_fifo()


@as_root
def test_a_fifo_of_somebody_else_gets_nothing(shared: Path) -> None:
    path = shared / "pipe"
    os.mkfifo(path)
    os.chown(path, NOBODY, NOBODY)
    reader = reading(path)
    with pytest.raises(UnsafeFileError, match="not a regular file, in a folder that others can"):
        write_output(path, "report\n")
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_a_fifo_that_is_exchanged_for_a_file_gets_nothing(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at it and the opening."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    real = os.open

    def opened(name: str, flags: int, *more: int, **options: int) -> int:
        if name == "pipe":
            path.unlink()
            path.hardlink_to(victim)
        return real(name, flags, *more, **options)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(UnsafeFileError):
        write_output(path, "report\n")


def test_open_descriptors_are_written_into(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as file:
        file.write("program\n")
        file.flush()
        for folder in ("/proc/self/fd", f"/proc/{os.getpid()}/fd", "/dev/fd"):
            write_output(f"{folder}/{file.fileno()}", "report\n")
        assert (tmp_path / "out").read_text() == "program\n" + 3 * "report\n"
    write_output("/dev/null", "report\n")
    assert Path("/dev/null").is_char_device()


# ---- owners -------------------------------------------------------------------------------------


@as_root
class TestOwners:
    def test_owner_and_group_stay(
        self, tmp_path: Path, way: str, write: Callable[[Path, str], None]
    ) -> None:
        assert way
        path = tmp_path / "file"
        path.touch()
        os.chown(path, 1234, 4321)
        write(path, "text")
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)

    def test_unless_it_is_to_be_this_users(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        path.touch()
        os.chown(path, 1234, 4321)
        replace_file(path, b"", mode=0o644, keep_owner=False)
        assert (path.stat().st_uid, path.stat().st_gid) == (0, 0)

    def test_a_file_that_may_be_changed_in_a_folder_that_may_not(self, open_folder: Path) -> None:
        """It cannot be replaced: it is written over, as a mount of a single file is."""
        path = open_folder / "report"
        path.write_text("an old report")
        os.chown(path, NOBODY, NOBODY)
        assert in_child(lambda: write_output(path, "report"), uid=NOBODY) == 0
        assert (path.read_text(), path.stat().st_uid) == ("report", NOBODY)

    def test_a_private_report_stays_private(self, shared: Path) -> None:
        path = shared / "report"
        path.touch()
        path.chmod(0o600)
        with under(0o022):
            write_output(path, "report")
        assert (path.read_text(), mode_of(path)) == ("report", 0o600)

    def test_a_report_is_not_given_to_whoever_put_a_file_there(self, shared: Path) -> None:
        path = shared / "report"
        path.touch()
        path.chmod(0o666)
        os.chown(path, 1234, 1234)
        with under(0o077):
            write_output(path, "report")
        assert (path.stat().st_uid, mode_of(path)) == (0, 0o600)

    @pytest.mark.parametrize(("value", "owner"), [(0o022, 1234), (0o077, 0)])
    def test_a_report_in_the_folder_of_another_user(
        self, tmp_path: Path, way: str, value: int, owner: int
    ) -> None:
        """Root's, by sudo: what was that user's stays so, unless he is not to read it."""
        assert way
        path = tmp_path / "report"
        path.touch()
        for each in (tmp_path, path):
            os.chown(each, 1234, 4321)
        path.chmod(0o666)
        with under(value):
            write_output(path, "report")
        status = path.stat()
        assert (status.st_uid, mode_of(path)) == (owner, 0o666 & ~value)

    def test_an_owner_who_would_lose_it_keeps_it(self, open_folder: Path, way: str) -> None:
        assert way
        open_folder.chmod(0o777)
        path = open_folder / "file"
        path.write_text("old")

        def attempt() -> None:
            with pytest.raises(
                UnsafeFileError, match="belongs to user 0, who would no longer own it"
            ):
                write_whole(path, "new")
            assert names(open_folder) == {"file"}
            write_output(path, "report")  # which is whoever's that writes it

        assert in_child(attempt, uid=NOBODY) == 0
        assert (path.read_text(), path.stat().st_uid) == ("report", NOBODY)

    def test_a_file_of_somebody_else_in_a_folder_such_as_tmp(
        self, open_folder: Path, way: str, write: Callable[[Path, str], None]
    ) -> None:
        assert way
        open_folder.chmod(0o1777)
        path = open_folder / "file"
        path.write_text("old")
        os.chown(path, 1234, 1234)

        def attempt() -> None:
            with pytest.raises(PermissionError):
                write(path, "new")

        assert in_child(attempt, uid=NOBODY) == 0
        assert path.read_text() == "old"
        assert names(open_folder) == {"file"}

    def test_a_folder_that_may_be_written_into_and_not_be_read(
        self, open_folder: Path, way: str, write: Callable[[Path, str], None]
    ) -> None:
        assert way
        os.chown(open_folder, NOBODY, NOBODY)
        open_folder.chmod(0o300)
        assert in_child(lambda: write(open_folder / "file", "text"), uid=NOBODY) == 0
        assert (open_folder / "file").read_text() == "text"


# ---- what goes wrong on the way -----------------------------------------------------------------


class Fault:
    """Has the call with this number, of the calls of `os` that matter, go wrong."""

    def __init__(self, at: int, go_wrong: Callable[[], object]) -> None:
        self.at, self.go_wrong, self.calls = at, go_wrong, 0

    def wrap(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            self.calls += 1
            if self.calls == self.at:
                self.go_wrong()
            return real(*arguments, **options)

        return call

    @contextmanager
    def waiting(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in STEPS:
                patch.setattr(os, name, self.wrap(getattr(os, name)))
            yield

    @property
    def has_come(self) -> bool:
        return self.calls >= self.at


@pytest.mark.parametrize("existed", [True, False])
def test_killed_anywhere_it_leaves_the_old_or_the_new_file(
    tmp_path: Path, way: str, write: Callable[[Path, str], None], *, existed: bool
) -> None:
    """By SIGKILL, really. What else it leaves is whole, and gone after the next time."""
    path = tmp_path / "file"
    old = {"old"} if existed else {None}
    seen: set[str | None] = set()
    statuses = [-signal.SIGKILL]
    left = 0
    umask = os.umask(0)
    os.umask(umask)
    while statuses[-1] == -signal.SIGKILL:
        path.unlink(missing_ok=True)
        if existed:
            path.write_text("old")
            path.chmod(0o600)
        fault = Fault(len(statuses), lambda: os.kill(os.getpid(), signal.SIGKILL))

        def attempt(fault: Fault = fault) -> None:
            with fault.waiting():
                write(path, "new")

        statuses.append(in_child(attempt))
        seen.add(path.read_text() if path.exists() else None)
        others = [each for each in tmp_path.iterdir() if each != path]
        left += len(others)
        if way == "a file without a name":
            assert all(each.read_text() == "new" for each in others)
        assert all(mode_of(each) & 0o022 & umask == 0 for each in others)
        remove_left_over(tmp_path)
        assert names(tmp_path) <= {"file"}
    assert statuses[-1] == 0
    assert len(statuses) > 8  # it was killed at each of so many steps
    assert seen == old | {"new"}
    # Between link and rename, and nowhere where there was no old file.
    if way == "a file without a name":
        assert left == int(existed)


def test_the_next_one_takes_away_what_a_killed_one_left(
    tmp_path: Path, way: str, write: Callable[[Path, str], None]
) -> None:
    assert way
    path = tmp_path / "file"
    path.touch()
    left = tmp_path / ".file.0123abcd.new"
    kept = {
        ".file.0123abcd.newer",
        ".file.0123ABCD.new",
        "file.0123abcd.new",
        ".other.00000000.new",
    }
    for name in (left.name, *kept):
        (tmp_path / name).touch()
    write(path, "text")
    assert names(tmp_path) == {"file"} | kept
    remove_left_over(tmp_path)
    assert names(tmp_path) == {"file"} | (kept - {".other.00000000.new"})


def test_what_is_being_written_is_not_taken_away(
    tmp_path: Path, write: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another writer of the same name, at the worst moment: just before the first renames."""
    path = tmp_path / "file"
    path.touch()
    real = os.rename
    inner: list[str] = []

    def renamed(fresh: str, name: str, **folders: int) -> None:
        if not inner:
            inner.append(fresh)
            write(path, "second")
            remove_left_over(tmp_path)
        real(fresh, name, **folders)

    monkeypatch.setattr(os, "rename", renamed)
    write(path, "first")
    assert inner
    assert path.read_text() == "first"
    assert names(tmp_path) == {"file"}


def test_what_was_taken_for_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file has a name before it can be locked."""
    monkeypatch.setattr(files, "_without_name", lambda *_: None)
    real = fcntl.flock
    seen: list[int] = []

    def locked(file: int, how: int) -> None:
        if not seen:
            seen.append(file)
            remove_left_over(tmp_path)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", locked)
    write_whole(tmp_path / "file", "text")
    assert seen
    assert (tmp_path / "file").read_text() == "text"
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("existed", [True, False])
def test_an_error_anywhere_leaves_nothing_else(
    tmp_path: Path, way: str, write: Callable[[Path, str], None], *, existed: bool
) -> None:
    assert way

    def full() -> None:
        raise OSError(errno.ENOSPC, "full")

    at, has_come = 0, True
    while has_come:
        at += 1
        path = tmp_path / str(at) / "file"
        path.parent.mkdir()
        if existed:
            path.write_text("old")
        fault = Fault(at, full)
        raised = None
        try:
            with fault.waiting():
                write(path, "new")
        except OSError as error:
            raised = error
        has_come = fault.has_come
        text = path.read_text() if path.exists() else None
        assert text in ({"old", "new"} if existed else {None, "new"})
        if raised is None:
            assert text == "new"
        assert names(path.parent) <= {"file"}
    assert at > 8


def test_short_writes_go_on(
    tmp_path: Path, write: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:1000]))
    text = "äöü\n" * 5000
    write(tmp_path / "file", text)
    assert (tmp_path / "file").read_text("utf-8") == text


# ---- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 0o077, 0o027])
def test_new_folders_have_their_modes_whatever_the_umask(tmp_path: Path, value: int) -> None:
    tmp_path.chmod(0o750)
    with under(value):
        make_folder(tmp_path / "a" / "b" / "c", 0o700)
        make_folder(f"{tmp_path}/d/")
    modes = {name: mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/c", "d", "")}
    assert modes == {"a": 0o755, "a/b": 0o755, "a/b/c": 0o700, "d": 0o755, "": 0o750}


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make_folder(tmp_path, 0o700)
    (tmp_path / "link").symlink_to(".")
    make_folder(tmp_path / "link", 0o700)
    assert mode_of(tmp_path) == 0o750


def test_a_folder_cannot_be_made_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    for name, kind in (("file", FileExistsError), ("link", FileExistsError), ("file/a", OSError)):
        with pytest.raises(kind):
            make_folder(tmp_path / name)
