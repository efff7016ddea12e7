"""The search for the files to check."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

LEFT_OUT = frozenset(
    {"__pycache__", "__pypackages__", "_build", "node_modules", "site-packages", "venv"}
)
"""Folders that are skipped, as are hidden ones and environments (with a `pyvenv.cfg`)."""


class NoSuchPathError(Exception):
    """A path that was named does not exist."""


def find(paths: Sequence[str], exclude: Sequence[str] = ()) -> list[str]:
    """Return the Python files that are named and those in the folders that are named, sorted.

    A named file is taken, and a named folder is searched, whatever its name is.
    exclude: patterns for paths, or for one name on the way. Raises NoSuchPathError.
    """
    found: dict[str, str] = {}
    for path in paths:
        if _is_folder(path):
            files = sorted(_inside(path, exclude))
        else:
            files = [] if _is_excluded(path, exclude) else [path]
        for file in files:
            found.setdefault(os.path.abspath(file), os.path.normpath(file))  # noqa: PTH100
    return list(found.values())


def _is_folder(path: str) -> bool:
    """Whether a path is a folder; false on other errors of `stat`: reading reports them."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  # Path("") is a folder
    except (FileNotFoundError, NotADirectoryError):
        raise NoSuchPathError(path) from None
    except OSError:
        return False


def _inside(folder: str, exclude: Sequence[str]) -> Iterator[str]:
    """The files of a folder. Each link to a folder is followed once, as there may be a loop."""
    seen: set[tuple[int, int]] = set()
    # Folders that cannot be read, reported as files. Not the OSErrors: they keep this frame alive.
    unread: list[str] = []

    def note(error: OSError) -> None:
        unread.append(str(error.filename))

    for base, folders, files in os.walk(folder, onerror=note, followlinks=True):
        try:
            state = Path(base).stat()
        except OSError:
            unread.append(base)
            folders.clear()
            continue
        if (state.st_dev, state.st_ino) in seen:
            folders.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        folders[:] = sorted(name for name in folders if _is_entered(base, name, exclude))
        for name in files:
            path = os.path.join(base, name)  # noqa: PTH118  # tens of thousands of them
            if not name.endswith(".py") or _is_excluded(path, exclude):
                continue
            if _may_be_read(path):
                yield path
    yield from unread


def _may_be_read(path: str) -> bool:
    """Whether a file is a regular one: a pipe may have no end. A missing file is reported later."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116  # tens of thousands of them
    except OSError:
        return True


def _is_entered(base: str, name: str, exclude: Sequence[str]) -> bool:
    if name.startswith(".") or name in LEFT_OUT:
        return False
    path = Path(base, name)
    # Path.exists() raises if permission is denied.
    is_environment = os.path.exists(path / "pyvenv.cfg")  # noqa: PTH110
    return not is_environment and not _is_excluded(str(path), exclude)


def _is_excluded(path: str, exclude: Sequence[str]) -> bool:
    if not exclude:
        return False
    normal = os.path.normpath(path)
    parts = Path(normal).parts
    return any(
        fnmatch(normal, pattern)
        or any(fnmatch(part, pattern) for part in parts)
        or normal.startswith(os.path.normpath(pattern) + os.sep)
        for pattern in exclude
    )
