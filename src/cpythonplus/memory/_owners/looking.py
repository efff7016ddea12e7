"""Looks at the owners of the heap: one finds them at one moment, two their growth in between."""

import gc
import marshal
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

from cpythonplus import _native
from cpythonplus._base.data import Place
from cpythonplus._base.modules import imported
from cpythonplus._base.proc import resident_bytes
from cpythonplus._interp import walk_losses
from cpythonplus.memory._owners.allocating import allocated_at
from cpythonplus.memory._owners.counting import (
    descriptor_kinds,
    entries,
    exit_callbacks,
    interned_strings,
    shared_mappings,
    thread_kinds,
)
from cpythonplus.memory._owners.model import (
    ClassKept,
    Counted,
    Growth,
    Owner,
    Owners,
    PartGrown,
    Where,
)
from cpythonplus.memory._owners.room import copy_room
from cpythonplus.memory._owners.spelling import (
    CONTAINERS,
    TEMPORARY,
    class_place,
    forget_sources,
    place_of,
    spelled,
    spelled_below,
)
from cpythonplus.memory._resident import resident

_LONGEST_S: Final = 120
_OF_BLOCKS: Final = "arenas"
"""The fact that lost objects in small blocks are found by."""
_LEAST_GROWN: Final = 16 << 10
_LEAST_SHARE: Final = 0.005
_LEAST_KEPT: Final = 64 << 10
_NO_MARK: Final = -1
_MOST_WAYS: Final = 3
_SUMS: Final = ("count", "count_before", "bytes", "bytes_before", "objects", "objects_before")
_EXECUTED: Final = ("", "method", "function", "generator", "coroutine")
_MOST_DOCTORS: Final = 4
_OWN: Final = "cpythonplus."
"""The prefix of modules of this package: the report leaves out owners with such names."""


class _Look:
    """The findings of one moment.

    found: the answer of the copy, empty if there is no copy; lost: the reason, else "". parts: of
    RSS, by name.
    """

    def __init__(self, before: int = _NO_MARK, least: int = sys.maxsize, *, marks: bool) -> None:
        self.counts = {
            "descriptors": descriptor_kinds(),
            "threads": thread_kinds(),
            "exit_callbacks": {"": exit_callbacks()},
            "interned": {"": interned_strings()},
            "shared": shared_mappings(),
        }
        self.threads, self.descriptors = entries("/proc/self/task"), entries("/proc/self/fd") - 1
        memory = resident(pins=False)
        self.rss_bytes, self.time_s = memory.rss_bytes, time.monotonic()
        self.parts = {part.name: part.resident_bytes for part in memory.parts}
        malloc = _native.memory_malloc_bytes()
        self.found: dict[str, Any] = {}
        self.pause_ns, self.file, self.lost = 0, _NO_MARK, ""
        try:
            self.found, self.pause_ns, self.file = _look(before, least, marks=marks)
        except (OSError, RuntimeError, MemoryError) as error:
            self.lost = f"{error}"
        self.pause_ns = max(self.pause_ns, memory.pause_ns)
        self.c_heap_bytes = _unexplained(malloc, self.found) if self.found else -1
        # Split blocks in arenas, or mimalloc's segments, into those of objects and the rest.
        live = self.parts.get("live_objects")
        if self.found and self.found["small_bytes"] and live is not None:
            explained = min(self.found["small_bytes"], live)
            self.parts |= {"live_objects": explained, "unexplained_blocks": live - explained}
        segments = self.parts.get("mimalloc_free")
        if self.found and segments is not None:
            used = min(self.found["bytes"], segments)
            self.parts |= {"mimalloc_used": used, "mimalloc_free": segments - used}


class Mark:
    """A moment for later comparison; keeps a memfd until closed."""

    def __init__(self) -> None:
        """Look now; raises UnsupportedPlatform if the heap cannot be walked."""
        self._look = _Look(marks=True)
        self.file, self.pause_ns = self._look.file, self._look.pause_ns
        self.rss_bytes = self._look.rss_bytes
        self._identity = _identity(self.file) if self.file >= 0 else None
        if self.file >= 0:  # the second look counts this descriptor, too
            self._look.descriptors += 1
            kinds = self._look.counts["descriptors"]
            kinds["memfd"] = kinds.get("memfd", 0) + 1

    def close(self) -> None:
        """Close the file."""
        if self._is_there():
            os.close(self.file)
        self.file = _NO_MARK

    def _is_there(self) -> bool:
        """Whether the file is open; a program may close all descriptors and reuse the number."""
        try:
            return self.file >= 0 and _identity(self.file) == self._identity
        except OSError:
            return False

    def grown(self) -> Growth:
        """Return the growth since the mark; raises the exceptions of `Mark()`, and LookupError."""
        before = self._look
        if not before.lost and not self._is_there():
            raise LookupError("the program has closed the file of the first look")
        least = max(
            _LEAST_GROWN, int((resident_bytes(os.getpid()) - before.rss_bytes) * _LEAST_SHARE)
        )
        now = _Look(self.file, least, marks=False)
        lost = before.lost or now.lost
        found = {} if lost else now.found
        return Growth(
            seconds=round(now.time_s - before.time_s, 3),
            rss_bytes=now.rss_bytes,
            rss_before_bytes=before.rss_bytes,
            parts=_parts(before.parts, now.parts),
            objects=found.get("objects", 0),
            objects_before=found.get("objects_before", 0),
            size_bytes=found.get("bytes", 0),
            before_bytes=found.get("bytes_before", 0),
            c_heap_bytes=-1 if lost else now.c_heap_bytes,
            c_heap_before_bytes=before.c_heap_bytes,
            threads=now.threads,
            threads_before=before.threads,
            descriptors=now.descriptors,
            descriptors_before=before.descriptors,
            kinds=_kinds(before.counts, now.counts),
            pause_ns=max(now.pause_ns, before.pause_ns),
            collects=_native.memory_agent_collects(),
            frozen_objects=gc.get_freeze_count(),
            owners=_owners(found) if found else (),
            resized=tuple(map(_owner, found["resized"])) if found else (),
            classes=_classes(found["classes"]) if found else (),
            losses=walk_losses(_OF_BLOCKS),
            lost=lost,
        )


class growth:  # noqa: N801  # used like a function
    """Tells the growth during the block of a `with`, and the owners of the growth.

    result: a `Growth`, once the block has ended; None before, or if it has raised.

    Each end of the block is looked at in a copy of the process, made by `fork()`. So the program is
    paused for as long as that takes, and the copy needs up to 150 bytes for each object. If there
    can be no copy, or it fails, owners are missing, and `lost` has the reason. Raises
    UnsupportedPlatform if the heap cannot be walked, LookupError if the block has closed all
    descriptors.
    """

    def __init__(self) -> None:
        """Look at nothing yet."""
        self.result: Growth | None = None
        self._mark: Mark | None = None

    def __enter__(self) -> Self:
        self._mark = Mark()
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        mark, self._mark = self._mark, None
        try:
            if kind is None and mark is not None:
                self.result = mark.grown()
        finally:
            if mark is not None:
                mark.close()


def _identity(file: int) -> tuple[int, int]:
    found = os.fstat(file)
    return found.st_dev, found.st_ino


def _look(
    before: int, least: int, *asked: type, marks: bool = False
) -> tuple[dict[str, Any], int, int]:
    """Return the answer of the copy, the pause, and the memfd of a mark."""
    data, pause_ns, file = _native.memory_owners(
        before, least, marks, _LONGEST_S, copy_room(), *asked
    )
    return marshal.loads(data), pause_ns, file  # noqa: S302  # written by a copy of this process


def ways_to(kind: type) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of objects of a class, and the paths to them, the most frequent first.

    Each path has `objects` and `steps`. Raises the exceptions of `owners()`.
    """
    asked = _look(_NO_MARK, sys.maxsize, kind)[0]["asked"]
    return (0, []) if asked is None else (asked["objects"], asked["groups"])


def owners() -> Owners:
    """Return the owners of the heap and the memory that they keep, the largest first.

    An owner is an object over which much is spread: a container, a cache, an object with many
    parts. It keeps the objects that would be freed with it, that is, those that are reached through
    it alone (the dominators of the graph of references). Objects that several owners keep together
    are no part of any of them.

    The heap is looked at in a copy of the process, as `growth` does it. Raises UnsupportedPlatform
    if the heap cannot be walked, OSError or MemoryError if there can be no copy, RuntimeError if it
    fails.
    """
    malloc = _native.memory_malloc_bytes()
    found, pause_ns, _ = _look(_NO_MARK, _LEAST_KEPT)
    return Owners(
        objects=found["objects"],
        size_bytes=found["bytes"],
        c_heap_bytes=_unexplained(malloc, found),
        pause_ns=pause_ns,
        collects=_native.memory_agent_collects(),
        frozen_objects=gc.get_freeze_count(),
        owners=_owners(found),
        classes=_classes(found["classes"]),
        losses=walk_losses(_OF_BLOCKS),
    )


# ---- for a doctor outside -----------------------------------------------------------------------

_marks: dict[str, Mark] = {}
"""By the doctor's name, which each doctor chooses itself; "" is the program's own."""


def mark(doctor: str = "") -> dict[str, object]:
    """Look now, for a later `growth_since_mark()`; the oldest of too many looks is forgotten."""
    forget_mark(doctor)
    doctors = [each for each in _marks if each]
    if doctor and len(doctors) >= _MOST_DOCTORS:
        forget_mark(doctors[0])
    made = _marks[doctor] = Mark()
    return {"pause_ns": made.pause_ns, "rss_bytes": made.rss_bytes}


def growth_since_mark(doctor: str = "") -> Growth:
    """Return the growth since the same doctor's `mark()`; LookupError if there is none."""
    try:
        return growth_so_far(doctor)
    finally:
        forget_mark(doctor)


def growth_so_far(doctor: str = "") -> Growth:
    """Return the same, and keep the look for another comparison."""
    if doctor not in _marks:
        raise LookupError(
            "nobody has looked before, too many others have since, or the process runs another"
            " program now"
        )
    return _marks[doctor].grown()


def forget_mark(doctor: str) -> dict[str, object]:
    """Drop a look; nothing if there is none."""
    kept = _marks.pop(doctor, None)
    if kept is not None:
        kept.close()
    return {"forgotten": int(kept is not None)}


# ---- from marshalled data -----------------------------------------------------------------------


def _unexplained(malloc_bytes: int, found: dict[str, Any]) -> int:
    explained = found["large_bytes"] + _tracing_bytes()
    return max(malloc_bytes - explained, 0) if malloc_bytes >= 0 else -1


def _tracing_bytes() -> int:
    """Return the bytes of tracemalloc's own tables, which are no objects.

    tracemalloc tells about half: it omits malloc's overhead on 24 bytes, and the traces of 16 bytes
    each.
    """
    tracemalloc = imported("tracemalloc")
    is_tracing = tracemalloc is not None and tracemalloc.is_tracing()
    return 2 * int(tracemalloc.get_tracemalloc_memory()) if is_tracing else 0


def _owners(found: dict[str, Any]) -> tuple[Owner, ...]:
    rows = [each for row in found["owners"] if not (each := _owner(row)).name.startswith(_OWN)]
    rows += [
        _together(row, "frame", f"{row['count']:,} x {row['name']}()")
        for row in _read_alike(found["frames"])
        if not _begins_thread(row)
    ]
    rows += [
        _together(row, "garbage", f"garbage: {row['in']} {_called(row)}".replace("  ", " "))
        for row in _read_alike(found["unreached"])
    ]
    rows += [
        _together(row, f"held by {'the interpreter' if row['by'] else 'C code'}", _held_name(row))
        for row in _read_alike(found["held"])
    ]
    rows += [
        _together(row, "nothing on the heap refers to them", f"{row['count']:,} x {row['name']}")
        for row in _read_alike(found["left"])
    ]
    forget_sources()
    compares = found["objects_before"] > 0
    return tuple(sorted(rows, key=lambda row: (compares and _is_passing(row), -row.amount_bytes)))


def _is_passing(row: Owner) -> bool:
    """Whether a row is a value that a function has made since the first look, and works on now.

    It is gone when the function has used it: a list that is being built hid what had grown.
    """
    return row.name.startswith(TEMPORARY) and not (row.objects_before or row.kept_before_bytes)


def _read_alike(rows: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Return the sums of rows that read alike: those of classes that have one name."""
    found: dict[object, dict[str, Any]] = {}
    for row in rows:
        words = tuple((name, value) for name, value in row.items() if name not in _SUMS)
        kept = found.setdefault(words, {**row, **dict.fromkeys(_SUMS, 0)})
        kept.update({name: kept[name] + row[name] for name in _SUMS})
    return found.values()


def _owner(row: dict[str, Any]) -> Owner:
    alike = row["alike"]
    return Owner(
        name=f"{alike:,} x " * (alike > 1) + spelled(row["steps"], general=alike > 1),
        type=_kind(row),
        amount_bytes=row["amount_bytes"],
        kept_bytes=row["kept_bytes"],
        objects=row["objects"],
        entries=row["entries"],
        kept_before_bytes=row["kept_before_bytes"],
        objects_before=row["objects_before"],
        entries_before=row["entries_before"],
        parts=_direct_parts(*row["parts"]) if row["parts"] else "",
        below=spelled_below(str(row["type"]), row["below"]),
        place=place_of(row["steps"]),
        allocated=allocated_at(row["steps"], row["entries"], row["entries_before"]),
        is_local=[how for how, *_ in row["steps"][:1]] == ["variable"],
    )


def _kind(row: dict[str, Any]) -> str:
    """Return the class of the last object with a name: the cache rather than the dict in it.

    A cell stands for its content.
    """
    steps = row["steps"]
    named = [kind for how, _, kind in steps[:-1] if how or not kind.startswith(CONTAINERS)]
    unnamed = steps and steps[-1][0] == "" and named and named[-1] != "cell"
    return str(named[-1]) if unnamed else str(row["type"])


def _begins_thread(row: dict[str, Any]) -> bool:
    """Whether the row is a frame below a thread's own function, which keeps nothing."""
    begun = row["name"].startswith("Thread.") and row["bytes"] - row["bytes_before"] < _LEAST_GROWN
    return bool(begun and row["file"] == getattr(sys.modules.get("threading"), "__file__", None))


def _direct_parts(name: str, count: int, how: str) -> str:
    """Return `6,150 tuple`, or `900 method Client.close()`."""
    return f"{count:,} {_refers(how)} {name}()" if how else f"{count:,} {name}"


def _refers(how: str) -> str:
    return how if how in _EXECUTED else f"{how} with"


def _called(row: dict[str, Any]) -> str:
    return f"{row['name']}()" if row["line"] else str(row["name"])


def _held_name(row: dict[str, Any]) -> str:
    """Return `2 x method Client.close(), by atexit.register()`, `9 x tuple with app.Session`."""
    how = _refers(row["in"])
    by = f", {'by' if row['by'].endswith(')') else 'as'} {row['by']}" if row["by"] else ""
    return f"{row['count']:,} x {how} {_called(row)}{by}".replace("  ", " ")


def _together(row: dict[str, Any], kind: str, name: str) -> Owner:
    return Owner(
        name=name,
        type=kind,
        amount_bytes=row["bytes"] - row["bytes_before"],
        kept_bytes=row["bytes"],
        objects=row["objects"],
        objects_before=row["objects_before"],
        entries=row["count"],
        kept_before_bytes=row["bytes_before"],
        entries_before=row["count_before"],
        place=Place(row["file"], row["line"], row["name"])
        if row["file"]
        else class_place(row["name"]),
    )


def _classes(rows: Iterable[dict[str, Any]]) -> tuple[ClassKept, ...]:
    return tuple(
        ClassKept(
            row["type"],
            row["objects"],
            row["bytes"],
            row["objects_before"],
            row["bytes_before"],
            ways_of(row["groups"]),
            row["is_native"],
        )
        for row in rows
        if not row["type"].startswith(_OWN)
    )


def ways_of(groups: Iterable[dict[str, Any]]) -> tuple[Where, ...]:
    """Return the most frequent paths; paths that are spelled alike are one."""
    counts: Counter[str] = Counter()
    for each in groups:
        counts[spelled(each["steps"], general=True)] += each["objects"]
    return tuple(Where(objects, path) for path, objects in counts.most_common(_MOST_WAYS))


# ---- other sums ---------------------------------------------------------------------------------


def _kinds(
    before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]
) -> tuple[Counted, ...]:
    """Return the kinds whose number has changed, the largest growth first."""
    rows = [
        Counted(what, kind, now[what].get(kind, 0), then.get(kind, 0))
        for what, then in before.items()
        for kind in {**then, **now[what]}
    ]
    changed = [row for row in rows if row.count != row.count_before]
    return tuple(sorted(changed, key=lambda row: row.count_before - row.count))


def _parts(before: Mapping[str, int], now: Mapping[str, int]) -> tuple[PartGrown, ...]:
    rows = [PartGrown(name, now.get(name, 0), before.get(name, 0)) for name in {**before, **now}]
    return tuple(sorted(rows, key=lambda row: row.before_bytes - row.size_bytes))
