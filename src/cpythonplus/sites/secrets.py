"""Files that nobody else may read, and files that are there whole or not at all.

    open folder -> new file, 0600 -> write -> owner, mode -> fsync -> rename -> fsync of the folder

The old file stays until the rename: a full disk, a kill or a power cut on the way leaves it as it
was, and at most a `.NAME.XXXXXXXX.new` beside it, which nobody but its owner can read.
"""

from __future__ import annotations

import errno
import os
import secrets as random_bytes
import stat
from contextlib import suppress
from pathlib import Path

MAX_SECRET_BYTES = 1 << 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretError(Exception):
    """A file that cannot be trusted with a secret, or that others can read: one line."""


def write_atomically(path: Path, text: str, *, mode: int) -> None:
    """Put `text` into the file at `path`, in UTF-8, as a whole; whoever opens it sees old or new.

    mode: of the new file, whatever the umask; nobody else can read it at any moment before.
    An existing file keeps its owner and, where that is allowed, its group. A symbolic link is
    followed where only this user and root can change its folder; elsewhere it is refused.
    Raises SecretError for such a link and for a file of another user, OSError for the rest.
    """
    path = _target(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        old = _status(path.name, folder)
        keeps = old is not None and (mode & _OTHERS or not _others_control(os.fstat(folder)))
        temporary = f".{path.name}.{random_bytes.token_hex(4)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            try:
                _fill(file, text, mode=mode, old=old if keeps else None)
            finally:
                os.close(file)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        _sync_folder(folder)
    finally:
        os.close(folder)


def read_secret(path: Path) -> str:
    """The text of a file with a secret, without white space at its ends.

    Raises SecretError where it is not a plain file of this user or root that only its owner can
    read, is larger than 64 KiB or is not text; FileNotFoundError where it is not there.
    """
    # Without O_NONBLOCK a FIFO in its place would hold us for ever.
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SecretError(f"{path}: {error.strerror}") from None
    try:
        _check_private(path, os.fstat(file))
        data = os.read(file, MAX_SECRET_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > MAX_SECRET_BYTES:
        raise SecretError(f"{path} is larger than {MAX_SECRET_BYTES} bytes; that is no secret")
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise SecretError(f"{path} is not text") from None


def _target(path: Path) -> Path:
    if not path.is_symlink():
        return path
    if _others_control(path.parent.stat()):
        raise SecretError(f"{path} is a symbolic link in a folder that others can change")
    return path.resolve()


def _others_control(folder: os.stat_result) -> bool:
    """Whether somebody else could have put a file into the folder."""
    return folder.st_uid not in (0, os.geteuid()) or bool(folder.st_mode & stat.S_IWOTH)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _fill(file: int, text: str, *, mode: int, old: os.stat_result | None) -> None:
    rest = memoryview(text.encode())
    while rest:
        rest = rest[os.write(file, rest) :]
    if old is not None:
        _keep_owner(file, old)
    # After the owner: a group that may read is to be the right one.
    os.fchmod(file, mode)
    os.fsync(file)


def _keep_owner(file: int, old: os.stat_result) -> None:
    new = os.fstat(file)
    if old.st_uid != new.st_uid:
        try:
            os.fchown(file, old.st_uid, -1)
        except PermissionError:
            raise SecretError(f"the file belongs to user {old.st_uid}, who would lose it") from None
    if old.st_gid != new.st_gid:
        with suppress(PermissionError):
            os.fchown(file, -1, old.st_gid)


def _sync_folder(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems have no such thing
            raise


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretError(f"{path} is not a plain file")
    if status.st_uid not in (0, os.geteuid()):
        raise SecretError(f"{path} belongs to user {status.st_uid}, who can read it")
    if status.st_mode & _OTHERS:
        shown = stat.S_IMODE(status.st_mode)
        raise SecretError(f"{path} can be read by others (mode {shown:04o}); chmod 600 {path}")
