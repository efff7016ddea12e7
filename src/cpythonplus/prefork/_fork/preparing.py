"""Making a process ready to be forked: its heap stays shared with the children.

A forked child shares the parent's memory until one of them writes to it, and CPython writes to an
object whenever it is looked at: its reference count goes up and down.  From 3.12 on an object can
be immortal, which means that it is not counted (PEP 683).  `prepare` makes everything that is there
immortal, tells the garbage collector to leave it alone, and leaves no half-used memory behind in
which the children would place new objects.
"""

import atexit
import contextlib
import functools
import gc
import io
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    TracebackType,
)
from typing import Any

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus._base.text.sizes import format_size

try:
    from cpythonplus import _native
except ImportError as error:  # not Linux
    raise UnsupportedPlatform(f"the extension module of cpythonplus is missing: {error}") from None

# The growth since the last call that makes another pass worth it: this many memory blocks, or this
# share of all.
_GROWTH_BLOCKS = 20_000
_GROWTH_SHARE = 0.01
_BLOCK_BYTES = 64  # an estimate, if blocks are not counted

_UNHELD = "tuple or frozenset that only C code holds"  # perhaps not filled yet

_GRACE_S = 1.0  # the longest wait at the end for a file that another thread holds


@dataclass(frozen=True, slots=True)
class PrepareReport:
    """The results of one call of `prepare`.

    Attributes:
        immortal: whether objects were made immortal, and not only frozen.
        objects: how many objects this call made immortal.
        bytes: the size of these objects, in bytes; tables of dicts and sets are estimated.
        kept_mortal: how many objects were kept mortal, by reason.
        filled_bytes: free blocks that were taken for good, in bytes.
        frozen: how many objects the garbage collector leaves alone from now on.
        seconds: the whole call, with the warm-up.
        note: what could not be done, and why; or empty.
        budget_left_bytes: the bytes that later calls through the same `Budget` may make immortal;
            None if `prepare` was called itself, which has no limit.
    """

    immortal: bool
    objects: int
    bytes: int
    kept_mortal: Mapping[str, int]
    filled_bytes: int
    frozen: int
    seconds: float
    note: str
    budget_left_bytes: int | None = None

    def __str__(self) -> str:
        parts = [
            f"{self.objects:,} objects of {format_size(self.bytes)} made immortal"
            if self.immortal
            else "nothing made immortal",
            f"{self.frozen:,} frozen",
            f"{format_size(self.filled_bytes)} of free blocks taken",
            f"{sum(self.kept_mortal.values()):,} kept mortal",
            f"{self.seconds:.2f} s",
        ]
        return "prepared: " + ", ".join(parts) + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class PrepareStatistics:
    """The results of all calls of `prepare`, in this process and in those that it was forked from.

    Attributes:
        prepares: how many calls came to their end.
        seconds: the time that they took together, with the warm-ups that they called.
        objects: how many objects they made immortal.
        immortal_bytes: the size of these objects; see `PrepareReport.bytes`.
        filled_bytes: free blocks that were taken for good.
        refused: how often a `Budget` did not prepare again although the heap had grown: what was
            new then is not shared.
    """

    prepares: int = 0
    seconds: float = 0.0
    objects: int = 0
    immortal_bytes: int = 0
    filled_bytes: int = 0
    refused: int = 0


_statistics = PrepareStatistics()


def statistics() -> PrepareStatistics:
    """Return the results of all calls of `prepare` until now."""
    return _statistics


# The C base of all files; io.IOBase itself is an ABC, which hashes each class that it checks, and
# remembers it.
_FILE_TYPE = io.IOBase.__mro__[1]
_TEXT_TYPE = io.TextIOBase.__mro__[1]

# Files that were open when the heap was frozen; the collector no longer lists them.
_files: list[weakref.ref[io.IOBase]] = []
_blocks_after: int | None = None  # memory blocks after the last call; None: never called


def prepare(
    warm_up: Callable[[], object] | None = None,
    *,
    immortal: bool = True,
    fill_pools: bool = True,
    keep_mortal: Callable[[type], bool] | None = None,
) -> PrepareReport:
    """Make this process ready to be forked, right before it is.

    Runs `warm_up`, collects garbage, writes out the buffers of open files (a child would write them
    once more), makes every object immortal, freezes the heap (`gc.freeze`) and takes the free
    blocks of half-used memory pools.  May be called again: then new objects since the last call are
    added.

    Kept mortal are objects of types with a finaliser (open files, sockets, generators, `__del__`),
    those that hold other resources than memory (a mmap, a database connection, a memoryview: types
    written in C with a `close` or `release`), exceptions with their tracebacks and frames, objects
    that a weak reference with a callback points to (`weakref.finalize`, `WeakValueDictionary`), and
    those that you name.

    Args:
        warm_up: called first, without arguments: let it do a worker's work, so that caches fill and
            bytecode specialises once, in shared memory.  Its exceptions end the call, before
            anything was changed.
        immortal: make objects immortal, where the interpreter can: CPython 3.12 or later.
        fill_pools: take the free blocks of half-used pools, so that children allocate on new pages.
        keep_mortal: called with each class; those for which it returns true, and their subclasses,
            keep mortal instances.

    Returns a report.  Raises nothing but what `warm_up` and `keep_mortal` raise.

    An immortal object is never freed: if the program drops it later, it stays allocated in every
    process, with all that it refers to.  So a process that prepares again and again, and replaces
    its objects meanwhile, grows each time: see `Budget`.  The reference lists the other
    differences.
    """
    return _prepare(warm_up, immortal=immortal, fill_pools=fill_pools, keep_mortal=keep_mortal)


def _prepare(
    warm_up: Callable[[], object] | None,
    *,
    immortal: bool,
    fill_pools: bool,
    keep_mortal: Callable[[type], bool] | None,
    limit_bytes: int | None = None,
) -> PrepareReport:
    """Do what `prepare` says, but make no more than about `limit_bytes` immortal (None: all)."""
    global _blocks_after, _statistics  # noqa: PLW0603
    start = time.perf_counter()
    if warm_up is not None:
        warm_up()
    mortal = _chosen(keep_mortal)
    mortal += _resources()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        _remember_files()
        spared = _in_cycles()
        made = _make_immortal(mortal, spared, limit_bytes) if immortal else _Made()
        _flush(_remembered())
        gc.freeze()
        _native.prefork_thaw(spared)
        # No object is left to traverse, but the collector recounts the old objects.  Before 3.14 it
        # would otherwise not look for a worker's own garbage until a quarter of the heap were new.
        gc.collect()
        filled = _native.prefork_fill_pools() if fill_pools else 0
    finally:
        if was_enabled:
            gc.enable()
    _blocks_after = _allocated_blocks()
    notes = [made.refusal]
    if filled < 0:
        notes.append("memory comes from another allocator than pymalloc: no pools to fill")
    if limit_bytes is not None and made.bytes >= limit_bytes:
        notes.append("the budget is spent: the rest was only frozen")
    report = PrepareReport(
        immortal=immortal and not made.refusal,
        objects=made.objects,
        bytes=made.bytes,
        kept_mortal=_by_reason(made.kept) | ({_UNHELD: made.unheld} if made.unheld else {}),
        filled_bytes=max(filled, 0),
        frozen=gc.get_freeze_count(),
        seconds=time.perf_counter() - start,
        note="; ".join(filter(None, notes)),
    )
    before = _statistics
    _statistics = replace(
        before,
        prepares=before.prepares + 1,
        seconds=before.seconds + report.seconds,
        objects=before.objects + report.objects,
        immortal_bytes=before.immortal_bytes + report.bytes,
        filled_bytes=before.filled_bytes + report.filled_bytes,
    )
    return report


@dataclass(slots=True)
class _Made:
    objects: int = 0
    bytes: int = 0
    kept: list[tuple[type, int, int]] = field(default_factory=list)
    unheld: int = 0
    refusal: str = ""


def _make_immortal(mortal: list[type], spared: list[object], limit_bytes: int | None) -> _Made:
    refusal = _native.prefork_refusal()
    if refusal is not None:
        return _Made(refusal=f"{refusal}: the heap was only frozen")
    types = list(_subclasses(object))
    try:
        # Frozen objects are visited too: new ones may be reachable from them.
        gc.unfreeze()
        return _Made(*_native.prefork_immortalize(types, mortal, spared, limit_bytes))
    except BaseException:
        gc.freeze()
        raise


def has_grown() -> bool:
    """Return whether so much was allocated since `prepare` that another call is worth its time.

    True also when it was never called.  Takes a fraction of a millisecond.
    """
    if _blocks_after is None:
        return True
    grown = _allocated_blocks() - _blocks_after
    return grown > max(_GROWTH_BLOCKS, _GROWTH_SHARE * _blocks_after)


class Budget:
    """Prepares a process once, and again only within a limit.

    Immortal objects are never freed.  A parent that holds other objects at each fork (batches of
    work, a cache that is refreshed) would keep all of them for ever if it were prepared before
    each.  A budget prepares before the first fork; later only as long as it has bytes left, and
    never makes more than those immortal.  Then it refuses: the children share the objects of the
    last preparation, and the rest as in stock Python, page by page until one of the processes
    writes to it.

    One for each place that forks, made in the parent; forked children go on with what it has left.
    Any thread may ask; while one prepares the others are not kept waiting, and fork without.
    """

    def __init__(self, again_bytes: int | None = 0) -> None:
        """Allow `again_bytes` to all calls after the first one together.

        again_bytes: 0: prepare once.  None: as many bytes as the first call made immortal, so that
        immortal objects take at most twice the first heap.

        Raises ValueError when it is negative.
        """
        if again_bytes is not None and again_bytes < 0:
            raise ValueError("a budget cannot be negative")
        self._again_bytes = again_bytes
        self._left_bytes: int | None = None  # None: not prepared yet
        # The process in which a thread prepares.  Not a lock: a child forked meanwhile by another
        # thread would inherit it locked.
        self._busy_pid = 0

    @property
    def left_bytes(self) -> int | None:
        """The bytes that later calls may make immortal together; None before the first one."""
        return self._left_bytes

    @property
    def spent(self) -> bool:
        """Whether it will not prepare any more."""
        return self._left_bytes is not None and self._left_bytes <= 0

    def prepare(
        self,
        *,
        immortal: bool = True,
        fill_pools: bool = True,
        keep_mortal: Callable[[type], bool] | None = None,
    ) -> PrepareReport | None:
        """Prepare, if the heap has grown since the last time and the budget is not spent.

        The arguments and exceptions are those of `prepare`; after an exception nothing is spent.

        Returns the report, or None when nothing was done: the heap had not grown, another thread is
        at it, or the budget refused, which `statistics` counts.
        """
        global _statistics  # noqa: PLW0603
        if not has_grown() or self._busy_pid == os.getpid():
            return None
        if self.spent:
            _statistics = replace(_statistics, refused=_statistics.refused + 1)
            return None
        blocks_before = _blocks_after or 0
        self._busy_pid = os.getpid()
        try:
            report = _prepare(
                None,
                immortal=immortal,
                fill_pools=fill_pools,
                keep_mortal=keep_mortal,
                limit_bytes=self._left_bytes,
            )
        finally:
            self._busy_pid = 0
        # If objects are frozen only, garbage in cycles is never freed: so new blocks are charged
        # too.
        cost = (
            report.bytes
            if report.immortal
            else max((_blocks_after or 0) - blocks_before, 0) * _BLOCK_BYTES
        )
        if self._left_bytes is None:
            self._left_bytes = cost if self._again_bytes is None else self._again_bytes
        else:
            self._left_bytes = max(self._left_bytes - cost, 0)
        return replace(report, budget_left_bytes=self._left_bytes)


def _allocated_blocks() -> int:
    blocks = sys.getallocatedblocks()
    if blocks == 0:  # pymalloc counts them, another allocator (PYTHONMALLOC) does not
        resident_pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        blocks = resident_pages * os.sysconf("SC_PAGE_SIZE") // _BLOCK_BYTES
    return blocks


def flush_files() -> None:
    """Write out the buffers of open files: the frozen ones and those opened since.

    A file that cannot be written is skipped: its owner will notice.  A file that another thread
    holds is skipped after a second, as at the interpreter's own end.
    """
    _remember_files()
    waiting = _remembered()
    thread = None
    while thread is None or thread.is_alive():
        # The thread may block for ever in the lock of a buffer; the next one continues with the
        # rest.
        thread = threading.Thread(target=_flush, args=(waiting,), daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No more threads can be started, as in exit functions of 3.12.  Then a file that blocks
            # blocks this thread: leaving files unwritten whenever there are other threads would be
            # worse.
            _flush(waiting)
            return
        thread.join(_GRACE_S)


def _remembered() -> Iterator[io.IOBase]:
    files = [each for each in (reference() for reference in _files) if each is not None]
    # Text layers come before binary ones, for they write into those.
    return iter(sorted(files, key=_is_binary))


def _flush(files: Iterator[io.IOBase]) -> None:
    for each in files:
        # Any exception of a file's class is suppressed, as when the interpreter drops the file.
        with contextlib.suppress(Exception):
            if not _is_closed(each) and each.writable():
                each.flush()


def _flush_at_end() -> None:
    # At a normal end a file is written out when it is dropped, but an immortal file is not dropped.
    if _blocks_after is not None:
        flush_files()


# Not in prepare(): the earlier an exit function is registered, the later it runs.
atexit.register(_flush_at_end)


def _remember_files() -> None:
    """Remember the open files that the collector lists, without the frozen ones."""
    files = instances_of(_FILE_TYPE)
    known = [reference for reference in _files if reference() is not None]
    ids = {id(reference()) for reference in known}
    new = [each for each in files if id(each) not in ids and not _is_closed(each)]
    _files[:] = known + [weakref.ref(each) for each in new]


def instances_of(root: type) -> list[Any]:
    """Return those of this type and its subclasses that the collector lists and has not frozen."""
    try:
        return _native.prefork_instances_of(root)
    except RuntimeError:
        pass
    # The type is compared, as an object may lie about its class; its id, as a type may refuse to be
    # hashed; without a loop in Python, as there may be millions.
    kinds = {id(each) for each in _subclasses(root)}
    listed = gc.get_objects()
    return list(compress(listed, map(kinds.__contains__, map(id, map(type, listed)))))


def _is_binary(file: io.IOBase) -> bool:
    # The type is checked: an object that was detached refuses questions.
    return not any(base is _TEXT_TYPE for base in type(file).__mro__)


def _is_closed(file: io.IOBase) -> bool:
    try:
        return file.closed
    except Exception:  # noqa: BLE001  # detached, never initialised, or a failing property
        return True


def _chosen(keep_mortal: Callable[[type], bool] | None) -> list[type]:
    if keep_mortal is None:
        return []
    chosen: dict[int, type] = {}
    for each in _subclasses(object):
        if keep_mortal(each):
            # The walk compares the exact type.
            chosen.update((id(sub), sub) for sub in _subclasses(each))
    return list(chosen.values())


# Types whose objects release a resource when they are freed, but have no method for it.
_HOLDERS = frozenset(
    {
        ("sqlite3", "Statement"),  # of a closed connection: keeps the file open
        ("_struct", "unpack_iterator"),  # struct.iter_unpack: a buffer
    }
)
# The type of the object that a memoryview refers to; it has no name.
_MANAGED_BUFFER = type(gc.get_referents(memoryview(b""))[0])

# The attributes of `type` itself, as a metaclass may define others of these names.
_name_of_type: Callable[[type], str] = type.__dict__["__name__"].__get__
_dict_of_type: Callable[[type], Mapping[str, object]] = type.__dict__["__dict__"].__get__
_mro_of_type: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_PYTHON_METHODS = (FunctionType, property, staticmethod, classmethod)


def _resources() -> list[type]:
    """Return the types whose objects hold something outside of the heap, without a finaliser.

    Extension types release it when they are freed: a mapping and its descriptor (mmap), a database
    and its locks (sqlite3), the right to resize a buffer (memoryview).  All of them have a method
    for releasing it earlier: `close`, or `release`, written in C.  Locks are not meant, though they
    have `release`: they have `acquire` too.  In a heap of Django, numpy, lxml and others such
    objects are a handful.

    Rejected: all types of extensions with a deallocator of their own.  Arrays, dates and parsed
    trees would be among them, which have nothing but memory, and are to be shared.
    """
    found: dict[int, type] = {id(_MANAGED_BUFFER): _MANAGED_BUFFER}
    for each in _subclasses(object):
        if _lets_go(each):
            # Types with a finaliser are kept mortal anyway.
            found.update((id(sub), sub) for sub in _subclasses(each) if not _has_finaliser(sub))
    return list(found.values())


_LRU_CACHE = type(functools.lru_cache(len))


def _in_cycles() -> list[object]:
    """Return the objects that must stay mortal and collectable, although their types need not.

    A database connection of sqlite3 and the cache of its statements refer to each other.  If the
    cache were immortal, it would keep the statements, and the file would stay open even after
    `close`; if they were frozen, a dropped connection would never be collected.
    """
    connection_type = getattr(sys.modules.get("_sqlite3"), "Connection", None)
    found: list[object] = []
    for connection in instances_of(connection_type) if connection_type is not None else ():
        for cache in gc.get_referents(connection):
            if type(cache) is _LRU_CACHE:
                dicts = [each for each in gc.get_referents(cache) if type(each) is dict]
                found += [connection, cache, *dicts]
                # The entries: objects of a type without a name, between the dict and a statement.
                found += [
                    entry
                    for each in dicts
                    for entry in each.values()
                    if type(entry).__name__ == "_lru_list_elem"
                ]
    return found


def _lets_go(kind: type) -> bool:
    names = _dict_of_type(kind)
    for name in ("close", "release"):
        method = names.get(name)
        if callable(method) and not issubclass(type(method), _PYTHON_METHODS):
            return name == "close" or "acquire" not in names
    return any(
        names.get("__module__") == module and _name_of_type(kind) == name
        for module, name in _HOLDERS
    )


def _has_finaliser(kind: type) -> bool:
    return any("__del__" in _dict_of_type(base) for base in _mro_of_type(kind))


def _subclasses(root: type) -> Iterable[type]:
    """Yield the type and its direct and indirect subclasses, each once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += type.__subclasses__(each)


def _by_reason(kept: list[tuple[type, int, int]]) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for each, for_type, for_reference in kept:
        reasons[_reason(each)] += for_type
        reasons["weak reference with a callback"] += for_reference
    return dict(+reasons)


def _reason(kind: type) -> str:
    if issubclass(kind, _FILE_TYPE):
        return "open file"
    if kind.__name__ == "socket" or any(base.__module__ == "_socket" for base in kind.__mro__):
        return "socket"
    if issubclass(kind, (GeneratorType, CoroutineType, AsyncGeneratorType)):
        return "generator or coroutine"
    if issubclass(kind, (FrameType, TracebackType, BaseException)):
        return "exception, traceback or frame"
    if _has_finaliser(kind):
        return "finaliser (__del__)"
    return f"type {kind.__module__}.{kind.__qualname__}"
