"""The contents of a file that a user names: reading ends, and takes a bounded amount of memory.

A name may lead to any file. Only regular files are read, and pipes that a program writes to (a
shell's `<(command)`). A FIFO without a writer is not waited for, and devices such as /dev/zero are
refused.
"""

# lint/ has a copy of this file: it imports only the standard library.

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

    AnyPath = str | os.PathLike[str]

MOST_BYTES = 64 << 20


def contents(path: "AnyPath", most_bytes: int = MOST_BYTES) -> bytes:
    """Return the contents of a file.

    Raises OSError with `filename`, also if the file has more than `most_bytes` bytes.
    """
    parts = []
    with opened(path) as file:
        found = os.fstat(file.fileno())
        left = most_bytes + 1 if found.st_size <= most_bytes else 0
        while left and (part := file.read(min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
    if not parts and stat.S_ISFIFO(found.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe that nothing is written to", os.fspath(path))
    if not left:
        text = f"it is longer than {most_bytes >> 20} MiB"
        raise OSError(errno.EFBIG, text, os.fspath(path))
    return b"".join(parts)


def opened(path: "AnyPath") -> "FileIO":
    """Open a regular file or a pipe for reading, without a buffer. Raises OSError with `filename`.

    A name that no file can have, with a null byte in it, is an OSError too.
    """
    try:
        return open(path, "rb", buffering=0, opener=_opened)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from None


def _opened(path: str, flags: int) -> int:
    file = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` refuses a folder, with its own message
        return file
    if stat.S_ISFIFO(mode):
        os.set_blocking(file, True)
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "it is not a regular file", path)
