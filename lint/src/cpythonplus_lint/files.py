"""Files that exist whole or not at all, written safely against links that other users put there.

All files with a name from the user are written by this module (tests/test_layering.py checks it);
only the clock of `sites/`, which must work as a single file, has a small writer of its own.

    folder, through its links -> file without a name -> write -> owner, mode -> fsync
      -> a name -> rename -> fsync of the folder

A file without a name (O_TMPFILE) is gone when its process is killed. linkat(2) gives it its name,
but replaces no file. So if there is an old file, the new one exists beside it as
`.NAME.XXXXXXXX.new` between two system calls, whole and with its final mode, and a kill there
leaves it. The next writer of NAME removes it: a living writer holds a lock on its file. If a file
system has no files without a name (NFS, FAT), the new one has that name from the beginning, never
with wider permissions.

Rejected: a name with the process's number, at which another user of the folder may have put a link;
one fixed name, which another user can occupy in /tmp; a signal handler that removes the file, as
handlers are the program's to set, and SIGKILL calls none.
"""

# lint/ and sites/ have copies of this file: it imports only the standard library. It is used at
# the interpreter's end and in quick starts: no pathlib, contextlib, secrets.
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
"""The limit of symbolic links in a path, as in the kernel."""
_RANDOM_BYTES = 4
_OVERFLOW_UID = "/proc/sys/kernel/overflowuid"
_UID_MAP = "/proc/self/uid_map"
_MOST_OF_A_NAME = 240
"""Bytes; file systems allow 255."""
_TRIES = 8
_NAME_STAYS = frozenset({errno.EBUSY, errno.EACCES, errno.EROFS, errno.EXDEV})
"""A mount of a single file, or a writable file in a folder that is not writable."""
_NO_UNNAMED_FILES = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})


class UnsafeFileError(PermissionError):
    """The file at a name may be another user's doing; `strerror` says so after the name."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EPERM, message)


# ---- for other modules --------------------------------------------------------------------------


def replace_file(
    path: AnyPath, data: bytes, *, mode: int, keep_owner: bool | None = None, follow: bool = True
) -> None:
    """Put `data` into the file at `path` as a whole: a reader sees the old or the new contents.

    It is on the disk when this returns.
    mode: of the new file, independent of the umask; it never has wider permissions before.
    keep_owner: whether an existing file keeps its owner and, if that is allowed, its group. By
    default it does, but a file that only its owner may read does not go to another user who may
    have put one there.
    follow: a link there is followed if no other user can have put it there; otherwise it is
    replaced.

    Raises OSError, whose `filename` is the path: UnsafeFileError for a link of another user, and
    for a file whose owner would lose it.
    """
    with _Place(path, follow=follow) as place:
        if keep_owner is None:
            keep_owner = bool(mode & _OTHERS) or not place.is_shared
        old = place.old if keep_owner and place.is_file else None
        place.put(data, mode, old, is_owned=True, sync=True)


def write_output(path: AnyPath, text: str) -> None:
    """Write a report to the user's path, in UTF-8: to a file as a whole, or into a device.

    A new file has the mode that the umask leaves; an old one is replaced and keeps its mode and, if
    that is allowed, its owner, if no other user could have put it there. A file of the folder's
    owner keeps that owner, unless only this user may read it. The report is not synced to the
    disk: it can be made again, and the end of a program should not wait. If a file of this user
    cannot be replaced, such as a mount of a single file, it is overwritten.

    Devices, FIFOs and open descriptors (/dev/stdout) are written into; links are followed. Neither
    is done for a file of another user in a folder that this user can change: UnsafeFileError. A
    FIFO without a reader is not waited for. Raises OSError, whose `filename` is the path.
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
            old = None  # any user of /tmp may have put it there
        try:
            place.put(data, mode, old, is_owned=False, sync=False)
        except OSError as error:
            if old is None or place.is_shared or error.errno not in _NAME_STAYS:
                raise
            place.write_over(data)


def replace_link(path: AnyPath, target: str) -> None:
    """Put a symbolic link to `target` at `path`, replacing a file there. Raises OSError.

    Only for folders that no other user can change: its temporary name is always the same.
    """
    with _Place(path, follow=False) as place:
        fresh = f"{_front(place.name)}new"
        if _status(fresh, place.folder) is not None:
            os.unlink(fresh, dir_fd=place.folder)
        os.symlink(target, fresh, dir_fd=place.folder)
        place.rename(fresh)
        _sync_folder(place.folder)


def make_folder(path: AnyPath, mode: int = FOLDER_MODE) -> None:
    """Make a folder if it is missing, and its parents, independent of the umask.

    mode: of the folder; its parents get 0755. An existing one stays as it is.
    Raises OSError.
    """
    name = os.fspath(path)
    above = os.path.dirname(name.rstrip("/"))
    if above and not os.path.isdir(above):
        make_folder(above)
    try:
        os.mkdir(name, mode & ~_OTHERS)
    except OSError:  # a read-only file system may say so before it says that the folder exists
        if not os.path.isdir(name):
            raise
        return
    # Use a descriptor: if other users can change the parent, the name may lead elsewhere by now.
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(folder, mode | (os.fstat(folder).st_mode & stat.S_ISGID))
    finally:
        os.close(folder)


def remove_left_over(folder: AnyPath) -> None:
    """Remove the files that killed writers left in a folder."""
    found = os.open(folder, _FOLDER)
    try:
        _remove_left_over(found, ".")
    finally:
        os.close(found)


def is_shared(folder: os.stat_result) -> bool:
    """Whether other users than root and this one could have put files into the folder.

    A group that is this process's own counts as the user: many systems give each user one.
    """
    if is_foreign(folder.st_uid) or folder.st_mode & stat.S_IWOTH:
        return True
    return bool(folder.st_mode & stat.S_IWGRP) and folder.st_gid not in (0, os.getegid())


def is_foreign(uid: int) -> bool:
    """Whether a user is neither root nor this one.

    In a user namespace (a sandbox without root) all users outside have one number. Root, who owns
    /dev and /, is among them; so that number does not count as foreign.
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
    """A name in an open folder, and the file there; errors carry the path."""

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
            del error.filename2  # it would be shown as None
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
        """Put a file with `data` at this name.

        mode: None: as the umask leaves it. like: the status of the file whose owner it gets.
        is_owned: raise an error if it cannot get that owner.
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
        """Give this name to a file without one; False if that is impossible (no /proc)."""
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
                # Always synced: a file system without O_TMPFILE may report a full disk only at
                # fsync(2).
                _fill(file, data, mode, like, is_owned=is_owned, sync=True)
            except BaseException:
                _unlink(fresh, self.folder)
                raise
            self.rename(fresh)
        finally:
            os.close(file)  # this also drops the lock, which is held until the name is gone

    def rename(self, fresh: str) -> None:
        """Give this name to the file at `fresh`."""
        try:
            os.rename(fresh, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            _unlink(fresh, self.folder)
            raise

    def write_over(self, data: bytes) -> None:
        """Write into the file at this name, which cannot be replaced."""
        file = os.open(self.name, _FRESH | os.O_TRUNC | os.O_NOFOLLOW, dir_fd=self.folder)
        try:
            _write(file, data)
        finally:
            os.close(file)

    def write_into(self, data: bytes) -> None:
        """Write into the device, FIFO or open descriptor at this name."""
        # A FIFO without a reader is an error, and is not waited for.
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
    """Return the folder of a path, opened; the last name; and the status of the file there.

    Links are followed one by one, so that each is checked in its folder. An opened folder can no
    longer be exchanged by a user who can change a folder above it.
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
    raise OSError(number, os.strerror(number))  # OSError makes the class that belongs to the number


def _names(path: str) -> list[str]:
    """Return the names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _instead_of(old: int, new: int) -> int:
    os.close(old)
    return new


def _check_link(link: os.stat_result, folder: os.stat_result, *, is_last: bool) -> None:
    """Raise UnsafeFileError if another user may have put the link there.

    For links before the last name, the kernel's rule for the last name in folders like /tmp is
    enough (fs.protected_symlinks): users may arrange their own folders. A link at the last name
    decides which file is overwritten.
    """
    if is_last and is_shared(folder):
        raise UnsafeFileError("is a symbolic link in a folder that others can write to")
    is_theirs = is_foreign(link.st_uid) and link.st_uid != folder.st_uid
    if is_theirs and folder.st_mode & stat.S_IWOTH:
        raise UnsafeFileError("leads through a symbolic link that belongs to another user")


def _is_of_proc(folder: int) -> bool:
    """Whether it is a folder of /proc, whose links may also stand for files without a name."""
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
    """Return a new file without a name; None if the file system does not support O_TMPFILE."""
    try:
        return os.open(".", _FRESH | os.O_TMPFILE, _first_mode(mode), dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            return None
        raise


def _linked(file: int, name: str, folder: int) -> bool:
    """Give a file its first name; False if that is taken, or impossible."""
    try:
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=folder, follow_symlinks=True)
    except OSError:  # the real error comes when the file is made with a name
        return False
    return True


def _with_name(folder: int, name: str, mode: int | None) -> tuple[str, int]:
    """Return a new file with a temporary name, and that name; the file is locked."""
    for _ in range(_TRIES):
        fresh = _fresh_name(name)
        flags = _FRESH | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(fresh, flags, _first_mode(mode), dir_fd=folder)
        if _lock(file) and os.fstat(file).st_nlink:
            return fresh, file
        os.close(file)  # another writer removed it as left over in between
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
    """Return the beginning of the temporary names for a name; a very long name is cut."""
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
        # After the owner: the group must be the right one when it gets permissions.
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
    except PermissionError:  # a folder may be writable and not readable
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a folder
            raise
    finally:
        os.close(file)


# ---- files of killed writers --------------------------------------------------------------------


def _lock(file: int) -> bool:
    """Lock a file that is being written; False if another writer has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # some network file systems have no locks, so no writer removes files there
    return True


def _remove_left_over(folder: int, begin: str) -> None:
    """Remove the new files of killed writers whose names begin so; errors are ignored."""
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
    # Opened for writing, too: on NFS only that allows an exclusive lock.
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
