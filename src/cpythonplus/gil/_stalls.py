"""Stalls: which line kept the GIL or a lock for long while others waited."""

from collections import deque
from dataclasses import dataclass
from time import time_ns

from cpythonplus import _native
from cpythonplus._base.data import Data, Place
from cpythonplus._base.stacks import known_threads
from cpythonplus._base.text.sizes import duration

_KEPT = 1000
_kept: "deque[Stall]" = deque(maxlen=_KEPT)
untold: "deque[Stall]" = deque(maxlen=_KEPT)
"""Those of them that `watch_stalls` has not told."""


@dataclass(frozen=True, slots=True)
class Stall(Data):
    """One hold of the GIL or of a lock for which another thread waited too long, or a late loop.

    ended_s: when it ended, in seconds since 1970.  thread, ident, native_id: of the thread that had
    the GIL or the lock.  hold_ns: how long it had it; of a lock that nobody wanted at first, from
    when another thread wanted it.  waiters: how many threads waited at the end, or had given up.
    waited_ns: how long all of them together waited: for the GIL during the hold, for a lock since
    their waits began.  kind: "C" for a call of C code, or a collection in it, which do not let the
    GIL go; "atomic" for an atomic section; "lock" for a lock; "loop" for an event loop of asyncio
    that was late by hold_ns at least, while its thread did not keep the GIL.  stack: of the thread
    when it let go, outermost first; at most 24 functions; of a loop: of its callback, while it was
    late; of a lock: when another thread had waited for half of the limit, if that is known.
    made_at: the line that made the lock, if it is known.
    """

    ended_s: float
    thread: str
    ident: int
    native_id: int
    hold_ns: int
    waiters: int
    waited_ns: int
    kind: str
    stack: tuple[Place, ...]
    made_at: Place | None = None

    @property
    def at(self) -> Place:
        """Return the innermost line."""
        return self.stack[-1] if self.stack else Place()

    def __str__(self) -> str:
        """Return it in one line, without the outer part of a long stack."""
        who = f"; {self.waiters} waited for {duration(self.waited_ns)} together"
        if self.kind == "loop":
            who = f", in {self.stack[0].function}"
        calls = " < ".join(f"{each} in {each.function}" for each in self.stack[: -_SHOWN - 1 : -1])
        return f"{self.thread}: {self.what} for {duration(self.hold_ns)}{who}; at {calls}"

    @property
    def what(self) -> str:
        """Return what was kept from others, in words."""
        if self.kind == "lock":
            return "had a lock" + (f" made at {self.made_at}" if self.made_at else "")
        if self.kind == "loop":
            return "its event loop waited for a callback"
        return ("an atomic section" if self.kind == "atomic" else "C code") + " kept the GIL"


_SHOWN = 6


def stalls() -> list[Stall]:
    """Return the stalls that were recorded, newest last: the last 1000 of this process.

    They are recorded under `cpythonplus run --stalls` and `serve`; else the list is empty.
    """
    take()
    return list(_kept)


def lately(seconds: float) -> list[tuple[Stall, int, int]]:
    """Return the longest stall of each place in the last `seconds`, their number and their sum."""
    take()
    oldest_s, found = time_ns() / 1e9 - seconds, dict[tuple[str, Place], list[Stall]]()
    for each in list(_kept):
        if each.ended_s >= oldest_s:
            found.setdefault((each.kind, each.at), []).append(each)
    rows = [
        (max(of, key=lambda each: each.hold_ns), len(of), sum(each.hold_ns for each in of))
        for of in found.values()
    ]
    return sorted(rows, key=lambda row: -row[2])


def take() -> None:
    """Take over the stalls that were recorded since the last call."""
    raw, _ = _native.gil_take_stalls()
    names = thread_names() if raw else {}
    now_ns = time_ns()
    new = [
        Stall(
            ended_s=(now_ns - ago_ns) / 1e9,
            thread=names.get(native_id, f"thread {native_id}"),
            ident=ident,
            native_id=native_id,
            hold_ns=hold_ns,
            waiters=waiters,
            waited_ns=waited_ns,
            kind=kind,
            stack=tuple(Place(*each) for each in stack),
            made_at=Place(*made_at) if made_at else None,
        )
        for ago_ns, ident, native_id, hold_ns, waited_ns, waiters, kind, stack, made_at in raw
    ]
    note(*new)


def note(*new: Stall) -> None:
    """Add stalls."""
    _kept.extend(new)
    untold.extend(new)


def forget() -> None:
    """Called in the child of a fork: the parent's stalls are the parent's."""
    _kept.clear()
    untold.clear()


def thread_names() -> dict[int, str]:
    """Return the names of the threads by the kernel's number, without a lock of `threading`.

    The ident of a thread that has ended may be another one's by now.
    """
    found = [
        (getattr(each, "_native_id", 0), getattr(each, "_name", None))
        for each in known_threads().values()
    ]
    return {number: name for number, name in found if isinstance(name, str)}
