"""The looks at running processes: what they answer, what /proc says, and rates between two looks.

Each process is asked by a thread of its own, so one that does not answer (it holds the GIL, or is
stopped) delays no other, and /proc still tells what its threads do.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cpythonplus._base.data import Data
from cpythonplus._base.proc import read_bytes, resident_bytes
from cpythonplus._base.reading import entries, inside, size, texts, visible, words
from cpythonplus._doctor.agent.client import AskError, Client, reach
from cpythonplus._doctor.agent.finding import Unreachable, children_of, command_of, find

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from cpythonplus._base.reading import Part

_WAITS_SHARE, _VIEW_SHARE = 0.003, 0.02
"""The most time that a process spends on answers that are not the lines of threads: who waits for
whom, and those that one view shows."""
_MOST_CHILDREN = 64
_FIRST_S = 3.0
_LATE_S = 1.0
_LOOK_S = 0.01
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_WAITS = "deadlock"
"""The question who waits for whom; it costs some microseconds a thread, and is always asked."""
_GIL_ROW = 11
_PYTHON_ROW = 5
Place = tuple[str, str, int]
"""Function, file, line."""
_STATES = {"R": "runs", "S": "sleeps", "D": "disk", "T": "stopped", "t": "traced", "Z": "ended"}


@dataclass(frozen=True, slots=True)
class ThreadRow(Data):
    """One thread between two looks.

    gil, cpu: shares of the time; None: not known. gil is None if the GIL is not scheduled, and for
    the only thread of a process, which is not timed. level: 0 to 8, see `gil.Policy`; None: never
    seen. waits: how often it waited for the GIL, and how long half of the waits and 99 % of them
    lasted at most (None: there was none), up to 1/4 too high. state: in a few words; since_ns: for
    how long it has awaited the GIL, or waited for a lock. made_at: the line that made the
    lock or queue that it waits for, "" if that is not known. function, file, line: of its innermost
    Python frame.
    """

    pid: int
    native_id: int
    ident: int
    name: str
    level: int | None
    gil: float | None
    cpu: float | None
    waits: int
    wait_p50_ns: int | None
    wait_p99_ns: int | None
    state: str
    since_ns: int
    made_at: str
    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class TaskRow(Data):
    """Tasks of asyncio, or tasklets, that are at the same function in the same state."""

    pid: int
    kind: str
    count: int
    function: str
    state: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class StallRow(Data):
    """The stalls of one place within the last minute, see `gil.Stall`.

    what: was kept from others. thread, waiters: of the longest one. file, line, function: of its
    innermost frame.
    """

    what: str
    thread: str
    count: int
    total_ns: int
    longest_ns: int
    waiters: int
    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class ProcessRow(Data):
    """One process. problem: why there is no answer, or none that is new; "" if there is none.

    private_bytes: resident memory that belongs to no file. collections: by generation, since the
    process started. scheduled: whether the GIL is. native_threads: all threads of the process.
    deadlocks: the names of the threads of each. stalls: by place, the longest in sum first.
    """

    pid: int
    command: str
    problem: str
    scheduled: bool
    cpu: float | None
    rss_bytes: int
    private_bytes: int
    native_threads: int
    collections: list[int]
    deadlocks: list[list[str]]
    threads: list[ThreadRow] = field(default_factory=list)
    stalls: list[StallRow] = field(default_factory=list)


# ---- /proc --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """A thread as /proc shows it."""

    name: str
    state: str
    cpu_ns: int


def _tasks(pid: int) -> dict[int, _Task]:
    found: dict[int, _Task] = {}
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    for name in names:
        folder = f"/proc/{pid}/task/{name}"
        with suppress(OSError, ValueError, IndexError):
            before, _, after = read_bytes(f"{folder}/stat").rpartition(b")")
            fields = after.split()
            comm = before.partition(b"(")[2].decode(errors="backslashreplace")
            cpu_ns = (int(fields[11]) + int(fields[12])) * _TICK_NS
            with suppress(OSError, ValueError, IndexError):  # a kernel without it
                cpu_ns = int(read_bytes(f"{folder}/schedstat").split()[0])
            found[int(name)] = _Task(visible(comm), fields[0].decode(), cpu_ns)
    return found


def _inner_ids(pid: int, tasks: dict[int, _Task]) -> dict[int, int]:
    """Return the ids that the process itself sees, in its PID namespace, with the outer ones."""
    inner: dict[int, int] = {}
    for task in tasks:
        with suppress(OSError, ValueError, IndexError):
            text = read_bytes(f"/proc/{pid}/task/{task}/status")
            inner[int(text.partition(b"NSpid:")[2].split(b"\n")[0].split()[-1])] = task
    return inner


def _private_bytes(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(read_bytes(f"/proc/{pid}/status").partition(b"RssAnon:")[2].split()[0]) * 1024
    return 0


# ---- one process --------------------------------------------------------------------------------


class _Moment:
    """An answer of a process, with its time."""

    def __init__(self, answer: Part) -> None:
        self.answer = answer
        self.seen_s = time.monotonic()
        self.now_ns = size(answer, "now_ns")
        self.gil = {row[1]: row for row in _rows(answer, "gil", _GIL_ROW)}


class _Tasks:
    """The threads of a process as /proc shows them at one time."""

    def __init__(self, pid: int) -> None:
        self.now_ns = time.monotonic_ns()
        self.by_id = _tasks(pid)


def _rows(answer: Part, name: str, length: int) -> Iterator[list[object]]:
    """Yield the rows of a list of lists that begin with two whole numbers."""
    value = answer.get(name)
    for row in value if isinstance(value, list) else ():
        if isinstance(row, list) and len(row) == length and type(row[0]) is type(row[1]) is int:
            yield row


def _whole(value: object) -> int:
    return value if type(value) is int else 0


class Process:
    """A process that is asked again and again by a thread."""

    def __init__(self, pid: int, client: Client, interval_s: float) -> None:
        """Look at process `pid` from `start` on."""
        self.pid = pid
        self.is_over = False
        self.problem = ""
        self.answers: dict[str, Part] = {}
        self.questions: dict[str, str] = {_WAITS: ""}
        """Further questions, with their arguments, that are asked at each look behind `top`."""
        self.moments: tuple[_Moment, ...] = ()
        self.looks = 0
        self._client = client
        self._interval_s = interval_s
        self._last: list[str] = []
        self._due: dict[str, float] = {}
        self._proc = (_Tasks(pid),) * 2
        self._asked_s = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"top {pid}")

    def start(self) -> None:
        """Ask now, and at each interval."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end of the last look; not for a process that does not answer."""
        self._thread.join(_LATE_S)

    def ask_last(self, name: str) -> None:
        """Ask once, at the next look or at the end."""
        self._last.append(name)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._ask()
                self.problem = ""
            except Unreachable as error:
                self.problem = str(error)
                try:
                    find(self.pid)
                except Unreachable:
                    self.is_over = True
                    return
            except AskError as error:
                self.problem = str(error)
            finally:
                self.looks += 1
            self._stop.wait(self._interval_s)
        with suppress(Unreachable, AskError):
            while self._last:
                self._client.ask(self._last.pop())
        self._client.close()

    def _ask(self) -> None:
        self._asked_s = time.monotonic()
        try:
            self.moments = (*self.moments[-1:], _Moment(self._client.ask("top")))
            for name, argument in {**self.questions}.items():
                self._ask_for(name, argument)
            while self._last:
                self._client.ask(self._last.pop())
        finally:
            self._client.close()  # others may ask between two looks

    def _ask_for(self, name: str, argument: str) -> None:
        began = time.monotonic()
        if began < self._due.get(name, 0.0):
            return
        try:
            self.answers[name] = self._client.ask(name, argument)
        except AskError as error:
            self.answers[name] = {"error": str(error)}
            if name == _WAITS:  # a version or a build that does not know it
                self.questions.pop(name, None)
        now = time.monotonic()
        self._due[name] = now + (now - began) / (_WAITS_SHARE if name == _WAITS else _VIEW_SHARE)

    def unasked(self, name: str) -> None:
        """Ask no more for what a view has shown."""
        self.questions.pop(name, None)
        self.answers.pop(name, None)
        self._due.pop(name, None)

    # ---- what is shown --------------------------------------------------------------------------

    def row(self) -> ProcessRow:
        """Return the process with its threads; processor times are those since the last call."""
        self._proc = (self._proc[1], _Tasks(self.pid))
        moments, problem = self.moments, self.problem
        waited_s = time.monotonic() - max(self._asked_s, moments[-1].seen_s if moments else 0.0)
        if not problem and waited_s > self._interval_s + _LATE_S:
            problem = f"no answer for {waited_s:.0f} s: it holds the GIL in C code, or is stopped"
        answer = moments[-1].answer if moments else {}
        collections = answer.get("collections")
        threads = self._threads(moments) if moments else self._native_threads()
        known = [each.cpu for each in threads if each.cpu is not None]
        return ProcessRow(
            pid=self.pid,
            command=visible(command_of(self.pid)),
            problem=problem,
            scheduled=isinstance(answer.get("gil"), list),
            cpu=sum(known) if known else None,
            rss_bytes=resident_bytes(self.pid),
            private_bytes=_private_bytes(self.pid),
            native_threads=len(self._proc[1].by_id),
            collections=[*map(_whole, collections)] if isinstance(collections, list) else [],
            deadlocks=self._deadlocks(),
            threads=threads,
            stalls=[_stall(each) for each in entries(answer, "stalls")],
        )

    def _deadlocks(self) -> list[list[str]]:
        of_threads = self.answers.get(_WAITS, {})
        return [
            [words(names, str(ident)) or str(ident) for ident in _whole_numbers(row, "threads")]
            for answer in (of_threads, inside(of_threads, "among_tasklets"))
            for names in [inside(answer, "names")]
            for row in entries(answer, "deadlocks")
        ]

    def _native_threads(self, known: Container[int] = ()) -> list[ThreadRow]:
        """Return the threads, except the known ones, with what /proc tells of them."""
        nothing = _Share(None, None, 0, None, None)
        return [
            self._row(
                each, 0, task.name, doing=_doing_by_proc(task), share=nothing, place=("", "", 0)
            )
            for each, task in self._proc[1].by_id.items()
            if each not in known
        ]

    def _threads(self, moments: tuple[_Moment, ...]) -> list[ThreadRow]:
        before, now = moments[0], moments[-1]
        functions = now.answer.get("functions")
        places = functions if isinstance(functions, list) else []
        python = {row[0]: row for row in _rows_of_python(now.answer)}
        names = {ident: row[2] for ident, row in python.items()}
        owners = {row[0]: str(names.get(row[1], row[2])) for row in now.gil.values()}
        tasks = self._proc[1].by_id
        outer = {each: each for each in tasks}
        if self._client.process.inner_pid != self.pid:
            outer = _inner_ids(self.pid, tasks)
        elapsed_ns = now.now_ns - before.now_ns
        is_timed = sum(ident in python for ident in now.gil) > 1
        waits = {size(row, "ident"): row for row in entries(self.answers.get(_WAITS), "waits")}
        rows: list[ThreadRow] = []
        for ident in dict.fromkeys([*python, *now.gil]):
            line, gil = python.get(ident), now.gil.get(ident)
            native = _whole(gil[2] if gil else line[1] if line else 0)
            native = outer.get(native, native)
            task = tasks.get(native)
            if line is None and task is None:
                continue  # it has ended
            rows.append(
                self._row(
                    native,
                    _whole(ident),
                    visible(str(line[2])) if line else task.name if task else "",
                    doing=_doing(gil, waits.get(_whole(ident)), {**names}, owners, task),
                    share=_share(before.gil.get(ident), gil, elapsed_ns if is_timed else 0),
                    place=_place(places, line),
                )
            )
        return rows + self._native_threads({row.native_id for row in rows})

    def _row(
        self, native: int, ident: int, name: str, *, doing: _Doing, share: _Share, place: Place
    ) -> ThreadRow:
        before, now = self._proc
        then, task = before.by_id.get(native), now.by_id.get(native)
        elapsed_ns = now.now_ns - before.now_ns
        cpu = None
        if then is not None and task is not None and elapsed_ns > 0:
            cpu = max(task.cpu_ns - then.cpu_ns, 0) / elapsed_ns
        return ThreadRow(
            pid=self.pid,
            native_id=native,
            ident=ident,
            name=name,
            level=share.level,
            gil=share.gil,
            cpu=cpu,
            waits=share.waits,
            wait_p50_ns=share.p50_ns,
            wait_p99_ns=share.p99_ns,
            state=doing.state,
            since_ns=doing.since_ns,
            made_at=doing.made_at,
            function=place[0],
            file=place[1],
            line=place[2],
        )


def _stall(row: Part) -> StallRow:
    return StallRow(
        what=words(row, "what"),
        thread=words(row, "thread"),
        count=size(row, "count"),
        total_ns=size(row, "total_ns"),
        longest_ns=size(row, "longest_ns"),
        waiters=size(row, "waiters"),
        file=words(row, "file"),
        line=size(row, "line"),
        function=words(row, "function"),
    )


def _rows_of_python(answer: Part) -> Iterator[list[object]]:
    """Yield [ident, native id or 0, name, number of the function, line] of each thread."""
    value = answer.get("threads")
    for row in value if isinstance(value, list) else ():
        if isinstance(row, list) and len(row) == _PYTHON_ROW and type(row[0]) is int:
            yield row


def _place(places: list[object], line: list[object] | None) -> Place:
    number = _whole(line[3]) if line else -1
    place = places[number] if 0 <= number < len(places) else None
    if not isinstance(place, list) or len(place) != 2 or line is None:  # noqa: PLR2004
        return "", "", 0
    return visible(str(place[0])), visible(str(place[1])), _whole(line[4])


class _Doing(NamedTuple):
    state: str
    since_ns: int = 0
    made_at: str = ""


def _doing(
    gil: list[object] | None,
    wait: Part | None,
    names: dict[object, object],
    owners: dict[object, str],
    task: _Task | None,
) -> _Doing:
    """Return what a thread does; wait: its row in the answer about waits, which may be older."""
    if gil is not None and gil[4] is True:
        return _Doing("has the GIL")
    if gil is not None and _whole(gil[5]):
        return _Doing("awaits the GIL", _whole(gil[5]))
    if wait is not None:
        of = [visible(str(names.get(each, each))) for each in _whole_numbers(wait, "owners")]
        if wait.get("owner_ended") is True:
            of = ["an ended thread"]
        kind = words(wait, "kind")
        what = f"{kind} of {', '.join(of)}" if of else f"{kind}.{words(wait, 'method')}"
        if kind.startswith("process "):
            what = f"end of {kind}"
        made = inside(wait, "made_at")
        made_at = f"{words(made, 'file')}:{size(made, 'line')}" if made else ""
        return _Doing(what, size(wait, "waited_ns"), made_at)
    if gil is not None and _whole(gil[6]):
        return _Doing(f"Lock of {visible(owners.get(gil[6], 'an ended thread'))}")
    return _doing_by_proc(task)


def _doing_by_proc(task: _Task | None) -> _Doing:
    return _Doing(_STATES.get(task.state, task.state) if task else "")


def _whole_numbers(row: Part, name: str) -> list[int]:
    value = row.get(name)
    return [each for each in value if type(each) is int] if isinstance(value, list) else []


class _Share(NamedTuple):
    """The fields of a row that the scheduler knows."""

    level: int | None
    gil: float | None
    waits: int
    p50_ns: int | None
    p99_ns: int | None


def _share(before: list[object] | None, now: list[object] | None, elapsed_ns: int) -> _Share:
    """Return the share between two rows of the scheduler; 0 ns: the thread is not timed."""
    if now is None:
        return _Share(None, None, 0, None, None)
    then = before if before is not None and before[0] == now[0] else None
    share = None
    if elapsed_ns > 0:
        held = _whole(now[8]) - (_whole(then[8]) if then else 0)
        share = min(max(held / elapsed_ns, 0.0), 1.0)
    counts = _counts(now)
    for upper, count in (_counts(then) if then else {}).items():
        counts[upper] = counts.get(upper, 0) - count
    waits = sum(counts.values())
    p50, p99 = (_quantile(counts, 0.5), _quantile(counts, 0.99)) if waits > 0 else (None, None)
    return _Share(_whole(now[3]), share, waits, p50, p99)


def _counts(row: list[object]) -> dict[int, int]:
    pairs = [*map(_whole, row[10])] if isinstance(row[10], list) else []
    return dict(zip(pairs[::2], pairs[1::2], strict=False))


def _quantile(counts: dict[int, int], fraction: float) -> int:
    rank, seen = fraction * sum(counts.values()), 0
    for upper in sorted(counts):
        seen += counts[upper]
        if seen >= rank:
            return upper
    return max(counts)


# ---- all of them --------------------------------------------------------------------------------


class Top:
    """A process, and its children that answer: those of one server."""

    def __init__(self, client: Client, interval_s: float) -> None:
        """Look at the client's process at each interval from now on.

        Waits for its first answer, for some seconds. Unreachable or AskError if it cannot answer.
        """
        self._interval_s = interval_s
        self.first = Process(client.process.pid, client, interval_s)
        self.processes = {self.first.pid: self.first}
        self._refused: set[int] = set()
        self.first.start()
        self.find_children()
        self.wait_for_looks(1)
        if self.first.is_over:
            raise Unreachable(self.first.problem)
        if self.first.problem and not self.first.moments:
            raise AskError(f"process {self.first.pid}: {self.first.problem}")

    def wait_for_looks(self, count: int) -> None:
        """Wait until each process was asked so often, for as long as that should take."""
        limit = time.monotonic() + _FIRST_S + count * self._interval_s
        for each in self.processes.values():
            while each.looks < count and not each.is_over and time.monotonic() < limit:
                time.sleep(_LOOK_S)

    def find_children(self) -> None:
        """Take in children that have come, and drop those that are gone."""
        now = [each.pid for each in children_of(self.first.pid)][:_MOST_CHILDREN]
        for pid in [*self.processes]:
            if pid != self.first.pid and pid not in now:
                self.processes.pop(pid).stop()
        self._refused &= {*now}
        for pid in now:
            if pid in self.processes or pid in self._refused:
                continue
            process = _listening(pid, self._interval_s)
            if process is None:
                self._refused.add(pid)
                continue
            process.questions.update(self.first.questions)
            self.processes[pid] = process
            process.start()

    def want(self, name: str, argument: str = "", pid: int | None = None) -> None:
        """Ask for this, too, at each look; pid: only of that process."""
        for each in self.processes.values():
            if pid is None or each.pid == pid:
                each.questions[name] = argument

    def no_longer(self, name: str) -> None:
        """Undo `want`."""
        for each in self.processes.values():
            each.unasked(name)

    def rows(self) -> list[ProcessRow]:
        """Return the processes as they were at the last look, the first one first."""
        return [each.row() for each in self.processes.values()]

    def answers(self, name: str) -> dict[int, Part]:
        """Return the answers to a question, by process."""
        found = {pid: each.answers.get(name) for pid, each in self.processes.items()}
        return {pid: answer for pid, answer in found.items() if answer is not None}

    def want_tasks(self) -> None:
        """Ask for tasks and tasklets where there are any."""
        for each in self.processes.values():
            modules = texts(each.moments[-1].answer, "modules") if each.moments else []
            for module, name in (("asyncio", "tasks"), ("tasklets", "tasklets")):
                if module in modules:
                    each.questions[name] = ""

    def tasks(self) -> list[TaskRow]:
        """Return the tasks and the tasklets that have been answered, the most frequent first."""
        rows = [
            TaskRow(
                pid,
                "tasklet" if name == "tasklets" else "asyncio",
                size(row, "count"),
                words(row, "function"),
                words(row, "state"),
                words(row, "file"),
                size(row, "line"),
            )
            for name in ("tasks", "tasklets")
            for pid, answer in self.answers(name).items()
            for row in entries(answer, name)
        ]
        return sorted(rows, key=lambda row: -row.count)

    def end_profile(self) -> None:
        """End the profile of the GIL that `gil_profile` has begun."""
        for each in self.processes.values():
            each.ask_last("gil_profile_end")

    def stop(self) -> None:
        """Ask no more."""
        for each in self.processes.values():
            each.stop()
        for each in self.processes.values():
            each.join()


def _listening(pid: int, interval_s: float) -> Process | None:
    """Return a child that listens already; it is not asked to, which would change it."""
    try:
        client = reach(find(pid))
    except Unreachable:
        return None
    return Process(pid, client, interval_s) if client is not None else None
