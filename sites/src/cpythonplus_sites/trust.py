"""The users who can change a path that will be trusted: the file, or a folder or link above it."""

# Beside files.py, in its style.
# ruff: noqa: PTH109, PTH115, PTH116, PTH118, PTH120

from __future__ import annotations

import errno
import os
import stat
from functools import cache

from cpythonplus_sites.files import is_foreign

_MOST_LINKS = 40
"""The most links that the kernel follows."""


def weak_spot(path: str | os.PathLike[str], *, sticky: bool = False, top: str = "/") -> str | None:
    """One line on a part of a path that others than root and this user can change; None if none.

    Links are followed, and missing parts are not checked.
    sticky: accept folders such as /tmp: others can add files to them, but not replace ours.
    A program that cleans them may free a name, so they are not accepted for programs.
    top: a folder; the folders above it are not checked. Raises OSError.
    """
    names = _names(os.path.join(os.getcwd(), path))
    here, links = "/", 0
    while True:
        found = None if _is_above(here, top) else _weakness(here, os.stat(here), sticky=sticky)
        if found is not None or not names:
            return found
        name = names.pop()
        if name == "..":
            here = os.path.dirname(here)
            continue
        there = os.path.join(here, name)
        try:
            status = os.lstat(there)
        except FileNotFoundError:
            return None
        if not stat.S_ISLNK(status.st_mode):
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
        if is_foreign(status.st_uid):
            return _belongs(there, status)
        target = os.readlink(there)
        names += _names(target)
        here = "/" if target.startswith("/") else here


def weak_spot_below(folder: str | os.PathLike[str]) -> str | None:
    """As `weak_spot`, for everything in a folder; links in it are not followed."""
    for place, _, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):
            found = _weakness(path, os.lstat(path), sticky=False)
            if found is not None:
                return found
    return None


def _names(path: str) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _is_above(path: str, top: str) -> bool:
    return path != top and os.path.commonpath([path, top]) == path


def _weakness(path: str, status: os.stat_result, *, sticky: bool) -> str | None:
    if is_foreign(status.st_uid):
        return _belongs(path, status)
    if stat.S_ISLNK(status.st_mode):
        return None
    if sticky and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    by_group = status.st_mode & stat.S_IWGRP and (_has_others(status.st_gid) or _has_acl(path))
    if status.st_mode & stat.S_IWOTH or by_group:
        return f"others can change {path}; chmod go-w {path}"
    return None


def _belongs(path: str, status: os.stat_result) -> str:
    return f"{path} belongs to user {status.st_uid}"


@cache
def _has_others(group: int) -> bool:
    """Whether others are in a group; Debian's `staff`, which owns /usr/local, may be empty."""
    if group == 0:
        return False
    import grp
    import pwd

    try:
        names = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return True
    users = pwd.getpwall()
    names.update(user.pw_name for user in users if user.pw_gid == group)
    own = {user.pw_name for user in users if user.pw_uid in (0, os.geteuid())}
    return bool(names - own)


def _has_acl(path: str) -> bool:
    """Whether an ACL names single users; the group's bits are then the most that they may."""
    try:
        os.getxattr(path, "system.posix_acl_access")
    except OSError:
        return False
    return True
