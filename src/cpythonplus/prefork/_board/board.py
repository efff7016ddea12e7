"""Data that the master and the workers of a prefork server exchange.

Made in the master before it forks, in anonymous shared memory.  These kinds of records (see
`records.py`, which keeps them whole):

- The *table*: the owner of each slot, the number of restarts for each reason, the counts of the
  workers that are gone, and the owner of the turn.  Any process may write it, one at a time: under
  a record lock (`fcntl`) of an unnamed file.  The kernel drops that lock when its owner is killed.
- The *master's numbers*: memory, and the results of preparing.  Written by the master only.
- The *numbers* of each slot: memory, requests, waits for the GIL, readiness, the reason for
  leaving.  Written by the worker that has the slot; before and after that, by the holder of the
  table's lock.
- The *stalls* of each line and the *use* of each route, of all workers (`counts.py`).  Written by
  the holder of the table's lock.

A change of the table is one commit.  Taking a worker off the board moves its counts to the gone in
the same commit, so that no sum of a snapshot ever goes down.

Rejected: a lock inside the shared memory, which a killed worker keeps for ever; `flock`, which a
parent and its children share; a lock for readers, which a stopped worker could keep from reading.
"""

import errno
import fcntl
import mmap
import os
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, fields
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from cpythonplus.prefork._board.counts import Counts
from cpythonplus.prefork._board.records import WORD_MAX, Record
from cpythonplus.prefork._board.slots import (
    CLAIM,
    COUNTERS,
    LOOKED_NS,
    NUMBERS,
    PRIVATE,
    PROPORTIONAL,
    READY,
    REASON,
    REQUESTS,
    SHARED,
    WAIT_NS,
    WAITS,
    Slot,
    code_of,
)
from cpythonplus.prefork._limits import endings
from cpythonplus.prefork._limits.endings import REASONS

__all__ = [
    "REASONS",
    "Board",
    "BoardBusy",
    "BoardError",
    "BoardFull",
    "BoardSnapshot",
    "MasterRow",
    "RouteRow",
    "Slot",
    "StallRow",
    "WorkerRow",
]

T = TypeVar("T")

_PATIENCE_S = 1.0
_PAUSE_S = 0.001


class BoardError(RuntimeError):
    """The board cannot take this worker, which can work uncounted."""


class BoardFull(BoardError):  # noqa: N818  # it names a state
    """Every slot belongs to a running worker."""


class BoardBusy(BoardError):  # noqa: N818  # it names a state
    """Another process holds the board's lock: it is probably stopped.  Nothing was changed."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker, as it last described itself.

    private_bytes, shared_bytes, proportional_bytes: as in `sharing`; 0 before the first reading.
    requests, gil_waits: since its start.  gil_wait_ns: how long all these waits together took.
    leaving: the reason that it gave for leaving, or "".  looked_ns: when it has last looked at its
    hard limits, on the monotonic clock; 0: it does not.
    """

    pid: int
    slot: int
    ready: bool
    private_bytes: int
    shared_bytes: int
    proportional_bytes: int
    requests: int
    gil_waits: int
    gil_wait_ns: int
    leaving: str
    looked_ns: int


@dataclass(frozen=True, slots=True)
class MasterRow:
    """The master, as it last described itself; zeros before that.

    prepares, refused: how often it was prepared for forking, and how often it was not prepared
    again although its heap had grown. prepare_ns: the time of all preparations. immortal_bytes: the
    size of the objects that it made immortal.  The others: as in `sharing`.
    """

    prepares: int = 0
    refused: int = 0
    prepare_ns: int = 0
    immortal_bytes: int = 0
    resident_bytes: int = 0
    private_bytes: int = 0
    shared_bytes: int = 0
    proportional_bytes: int = 0


_MASTER_NUMBERS = len(fields(MasterRow))


class StallRow(NamedTuple):
    """The stalls of all workers so far at one line."""

    kind: str
    at: str
    times: int
    total_ns: int


class RouteRow(NamedTuple):
    """The use of all workers so far by the requests of one route."""

    method: str
    route: str
    requests: int
    held_ns: int
    waited_ns: int
    cpu_ns: int
    stalls: int
    new_bytes: int


_STALL_NUMBERS = 2  # times, total_ns
_ROUTE_NUMBERS = 6


@dataclass(frozen=True, slots=True)
class BoardSnapshot:
    """The contents of the board at one moment.

    workers: the oldest first; one that has ended stays until its end is reported. restarts: how
    many workers have ended, for each of REASONS. requests, gil_waits, gil_wait_ns: of all workers
    so far. turn_pid: the worker that may leave now, 0 for none. master: its own numbers.
    """

    workers: tuple[WorkerRow, ...]
    restarts: Mapping[str, int]
    requests: int
    gil_waits: int
    gil_wait_ns: int
    turn_pid: int
    master: MasterRow = MasterRow()


class _Owner(NamedTuple):
    """The owner of a slot. claim numbers the claims of the board from 1; 0: the slot is free.

    swept_pid: a worker of this slot that was found to be gone, and counted, before it was reported.
    """

    pid: int = 0
    ticks: int = 0
    claim: int = 0
    swept_pid: int = 0


class _Turn(NamedTuple):
    """The worker that may leave; pid 0: none. last_claim: the newest claim when it took the turn.

    gone_ns: the monotonic time at which its end was first seen; 0: not yet.
    """

    pid: int = 0
    ticks: int = 0
    last_claim: int = 0
    gone_ns: int = 0


@dataclass(slots=True)
class _Table:
    """The table, unpacked; `words` gives the order of its fields."""

    restarts: list[int]
    gone: list[int]  # as COUNTERS
    claims: int
    warned: int
    turn: _Turn
    owners: list[_Owner]

    @staticmethod
    def size(slots: int) -> int:
        return len(REASONS) + len(COUNTERS) + 2 + len(_Turn._fields) + slots * len(_Owner._fields)

    @classmethod
    def of(cls, words: list[int]) -> "_Table":
        rest = iter(words)
        restarts, gone = list(islice(rest, len(REASONS))), list(islice(rest, len(COUNTERS)))
        claims, warned = islice(rest, 2)
        turn = _Turn(*islice(rest, len(_Turn._fields)))
        owners = [_Owner(*each) for each in zip(*[rest] * len(_Owner._fields), strict=True)]
        return cls(restarts, gone, claims, warned, turn, owners)

    def words(self) -> list[int]:
        owners = [word for owner in self.owners for word in owner]
        head = [*self.restarts, *self.gone, self.claims, self.warned, *self.turn]
        return [min(word, WORD_MAX) for word in (*head, *owners)]

    def slot_of(self, pid: int) -> int | None:
        return next((i for i, owner in enumerate(self.owners) if owner.pid == pid), None)


@dataclass(slots=True)
class _Local:
    """The state of the board in one process.

    inside: whether a thread is changing the table; guarded by `lock`. to_end: workers that are to
    be taken off, with the reason.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    inside: bool = False
    to_end: "deque[tuple[int, int]]" = field(default_factory=deque)
    slots: "dict[int, Slot]" = field(default_factory=dict)
    kills: endings.OutOfMemoryKills = field(default_factory=endings.OutOfMemoryKills)


class Board:
    """The board; make it in the master, before the workers are forked.

    Workers that are not forked from this process, and programs that it executes, do not have it.
    """

    def __init__(self, slots: int, *, replacement_s: float = 10.0) -> None:
        """Make a board for as many workers at a time as there are `slots`.

        Allow for those that are still leaving while their replacements start: twice the workers is
        a good number; a slot takes about 250 bytes.

        replacement_s: how long the turn of a worker that has ended is kept for its replacement to
        be ready (a server may decide to start none).
        """
        if slots < 1:
            raise ValueError(f"a board needs at least one slot, not {slots}")
        self.slots = slots
        self._replacement_ns = int(replacement_s * 1e9)
        size = _Table.size(slots)
        spans = [Record.span(size), *[Record.span(NUMBERS)] * slots, Record.span(_MASTER_NUMBERS)]
        spans += [Counts.span(_STALL_NUMBERS), Counts.span(_ROUTE_NUMBERS)]
        self._memory = mmap.mmap(-1, 8 * sum(spans))
        words = memoryview(self._memory).cast("Q")
        self._table = Record(words, 0, size)
        first, step = Record.span(size), Record.span(NUMBERS)
        self._numbers = [Record(words, first + i * step, NUMBERS) for i in range(slots)]
        self._master = Record(words, first + slots * step, _MASTER_NUMBERS)
        self._stalls = Counts(words, sum(spans[:-2]), _STALL_NUMBERS)
        self._routes = Counts(words, sum(spans[:-1]), _ROUTE_NUMBERS)
        self._table.write(_Table.of([0] * size).words())
        # The file is empty; it exists only for its lock.
        self._file = _unnamed_file()
        self._file_is = _identity(self._file)
        weakref.finalize(self, _close, self._file, self._file_is)
        self._locals: dict[int, _Local] = {}
        self._local()

    # ---- the workers -----------------------------------------------------------------------------

    def claim(self, pid: int) -> Slot:
        """Give a slot to the worker `pid`: in that worker after the fork, or in the master for it.

        The one that it has already, if so.  Slots of workers that have ended unreported are freed
        when there is no other.  Raises BoardFull when all are in use, BoardBusy when the board
        cannot be changed now; both are BoardError, and mean that this worker is not counted.
        ProcessLookupError: there is no such process.
        """
        ticks = endings.start_ticks(pid)
        if ticks is None:
            raise ProcessLookupError(errno.ESRCH, f"there is no running process {pid}")
        slots = self._local().slots

        def assign(table: _Table) -> Slot:
            index = self._assign(table, pid, ticks)
            slot = slots.get(pid)
            if slot is None or slot.claim != table.owners[index].claim:
                slot = slots[pid] = Slot(index, pid, self._numbers[index])
            return slot

        return self._change(assign)

    def _assign(self, table: _Table, pid: int, ticks: int) -> int:
        """Return the index of the slot of `pid`, which is made its own if there was none."""
        index = table.slot_of(pid)
        if index is not None and table.owners[index].ticks == ticks:
            return index
        if index is not None:
            self._take_off(table, index, self._noted(table, index), swept=True)
        index = table.slot_of(0)
        if index is None:
            self._sweep(table)
            index = table.slot_of(0)
        if index is None:
            raise BoardFull(f"all {self.slots} slots of the board belong to running workers")
        table.claims += 1
        # If a pid is used again, it no longer belongs to the worker that was swept.
        owners = [o._replace(swept_pid=0) if o.swept_pid == pid else o for o in table.owners]
        owners[index] = _Owner(pid, ticks, table.claims, owners[index].swept_pid)
        table.owners = owners
        # This precedes the commit of the table: until then the slot is free, and its numbers are
        # not read; afterwards they are this worker's.  If the process is killed here, the copy of
        # the table in use is intact.
        self._numbers[index].write([table.claims] + [0] * (NUMBERS - 1))
        return index

    # ---- the master ------------------------------------------------------------------------------

    def ended(self, pid: int, how: str | int | None = None) -> str:
        """Take the worker `pid`, which has ended, off the board; count a restart; return why.

        how: one of REASONS, if the master knows; the wait status that `os.waitpid` gave; or None,
        if the server does not tell.  The worker's own reason wins over a status, see
        `endings.reason_of_status`.  A worker that is not on the board (it ended before it had
        claimed a slot) is counted too.  Call it once for each worker.

        Never raises BoardBusy, and may be called in a signal handler: a change that is impossible
        now is made by the next call of this process that changes the board.  ValueError: another
        reason.
        """
        reason = how if isinstance(how, str) else self._reason(pid, how)
        self._local().to_end.append((pid, code_of(reason)))
        self._end_pending()
        return reason

    def sweep(self) -> int:
        """Take off all workers whose process has ended; return how many there were.

        For servers that do not report each end.  They are counted under the reason that they noted,
        or "exit".  An end that is reported afterwards is not counted again.
        """
        return self._change(self._sweep)

    def describe_master(self, row: MasterRow) -> None:
        """Put the master's own numbers on the board: in the master, by one thread at a time."""
        self._master.write([min(max(value, 0), WORD_MAX) for value in astuple(row)])

    def snapshot(self) -> BoardSnapshot:
        """Return the contents of the board.  Takes no lock: any process may call it at any time."""
        while True:
            sequence = self._table.sequence()
            table = _Table.of(self._table.read())
            numbers = [record.read() for record in self._numbers]
            if self._table.sequence() == sequence:
                return _snapshot(table, numbers, MasterRow(*self._master.read()))

    # ---- stalls and routes -----------------------------------------------------------------------

    def count_stall(self, kind: str, at: str, length_ns: int) -> None:
        """Count a stall of a worker at the line `at`; raises BoardBusy."""
        with self._exclusively():
            self._stalls.add(kind, at, (1, length_ns))

    def stalls(self) -> list[StallRow]:
        """Return the stalls of all workers so far by line.  Takes no lock."""
        return [StallRow(kind, at, *numbers) for kind, at, numbers in self._stalls.rows()]

    def count_routes(self, rows: Iterable[RouteRow]) -> None:
        """Add the use of a worker since its last call; raises BoardBusy."""
        with self._exclusively():
            for method, route, *numbers in rows:
                self._routes.add(method, route, numbers)

    def routes(self) -> list[RouteRow]:
        """Return the use of all workers so far by route.  Takes no lock."""
        return [RouteRow(kind, what, *numbers) for kind, what, numbers in self._routes.rows()]

    # ---- turns -----------------------------------------------------------------------------------

    def take_turn(self, pid: int) -> bool:
        """Return whether the worker `pid` may leave now: if so, no other one may.

        The turn ends when a worker that came after it was taken is ready, or when its process
        has ended and no replacement came within `replacement_s`.  A worker that has the turn and
        goes on running keeps it.  False also when it cannot be found out at once.
        """
        ticks = endings.start_ticks(pid)
        if ticks is None:
            return False
        # Check first without the lock: usually another worker has the turn.
        table = _Table.of(self._table.read())
        turn = self._turn_now(table)
        if turn.pid not in {0, pid} and turn == table.turn:
            return False

        def take(table: _Table) -> bool:
            table.turn = self._turn_now(table)
            if table.turn.pid == 0:
                table.turn = _Turn(pid, ticks, table.claims, 0)
            return table.turn[:2] == (pid, ticks)

        try:
            return self._change(take)
        except BoardBusy:
            return False

    def warn_once(self) -> bool:
        """Return True for the first caller of all workers: the one that warns."""
        if _Table.of(self._table.read()).warned:
            return False

        def mark(table: _Table) -> bool:
            first = not table.warned
            table.warned = 1
            return first

        try:
            return self._change(mark)
        except BoardBusy:
            return False

    def _turn_now(self, table: _Table) -> _Turn:
        """Return the present turn: an ended one as free, a newly seen death noted."""
        turn = table.turn
        if turn.pid == 0:
            return turn
        for owner, record in zip(table.owners, self._numbers, strict=True):
            if owner.claim > turn.last_claim and owner.pid != turn.pid:
                values = record.read()
                if values[CLAIM] == owner.claim and values[READY]:
                    return _Turn()
        if turn.gone_ns == 0:
            if endings.exists(turn.pid, turn.ticks):
                return turn
            turn = turn._replace(gone_ns=time.monotonic_ns())
        if time.monotonic_ns() - turn.gone_ns >= self._replacement_ns:
            return _Turn()
        return turn

    # ---- changing the table ----------------------------------------------------------------------

    def _sweep(self, table: _Table) -> int:
        gone = [
            index
            for index, owner in enumerate(table.owners)
            if owner.claim and not endings.exists(owner.pid, owner.ticks)
        ]
        for index in gone:
            self._take_off(table, index, self._noted(table, index), swept=True)
        return len(gone)

    def _end(self, table: _Table, pid: int, code: int) -> None:
        self._local().slots.pop(pid, None)
        index = table.slot_of(pid)
        if index is not None:
            self._take_off(table, index, code, swept=False)
        elif any(owner.swept_pid == pid for owner in table.owners):
            table.owners = [
                o._replace(swept_pid=0) if o.swept_pid == pid else o for o in table.owners
            ]
        else:
            table.restarts[code] += 1

    def _take_off(self, table: _Table, index: int, code: int, *, swept: bool) -> None:
        """Free the slot, add its counts to those of the gone, and count its end under `code`."""
        owner = table.owners[index]
        values = self._numbers[index].read()
        if values[CLAIM] == owner.claim:
            table.gone = [a + values[place] for a, place in zip(table.gone, COUNTERS, strict=True)]
        table.restarts[code] += 1
        table.owners[index] = _Owner(swept_pid=owner.pid if swept else owner.swept_pid)

    def _noted(self, table: _Table, index: int) -> int:
        """Return the code of the worker's reason, else that of "exit"."""
        values = self._numbers[index].read()
        given = values[REASON] if values[CLAIM] == table.owners[index].claim else 0
        return given - 1 if given else code_of("exit")

    def _reason(self, pid: int, status: int | None) -> str:
        row = next((row for row in self.snapshot().workers if row.pid == pid), None)
        noted = row.leaving if row is not None and row.leaving else None
        if status is None:
            return noted or "exit"
        return endings.reason_of_status(
            status,
            noted=noted,
            ready=row is not None and row.ready,
            out_of_memory=self._local().kills.look,
        )

    def _end_pending(self) -> None:
        to_end = self._local().to_end
        while to_end:
            try:
                self._change_once(lambda _: None)
            except BoardBusy:
                return  # a signal handler inside of a change, or a stopped process: later

    def _change(self, change: "Callable[[_Table], T]") -> T:
        result = self._change_once(change)
        self._end_pending()
        return result

    def _change_once(self, change: "Callable[[_Table], T]") -> T:
        to_end = self._local().to_end
        with self._exclusively():
            table = _Table.of(self._table.read())
            ended = list(to_end)
            for pid, code in ended:
                self._end(table, pid, code)
            result = change(table)
            self._table.write(table.words())
            for _ in ended:
                to_end.popleft()
        return result

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Keep out other threads, other processes, and signal handlers of this thread."""
        local = self._local()
        with local.lock:
            if local.inside:
                raise BoardBusy("a signal handler ran while its thread was changing the board")
            if _identity(self._file) != self._file_is:
                raise BoardBusy("the board's lock file has been closed in this process")
            # A signal handler may raise at any call, so all of them are inside the try.
            try:
                local.inside = True
                self._lock_file()
                yield
            finally:
                try:
                    fcntl.lockf(self._file, fcntl.LOCK_UN)
                finally:
                    local.inside = False

    def _lock_file(self) -> None:
        last_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                if time.monotonic() > last_s:
                    raise BoardBusy(
                        "another process holds the board's lock: is it stopped?"
                    ) from None
                time.sleep(_PAUSE_S)
            else:
                return

    def _local(self) -> _Local:
        """Return this process's state; a forked child starts with an empty one."""
        pid = os.getpid()
        local = self._locals.get(pid)
        return local if local is not None else self._locals.setdefault(pid, _Local())


def _snapshot(table: _Table, numbers: list[list[int]], master: MasterRow) -> BoardSnapshot:
    gone = list(table.gone)
    rows: list[tuple[int, WorkerRow]] = []
    for index, (owner, values) in enumerate(zip(table.owners, numbers, strict=True)):
        if owner.claim and owner.claim == values[CLAIM]:
            gone = [a + values[place] for a, place in zip(gone, COUNTERS, strict=True)]
            rows.append((owner.claim, _row(index, owner, values)))
    requests, gil_waits, gil_wait_ns = gone
    return BoardSnapshot(
        workers=tuple(row for _, row in sorted(rows, key=lambda pair: pair[0])),
        restarts=MappingProxyType(dict(zip(REASONS, table.restarts, strict=True))),
        requests=requests,
        gil_waits=gil_waits,
        gil_wait_ns=gil_wait_ns,
        turn_pid=table.turn.pid,
        master=master,
    )


def _row(index: int, owner: _Owner, values: list[int]) -> WorkerRow:
    return WorkerRow(
        pid=owner.pid,
        slot=index,
        ready=bool(values[READY]),
        private_bytes=values[PRIVATE],
        shared_bytes=values[SHARED],
        proportional_bytes=values[PROPORTIONAL],
        requests=values[REQUESTS],
        gil_waits=values[WAITS],
        gil_wait_ns=values[WAIT_NS],
        leaving=REASONS[values[REASON] - 1] if values[REASON] else "",
        looked_ns=values[LOOKED_NS],
    )


def _unnamed_file() -> int:
    """Return a descriptor of a new empty file without a name."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):  # an old kernel, or a sandbox
            return os.memfd_create("cpythonplus-board")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _close(descriptor: int, file_is: tuple[int, int] | None) -> None:
    """Close the file, unless the program has done so and the number is another file's by now."""
    if file_is is not None and _identity(descriptor) == file_is:
        os.close(descriptor)


def _identity(descriptor: int) -> tuple[int, int] | None:
    """Return the identity of an open file; None: the descriptor is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
