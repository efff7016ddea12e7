"""Processes of a server: who is there, by what the kernel says."""

import ctypes
import os
from pathlib import Path

MARK = "COMPAT_SERVE_RUN"
"""A variable in the environment of all processes of one run."""

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of orphans, to learn how a master ends that was re-executed."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> set[int]:
    """Return the children of a process that still run."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    except OSError:
        return set()
    return {child for child in map(int, text.split()) if alive(child)}


def alive(pid: int) -> bool:
    """Whether a process is there, and not only waits to be reaped."""
    try:
        state = (
            Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
        )
    except OSError:
        return False
    return state not in "ZX"


def of_run(mark: str) -> set[int]:
    """Return the processes that have the mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            marked = wanted in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and alive(int(folder.name)):
            found.add(int(folder.name))
    return found


def status_of(pid: int) -> int | None:
    """Return the exit status of an adopted process that has ended; None before it has."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None
