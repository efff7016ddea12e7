"""Files that are there whole or not at all, written past whatever somebody else put at their names.

All that is written at a name of the user's goes through here (tests/test_layering.py holds it);
only the clock of `sites/`, which also works as a file alone, has a small writer of its own.

    folder, through its links -> file without a name -> write -> owner, mode -> fsync
      -> a name -> rename -> fsync of the folder

A file without a name (O_TMPFILE) is gone when its process is killed. linkat(2) gives it its name,
and replaces nothing. So where there is an old file, the new one stands beside it as
`.NAME.XXXXXXXX.new` between two system calls, whole and with its last mode, and a kill there leaves
it. The next that writes NAME takes it away: whoever is alive holds a lock on his. Where a file
system has no such files (NFS, FAT), that name is there from the beginning, never open to more.

Rejected: a name made of the process's number, where whoever can write into the folder has put a
link before; one name for all, which somebody else can occupy in /tmp; a handler that takes it away
at a signal, which is the program's to set, and which SIGKILL does not call.
"""

# Part of the distributions in lint/ and sites/, too, as copies: no import but the standard library.
# Used when the interpreter ends, and where a start is to be quick: no pathlib, contextlib, secrets.
# ruff: noqa: PTH102, SIM105, PTH112, PTH116, PTH120, PTH123, PTH208

from __future__ import annotations

import errno
import fcntl
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn, Self

    AnyPath = str | os.PathLike[str]

FOLDER_MODE = 0o755
PRIVATE_FOLDER_MODE = 0o700

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FRESH = os.O_WRONLY | os.O_CLOEXEC
_MOST_LINKS = 40
"""As many as the kernel follows."""
_RANDOM_BYTES = 4
_OVERFLOW_UID = "/proc/sys/kernel/overflowuid"
_UID_MAP = "/proc/self/uid_map"
_MOST_OF_A_NAME = 240
"""Bytes; file systems allow 255."""
_TRIES = 8
_NAME_STAYS = frozenset({errno.EBUSY, errno.EACCES, errno.EROFS, errno.EXDEV})
"""A mount of a single file, or a file that may be changed in a folder that may not."""
_NO_UNNAMED_FILES = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})


class UnsafeFileError(PermissionError):
    """What stands at a name may be somebody else's doing; `strerror` says it behind the name."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EPERM, message)


# ---- what others use ----------------------------------------------------------------------------


def replace_file(
    path: AnyPath, data: bytes, *, mode: int, keep_owner: bool | None = None, follow: bool = True
) -> None:
    """Put `data` into the file at `path` as a whole: whoever opens it sees the old or the new.

    It is on the disk when this returns.
    mode: of the new file, whatever the umask; nobody else can read it at any moment before.
    keep_owner: whether an existing file keeps its owner and, where that is allowed, its group. By
    default it does, but a file that only its owner may read is not given to whoever put one there.
    follow: a link there is followed, where nobody else can have put it; otherwise it is replaced.

    Raises OSError, whose `filename` is the path: UnsafeFileError for a link of somebody else, and
    for a file whose owner would lose it.
    """
    with _Place(path, follow=follow) as place:
        if keep_owner is None:
            keep_owner = bool(mode & _OTHERS) or not place.is_shared
        old = place.old if keep_owner and place.is_file else None
        place.put(data, mode, old, is_owned=True, sync=True)


def write_output(path: AnyPath, text: str) -> None:
    """Write a report to where a user wants it, in UTF-8: to a file as a whole, or into a device.

    A new file has the mode that the umask leaves; an old one is replaced and keeps mode and, where
    that is allowed, owner, if nobody else could have put it there. One of the folder's owner stays
    his, unless nobody but this user may read it. It is not brought to the disk: a report can be
    made again, and the end of a program should not wait. A file of one's own whose name cannot be
    given to another one, such as a mount of a single file, is written over.

    Devices, FIFOs and open descriptors (/dev/stdout) are written into; so is what a link leads
    to. Neither is done for somebody else's in a folder that he can change: UnsafeFileError. A FIFO
    that nobody reads is not waited for. Raises OSError, whose `filename` is the path.
    """
    data = text.encode("utf-8", "backslashreplace")
    with _Place(path) as place:
        if place.old is not None and not place.is_file:
            place.write_into(data)
            return
        old, mode = place.old, None
        if old is not None and (not place.is_shared or old.st_uid == os.geteuid()):
            mode = old.st_mode & 0o777
        elif old is not None and old.st_uid == place.owner:
            mode = old.st_mode & 0o777 & ~_umask()
            old = old if mode & _OTHERS else None
        else:
            old = None  # of anybody's who can write into /tmp
        try:
            place.put(data, mode, old, is_owned=False, sync=False)
        except OSError as error:
            if old is None or place.is_shared or error.errno not in _NAME_STAYS:
                raise
            place.write_over(data)


def replace_link(path: AnyPath, target: str) -> None:
    """Put a symbolic link to `target` at `path`, in the place of what is there. Raises OSError.

    Only for folders that nobody else can change: its name on the way is always the same.
    """
    with _Place(path, follow=False) as place:
        fresh = f"{_front(place.name)}new"
        if _status(fresh, place.folder) is not None:
            os.unlink(fresh, dir_fd=place.folder)
        os.symlink(target, fresh, dir_fd=place.folder)
        place.rename(fresh)
        _sync_folder(place.folder)


def make_folder(path: AnyPath, mode: int = FOLDER_MODE) -> None:
    """Make a folder where it is missing, and those that it stands in, whatever the umask.

    mode: of the folder; those that it stands in get 0755. One that is there stays as it is.
    Raises OSError.
    """
    name = os.fspath(path)
    above = os.path.dirname(name.rstrip("/"))
    if above and not os.path.isdir(above):
        make_folder(above)
    try:
        os.mkdir(name, mode & ~_OTHERS)
    except OSError:  # a read-only file system may say so before it says that it is there
        if not os.path.isdir(name):
            raise
        return
    # By its descriptor: where others can change the folder above, the name may be theirs by now.
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(folder, mode | (os.fstat(folder).st_mode & stat.S_ISGID))
    finally:
        os.close(folder)


def remove_left_over(folder: AnyPath) -> None:
    """Take away what killed writers left in a folder, whatever its name was to be."""
    found = os.open(folder, _FOLDER)
    try:
        _remove_left_over(found, ".")
    finally:
        os.close(found)


def is_shared(folder: os.stat_result) -> bool:
    """Whether somebody else than root and this user could have put something into the folder.

    A group that is this process's own counts as the user: many systems give each user one.
    """
    if is_foreign(folder.st_uid) or folder.st_mode & stat.S_IWOTH:
        return True
    return bool(folder.st_mode & stat.S_IWGRP) and folder.st_gid not in (0, os.getegid())


def is_foreign(uid: int) -> bool:
    """Whether a user is neither root nor this one.

    In a user namespace (a sandbox without root) all who are outside have one number. There root is
    one of them, to whom /dev and / belong; so that number does not count.
    """
    return uid not in (0, os.geteuid()) and not _is_outside(uid)


def _is_outside(uid: int) -> bool:
    try:
        with open(_OVERFLOW_UID, "rb") as file:
            if uid != int(file.read()):
                return False
        with open(_UID_MAP, "rb") as file:
            ranges = [list(map(int, line.split())) for line in file]
    except (OSError, ValueError):
        return False
    return not any(first <= uid < first + count for first, _, count in ranges)


# ---- a name in a folder -------------------------------------------------------------------------


class _Place:
    """A name in a folder that is open, with what stands there; errors in it carry the path."""

    def __init__(self, path: AnyPath, *, follow: bool = True) -> None:
        self.path = os.fspath(path)
        try:
            self.folder, self.name, self.old = _reached(self.path, follow=follow)
        except OSError as error:
            raise self._named(error) from None
        self.is_file = self.old is not None and stat.S_ISREG(self.old.st_mode)
        folder = os.fstat(self.folder)
        self.is_shared, self.owner = is_shared(folder), folder.st_uid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.folder)
        if isinstance(error, OSError):
            self._named(error)

    def _named(self, error: OSError) -> OSError:
        error.filename = self.path
        if error.filename2 is not None:
            del error.filename2  # None would be shown
        return error

    def put(
        self,
        data: bytes,
        mode: int | None,
        like: os.stat_result | None,
        *,
        is_owned: bool,
        sync: bool,
    ) -> None:
        """Have a file with `data` stand here.

        mode: None: what the umask leaves.  like: whose owner it gets.  is_owned: rather not at all
        than with another owner.
        """
        file = _without_name(self.folder, mode)
        done = False
        if file is not None:
            try:
                _fill(file, data, mode, like, is_owned=is_owned, sync=sync)
                done = self._name(file)
            finally:
                os.close(file)
        if not done:
            self._put_named(data, mode, like, is_owned=is_owned)
        if sync:
            _sync_folder(self.folder)

    def _name(self, file: int) -> bool:
        """Have a file without a name stand here; False where it cannot get one (no /proc)."""
        if self.old is None and _linked(file, self.name, self.folder):
            return True
        _remove_left_over(self.folder, _front(self.name))
        _lock(file)
        fresh = _fresh_name(self.name)
        if not _linked(file, fresh, self.folder):
            return False
        self.rename(fresh)
        return True

    def _put_named(
        self, data: bytes, mode: int | None, like: os.stat_result | None, *, is_owned: bool
    ) -> None:
        _remove_left_over(self.folder, _front(self.name))
        fresh, file = _with_name(self.folder, self.name, mode)
        try:
            try:
                # Synced in any case: such file systems tell a full disk late, some only then.
                _fill(file, data, mode, like, is_owned=is_owned, sync=True)
            except BaseException:
                _unlink(fresh, self.folder)
                raise
            self.rename(fresh)
        finally:
            os.close(file)  # and with it the lock, which is held until the name is gone

    def rename(self, fresh: str) -> None:
        """Give what stands at `fresh` this name."""
        try:
            os.rename(fresh, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            _unlink(fresh, self.folder)
            raise

    def write_over(self, data: bytes) -> None:
        """Write into the file that stands here, which cannot be replaced."""
        file = os.open(self.name, _FRESH | os.O_TRUNC | os.O_NOFOLLOW, dir_fd=self.folder)
        try:
            _write(file, data)
        finally:
            os.close(file)

    def write_into(self, data: bytes) -> None:
        """Write into the device, FIFO or open descriptor that stands here."""
        # A FIFO that nobody reads is an error and does not wait for a reader.
        flags = _FRESH | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
        is_descriptor = self.old is not None and stat.S_ISLNK(self.old.st_mode)
        file = os.open(
            self.name, flags if is_descriptor else flags | os.O_NOFOLLOW, dir_fd=self.folder
        )
        try:
            found = os.fstat(file)
            is_theirs = self.is_shared and is_foreign(found.st_uid)
            if not is_descriptor and (is_theirs or stat.S_ISREG(found.st_mode)):
                what = (
                    "belongs to another user and is not a regular file, in a folder"
                    " that others can write to"
                )
                raise UnsafeFileError(what)
            os.set_blocking(file, True)
            _write(file, data)
        finally:
            os.close(file)


def _reached(path: str, *, follow: bool) -> tuple[int, str, os.stat_result | None]:
    """The folder that a path ends in, opened; the last name; and what stands there.

    Link by link, so that each is looked at where it stands. What is opened cannot be exchanged any
    more by whoever can change a folder above.
    """
    names = _names(path)
    folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
    links = 0
    try:
        while names:
            name = names.pop()
            status = _status(name, folder)
            if status is None and names:
                _fail(errno.ENOENT)
            is_link = status is not None and stat.S_ISLNK(status.st_mode)
            is_descriptor = is_link and _is_of_proc(folder)
            if status is not None and is_link and not is_descriptor and (names or follow):
                links += 1
                if links > _MOST_LINKS:
                    _fail(errno.ELOOP)
                _check_link(status, os.fstat(folder), is_last=not names)
                target = os.readlink(name, dir_fd=folder)
                names += _names(target)
                if target.startswith("/"):
                    folder = _instead_of(folder, os.open("/", _FOLDER))
            elif names or (status is not None and stat.S_ISDIR(status.st_mode)):
                flags = _FOLDER if is_descriptor else _FOLDER | os.O_NOFOLLOW
                folder = _instead_of(folder, os.open(name, flags, dir_fd=folder))
            else:
                return folder, name, status
        _fail(errno.EISDIR)
    except BaseException:
        os.close(folder)
        raise


def _fail(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))  # of the class that goes with the number


def _names(path: str) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _instead_of(old: int, new: int) -> int:
    os.close(old)
    return new


def _check_link(link: os.stat_result, folder: os.stat_result, *, is_last: bool) -> None:
    """Raise UnsafeFileError where somebody else may have put the link there.

    On the way the kernel's own rule for the last name in such folders as /tmp is enough
    (fs.protected_symlinks): a folder of a user's is his to arrange. The last name says what is
    overwritten.
    """
    if is_last and is_shared(folder):
        raise UnsafeFileError("is a symbolic link in a folder that others can write to")
    is_theirs = is_foreign(link.st_uid) and link.st_uid != folder.st_uid
    if is_theirs and folder.st_mode & stat.S_IWOTH:
        raise UnsafeFileError("leads through a symbolic link that belongs to another user")


def _is_of_proc(folder: int) -> bool:
    """Whether it is a folder of /proc, whose links stand for what has no name, too."""
    try:
        return os.fstat(folder).st_dev == os.stat("/proc/self/fd").st_dev
    except FileNotFoundError:
        return False


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


# ---- the new file -------------------------------------------------------------------------------


def _without_name(folder: int, mode: int | None) -> int | None:
    """A new file that has no name yet; None where the file system has no such files."""
    try:
        return os.open(".", _FRESH | os.O_TMPFILE, _first_mode(mode), dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            return None
        raise


def _linked(file: int, name: str, folder: int) -> bool:
    """Give a file its first name; False where that is taken, or cannot be done at all."""
    try:
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=folder, follow_symlinks=True)
    except OSError:  # what is really wrong comes out when it is made with a name
        return False
    return True


def _with_name(folder: int, name: str, mode: int | None) -> tuple[str, int]:
    """A new file under a name of its own, locked."""
    for _ in range(_TRIES):
        fresh = _fresh_name(name)
        flags = _FRESH | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(fresh, flags, _first_mode(mode), dir_fd=folder)
        if _lock(file) and os.fstat(file).st_nlink:
            return fresh, file
        os.close(file)  # somebody took it for left over in between
        _unlink(fresh, folder)
    _fail(errno.EAGAIN)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _first_mode(mode: int | None) -> int:
    return 0o666 if mode is None else 0o600


def _fresh_name(name: str) -> str:
    return f"{_front(name)}{os.urandom(_RANDOM_BYTES).hex()}.new"


def _front(name: str) -> str:
    """How the new files for a name are called in front; one as long as can be is cut."""
    return f".{os.fsdecode(os.fsencode(name)[:_MOST_OF_A_NAME])}."


def _fill(
    file: int,
    data: bytes,
    mode: int | None,
    like: os.stat_result | None,
    *,
    is_owned: bool,
    sync: bool,
) -> None:
    _write(file, data)
    if like is not None and (mode is not None or os.fstat(file).st_mode & _OTHERS):
        _keep_owner(file, like, is_owned=is_owned)
    if mode is not None:
        # After the owner: a group that may read is to be the right one.
        os.fchmod(file, mode)
    if sync:
        os.fsync(file)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _keep_owner(file: int, old: os.stat_result, *, is_owned: bool) -> None:
    new = os.fstat(file)
    if old.st_uid != new.st_uid:
        try:
            os.fchown(file, old.st_uid, -1)
        except PermissionError:
            if is_owned:
                raise UnsafeFileError(
                    f"belongs to user {old.st_uid}, who would no longer own it"
                ) from None
    if old.st_gid != new.st_gid:
        try:
            os.fchown(file, -1, old.st_gid)
        except PermissionError:
            pass


def _sync_folder(folder: int) -> None:
    try:
        file = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:  # one that may be written into, and not be read
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems have no such thing
            raise
    finally:
        os.close(file)


# ---- what killed ones left ----------------------------------------------------------------------


def _lock(file: int) -> bool:
    """Say that somebody is at work on a file; False where somebody else has said so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # some network file systems cannot, and nobody can take it away there
    return True


def _remove_left_over(folder: int, begin: str) -> None:
    """Take away the new files of killed writers whose names begin so; what fails is left."""
    try:
        names = os.listdir(f"/proc/self/fd/{folder}")
    except OSError:
        return
    for name in names:
        if name.startswith(begin) and _is_fresh_name(name):
            try:
                _remove_if_left_over(name, folder)
            except OSError:
                pass


def _is_fresh_name(name: str) -> bool:
    *front, number, end = name.split(".")
    is_number = len(number) == 2 * _RANDOM_BYTES and set(number) <= set("0123456789abcdef")
    return len(front) > 1 and not front[0] and is_number and end == "new"


def _remove_if_left_over(name: str, folder: int) -> None:
    # For writing, too: NFS locks no others exclusively.
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)


def _unlink(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        pass
