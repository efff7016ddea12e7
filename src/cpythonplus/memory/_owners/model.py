"""The results of looking at owners and at growth."""

from dataclasses import dataclass, field

from cpythonplus._base.data import Data, Place
from cpythonplus.memory._examined import Examined

__all__ = ["ClassKept", "Counted", "Growth", "Owner", "Owners", "PartGrown", "Where"]


@dataclass(frozen=True, slots=True)
class Owner(Data):
    """An object that others are kept by, as far as their shortest way from a named object tells.

    name: how it is reached, as `app.sessions` or `queue of worker()`; type: its class. Many whose
    ways look alike are one row, `20 x queue of worker()`, with their sums. Or
    `12 x worker()` of type `frame`: all calls of a function together; or of type `garbage`: what
    nobody leads to; of `held by C code` or `held by the interpreter`: so many of a class, or that
    refer to one, or that execute one function; or of `nothing on the heap refers to them`: objects
    that the collector does not know.
    amount_bytes: what is reached through it, or by how much that has grown. kept_bytes: what would
    be freed with it, itself included; where others lead to the same, that is less.
    objects, entries: as many are reached, and of the container that it is or consists of, -1 for
    none; the same `before`. parts: what most of its direct parts are, as `6,150 tuple`, or by what
    they execute, as `900 method Client.close()`. below: the way from it that most of what it
    reaches lies behind, as `[...].__traceback__`, "" for none. place: where it is made.
    halfway_bytes: by how much it had grown at half of the time, -1 where nobody has looked then.
    allocated: the line that has allocated most of a sample of its newest parts, where tracemalloc
    traces; else without a file.
    """

    name: str
    type: str
    amount_bytes: int
    kept_bytes: int
    objects: int = 0
    entries: int = -1
    kept_before_bytes: int = 0
    objects_before: int = 0
    entries_before: int = -1
    parts: str = ""
    below: str = ""
    place: Place = field(default_factory=Place)
    halfway_bytes: int = -1
    allocated: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True)
class Where(Data):
    """One way in which many objects of a class are kept: the way of one of them stands for all."""

    objects: int
    path: str


@dataclass(frozen=True, slots=True)
class ClassKept(Data):
    """The objects of a class, and where most of them are.

    objects, size_bytes: now, and before. Without what counts with others: an object that refers to
    nothing and that one other refers to alone. where: the most frequent ways first.
    """

    type: str
    objects: int
    size_bytes: int
    objects_before: int
    before_bytes: int
    where: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class Owners(Examined):
    """Who keeps how much of the heap at one moment, the largest first.

    pause_ns: how long the program was paused. c_heap_bytes: what malloc has handed out and no
    Python object explains; -1 where that cannot be told. collects: whether the collector is on;
    frozen_objects: what it does not look at, after `gc.freeze()`. losses: sentences on what is told
    otherwise, since a fact about CPython does not hold here.
    """

    examination = "owners"

    objects: int
    size_bytes: int
    c_heap_bytes: int
    pause_ns: int
    collects: bool
    frozen_objects: int
    owners: tuple[Owner, ...]
    classes: tuple[ClassKept, ...]
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartGrown(Data):
    """A part of resident memory, now and before.

    name: as of ResidentPart; and `unexplained_blocks` are blocks in Python's arenas that belong to
    no object which was found, which `live_objects` is without. Where there was no copy of the
    process, they are in `live_objects`.
    """

    name: str
    size_bytes: int
    before_bytes: int


@dataclass(frozen=True, slots=True)
class Counted(Data):
    """How many there are of one kind, now and before.

    what: `descriptors`; `threads`, those that Python has started, by function; `exit_callbacks`,
    of `atexit`; `interned`, strings; or `shared`, mappings of shared memory. kind: as `epoll`,
    `pipe`, `socket to 10.0.0.7:5432`, `files in /tmp`, `/dev/shm/psm_*`, `worker()`.
    """

    what: str
    kind: str
    count: int
    count_before: int


@dataclass(frozen=True, slots=True)
class Growth(Examined):
    """What has grown between two moments, and who keeps it, the largest first.

    seconds: between the two. Of each sum there is what it is now, and what it was before:
    rss_bytes, objects, size_bytes, c_heap_bytes (as of Owners), threads, descriptors.
    parts: of rss_bytes, what has grown most first. kinds: what there is another number of.
    pause_ns: how long the program was paused, the longer of two. collects: whether the collector
    is on; frozen_objects: those that it does not look at since `gc.freeze()`. losses: as of Owners.
    halfway_seconds: when `doctor growth` has looked a third time, between the two; 0: it has not.
    resized: dicts, sets and lists whose tables were made larger than their entries ask for, and by
    how much; this is in no amount of an owner.
    """

    examination = "growth"

    seconds: float
    rss_bytes: int
    rss_before_bytes: int
    parts: tuple[PartGrown, ...]
    objects: int
    objects_before: int
    size_bytes: int
    before_bytes: int
    c_heap_bytes: int
    c_heap_before_bytes: int
    threads: int
    threads_before: int
    descriptors: int
    descriptors_before: int
    kinds: tuple[Counted, ...]
    pause_ns: int
    collects: bool
    frozen_objects: int
    owners: tuple[Owner, ...]
    classes: tuple[ClassKept, ...]
    losses: tuple[str, ...] = ()
    lost: str = ""
    resized: tuple[Owner, ...] = ()
    halfway_seconds: float = 0.0
