"""Records measurements of spans: the state of a process.

   alone      a span, from its start to the start of the next one, while no other was open: the
              growth is its own. Its result is free again by then.
   nested     a span inside of one that is measured is measured, too, and its part is its own.
   together   everything else: rows of the growth while so many of each ended.

All of the process's growth is in either `alone` or `together`. Two spans overlap if both are open
and neither was begun inside the other by the same thread and asyncio task.

Costs: until a measurement is due, a call only counts itself. After a measurement, the next waits a
hundred times as long as that took, by default. Each name's first calls do not wait.

Threads: numbers change between two points where the interpreter may switch, which is atomic with a
GIL. A thread that measures holds the lock. If code does not get the lock at once, it spoils the
current measurement and goes on; that may be another thread, a finalizer that the collector runs in
a measurement, or a signal handler. A report waits for the lock, but not for its own thread.

Fork: the child drops the parent's state, and begins anew with its first span.
"""

import gc
import os
import sys
import threading
from array import array
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Final

from cpythonplus import _native
from cpythonplus.memory._attribution.keeping import Name, Rows
from cpythonplus.memory._attribution.measuring import Mark, Meter, private_bytes

OTHER: Final = "(other)"
SHARE: Final = 0.01
NAMES: Final = 64
_MOST_ROWS: Final = 256
_MOST_POINTS: Final = 64
_MARKS_PER_POINT: Final = 4
_HUNGRY_CALLS: Final = 256
_MOST_INSIDE: Final = 64
_MOST_DEEP: Final = 16
_MOST_GUESSES: Final = 1024
_MOST_STRANGERS: Final = 256
"""First calls under words that were not known, for which measuring does not wait."""
_MOST_SKIPPED: Final = 16
"""Calls skipped before a measured one: else mostly calls after a long call would be measured."""
_LEAST_CALLS: Final = 16
"""The least calls of a row; half as many more for each open call, whose memory is not growth."""
_LONGEST_NAME: Final = 200
_GOLDEN: Final = 0.6180339887498949
"""The fractions of its multiples are spread evenly, so they follow no rhythm of the program."""


class Sample:
    """A span that is being measured; reused, so that it takes no memory meanwhile.

    began, ended: marks. inner: bytes and blocks of the spans inside of it. inside: the names of
    these and its own, `count` of them.
    """

    __slots__ = ("began", "count", "ended", "inner", "inside", "name", "span")

    def __init__(self) -> None:
        self.span: Span | None = None
        self.name: Name | None = None
        self.began = array("q", bytes(24))
        self.ended = array("q", bytes(24))
        self.inner = array("q", bytes(16))
        self.inside = array("q", bytes(8 * _MOST_INSIDE))
        self.count = 0

    def begin(self, span: "Span", mark: Mark) -> None:
        """Begin with a span."""
        self.span, self.name, self.count = span, None, 0
        write(self.began, mark)
        self.inner[0] = self.inner[1] = 0

    def holds(self, other: "Sample", mark: Mark) -> bool:
        """Add `other`, a span inside of this one that ends now; False if there are too many."""
        self.inner[0] += mark.used_bytes - other.began[0]
        self.inner[1] += mark.blocks - other.began[1]
        if self.count + other.count >= _MOST_INSIDE:
            return False
        self.inside[self.count : self.count + other.count] = other.inside[: other.count]
        self.count += other.count
        return True


def write(place: "array[int]", mark: Mark) -> None:
    """Store a mark in an existing array."""
    place[0], place[1], place[2] = mark


class Span:
    """One call of a task or of a route.

    name: if the name is only known at the end, a preliminary one that is the same for many. nests:
    whether it may be inside another one.
    """

    __slots__ = (
        "_home",
        "_nests",
        "_owner",
        "_parent",
        "_record",
        "began_ns",
        "depth",
        "is_open",
        "name",
        "sample",
    )

    def __init__(self, name: str, *, nests: bool = True) -> None:
        """Begin the span."""
        self.name = name
        self.sample: Sample | None = None
        self._nests = nests
        home = self._home = _recorder or _made()
        depth: int = 1
        self._parent: Span | None = None
        self.depth: int
        if nests:
            owner = self._owner = _owner() if "asyncio" in _modules else threading.get_ident()
            outer = _current.get()
            if outer is not None:
                parent = self._parent = outer.enclosing(owner, home)
                if parent is not None:
                    depth = parent.depth + 1
            _current.set(self)
        self.depth = depth
        self.is_open = True
        home.active += 1
        try:
            record = self._record = home.guesses.get(name)
            now = self.began_ns = perf_counter_ns()
            if record is None:
                home.starts(self, depth, now, record)
                self.began_ns = perf_counter_ns()
            else:
                if now >= home.check_ns or record.is_wanted:
                    home.starts(self, depth, now, record)
                    self.began_ns = perf_counter_ns()
                record.open += 1
        except BaseException:  # from a signal handler, or set by another thread: a time limit
            self.is_open = False
            home.active -= 1
            raise

    def end(self, name: str = "") -> None:
        """End the span. name: if it is only known now. Does nothing if the span has ended."""
        if not self.is_open:
            return
        self.is_open = False
        home = self._home
        if self._nests and _current.get() is self:
            _current.set(self._parent)
        if home is not _recorder:
            return  # in the child of a fork, or after another configuration
        now = perf_counter_ns()
        home.active -= 1
        record = self._record
        if record is not None:
            record.open -= 1
        if record is None or name:
            record = home.named(self.name, name)
        record.calls += 1
        record.busy_ns += now - self.began_ns
        if self.sample is not None:
            home.ends(self, record)

    def enclosing(self, owner: int, home: "Recorder") -> "Span | None":
        """Return the innermost open span from this one outwards; None if its owner is another."""
        span: Span | None = self
        while span is not None and not span.is_open:
            span = span._parent  # noqa: SLF001
        return span if span is not None and span.belongs_to(owner, home) else None

    def belongs_to(self, owner: int, home: "Recorder") -> bool:
        """Return whether the span was begun by this owner, and belongs to this recorder."""
        return self._owner == owner and self._home is home

    def is_own(self) -> bool:
        """Return whether the calling thread or asyncio task has begun the span."""
        return self._owner == _owner()


_modules: Final = sys.modules
_current: "ContextVar[Span | None]" = ContextVar("cpythonplus.memory.attribute", default=None)


def _owner() -> int:
    """Return the owner of the code that runs here: the asyncio task, or the thread."""
    asyncio = _modules.get("asyncio")
    loop = getattr(asyncio, "_get_running_loop", _nothing)()
    if loop is not None:
        task = asyncio.current_task(loop)  # type: ignore[union-attr]
        if task is not None:
            return id(task)
    return threading.get_ident()  # looked up each time, because gevent replaces it


def _nothing() -> None:
    """Replace a function that a module does not have yet."""


class Recorder:
    """The measurements of one process."""

    def __init__(self, share: float, names: int) -> None:
        """Begin; UnsupportedPlatform without a GIL."""
        refuse()
        self.share, self.limit = share, names
        self.lock = threading.RLock()
        self._measures = False
        self.meter = Meter()
        self.names: dict[str, Name] = {}
        self.guesses: dict[str, Name] = {}
        self.other = Name(0)
        self.gap = Name(0)
        self.active = self.most_active = self.due_ns = self.check_ns = 0
        self.strangers = _MOST_STRANGERS
        self._skip = 0
        self.samples: list[Sample] = []
        self.pending: Sample | None = None
        self._pool = [Sample() for _ in range(_MOST_DEEP)]
        self.spoilt = False
        self._rows_base = array("q", bytes(8 * (names + 1)))
        self._rows_open = array("q", self._rows_base)
        self._row_bytes = self._row_blocks = 0
        self.rows = Rows(_MOST_ROWS, 2 * (names + 1), adds=True)
        self.points = Rows(_MOST_POINTS, names + 1, adds=False)
        self._windows = 0
        self._turn = 0.0
        self._spent_ns = 0
        self.began_ns = perf_counter_ns()
        self.private_before_bytes = private_bytes()
        self.last = array("q", self.meter.read())
        self.first = array("q", self.last)

    def named(self, guess: str, name: str = "") -> Name:
        """Return the record of a name; a new one, or the common one if there are too many.

        guess: the preliminary name; name: "" if that was the name.
        """
        known = self.names.get(name or guess)
        if known is None:
            with _naming:
                text = (name or guess)[:_LONGEST_NAME]
                known = self.names.get(text)
                if known is None:
                    known = self.other
                    if text != OTHER and len(self.names) < self.limit:
                        known = self.names[text] = Name(len(self.names) + 1)
        if self.guesses.get(guess) is not known and len(self.guesses) < _MOST_GUESSES:
            self.guesses[guess] = known
        return known

    # ---- a span starts or ends, and something may have to be measured ---------------------------

    def starts(  # noqa: C901  # one decision
        self, span: Span, depth: int, now: int, record: Name | None
    ) -> None:
        """Measure, if that is due: the pending span ends here, this one may begin."""
        wanted = self.strangers > 0 if record is None else record.is_wanted
        if record is not None and record.calls >= _HUNGRY_CALLS:
            record.is_wanted = False
        due = now >= self.due_ns
        if due:
            due = self._skip <= 0
            self._skip -= 1
        if not (wanted or due or self.pending is not None or self.samples):
            return
        span.began_ns = now + 1  # the span object exists at both marks, so it is not growth
        if not self._begins():
            return
        try:
            alone = self.active == depth
            self.most_active = max(self.most_active, self.active)
            if self.spoilt or (self.samples and not alone):
                self._spoil()
            if len(self.samples) >= _MOST_DEEP:
                self._spoil()
            if self.samples:
                self._sample(span, self.meter.read())
                return
            self.check_ns = self.due_ns
            wanted = (wanted or due) and alone
            if not (wanted or due or self.pending is not None):
                return
            mark = self.meter.read()
            mark = self._close(mark)
            if wanted or due:
                self.strangers -= record is None
                self._later()
            if wanted and self.active == depth and not self.spoilt:
                self._sample(span, mark)
        finally:
            self._measures = False
            self.lock.release()

    def _begins(self) -> bool:
        """Take the lock to measure; if that fails, spoil the current measurement."""
        if self.lock.acquire(blocking=False):
            if not self._measures:
                self._measures = True
                return True
            self.lock.release()
        self.spoilt = True
        return False

    def ends(self, span: Span, name: Name) -> None:
        """Measure the growth by a span."""
        if not self._begins():
            return
        try:
            sample, span.sample = span.sample, None
            self.most_active = max(self.most_active, self.active + 1)
            if self.spoilt or (self.samples and self.samples[-1] is not sample):
                self._spoil()
            if sample is not None and self.samples:
                self._measured(sample, name)
        finally:
            self._measures = False
            self.lock.release()

    def _sample(self, span: Span, mark: Mark) -> None:
        sample = span.sample = self._pool[len(self.samples)]
        sample.begin(span, mark)
        self.samples.append(sample)
        self.check_ns = 0

    def _measured(self, sample: Sample, name: Name) -> None:
        """Note a span that has ended; the growth of an outer one is known when the next starts."""
        self.samples.pop()
        sample.name, sample.span = name, None
        sample.inside[sample.count] = name.index
        sample.count += 1
        mark = self.meter.read(collect=bool(self.samples))
        if not self.samples:
            write(sample.ended, mark)
            self.pending = sample
            return
        if not self.spoilt:
            self._note(sample, name, mark)
        if not self.samples[-1].holds(sample, mark):
            self._spoil()

    def _note(self, sample: Sample, name: Name, mark: Mark) -> None:
        name.add(
            name.calls,
            mark.used_bytes - sample.began[0] - sample.inner[0],
            mark.blocks - sample.began[1] - sample.inner[1],
            mark.time_ns - sample.began[2],
        )

    def _spoil(self) -> None:
        """Drop the current measurement: another span began, or ended out of order."""
        self.check_ns = self.due_ns
        for sample in self.samples:
            if sample.span is not None:
                sample.span.sample = None
        self.samples.clear()
        self.pending = None
        self.spoilt = False

    def _later(self) -> None:
        """Set the time of the next measurement, by the share that measuring may take."""
        spent, self._spent_ns = self.meter.cost_ns - self._spent_ns, self.meter.cost_ns
        self._turn = (self._turn + _GOLDEN) % 1.0
        self._skip = int(self._turn * _MOST_SKIPPED)
        self.check_ns = self.due_ns = perf_counter_ns() + int(
            spent / self.share * (0.5 + self._turn)
        )

    def _close(self, mark: Mark) -> Mark:
        """End the stretch of time since the last mark; return the mark of the next."""
        if self.meter.changes():
            self._restart()
            return Mark(*self.last)
        pending, self.pending = self.pending, None
        if pending is not None and pending.name is not None and not self.spoilt:
            self._note(pending, pending.name, mark)
            self.gap.add(
                self._windows,
                mark.used_bytes - pending.ended[0],
                mark.blocks - pending.ended[1],
                mark.time_ns - pending.ended[2],
            )
            for place in range(pending.count):
                self._rows_base[pending.inside[place]] += 1
        else:
            self._row_bytes += mark.used_bytes - self.last[0]
            self._row_blocks += mark.blocks - self.last[1]
            self._end_row()
        write(self.last, mark)
        self._windows += 1
        if self._windows % _MARKS_PER_POINT == 0:
            calls = self.calls()
            self.points.add(mark.used_bytes, mark.blocks, sum(calls), calls)
        return mark

    def _end_row(self) -> None:
        """End a row if it has enough calls."""
        calls = self.calls()
        count = sum(calls) - sum(self._rows_base)
        if count < _LEAST_CALLS * (1 + self.most_active // 2):
            return
        row = array("q", map(int.__sub__, calls, self._rows_base))
        opened = self._column("open")
        row.extend(map(int.__sub__, opened, self._rows_open))
        self.rows.add(self._row_bytes, self._row_blocks, count, row)
        self._rows_base, self._rows_open = calls, opened
        self._row_bytes = self._row_blocks = self.most_active = 0

    def calls(self) -> "array[int]":
        """Return the calls of each name, by its index."""
        return self._column("calls")

    def _column(self, field: str) -> "array[int]":
        column = array("q", bytes(8 * (self.limit + 1)))
        for name in (self.other, *self.names.values()):
            column[name.index] = getattr(name, field)
        return column

    def _restart(self) -> None:
        """Drop all bytes: from now on they are measured differently."""
        self.pending = None
        self._row_bytes = self._row_blocks = 0
        self._rows_base, self._rows_open = self.calls(), self._column("open")
        for name in (self.other, self.gap, *self.names.values()):
            name.series.clear()
            name.measured = name.first_bytes = name.first_blocks = 0
        self.rows.clear()
        self.points.clear()
        write(self.last, self.meter.read())
        write(self.first, Mark(*self.last))

    def finish(self) -> bool:
        """Measure now, and after a full collection, for a report; waits for the lock.

        False: nothing was done, because a signal handler or a finalizer asks while its thread
        measures.
        """
        with self.lock:
            if self._measures:
                return False
            self._measures = True
            try:
                if self.spoilt or self.active:
                    self._spoil()
                self._close(self.meter.read())
                gc.collect()
                self._close(self.meter.read(collect=False))
            finally:
                self._measures = False
        return True


# ---- the recorder of the process ----------------------------------------------------------------

_recorder: Recorder | None = None
_options: tuple[float, int] = (SHARE, NAMES)
_naming = threading.RLock()
"""Guards new names, and making the recorder; a finalizer may come in between."""
_follows_forks = False


def refuse() -> None:
    """Raise UnsupportedPlatform without a GIL: when a program is set up, not with each call."""
    _native.memory_refuse_free_threaded()


def recorder(*, make: bool = True) -> Recorder:
    """Return the recorder of this process; LookupError if there is none and `make` is false."""
    if _recorder is not None:
        return _recorder
    if not make:
        raise LookupError("nothing has been attributed in this process")
    return _made()


def _made() -> Recorder:
    global _recorder, _follows_forks  # noqa: PLW0603
    with _naming:
        if _recorder is None:
            made = Recorder(*_options)
            if not _follows_forks:
                _follows_forks = True
                os.register_at_fork(after_in_child=_forget)
            _recorder = made
    return _recorder


def configure(share: float, names: int) -> None:
    """Begin anew, with other options."""
    global _options  # noqa: PLW0603
    if not 0 < share <= 1:
        raise ValueError(f"share: expected more than 0 and at most 1, got {share!r}")
    if not 1 <= names <= 1000:  # noqa: PLR2004
        raise ValueError(f"names: expected 1 to 1000, got {names!r}")
    _options = (float(share), int(names))
    _forget()


def _forget() -> None:
    """Begin anew in the child of a fork, because another thread may have held the locks."""
    global _recorder, _naming  # noqa: PLW0603
    _recorder = None
    _naming = threading.RLock()
