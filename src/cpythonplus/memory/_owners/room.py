"""The limit for the memory of a copy of the process."""

import os
import sys
from collections.abc import Iterator
from typing import Final

from cpythonplus._base.proc import read_bytes

_OBJECT_BYTES: Final = 150
_SPARED: Final = 0.9
"""The program goes on meanwhile."""
_MOST: Final = 1 << 40
_CGROUPS: Final = "/sys/fs/cgroup"


def copy_room() -> int:
    """Return the limit in bytes; MemoryError, with a sentence, if that is too little."""
    room = min([int(left * _SPARED) for left in _left()], default=_MOST)
    needed = _OBJECT_BYTES * sys.getallocatedblocks()
    if needed > room:
        raise MemoryError(
            f"a copy of the process needs up to {needed >> 20:,} MiB, and {room >> 20:,} MiB can"
            " be had"
        )
    return min(room, _MOST)


def _left() -> Iterator[int]:
    """Yield the free bytes of the machine, and of each cgroup with a limit."""
    machine = _numbers("/proc/meminfo").get("MemAvailable:")
    if machine is not None:
        yield machine << 10
    for group in _groups():
        try:
            limit, used = (read_bytes(f"{group}/memory.{each}") for each in ("max", "current"))
        except OSError:
            continue
        if limit.strip().isdigit():
            cache = _numbers(f"{group}/memory.stat").get("inactive_file", 0)
            yield max(int(limit) - int(used) + cache, 0)


def _groups() -> Iterator[str]:
    """Yield the process's cgroup (version 2) and its parents."""
    try:
        lines = os.fsdecode(read_bytes("/proc/self/cgroup")).splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith("0::/"):
            parts = line.removeprefix("0::/").split("/")
            for count in range(len(parts), -1, -1):
                yield "/".join([_CGROUPS, *filter(None, parts[:count])])


def _numbers(path: str) -> dict[str, int]:
    try:
        lines = [line.split() for line in os.fsdecode(read_bytes(path)).splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}
