"""Watches the garbage that the collector finds, while the program runs.

With `gc.DEBUG_SAVEALL` the collector puts unreachable objects into `gc.garbage` instead of breaking
their cycles; their finalizers have run by then and their weak references are dead. A callback in
`gc.callbacks` looks at them at once, in C. It finds strongly connected components, and for each a
key that is the same for all components of one cause. Python code names only the first component of
a key (`naming`); then the cycles are broken as the collector would have done it. So a watched
program keeps no object longer than an unwatched one, and pays for naming once per cause.

No collection can begin while the callback runs, and only the collector's list refers to the
objects. If another callback has taken a reference to one, all objects of that collection are left
alive.

Rejected: leaving everything in `gc.garbage` until the end (memory grows with each request); finding
garbage without the collector (a second copy of its algorithm, over a heap that it keeps anyway).
"""

import atexit
import gc
import os
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus.memory._cycles.hoards import find_hoards
from cpythonplus.memory._cycles.naming import ALL_KINDS, causes
from cpythonplus.memory._cycles.report import Cause, Cycle, Hoard, Kind, Report

_ROUNDS = 5
"""The collections at the end of a watch: freed objects may leave new garbage behind."""
_PATIENCE_S = 1.0
"""The time that the end of a watch waits for a collection in another thread."""
_NAMING_S = 2.0
"""Naming may take so long at once, and ..."""
_NAMING_SHARE = 0.2
"""... this share of the time that is watched; then causes are no longer told apart.

For programs at work, whose requests wait meanwhile. A verdict must not depend on a clock: see
`name_always`."""

_KEYS_MAX = 10_000
"""The most distinct keys: a program that always makes new code has always new keys."""

_UNNAMED = Cause(Kind.OTHER, Place(), "?", "objects of too many different shapes to name each", "-")

# Per key: the causes; then components, objects, bytes, leaves of the objects, their bytes.
_Tally = tuple[tuple[Cause, ...], list[int]]


class _Tap:
    """The one callback of the process; it looks at each collection once, for all watches.

    All of this runs with the GIL held and, except for `add` and `remove`, while the collector is
    marked as running, so that no two threads are in it. A signal handler may raise on each line:
    the next collection then completes the work.
    """

    def __init__(self) -> None:
        self._watches: list[Watch] = []
        # The causes of each key, by the kinds that are to be named.
        self._known_of: dict[frozenset[Kind], dict[int, tuple[Cause, ...]]] = {}
        self._wanted = ALL_KINDS
        self._in_time = True
        self._garbage: list[object] = gc.garbage
        self._start = 0
        self._unfinished = False
        self._set_debug = False
        self._ours = False  # the saved objects are ours; also after SAVEALL was taken back
        self._naming_s = 0.0
        self._began = 0.0
        self._thread = 0
        # Only gc.callbacks holds the callback, so a dead reference shows that it was removed.
        self._callback: weakref.ref[Any] | None = None
        self._lock = threading.RLock()
        self.running = False
        self.collections = 0
        os.register_at_fork(after_in_child=self._after_fork)
        # The interpreter's end collects without callbacks, and the garbage must be freed then.
        atexit.register(self._close)

    def add(self, watch: "Watch") -> None:
        """Tell `watch` of all collections from now on."""
        with self._lock:
            if not self._watches:
                self._garbage = gc.garbage
                self._start = len(self._garbage)
                self._unfinished = False
                self._began = time.perf_counter()
                self._naming_s = 0.0
                self._known_of.clear()
            self._watches.append(watch)
            self.ask()
            self._attach()

    def remove(self, watch: "Watch") -> None:
        """Tell `watch` of no more; removing the last one restores the state before the first."""
        self._wait_until_idle()
        with self._lock:
            if watch in self._watches:
                self._watches.remove(watch)
            self.ask()
            if not self._watches:
                self._detach()

    def ask(self) -> None:
        """Update the kinds that the watches want named."""
        named = [watch._named for watch in self._watches]  # noqa: SLF001  # the other half of this
        self._wanted = frozenset().union(*(ALL_KINDS if each is None else each for each in named))
        # If one watch must know everything, all do.
        self._in_time = all(each is None for each in named)

    def ready(self) -> bool:
        """Attach the callback again, if need be; return whether this thread could collect."""
        with self._lock:
            self._attach_again()
            return not self._here()

    def _attach_again(self) -> None:
        # Set the flags, too: the program may have set its own.
        if self._watches:
            self._attach()

    def _is_attached(self) -> bool:
        callback = None if self._callback is None else self._callback()
        return any(each is callback for each in list(gc.callbacks))

    def _attach(self) -> None:
        if not self._is_attached():
            # The callback was removed, so collections may have passed without it.
            self._unfinished = self._unfinished or self._callback is not None
            self.running = False
            callback = _native.memory_guarded(self._on_collection)
            self._callback = weakref.ref(callback, self._on_loss)
            gc.callbacks.append(callback)
        flags = gc.get_debug()
        if not flags & gc.DEBUG_SAVEALL:
            self._set_debug = self._ours = True
            gc.set_debug(flags | gc.DEBUG_SAVEALL)
        elif not self._set_debug:
            self._ours = False

    def _detach(self) -> None:
        # The order allows a repetition after a signal handler raised.
        clear = self._set_debug
        if clear:
            gc.set_debug(gc.get_debug() & ~gc.DEBUG_SAVEALL)
        unfinished = self._unfinished or not self._is_attached()
        callback = None if self._callback is None else self._callback()
        for index in reversed(range(len(gc.callbacks))):
            if callback is not None and gc.callbacks[index] is callback:
                del gc.callbacks[index]
        if clear and unfinished:
            self._clear()
        self._callback = None
        self._set_debug = self._unfinished = self.running = False

    def _on_loss(self, lost: "weakref.ref[Any]") -> None:
        # gc.callbacks.clear(): nothing would free the saved objects.
        with self._lock:
            if lost is self._callback:
                self._attach_again()

    def _close(self) -> None:
        with self._lock:
            self._detach()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        if not self._here():
            self.running = False

    def _here(self) -> bool:
        """Whether this thread is in a collection: in a finalizer, or in another callback."""
        return self.running and self._thread == threading.get_ident()

    def _wait_until_idle(self) -> None:
        # Between the two calls of the callback, a collection of another thread has garbage to
        # clear.
        limit = time.monotonic() + _PATIENCE_S
        while self.running and not self._here() and self._is_attached():
            if time.monotonic() > limit:
                return
            time.sleep(0.0005)

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        self._thread = threading.get_ident()
        self.running = True
        if phase == "start":
            length = len(self._garbage)
            self._start = min(self._start, length) if self._unfinished else length
            self._unfinished = True
            return
        try:
            if len(self._garbage) > self._start:
                self._sort()
            self._unfinished = False
            self.collections += 1
        except BaseException as error:  # of a signal handler
            _empty_frames(error.__traceback__)
            raise
        finally:
            self.running = False

    def _sort(self) -> None:
        # With the program's own SAVEALL its garbage stays in the list, as the program wants.
        clear = self._ours
        known = self._known_of.setdefault(self._wanted, {})
        rows, cleared = _native.memory_sort_garbage(self._garbage, self._start, known, clear)
        self._name_new(rows, known)
        found = [(row[0], known.get(row[0], (_UNNAMED,)), row[1:-1]) for row in rows]
        # Objects are cleared if only the list holds them, so drop the rows.
        del rows
        if clear and not cleared:
            self._clear()
        self._start = len(self._garbage)
        for each in found:
            for watch in self._watches:
                watch._note(*each)  # noqa: SLF001  # the other half of this
        if len(known) >= _KEYS_MAX:
            known.clear()

    def _name_new(self, rows: list[tuple[Any, ...]], known: dict[int, tuple[Cause, ...]]) -> None:
        for key, *_, members in rows:
            if members is not None and key not in known:
                known[key] = self._name(members)

    def _clear(self) -> None:
        if len(self._garbage) > self._start:
            _native.memory_clear_garbage(self._garbage, self._start)

    def _name(self, members: list[object]) -> tuple[Cause, ...]:
        if not self._in_time:
            return tuple(causes(members, self._wanted))
        began = time.perf_counter()
        if self._naming_s > _NAMING_S + _NAMING_SHARE * (began - self._began):
            return (_UNNAMED,)
        try:
            return tuple(causes(members)) or (_UNNAMED,)
        finally:
            self._naming_s += time.perf_counter() - began


def _empty_frames(traceback: TracebackType | None) -> None:
    """Clear the variables of all frames but the first, which refer to garbage."""
    traceback = traceback and traceback.tb_next
    while traceback is not None:
        traceback.tb_frame.clear()
        traceback = traceback.tb_next


_tap = _Tap()


class Watch:
    """Watches the cyclic garbage of the whole process, between `start` and `stop`.

    As a context manager, it has its `report` after the block, also if the block raised. Several
    watches may run at a time. The collector's thresholds, and whether it is enabled, stay as they
    are; its debug flags and callbacks are restored by `stop`. Garbage is found when the collector
    runs: by itself, when the program calls `gc.collect()`, and at the end.
    """

    def __init__(
        self,
        *,
        kinds: Iterable[Kind | str] | None = None,
        hoards: bool = True,
        collect: bool = True,
    ) -> None:
        """Prepare a watch; see `watch`."""
        self._kinds = frozenset(Kind if kinds is None else map(Kind, kinds))
        self._hoards = hoards
        self._collect = collect
        self._named: frozenset[Kind] | None = None
        self._tallies: dict[int, _Tally] = {}
        self._found = 0
        self._began: float | None = None
        self._collections = 0
        self._report: Report | None = None

    @property
    def report(self) -> Report:
        """The findings; RuntimeError before `stop`."""
        if self._report is None:
            raise RuntimeError("the watch has no report until it has been stopped")
        return self._report

    @property
    def running(self) -> bool:
        """Whether the watch was started and not stopped yet."""
        return self._began is not None

    def start(self) -> None:
        """Begin to watch; RuntimeError if it watches already.

        Older garbage is collected first (unless `collect` is False), unwatched if this is the only
        watch.
        """
        if self.running:
            raise RuntimeError("the watch is already running")
        # The search for hoards needs this fact, and its proof leaves a class to the collector.
        _native.interp_facts(("inline-values",))
        if self._collect:
            gc.collect()
        self._tallies.clear()
        self._report = None
        self._collections = _tap.collections
        try:
            self._began = time.perf_counter()
            _tap.add(self)
        except BaseException:  # of a signal handler
            self._began = None
            _tap.remove(self)
            raise

    def stop(self) -> Report:
        """Collect the remaining garbage, stop, and return the report; RuntimeError if not running.

        The final collections run whether the collector is enabled or not, unless `collect` is
        False.
        """
        if self._began is None:
            raise RuntimeError("the watch is not running")
        hoards: tuple[Hoard, ...] = ()
        try:
            if self._collect:
                self._collect_rest()
            if self._hoards:
                hoards = find_hoards()
        finally:
            try:
                self._end(hoards)
            except BaseException:  # of a signal handler
                self._end(hoards)
                raise
        return self.report

    def _end(self, hoards: tuple[Hoard, ...]) -> None:
        """Make the report, and leave the tap; repeats both if a signal handler interrupted it."""
        _tap.remove(self)
        if self._began is None:
            return
        collections = _tap.collections - self._collections
        tallies, seconds = self._tallies, time.perf_counter() - self._began
        self._report = Report(_merge(tallies, self._kinds), hoards, seconds, collections)
        self._tallies = {}
        self._began = None

    def take(self) -> tuple[Cycle, ...]:
        """Return the cycles found since the last `take`, or the start; they are not reported again.

        The caller's own `gc.collect(generation)` decides which garbage is found.
        """
        if not self._tallies:
            return ()
        tallies, self._tallies = self._tallies, {}
        return _merge(tallies, self._kinds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.stop()

    def _note(self, key: int, named: tuple[Cause, ...], counts: Sequence[int]) -> None:
        if key not in self._tallies and len(self._tallies) >= _KEYS_MAX:
            key, named = -1, (_UNNAMED,)
        tally = self._tallies.setdefault(key, (named, [0, 0, 0, 0, 0]))[1]
        self._found += counts[0]
        for i, count in enumerate(counts):
            tally[i] += count

    def _collect_rest(self) -> None:
        if not _tap.ready():
            return
        limit = time.monotonic() + _PATIENCE_S
        for _ in range(_ROUNDS):
            found = self._found
            before = _tap.collections
            gc.collect()
            while _tap.collections == before and time.monotonic() < limit:
                time.sleep(0.0005)  # another thread collects, so this call did nothing
                gc.collect()
            if self._found == found:
                return


def watch(
    *, kinds: Iterable[Kind | str] | None = None, hoards: bool = True, collect: bool = True
) -> Watch:
    """Return a new watch, for a `with` statement or for its `start` and `stop`.

    kinds: which causes are reported (all); hoards: also report exceptions that are still held at
    the end; collect: run a full collection at the start, so that older garbage is not counted, and
    at the end, so that nothing is missed. Raises ValueError for an unknown kind.
    """
    return Watch(kinds=kinds, hoards=hoards, collect=collect)


def name_always(watch: Watch, kinds: frozenset[Kind] | None) -> None:
    """Make a watch name the causes of these kinds, however long that takes; at any time.

    Cycles that cannot be of these kinds may be left out. None: as at first, all while there is
    time.
    """
    watch._named = kinds  # noqa: SLF001  # no part of the public API
    _tap.ask()


def _merge(tallies: dict[int, _Tally], kinds: frozenset[Kind]) -> tuple[Cycle, ...]:
    """Add up the tallies of each cause; largest first."""
    sums: dict[Cause, list[int]] = {}
    for named, tally in list(tallies.values()):
        for place, cause in enumerate(named):
            total = sums.setdefault(cause, [0, 0, 0, 0, 0])
            # The objects of a component with several causes are counted once.
            for i, count in enumerate(tally if place == 0 else tally[:1]):
                total[i] += count
    cycles = [Cycle(cause, *total) for cause, total in sums.items() if cause.kind in kinds]
    return tuple(sorted(cycles, key=_weight))


def _weight(cycle: Cycle) -> tuple[Any, ...]:
    cause, place = cycle.cause, cycle.cause.place
    size = cycle.size_bytes + cycle.kept_bytes
    return (-size, -cycle.objects, place.file, place.line, place.function, cause.variable)
