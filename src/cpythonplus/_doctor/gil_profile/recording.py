"""Recording the profile in this process: each hold and each wait, charged to a Python stack."""

from __future__ import annotations

import os
from types import CodeType

from cpythonplus import _native

Json = dict[str, object]
Times = tuple[int, int, int]
Row = tuple[int, Times, Times]
FOR_EVER = 2**63
_FOR_A_WHILE = 2_000_000
"""Holds and waits that a doctor's profile counts after its last question; then it ends itself."""
_LARGEST = 60

_kept = False
"""Whether the program was started with a profile: a doctor that leaves does not end it."""


def start() -> None:
    """Record until the end of the process, and in forked children anew.

    Raises UnsupportedPlatform if frames cannot be read here.
    """
    global _kept  # noqa: PLW0603
    _native.gil_profile_start(FOR_EVER)
    if not _kept:
        _kept = True
        os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    _native.gil_profile_stop()
    _native.gil_profile_start(FOR_EVER)


def largest() -> Json:
    """Begin to record, if nobody has, and return the stacks with the longest holds and waits.

    LookupError if the GIL is not scheduled.
    """
    if not _native.gil_active():
        raise LookupError("the GIL of this process is not scheduled")
    _native.gil_profile_start(_FOR_A_WHILE)
    return taken(_LARGEST)


def end() -> Json:
    """End what `largest` has begun."""
    if not _kept:
        _native.gil_profile_stop()
    return {}


def taken(most: int | None = None) -> Json:
    """Return the profile until now.

    most: only so many stacks, by their holds and by their waits. functions: [name, file, first
    line]. stacks: frames, innermost first, as [number in `functions`, line]; holds and waits as
    [count, total ns, longest ns]. The stack without frames that comes first has what found no room;
    another one is of threads that run no Python code.
    """
    rows = _native.gil_profile_rows()
    if most is not None:
        by_number = {row[0]: row for at in (1, 2) for row in _longest(rows, at, most)}
        rows = [*by_number.values()]
    numbers: dict[CodeType, int] = {}
    lines: dict[tuple[CodeType, int], int] = {}
    stacks: list[Json] = []
    for number, holds, waits in rows:
        if not holds[0] and not waits[0]:
            continue
        frames, is_cut = _native.gil_profile_stack(number)
        for frame in frames:
            if frame not in lines:
                lines[frame] = _native.gil_profile_line(*frame)
        stacks.append(
            {
                "frames": [
                    (numbers.setdefault(frame[0], len(numbers)), lines[frame]) for frame in frames
                ],
                "is_cut": is_cut,
                "is_rest": number == 0,
                "holds": holds,
                "waits": waits,
            }
        )
    functions = [(each.co_qualname, each.co_filename, each.co_firstlineno) for each in numbers]
    return {"pid": os.getpid(), "functions": functions, "stacks": stacks}


def _longest(rows: list[Row], at: int, most: int) -> list[Row]:
    return sorted(rows, key=lambda row: row[at][1], reverse=True)[:most]  # type: ignore[index]
