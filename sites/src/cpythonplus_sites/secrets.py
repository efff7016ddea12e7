"""Files with secrets, which nobody else may read, and this package's errors around files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from cpythonplus_sites.files import UnsafeFileError, replace_file

if TYPE_CHECKING:
    from pathlib import Path

MAX_SECRET_BYTES = 1 << 16
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretError(Exception):
    """A file that cannot be trusted with a secret, or that others can read: one line."""


def write_atomically(path: Path, text: str, *, mode: int, keep_owner: bool | None = None) -> None:
    """Put `text` into the file at `path`, in UTF-8, as `files.replace_file` does.

    Raises SecretError for somebody else's link and for a file whose owner would lose it, OSError
    for other errors.
    """
    try:
        replace_file(path, text.encode(errors="surrogateescape"), mode=mode, keep_owner=keep_owner)
    except UnsafeFileError as error:
        raise SecretError(f"{path} {error.strerror}") from None


def read_secret(path: Path) -> str:
    """The text of a file with a secret, without white space at its ends.

    Raises SecretError if it is not a plain file of this user or root that only its owner can
    read, is larger than 64 KiB or is not text; FileNotFoundError if it does not exist.
    """
    # Without O_NONBLOCK, opening a FIFO in its place would block for ever.
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
        raise SecretError(f"{path} is larger than {MAX_SECRET_BYTES} bytes; that is not a secret")
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise SecretError(f"{path} is not text") from None


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretError(f"{path} is not a plain file")
    if status.st_uid not in (0, os.geteuid()):
        raise SecretError(f"{path} belongs to user {status.st_uid}, who can read it")
    if status.st_mode & _OTHERS:
        shown = stat.S_IMODE(status.st_mode)
        raise SecretError(f"{path} can be read by others (mode {shown:04o}); chmod 600 {path}")
