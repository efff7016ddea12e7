"""The results of looking at owners and at growth."""

from dataclasses import dataclass, field

from cpythonplus._base.data import Data, Place
from cpythonplus.memory._examined import Examined


@dataclass(frozen=True, slots=True)
class Owner(Data):
    """An object that keeps others: it is on their shortest paths from a named object.

    name: the path to it, as `app.sessions` or `queue of worker()`; type: its class. Many with
    similar paths are one row, `20 x queue of worker()`, with their sums. Or `12 x worker()` of type
    `frame`: all calls of a function together; or of type `garbage`: objects that nothing leads to;
    of `held by C code` or `held by the interpreter`: several of a class, or that refer to one, or
    that execute one function; or of `nothing on the heap refers to them`: objects that the
    collector does not know. amount_bytes: the bytes reached through it, or their growth.
    kept_bytes: the bytes that would be freed with it, itself included; less if others lead to the
    same objects. objects, entries: the number of objects reached, and of entries of the container
    that it is or consists of, -1 for none; the same `before`. parts: its most frequent direct
    parts, as `6,150 tuple`, or by the function that they execute, as `900 method Client.close()`.
    below: the path from it to most of the objects that it reaches, as `[...].__traceback__`, "" for
    none. place: the line that makes it. halfway_bytes: its growth at half of the time, -1 if nobody
    has looked then. allocated: the line that has allocated most of a sample of its newest parts, if
    tracemalloc traces; else without a file. is_local: the path begins with a
    variable, or a value without a name, of a running function.
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
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class Where(Data):
    """One way in which many objects of a class are kept: the way of one of them stands for all."""

    objects: int
    path: str


@dataclass(frozen=True, slots=True)
class ClassKept(Data):
    """The objects of a class, and the most frequent paths to them.

    objects, size_bytes: now, and before. Small strings, numbers and the like that only one object
    refers to are left out: they count with that object. where: the most frequent ways first.
    is_native: a class of C code whose objects may have memory that only C code knows, as
    connections.
    """

    type: str
    objects: int
    size_bytes: int
    objects_before: int
    before_bytes: int
    where: tuple[Where, ...]
    is_native: bool = False


@dataclass(frozen=True, slots=True)
class Owners(Examined):
    """The owners of the heap at one moment, the largest first.

    pause_ns: the pause of the program. c_heap_bytes: malloc's bytes that no Python object explains;
    -1 if unknown. collects: whether the collector is on; frozen_objects: objects that it does not
    look at, after `gc.freeze()`. losses: sentences on parts that are told differently, because a
    fact about CPython does not hold here.
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
    no object which was found, which `live_objects` is without. If there was no copy of the process,
    they are in `live_objects`.
    """

    name: str
    size_bytes: int
    before_bytes: int


@dataclass(frozen=True, slots=True)
class Counted(Data):
    """The number of one kind, now and before.

    what: `descriptors`; `threads`, those that Python has started, by function; `exit_callbacks`, of
    `atexit`; `interned`, strings; or `shared`, mappings of shared memory. kind: as `epoll`, `pipe`,
    `socket to 10.0.0.7:5432`, `socket accepted at port 8000`, `files in /tmp`, `/dev/shm/psm_*`,
    `worker()`.
    """

    what: str
    kind: str
    count: int
    count_before: int


@dataclass(frozen=True, slots=True)
class Growth(Examined):
    """The growth between two moments, and its owners, the largest first.

    seconds: between the two. Each of these sums has its value now, and before: rss_bytes, objects,
    size_bytes, c_heap_bytes (as of Owners), threads, descriptors. parts: of rss_bytes, the largest
    growth first. kinds: kinds whose number has changed. pause_ns: the pause of the program, the
    longer of two. collects: whether the collector is on; frozen_objects: objects that it does not
    look at since `gc.freeze()`. losses: as of Owners. halfway_seconds: the time of a third look by
    `doctor growth`, between the two; 0: none. c_heap_halfway_bytes: as c_heap_bytes, of that look;
    -1: unknown. resized: dicts, sets and lists whose tables were made larger than their entries
    need, and by how much; this is in no amount of an owner.
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
    c_heap_halfway_bytes: int = -1
