"""Tasklets that wait for each other's locks.

The C half tells which tasklet waits for which lock, and which one took that lock, at one moment. A
cycle among waits without a time-out cannot end. The lines are read from the frames afterwards.
"""

from dataclasses import replace
from itertools import chain, islice

from cpythonplus import _native
from cpythonplus._base.stacks import known_threads, outwards
from cpythonplus.tasklets.locks._conditions import Condition
from cpythonplus.threads import _waits

_MOST = 50
"""Limit of tasklets whose frames are looked at: they get their C stacks back for it."""


def waits() -> _waits.Waits:
    """Return the tasklets that are deadlocked, as `threads.waits()` does for threads.

    An ident is that of the tasklet: id(). A name is that of its thread, if it is one
    (`patch(threads=True)`), else of its function.
    """
    _waits.conditions.add(Condition)
    every = {id(row[0]): row for row in _native.tasklets_lock_waits()}
    cycles = _cycles({ident: holder for ident, (_task, _lock, holder, _ns) in every.items()})
    # Waiters of conditions come last, and may be many: each waits for a lock that it took itself.
    cycles.sort(key=len, reverse=True)
    stacks = {
        ident: outwards(every[ident][0].frame)
        for ident in islice(chain.from_iterable(cycles), _MOST)
    }
    held = {ident: every[ident][1:] for ident, frames in stacks.items() if frames}
    names = {ident: name_of(ident) or stacks[ident][-1].f_code.co_qualname for ident in held}
    found = _waits.waits_for_locks(held, stacks, names)
    dead = {ident for deadlock in found.deadlocks for ident in deadlock.threads}
    return replace(found, waits=(*(each for each in found.waits if each.ident in dead),))


def name_of(ident: int) -> str:
    """Return the name of the thread that the tasklet with this id() is, or ""."""
    return _waits.name_of(known_threads().get(ident))


def _cycles(holders: dict[int, int]) -> list[list[int]]:
    """Return those who come back to themselves from holder to holder."""
    cycles: list[list[int]] = []
    seen: set[int] = set()
    for first in holders:
        path: list[int] = []
        now = first
        while now in holders and now not in seen:
            seen.add(now)
            path.append(now)
            now = holders[now]
        if now in path:
            cycles.append(path[path.index(now) :])
    return cycles
