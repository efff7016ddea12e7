"""Which thread waits for what, and which of these waits can no longer end.

The C half tells which threads wait in native locks, conditions and queues, and the owners of locks.
The rest is read from the threads' frames: a thread that joins another one, a module that is being
imported, the `with` statements that hold a lock. All of it is read with the GIL held, and no code
of the program runs.

A wait without a time-out is stuck when everybody who could end it is stuck: the owner of a lock,
the joined thread, and for a queue, a condition or an event all other threads. Anything that is not
known to wait may run, so a slow program is never called deadlocked.
"""

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import BuiltinMethodType, CodeType, FrameType, FunctionType, MethodType

from cpythonplus import _native
from cpythonplus._base.data import Data, Place, place_of
from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.modules import imported
from cpythonplus._base.stacks import frames_of_threads, known_threads, outwards, variables_of
from cpythonplus.gil._control import free_threaded
from cpythonplus.threads._processes import Beside, beside

conditions: set[type] = {_native.Condition}
"""Types whose `with` holds their `_lock`; the tasklets' is added when it is looked for."""
_THREADS_OF_OURS = "cpythonplus "  # how their names begin
_IMPORT = "import of "
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  # pathlib would weigh 2 MB
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120


@dataclass(frozen=True, slots=True)
class Wait:
    """One thread that waits.

    ident, name: of the thread.  kind, method: the type that it waits for, and the method that
    waits: "Lock", "acquire"; "thread" or "process 4711", "join".  at: the line that waits,
    outside of the standard library if there is one.  stack: outermost first.  made_at: the line
    that made the lock or queue; None if it was made before the native types were used.
    waited_ns: None if it is not known.  timed: the wait has a time-out.  owners: the threads
    (idents) that hold the lock, or that are joined; if it is empty, any other thread may end
    the wait.  held_at: the `with` statement by which the first owner holds the lock, else the
    line where that owner is now.  held_ns: for how long at least; None if it is not known.
    inside: the finalizer, signal handler or callback in which a thread waits for a lock that it
    holds itself, else "".  owner_ended: the thread that took the lock has ended; or was not
    taken into this process by a fork, if the GIL is scheduled.  because: what the other processes
    do that could end the wait, and that wait for this process; else "".
    """

    ident: int
    name: str
    kind: str
    method: str
    at: Place
    stack: tuple[Place, ...]
    made_at: Place | None
    waited_ns: int | None
    timed: bool
    owners: tuple[int, ...]
    held_at: Place | None
    held_ns: int | None
    inside: str
    owner_ended: bool
    because: str = ""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Threads that wait for each other.

    kind: "cycle": each waits for the next one, and the last for the first; "itself": a thread waits
    for a lock that it holds; "ended": a thread waits for an RLock, which its owner alone can
    release, and that one has ended; "all": all threads of the program wait, and none is left to end
    one of the waits; "processes": the same, and processes that could end one wait for this process.
    threads: their idents.  behind: the threads that wait for one of these.
    """

    kind: str
    threads: tuple[int, ...]
    behind: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Waits(Data):
    """The threads that wait, and the deadlocks among them.

    names: of all threads of the program, by ident.
    """

    waits: tuple[Wait, ...]
    deadlocks: tuple[Deadlock, ...]
    names: dict[int, str]


@dataclass(slots=True)
class _Found:
    """A wait as it is found; what: the object; surely: it waits for a lock that it surely holds."""

    what: object
    method: str
    waited_ns: int | None
    timed: bool
    owners: tuple[int, ...]
    needs_one: bool = False
    """It is stuck if one of its owners is, as a thread that waits for the end of all of them."""
    held_at: Place | None = None
    inside: str = ""
    surely: bool = False
    owner_ended: bool = False
    outside: bool = False
    """No thread of this process can end it."""
    because: str = ""


def waits() -> Waits:
    """Return which threads wait, for what, and which of them are deadlocked.

    The calling thread counts as one that runs, unless `threading` does not know it. The objects
    that are known are native ones (`threads.patch`, `cpythonplus run`), threads and child processes
    that are joined, and modules that are imported; pipes, Unix sockets and multiprocessing's
    semaphores where all threads wait, and the other processes wait for this one.

    Raises UnsupportedPlatform on a free-threaded build: the frames of threads that run meanwhile
    cannot be read there.
    """
    if free_threaded():
        # A frame has a pointer to its caller's, which its thread may free. The threads stand still
        # within sys._current_frames() only.
        raise UnsupportedPlatform(
            "this build has no GIL: frames of other threads change while they are read"
        )
    found = _look(None)
    others = _others(found)
    if others is not None:
        found = _look(others)
    if not found.deadlocks:
        return found
    # Other threads may have run while it was looked. A deadlock is still there.
    again = _look(others if others == _others(found) else None)
    known = {(each.kind, each.threads) for each in found.deadlocks}
    waited = {each.ident: each.waited_ns or 0 for each in found.waits}
    moved = {
        each.ident for each in again.waits if (each.waited_ns or 0) < waited.get(each.ident, 0)
    }
    last = (
        each
        for each in again.deadlocks
        if (each.kind, each.threads) in known and not moved.intersection(each.threads)
    )
    return Waits(again.waits, (*last,), again.names)


def _others(found: Waits) -> Beside | None:
    """Return how this process and others wait for each other, if none of its threads can run."""
    waiting = [each for each in found.waits if not (each.because or _is_process(each.kind))]
    if any(each.timed for each in waiting):
        return None
    threads = known_threads()
    left = found.names.keys() - {each.ident for each in waiting}
    numbers = {ident: getattr(threads.get(ident), "_native_id", None) for ident in left}
    if not numbers or None in numbers.values():
        return None
    return beside({ident: number for ident, number in numbers.items() if number is not None})


def _is_process(kind: str) -> bool:
    return kind.startswith("process ")


def _look(beside_it: Beside | None) -> Waits:
    own = _native_ident()
    threads = known_threads()
    names = {ident: name_of(each) for ident, each in threads.items()}
    frames = frames_of_threads()
    # A thread that has no frame yet, or is a library's, may end any wait.
    others = _native.threads_count_states() > len(frames)
    stacks = {
        ident: outwards(frame)
        for ident, frame in frames.items()
        if (ident != own or ident in names)
        and not names.get(ident, "").startswith(_THREADS_OF_OURS)
    }
    named = {ident: names.get(ident) or f"thread {ident:#x}" for ident in stacks}
    return _told(
        _found(stacks, threads, beside_it), stacks, named, others=others or bool(_signal_handlers())
    )


def waits_for_locks(
    held: dict[int, tuple[object, int, int]],
    stacks: dict[int, list[FrameType]],
    names: dict[int, str],
) -> Waits:
    """Return the same for tasklets, say, that wait for locks without a time-out.

    held: the lock, who holds it, and since when, in ns.  stacks: the frames, innermost first.  All
    by ident.
    """
    found = {
        ident: _Found(lock, "acquire", waited_ns, timed=False, owners=(owner,))
        for ident, (lock, owner, waited_ns) in held.items()
    }
    return _told(found, stacks, names, others=True)


def _told(
    found: dict[int, _Found],
    stacks: dict[int, list[FrameType]],
    names: dict[int, str],
    *,
    others: bool,
) -> Waits:
    for ident, each in found.items():
        _complete(each, ident, stacks)
    stuck = _stuck(found, stacks.keys(), others=others)
    return Waits(
        tuple(_wait(ident, each, stacks, names, found) for ident, each in found.items()),
        tuple(_deadlocks(stuck)),
        names,
    )


# ---- what each thread waits for -----------------------------------------------------------------


def _found(
    stacks: dict[int, list[FrameType]], threads: dict[int, object], others: Beside | None
) -> dict[int, _Found]:
    found: dict[int, _Found] = {}
    for ident, what, method, waited_ns, timed, owner in _native.threads_present_waits():
        if ident in stacks:
            owners = (owner,) if owner else ()
            # Another thread can release a Lock, but no RLock.
            ended = owner == 0
            surely = ended and isinstance(what, _native.RLock)
            found[ident] = _Found(
                what, method, waited_ns, timed, owners, surely=surely, owner_ended=ended
            )
    for ident, frames in stacks.items():
        # The lock that they wait for is a signal, and has no owner.
        other = _joined(frames, threads, stacks) or _imported(ident, frames) or _of_child(frames)
        if other is not None:
            other.waited_ns = found[ident].waited_ns if ident in found else None
            found[ident] = other
    if others is not None:
        for ident in stacks.keys() & others.sleeps.keys():
            sleep, because = others.sleeps[ident], others.because(ident)
            found[ident] = _Found(
                sleep.kind, sleep.method, None, timed=False, owners=(), because=because
            )
    return found


def _joined(
    frames: list[FrameType], threads: dict[int, object], stacks: Iterable[int]
) -> _Found | None:
    """Return the wait for the end of a thread, or of all at the program's end."""
    threading = imported("threading")
    if threading is None or frames[0].f_code.co_filename != threading.__file__:
        return None
    for frame in frames[:2]:
        if frame.f_code is _code(getattr(threading.Thread, "join", None)):
            values = variables_of(frame)
            thread, timed = values.get("self"), values.get("timeout") is not None
            joined = (*(ident for ident, each in threads.items() if each is thread),)
            return _Found("thread", "join", None, timed, joined) if joined else None
        if frame.f_code is _code(getattr(threading, "_shutdown", None)):
            own = threading.main_thread().ident
            left = [
                ident
                for ident, each in threads.items()
                if ident != own and ident in stacks and not getattr(each, "_daemonic", False)
            ]
            return _Found("thread", "join", None, timed=False, owners=(*left,), needs_one=True)
    return None


def _imported(ident: int, frames: list[FrameType]) -> _Found | None:
    """Return the wait for a module that another thread imports."""
    frame = frames[0]
    if frame.f_code.co_qualname != "_ModuleLock.acquire":
        return None
    lock = variables_of(frame).get("self")
    owner, name = getattr(lock, "owner", None), getattr(lock, "name", "?")
    if type(owner) is tuple:  # a tasklet, and first its thread: tasklets/_importing.py
        owner = owner[0]
    # It was released, or this thread has just taken it, or is about to wait: it is on its way.
    if owner is None or owner == ident or _holding([frame], getattr(lock, "lock", None)):
        return None
    return _Found(f"{_IMPORT}{name}", "acquire", None, timed=False, owners=(owner,))


def _of_child(frames: list[FrameType]) -> _Found | None:
    """Return the wait for the end of a child process, of subprocess or multiprocessing."""
    for frame in frames[:3]:
        code = frame.f_code
        if code.co_qualname == "Popen.wait" and code.co_filename.startswith(_LIBRARY):
            values = variables_of(frame)
            pid = getattr(values.get("self"), "__dict__", {}).get("pid")
            timed = values.get("timeout") is not None
            return _Found(f"process {pid}", "join", None, timed, owners=(), outside=True)
    return None


def _complete(found: _Found, ident: int, stacks: dict[int, list[FrameType]]) -> None:
    """Find the `with` statements that hold what the thread waits for."""
    what = found.what
    if isinstance(what, _native.BoundedSemaphore):
        holders = {
            other: frame
            for other, frames in stacks.items()
            if (frame := _holding(frames, what)) is not None
        }
        if len(holders) >= what._initial_value > 0:  # noqa: SLF001
            found.owners = (*holders,)
            found.held_at = next(iter(holders.values()))
        return
    if not found.owners or isinstance(what, str):
        return
    owner = found.owners[0]
    frames = stacks.get(owner, [])
    found.held_at = _holding(frames, what)
    if owner == ident:
        found.inside = _interruption(frames, what)
        found.surely = bool(found.held_at or found.inside)
        if not found.surely:
            # A lock may be a signal: taken twice by one thread, and released by another one.
            found.owners = ()


def _holding(frames: list[FrameType], lock: object) -> Place | None:
    """Return the `with` statement that holds the lock in one of the frames."""
    for frame in frames:
        code, offset = frame.f_code, frame.f_lasti
        for depth, line in _open_withs(code, offset):
            # The statement's __exit__ is at the top of the operands that its exception handler
            # needs; from 3.14 on there is the object, too.
            for index in range(depth - _OPERANDS_OF_WITH, depth):
                if _guards(_native.threads_operand(frame, index, offset), lock):
                    return Place(code.co_filename, line, code.co_qualname)
    return None


def _guards(operand: object, lock: object) -> bool:
    """Whether this is the lock, the condition over it, or a method of one of them."""
    if type(operand) in (BuiltinMethodType, MethodType):
        operand = operand.__self__  # type: ignore[attr-defined]
    if type(operand) in conditions:
        operand = operand._lock  # type: ignore[attr-defined]  # noqa: SLF001
    return operand is lock


def _open_withs(code: CodeType, offset: int) -> Iterator[tuple[int, int]]:
    """Yield depth of operands and line of each `with` statement around an instruction.

    Innermost first. An instruction has one handler at most, and so has that handler: the one of the
    next block around.
    """
    table = [*_handlers_of(code)]
    for _ in table:
        around = [each for each in table if each[0] <= offset < each[1]]
        if not around:
            return
        _, _, target, depth = around[0]
        if _WITH in code.co_code[target : target + 4 : 2]:
            yield depth, _line_of(code, target)
        offset = target


def _handlers_of(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    """Yield start, end and handler, in bytes, and the operands that stay, of each part."""
    table = iter(code.co_exceptiontable)
    for first in table:
        start, length = 2 * _varint(table, first), 2 * _varint(table)
        target, depth = 2 * _varint(table), _varint(table) >> 1
        yield start, start + length, target, depth


def _varint(table: Iterator[int], first: int | None = None) -> int:
    """Read a number of the exception table: 6 bits a byte, the largest first."""
    byte = next(table) if first is None else first
    value = byte & 63
    while byte & 64:
        byte = next(table)
        value = value << 6 | byte & 63
    return value


def _line_of(code: CodeType, offset: int) -> int:
    return next((line or 0 for start, end, line in code.co_lines() if start <= offset < end), 0)


def _opcode_of_with() -> int:
    import opcode

    return opcode.opmap["WITH_EXCEPT_START"]


_WITH = _opcode_of_with()
_OPERANDS_OF_WITH = 2 if sys.version_info >= (3, 14) else 1


def _interruption(frames: list[FrameType], lock: object) -> str:
    """Return the finalizer, handler or callback that waits, innermost, above the frame that holds.

    Other code may run within any line of a thread: so a lock that it holds is no signal there.
    """
    handlers, of_collector = _signal_handlers(), {_code(each) for each in gc.callbacks}
    for frame in frames:
        if _holding([frame], lock) is not None:
            return ""
        code = frame.f_code
        if code in handlers:
            return f"the signal handler {code.co_qualname}"
        if code in of_collector:
            return f"the callback of the collector {code.co_qualname}"
        if code.co_name == "__del__":
            return f"the finalizer {code.co_qualname}"
        if code.co_qualname == "finalize.__call__" and code.co_filename.endswith("weakref.py"):
            return "a finalizer of weakref.finalize"
    return ""


def _signal_handlers() -> set[CodeType]:
    """Return the functions that the program handles signals with."""
    import signal

    found = (signal.getsignal(number) for number in signal.valid_signals())
    own = {_code(each) for each in found if each is not signal.default_int_handler}
    return {each for each in own if each is not None}


def _code(function: object) -> CodeType | None:
    if type(function) is MethodType:
        function = function.__func__
    return function.__code__ if type(function) is FunctionType else None


# ---- which waits cannot end ---------------------------------------------------------------------


def _stuck(
    found: dict[int, _Found], everybody: Iterable[int], *, others: bool
) -> dict[int, _Found]:
    """Return the waits that nobody can end: those that somebody can are taken out.

    others: somebody who is not among the threads may end a wait that has no owner; for example, a
    signal handler of the program may do so in the main thread.
    """
    stuck = {
        ident: each
        for ident, each in found.items()
        if not (each.timed or each.outside or _is_broken(each, ident, found))
    }
    all_of_them = {*everybody}
    while True:
        free = [
            ident
            for ident, each in stuck.items()
            if not _cannot_end(each, ident, stuck, all_of_them, others=others)
        ]
        if not free:
            return stuck
        for ident in free:
            del stuck[ident]


def _is_broken(each: _Found, ident: int, found: dict[int, _Found]) -> bool:
    """Whether it is in a cycle of imports: the import system sees it, and lets one go on."""
    for _ in found:
        if not (isinstance(each.what, str) and each.what.startswith(_IMPORT)):
            return False
        owner = each.owners[0]
        if owner == ident:
            return True
        if owner not in found:
            return False
        each = found[owner]
    return False


def _cannot_end(
    each: _Found, ident: int, stuck: dict[int, _Found], everybody: set[int], *, others: bool
) -> bool:
    if each.surely:
        return True
    if each.needs_one:
        return any(owner in stuck for owner in each.owners)
    if each.owners:
        return all(owner in stuck for owner in each.owners)
    return not others and all(other in stuck for other in everybody if other != ident)


def _deadlocks(stuck: dict[int, _Found]) -> Iterator[Deadlock]:
    """Yield the cycles among the owners; if there is none, all threads that are stuck."""
    seen: set[int] = set()
    cyclic = False
    for ident in stuck:
        path: list[int] = []
        now: int | None = ident
        while now is not None and now not in path and now not in seen:
            path.append(now)
            owners = stuck[now].owners
            now = next((owner for owner in owners if owner in stuck), None)
        if now is not None and now in path:
            cycle = path[path.index(now) :]
            kind = "itself" if len(cycle) == 1 else "cycle"
            cyclic = True
            yield Deadlock(kind, (*cycle,), (*_behind(cycle, stuck),))
        elif path and stuck[path[-1]].surely:
            cyclic = True
            yield Deadlock("ended", (path[-1],), (*_behind(path[-1:], stuck),))
        seen.update(path)
    # Beside a cycle, threads that wait for anybody may only have nothing to do.
    if stuck and not cyclic:
        with_others = any(each.because for each in stuck.values())
        yield Deadlock("processes" if with_others else "all", (*stuck,))


def _behind(cycle: list[int], stuck: dict[int, _Found]) -> Iterator[int]:
    members = {*cycle}
    for ident in stuck:
        path, now = {ident}, ident
        while ident not in cycle:
            now = next((owner for owner in stuck[now].owners if owner in stuck), 0)
            if now in members:
                yield ident
            if now in path or now in members or not now:
                break
            path.add(now)


# ---- as data ------------------------------------------------------------------------------------


def _wait(
    ident: int,
    each: _Found,
    stacks: dict[int, list[FrameType]],
    names: dict[int, str],
    found: dict[int, _Found],
) -> Wait:
    frames = stacks[ident]
    owner = each.owners[0] if each.owners else 0
    is_lock = not isinstance(each.what, str) and bool(owner)
    kind = each.what if isinstance(each.what, str) else type(each.what).__name__
    if each.what is None:
        kind = "tasklets"
    return Wait(
        ident=ident,
        name=names[ident],
        kind="Lock" if kind == "lock" else kind,  # the name of the type before 3.13
        method=each.method,
        at=_own_line(frames),
        stack=tuple(place_of(frame) for frame in reversed(frames)),
        made_at=_made_at(each.what),
        waited_ns=each.waited_ns,
        timed=each.timed,
        owners=each.owners,
        held_at=each.held_at or (_own_line(stacks[owner]) if owner in stacks else None),
        held_ns=found[owner].waited_ns if is_lock and owner in found else None,
        inside=each.inside,
        owner_ended=each.owner_ended,
        because=each.because,
    )


def _made_at(what: object) -> Place | None:
    """Return the line that made a lock, or the lock inside of a condition or queue."""
    for name in ("_cond", "mutex", "_lock"):
        if type(what).__module__ in ("threading", "queue"):
            what = getattr(what, name, what)
    if type(what) in (_native.tasklets_Lock, _native.tasklets_RLock):
        raw = what.made_at  # type: ignore[attr-defined]
    else:
        raw = _native.threads_line_of(what)
    return None if raw is None else Place(*raw)


def _own_line(frames: list[FrameType]) -> Place:
    """Return the innermost line outside of the standard library and this package."""
    return place_of(next(filter(is_own, frames), frames[0]))


def is_own(frame: FrameType) -> bool:
    """Whether it is of neither the standard library nor this package."""
    return is_own_file(frame.f_code.co_filename)


def is_own_file(file: str) -> bool:
    """Whether it is of neither the standard library nor this package."""
    return not file.startswith(("<frozen", _PACKAGE)) and (
        not file.startswith(_LIBRARY) or "-packages" in file
    )


def _native_ident() -> int:
    import _thread

    return _thread.get_ident()


def name_of(thread: object) -> str:
    name = getattr(thread, "_name", None)
    return name if isinstance(name, str) else ""
