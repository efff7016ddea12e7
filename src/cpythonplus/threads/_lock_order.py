"""The orders in which tests take locks: two that contradict each other can deadlock.

While it is on, `threading.Lock` and `threading.RLock` make locks that note which other locks their
thread has when it takes one. Each such pair of locks (not of lines) is an edge of a graph; a cycle
is a deadlock that the right timing would bring about. A cycle is none if a third lock is held
around each of its edges, so that no two threads can be there at the same time.

An attempt that does not wait, or not for ever, cannot deadlock: it adds no edge. A lock that one
thread takes and another one releases is a signal, not a possession, and belongs to no cycle.
"""

from __future__ import annotations

import _thread
import itertools
import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpythonplus._base.data import Place, place_of
from cpythonplus._base.stacks import outwards
from cpythonplus.threads._waits import is_own

if TYPE_CHECKING:
    from collections.abc import Iterator

    Gates = frozenset[int]

_LONGEST = 5
"""Locks in a cycle. Longer ones are rare, and looking for them takes long."""


@dataclass(slots=True)
class _Edge:
    """A thread took the lock `second` while it had `first`.

    gates: for each time, the other locks that it had; only sets without a smaller one.
    """

    thread: str
    first: _Made
    second: _Made
    held_at: Place
    at: Place
    gates: list[Gates]


@dataclass(frozen=True, slots=True)
class _Made:
    serial: int
    kind: str
    at: Place


class LockOrder:
    """The graph of locks, and the cycles in it that were not told yet."""

    def __init__(self) -> None:
        """Nothing is noted before `install`."""
        self._edges: dict[int, dict[int, _Edge]] = {}
        self._found: list[list[_Edge]] = []
        self._signals: set[int] = set()
        self._ended: deque[int] = deque()  # by destructors, which may run anywhere
        self._guard = _thread.RLock()
        self._threads = threading.local()
        self._serials = itertools.count()
        self._standard: tuple[Any, Any] | None = None

    def install(self) -> None:
        """Note the locks that are made from now on."""
        self._standard = threading.Lock, threading.RLock
        order = self

        class Lock(_Lock):
            def __init__(self) -> None:
                super().__init__(order, "Lock")

        class RLock(_RLock):
            def __init__(self) -> None:
                super().__init__(order, "RLock")

        threading.Lock, threading.RLock = Lock, RLock  # type: ignore[assignment]

    def uninstall(self) -> None:
        """Make ordinary locks again. Those that were made meanwhile stay, and are noted."""
        if self._standard is not None:
            threading.Lock, threading.RLock = self._standard

    def taken(self) -> list[str]:
        """Return the cycles since the last call in words, and forget locks that are gone."""
        with self._guard:
            found, self._found = self._found, []
            lines = [
                line
                for cycle in found
                if not self._signals.intersection(each.first.serial for each in cycle)
                for line in _lines(cycle)
            ]
            while self._ended:
                serial = self._ended.popleft()
                self._edges.pop(serial, None)
                for each in self._edges.values():
                    each.pop(serial, None)
        return lines

    # ---- called by locks ------------------------------------------------------------------------

    def made(self, kind: str) -> _Made:
        return _Made(next(self._serials), kind, _own_line())

    def ended(self, made: _Made) -> None:
        self._ended.append(made.serial)

    def has_taken(self, lock: _Lock, *, waits: bool) -> None:
        held = self._held()
        at = _own_line()
        if waits:
            serials = frozenset(each.made.serial for each, _ in held)
            for other, held_at in held:
                self._add(other.made, lock.made, held_at, at, serials - {other.made.serial})
        held.append((lock, at))
        lock.holder = held

    def has_given(self, lock: _Lock) -> None:
        holder, lock.holder = lock.holder, None
        if holder is None:
            return
        holder[:] = [each for each in holder if each[0] is not lock]
        if holder is not self._held():
            self._signals.add(lock.made.serial)

    def _held(self) -> list[tuple[_Lock, Place]]:
        try:
            return self._threads.held  # type: ignore[no-any-return]
        except AttributeError:
            self._threads.held = []
            return self._threads.held  # type: ignore[no-any-return]

    def _add(self, first: _Made, second: _Made, held_at: Place, at: Place, gates: Gates) -> None:
        with self._guard:
            edges = self._edges.setdefault(first.serial, {})
            edge = edges.get(second.serial)
            if edge is None:
                # Not current_thread(), which may make locks.
                thread = threading._active.get(_thread.get_ident())  # type: ignore[attr-defined]  # noqa: SLF001
                name = getattr(thread, "_name", "a thread")
                edge = edges[second.serial] = _Edge(name, first, second, held_at, at, [])
            elif any(known <= gates for known in edge.gates):
                return
            edge.gates = [known for known in edge.gates if not gates <= known] + [gates]
            for path in self._paths(second.serial, first.serial, ()):
                cycle = [edge, *path]
                if _can_deadlock([[gates], *(each.gates for each in path)]):
                    self._found.append(cycle)
                    return

    def _paths(self, at: int, to: int, path: tuple[_Edge, ...]) -> Iterator[tuple[_Edge, ...]]:
        for serial, edge in list(self._edges.get(at, {}).items()):
            if serial == to:
                yield (*path, edge)
            elif len(path) < _LONGEST - 2 and all(serial != each.first.serial for each in path):
                yield from self._paths(serial, to, (*path, edge))


def _own_line() -> Place:
    """Return the calling line outside of the standard library and this package."""
    innermost = sys._getframe(1)  # noqa: SLF001
    return place_of(next(filter(is_own, outwards(innermost)), innermost))


def _can_deadlock(gates: list[list[Gates]]) -> bool:
    """Whether each edge may be gone along at the same time: no two of them behind one lock."""
    return any(
        all(a.isdisjoint(b) for a, b in itertools.combinations(each, 2))
        for each in itertools.product(*gates)
    )


def _lines(cycle: list[_Edge]) -> Iterator[str]:
    yield "lock order: threads that do this at the same time wait for each other for ever"
    for each in cycle:
        first, second = each.first, each.second
        yield f"  {each.thread} takes the {second.kind} made at {second.at}"
        yield f"    at {each.at} in {each.at.function}"
        yield f"    while it has the {first.kind} made at {first.at}, taken at {each.held_at}"


class _Lock:
    """A lock that tells `order` what becomes of it."""

    def __init__(self, order: LockOrder, kind: str) -> None:
        self._order = order
        self._inner: Any = _thread.RLock() if kind == "RLock" else _thread.allocate_lock()
        self.made = order.made(kind)
        self.holder: list[tuple[_Lock, Place]] | None = None

    def __del__(self) -> None:
        self._order.ended(self.made)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        taken: bool = self._inner.acquire(blocking, timeout)
        if taken:
            self._order.has_taken(self, waits=blocking and timeout == -1)
        return taken

    def release(self) -> None:
        self._order.has_given(self)
        self._inner.release()

    def __enter__(self) -> bool:
        self._inner.acquire()
        self._order.has_taken(self, waits=True)
        return True

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def locked(self) -> bool:
        return bool(self._inner.locked())  # of an RLock from 3.14 on

    def _at_fork_reinit(self) -> None:
        self._inner._at_fork_reinit()  # noqa: SLF001
        self.holder = None

    def __repr__(self) -> str:
        return repr(self._inner)


class _RLock(_Lock):
    """Only the outermost acquisition and the last release count."""

    _depth = 0  # written by the owner

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002
        taken: bool = self._inner.acquire(blocking, timeout)
        if taken:
            self._depth += 1
            if self._depth == 1:
                self._order.has_taken(self, waits=blocking and timeout == -1)
        return taken

    __enter__ = acquire

    def release(self) -> None:
        if self._is_owned():
            self._depth -= 1
            if self._depth == 0:
                self._order.has_given(self)
        self._inner.release()

    def _is_owned(self) -> bool:
        return bool(self._inner._is_owned())  # noqa: SLF001

    def _release_save(self) -> Any:  # noqa: ANN401
        depth, self._depth = self._depth, 0
        self._order.has_given(self)
        return self._inner._release_save(), depth  # noqa: SLF001

    def _acquire_restore(self, state: Any) -> None:  # noqa: ANN401
        inner, depth = state
        self._inner._acquire_restore(inner)  # noqa: SLF001
        self._depth = depth
        self._order.has_taken(self, waits=True)

    def _at_fork_reinit(self) -> None:
        super()._at_fork_reinit()
        self._depth = 0
