"""Who else could change a file: every place on the way to it counts."""

import grp
import os
import pwd
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpythonplus_sites import files, trust
from cpythonplus_sites.trust import weak_spot, weak_spot_below

pytestmark = pytest.mark.any_version

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to others: needs root")
SOMEBODY = 1234


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A folder of this user's, with a path of three steps in it, of which none is weak."""
    found = tmp_path.resolve() / "top"
    (found / "a" / "b").mkdir(parents=True)
    (found / "a" / "b" / "file").touch()
    for path in (found, *found.rglob("*")):
        path.chmod(0o755)
    return found


@pytest.fixture(autouse=True)
def _groups_anew() -> Iterator[None]:
    trust._has_others.cache_clear()
    yield
    trust._has_others.cache_clear()


def found(top: Path, name: str = "a/b/file", *, sticky: bool = False) -> str | None:
    return weak_spot(top / name, top=str(top), sticky=sticky)


def test_nothing_is_weak_here(top: Path) -> None:
    assert found(top) is None
    assert found(top, "a/b/../b/./file") is None
    assert found(top, "a/not/there") is None
    assert weak_spot_below(top) is None


@pytest.mark.parametrize("name", ["", "a", "a/b", "a/b/file"])
def test_what_all_may_change_is_told_wherever_it_stands(top: Path, name: str) -> None:
    (top / name).chmod(0o777)
    line = f"others can change {top / name}; chmod go-w {top / name}".replace("/;", ";")
    assert found(top) == line
    assert weak_spot_below(top) == line
    (top / name).chmod(0o1777)
    assert found(top) == line
    is_folder = (top / name).is_dir()
    assert found(top, sticky=True) == (None if is_folder else line)


@as_root
@pytest.mark.parametrize("name", ["", "a", "a/b", "a/b/file"])
def test_what_somebody_owns_is_told(top: Path, name: str) -> None:
    os.chown(top / name, SOMEBODY, SOMEBODY)
    line = f"{top / name} belongs to user {SOMEBODY}"
    assert found(top) == weak_spot_below(top) == line
    assert found(top, sticky=True) == line


def test_what_stands_above_is_looked_at_too(top: Path) -> None:
    """Up to the root folder: pytest's folders stand in /tmp."""
    top.parent.chmod(0o777)
    assert weak_spot(top, sticky=True) == (
        f"others can change {top.parent}; chmod go-w {top.parent}"
    )
    assert found(top) is None


def test_links_are_gone_through(top: Path) -> None:
    aside = top / "aside"
    aside.mkdir()
    (aside / "real").touch()
    (top / "a" / "relative").symlink_to("../aside")
    (top / "a" / "absolute").symlink_to(aside / "real")
    names = ("a/relative/real", "a/absolute")
    assert [found(top, name) for name in names] == [None, None]
    aside.chmod(0o777)
    assert [found(top, name) for name in names] == 2 * [
        f"others can change {aside}; chmod go-w {aside}"
    ]
    (top / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        found(top, "loop")


@as_root
def test_a_link_that_somebody_made_is_told(top: Path) -> None:
    link = top / "link"
    link.symlink_to("a")
    os.lchown(link, SOMEBODY, SOMEBODY)
    assert found(top, "link/b") == f"{link} belongs to user {SOMEBODY}"


@as_root
def test_who_is_outside_of_a_sandbox_does_not_count(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There root has the number of nobody, to whom / and /dev then seem to belong."""
    nobody = int(Path(files._OVERFLOW_UID).read_text())
    os.chown(top / "a", nobody, nobody)
    line = f"{top / 'a'} belongs to user {nobody}"
    uid_map = tmp_path / "uid_map"
    monkeypatch.setattr(files, "_UID_MAP", str(uid_map))
    for text, expected in (
        ("         0          0 4294967295\n", line),
        ("1000 1000 1\n", None),
        (f"0 0 1\n{nobody} {nobody} 1\n", line),
    ):
        uid_map.write_text(text)
        assert found(top) == expected
    uid_map.unlink()
    assert found(top) == line
    uid_map.write_text("0 1000 1\n")
    os.chown(top / "a", SOMEBODY, SOMEBODY)
    assert found(top) == f"{top / 'a'} belongs to user {SOMEBODY}"


class Group:
    gr_mem: tuple[str, ...] = ()


class User:
    pw_name, pw_gid, pw_uid = "somebody", 0, SOMEBODY


@as_root
def test_a_group_counts_when_somebody_is_in_it(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Debian /usr/local may be writable for its group `staff`, in which there is nobody."""
    group, user = Group(), User()
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwall", lambda: [user])
    folder = top / "a"
    os.chown(folder, 0, 4321)
    folder.chmod(0o775)
    line = f"others can change {folder}; chmod go-w {folder}"
    assert found(top) is None
    for members, primary, expected in (
        (("somebody",), 0, line),
        ((), 4321, line),
        ((), 1, None),
    ):
        group.gr_mem, user.pw_gid = members, primary
        trust._has_others.cache_clear()
        assert found(top) == expected
    user.pw_uid, user.pw_gid = 0, 4321
    trust._has_others.cache_clear()
    assert found(top) is None  # root's own
    os.chown(folder, 0, 0)
    assert found(top) is None


def test_a_group_that_is_not_known_may_have_anybody(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(grp, "getgrgid", unknown)
    monkeypatch.setattr(os, "stat", with_group(4321))
    (top / "a").chmod(0o775)
    assert found(top) == f"others can change {top / 'a'}; chmod go-w {top / 'a'}"


def with_group(group: int) -> object:
    real = os.stat

    def status(*arguments: object, **options: object) -> os.stat_result:
        result = real(*arguments, **options)  # type: ignore[arg-type]
        return os.stat_result([*result[:5], group, *result[6:]])

    return status


def test_single_users_of_an_access_list_count(top: Path) -> None:
    """The group's bits are then the most that any of them may."""
    entries = [(0x01, 7, -1), (0x02, 7, SOMEBODY), (0x04, 5, -1), (0x10, 7, -1), (0x20, 5, -1)]
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, bits, who & 0xFFFFFFFF) for tag, bits, who in entries
    )
    folder = top / "a"
    try:
        os.setxattr(folder, "system.posix_acl_access", acl)
    except OSError as error:
        pytest.skip(f"no access lists on this file system: {error}")
    assert found(top) == f"others can change {folder}; chmod go-w {folder}"
