"""The verdict in a few sentences: resident memory, its holders, and advice."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from cpythonplus._base.reading import (
    Examination,
    Part,
    amount,
    entries,
    inside,
    known,
    largest,
    part,
    size,
    words,
)
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import objects
from cpythonplus._doctor.report.labels import label
from cpythonplus._doctor.report.native import PYTHON, native_place, native_sentence
from cpythonplus._doctor.report.owners import (
    LOST,
    is_c_heap_steady,
    is_in_call,
    is_newest,
    is_passing,
    kinds_grown,
    owner_name,
    parts_grown,
    rss_change,
    steadiness,
)
from cpythonplus._doctor.report.sections import causes, place, thread_groups

_FINDINGS: Final = 4
_CAUSES: Final = 12
"""The most sentences about growth."""
_SMALLEST_STEADY: Final = 64 << 10
_LEAST_ENTRIES: Final = 50
_LEAST_ENTRIES_PER_S: Final = 5
"""A row that has gained as many entries has a sentence, even if these are small."""
_SMALLEST_SHARE: Final = 0.01
_SMALLEST_BYTES: Final = 1 << 20
"""A finding below both limits is not worth a sentence."""
_SMALLEST_GROWN: Final = 256 << 10
_LEAST_RATE: Final = 40 << 10
"""Bytes of C code's memory per second; 3.4 GB in a day."""
_MOST_OF_TRACER: Final = 4 << 20
"""The tracer maps memory for itself: 0.3 to 1.5 MiB in programs that allocate little."""
_LATER_SHARE: Final = 0.05
_LEAST_ALIKE: Final = 0.1
_MOST_ALIKE: Final = 1.25
"""The most that one line may have allocated, as a multiple of the unexplained memory."""
_PARTS_NAMED: Final = 3
_CLASSES_NAMED: Final = 2
_LEAST_OF_OBJECT: Final = 512
"""Bytes of the C heap for each object of a class that it may belong to."""
_MOST_OF_GARBAGE: Final = 16 << 10
"""Bytes of the C heap for each object of garbage, of which few are those that have such memory."""
_HEAVY: Final = 1 << 10
"""Bytes for each object of garbage that is much in few objects; 100 to 300 are usual."""
_LEAST_OF_SMALL: Final = 32
"""The same of small blocks of Python's allocator."""
_WHOLE: Final = ("_thread.", "functools.", "itertools.", "operator.", "weakref.", "types.", "_io.")
"""Modules with classes of C code whose objects have no memory but that of their own block."""
_BY_C_CODE: Final = "C code, or a thread, has it"
_NOTHING: Final = "Nothing stands out as worth acting on."
_TELLING_SHARE: Final = 0.05
_DOCTOR: Final = "cpythonplus doctor "
_ALARMING_SHARE: Final = 1 / 3
_ALARMING_BYTES: Final = 16 << 20
"""The referrers of a built-in type's objects are worth asking for above both limits."""
_CLASS: Final = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
"""A class by a name that a shell takes as it is."""
_DICT_OF: Final = "dict of "
_PINS_NAMED: Final = 3
_MANY_THREADS: Final = 100
_MANY_MORE: Final = 50
_MANY_TASKS: Final = 1000
_MANY_CLASSES: Final = 100
"""The number of one kind; fewer are usual."""
_PROBLEMS: Final = {
    "c_heap": "{size} is free inside the C library's heap, which returns only what lies above "
    "its last block.{top}",
    "thread_heaps": "{size} is free in {heaps:,} heaps that the C library made for threads: what "
    "one thread freed is kept for that heap's threads.",
    "arenas": "{size} is free in {few:,} of pymalloc's {arenas:,} arenas, but {blocks:,} blocks "
    "are in use there{who}. An arena is returned only when it is empty.",
    "other_allocator": "{size} is free in {allocator}, which keeps it for a while.",
    "files": "{size} is pages of files.",
    "shared": "{size} is shared memory without a file on disk: it counts in each "
    "process that maps it.",
    "in_use": "{size} is in use: it is not returned because something holds it.",
    "nothing": "{size} is free but kept by the allocators.",
}
"""The subject of each kind of advice on resident memory."""
_MEMRAY: Final = "To see which function takes it: `cpythonplus doctor growth --native PID`."
_LONG_S: Final = 600
_STEADINESS: Final = {
    "steady": ", in both halves of the time",
    "uneven": ", most in one half of the time",
}
_SLOW: Final = (
    "That is little in so short a time, and may be a cache that fills. Compare two reports of an"
    " hour: `cpythonplus doctor growth a.json b.json`."
)
_INTERNED: Final = (
    "They are interned: by sys.intern(), or as names of attributes and keys. CPython 3.12.0 to"
    " 3.12.6 never frees such a string."
)
_LOST: Final = ": C code took references to them that it has not given up"
_LEFT: Final = "To see which function makes them: `cpythonplus doctor growth --native PID`."
_PINNED: Final = "To see what keeps it from being returned: `cpythonplus doctor PID`."
_FREE: Final = ("arena_free", "c_heap_free")
_FREE_IN_C_HEAP: Final = ("c_heap_free", "c_heap_top", "thread_heaps_free")
_OF_C_CODE: Final = ("unexplained_blocks", "mappings", "other_allocator")
"""Parts beside the C heap that have memory which no object explains."""
_PARTS_GROWN: Final = {
    "unexplained_blocks": (
        "Blocks of Python's allocator that no object explains have",
        ": C code uses them, or has not given up references",
    ),
    "mappings": (
        "Anonymous mappings have",
        ": C code maps memory, itself or by an allocator of its own",
    ),
    "other_allocator": ("What another allocator has handed out has", ": to C code"),
    "stacks": ("The stacks of threads have", ""),
    "shared": ("Shared memory has", ""),
    "files": ("Mapped files have", ""),
    "arena_free": (
        "Free memory in Python's arenas has",
        ", which are not returned while one object in them is left",
    ),
    "c_heap_free": (
        "Free memory inside the C heap has",
        ", which returns only what lies above its last block",
    ),
}
"""The words for a part of resident memory that has grown, and the cause, if it is C code's."""
_UNDIVIDED: Final = (
    (
        ("live_objects",),
        "Small blocks of Python's allocator have",
        "objects, or blocks that C code has not given up",
    ),
    (
        ("mimalloc_free",),
        "The segments of Python's allocator have",
        "objects, blocks that C code has not given up, or free memory",
    ),
    (
        ("c_heap_used", "thread_heaps_used", "large_blocks"),
        "The C heap in use has",
        "large objects, or memory of C code",
    ),
)
"""Parts that only a copy of the process divides by owner, in words; and the possible contents."""
_NO_COPY: Final = "Only a copy of the process tells which of them they are, and who keeps them"


@dataclass(frozen=True)
class Statement:
    """One sentence of the verdict.

    remedy: the advice, "" if none is needed; command: to be copied, "" if there is none.
    size_bytes: the memory that it is about. matters: shown first, even if small. is_steady: shown
    even if small. is_trace: shown last, because it is rather a trace of what was in use than a
    cause.
    """

    sentence: str
    size_bytes: int = 0
    remedy: str = ""
    command: str = ""
    matters: bool = False
    is_steady: bool = False
    is_trace: bool = False


def statements(examination: Examination) -> list[Statement]:
    """Return three to six sentences: resident memory, holders, findings, largest first.

    For growth: one for each cause of 1 % of it, or of a steady one.
    """
    found = [*_resident(examination), *_held(examination)]
    least = _least(examination)
    findings = [
        each
        for each in _findings(examination)
        if each.matters or each.is_steady or each.size_bytes >= least
    ]
    if part(examination, "native") is not None:  # the native trace is the answer to this advice
        findings = [
            replace(each, remedy="") if "--native" in each.remedy else each for each in findings
        ]
    findings.sort(key=lambda each: (not each.matters, each.is_trace, -each.size_bytes))
    if not findings and found:
        findings = [Statement(_NOTHING), *_calm(examination)]
    return found + findings[: _FINDINGS if found else _CAUSES]


def _least(examination: Examination) -> int:
    growth = part(examination, "growth")
    if growth is not None and "resident" not in examination:
        return _least_grown(growth)
    rss = size(part(examination, "resident") or part(examination, "target") or {}, "rss_bytes")
    return min(_SMALLEST_BYTES, int(rss * _SMALLEST_SHARE)) if rss else 0


def _least_grown(growth: Part) -> int:
    return max(_SMALLEST_GROWN, int(rss_change(growth) * _SMALLEST_SHARE))


def _resident(examination: Examination) -> Iterator[Statement]:
    found = part(examination, "resident")
    if found is None:
        return
    whole = size(found, "rss_bytes")
    told = [
        f"{format_size(size(row, 'resident_bytes'))} {label(words(row, 'name')).title}"
        for row in largest(found, "parts", "resident_bytes")[:_PARTS_NAMED]
    ]
    sentence = f"The process has {format_size(whole)} of resident memory"
    samples = entries(examination, "samples")
    now = size(samples[-1], "rss_bytes") if samples else whole
    if abs(now - whole) > whole * _LATER_SHARE:
        # The parts are looked at less often while the process is watched.
        sentence = f"The process had {format_size(now)} of resident memory at the end;"
        sentence += f" when it was last looked at closely, {format_size(whole)}"
    yield Statement(sentence + (f": {_listed(told)}." if told else "."), whole)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _held(examination: Examination) -> Iterator[Statement]:
    found = part(examination, "census")
    if found is None:
        return
    whole = size(found, "size_bytes")
    sentence = f"Its heap has {objects(size(found, 'objects'))} of {format_size(whole)}"
    rows = _classes(entries(found, "by_owner") or entries(found, "by_type"))
    if not rows:
        yield Statement(f"{sentence}.", whole)
        return
    sentence += f"; most is {rows[0].text()}"
    # A built-in type says little about its holder.
    large = [row for row in rows if row.size_bytes >= _TELLING_SHARE * whole]
    telling = next((row for row in large if "." in row.name), rows[0])
    if telling is not rows[0]:
        sentence += f", and of the classes of the program and its libraries {telling.text()}"
    ask = "." in telling.name or telling.size_bytes >= max(whole * _ALARMING_SHARE, _ALARMING_BYTES)
    remedy = _who_refers(examination, telling.name) if ask else ()
    yield Statement(f"{sentence}.", whole, *remedy)


def _who_refers(examination: Examination, name: str) -> tuple[str, str]:
    """Return the advice for finding the referrers of a class; the process may have ended by now."""
    if not _CLASS.fullmatch(name):
        return "", ""
    target = part(examination, "target") or {}
    if "cycles" in examination or not known(target, "pid"):
        return f"memory.census().referrers({name!r}) shows what refers to them.", ""
    asked = f"cpythonplus doctor referrers {size(target, 'pid')} {name}"
    return f"To see what refers to {name} objects:", asked


class _Class(NamedTuple):
    name: str
    objects: int
    size_bytes: int

    def text(self) -> str:
        return f"{self.name} ({objects(self.objects)}, {format_size(self.size_bytes)})"


def _classes(rows: list[Part]) -> list[_Class]:
    """Return the classes, each with the dicts of its instances, the largest first."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        name = words(row, "name")
        own = name.removeprefix(_DICT_OF)
        sums = counts.setdefault(own, [0, 0, 0])
        sums[own != name] += size(row, "objects")
        sums[2] += size(row, "size_bytes")
    # A dict belongs to an object that is counted.
    found = [_Class(n, own or dicts, total) for n, (own, dicts, total) in counts.items()]
    return sorted(found, key=lambda each: -each.size_bytes)


def _findings(examination: Examination) -> Iterator[Statement]:
    yield from _grown(part(examination, "growth"), part(examination, "native"))
    yield from _undivided(part(examination, "growth"), part(examination, "native"))
    yield from _native(examination)
    yield from _more_of(examination)
    yield from _c_heap(examination)
    yield from _advice(examination)
    yield from _collector(examination)
    yield from _many(examination)
    yield from _cycles(examination)
    yield from _hoards(examination)
    yield from _caches(part(examination, "caches"))
    yield from _key_sharing(part(examination, "key_sharing"))
    yield from _growth(examination)


def _grown(found: Part | None, native: Part | None) -> Iterator[Statement]:
    """Yield the largest growth between two looks, and memory that no object explains."""
    if found is None:
        return
    rows = [row for row in entries(found, "owners") if not _is_collected_again(row)]
    least, told_slow = _least_grown(found), False
    for number, row in enumerate(rows[:_CAUSES]):
        where = _made_at(row)
        if words(row, "type") == "garbage" and (number or _is_collected(found)):
            continue  # often of the same cycle; what the collector will free is one sentence
        if is_in_call(found, row) or is_newest(row):
            continue
        steady = steadiness(found, row)
        more = size(row, "amount_bytes")
        is_steady = (steady == "steady" and more >= _SMALLEST_STEADY) or (
            steady != "uneven" and _gains_entries(found, row)
        )
        remedy = _what_next(found, row)
        if remedy == _SLOW and (told_slow or not (is_steady or more >= least)):
            remedy = ""  # report it once, with a sentence
        told_slow = told_slow or remedy == _SLOW
        if _is_lost(row):
            has_more = size(row, "entries") > size(row, "entries_before")
            where += _LOST if has_more and remedy != _INTERNED else ""
            where += _taken(native, more)
        below = words(row, "below")
        where += f"; most of what it keeps is in {below}" if below else ""
        yield Statement(
            f"{owner_name(row)} has grown {'' if number else 'most, '}by"
            f" {format_size(more)}{_STEADINESS.get(steady, '')}{where}.",
            _garbage_grown(rows) if words(row, "type") == "garbage" else more,
            remedy,
            is_steady=is_steady,
            is_trace=is_passing(row),
        )
    left = [row for row in rows if words(row, "type") == LOST[0]]
    told = {"unexplained_blocks": sum(size(row, "amount_bytes") for row in left)}
    for name, grown in parts_grown(found, _SMALLEST_GROWN):
        more = grown - told.get(name, 0)
        is_c_codes = name == "unexplained_blocks"
        least = _least_of_c_code(found, native) if is_c_codes else _SMALLEST_BYTES
        is_moved = name in _FREE and more > rss_change(found)  # it was in use before
        traced = size(native, "kept_bytes") if native is not None else more
        is_tracers = name == "mappings" and traced < more <= _MOST_OF_TRACER
        if name in _PARTS_GROWN and more >= least and not (is_moved or is_tracers):
            what, why = _PARTS_GROWN[name]
            files = kinds_grown(found, name) if name == "shared" else []
            of = f", by mappings: {_listed(files)}" if files else ""
            at = ""
            if name == "unexplained_blocks":
                at = _taken(native, more) + _of_objects(found, more, _LEAST_OF_SMALL)
            sentence = f"{what} grown by {format_size(more)}{why}{of}{at}."
            remedy = _PINNED if name in _FREE else _MEMRAY if why else ""
            yield Statement(sentence, more, remedy, is_trace=name in _FREE)


def _made_at(row: Part) -> str:
    found = inside(row, "place")
    line = size(found, "line")
    return f", made at {words(found, 'file')}:{line}" if line else ""


def _garbage_grown(rows: list[Part]) -> int:
    """Return the growth of all garbage, by which the sentence on its largest row is sorted, too."""
    grown = [row for row in rows if words(row, "type") == "garbage"]
    return sum(max(size(row, "amount_bytes"), 0) for row in grown)


def _is_collected_again(row: Part) -> bool:
    """Whether a row is garbage of which a collection between the two looks has left no more."""
    return words(row, "type") == "garbage" and size(row, "amount_bytes") <= 0


def _is_collected(found: Part) -> bool:
    """Whether the collector is on and looks at most of the heap: it frees garbage in its turn."""
    frozen = size(found, "frozen_objects")
    return found.get("collects") is True and not _is_much_frozen(found, frozen)


def _is_much_frozen(found: Part, frozen: int) -> bool:
    return frozen > 0 and frozen >= size(found, "objects") * _ALARMING_SHARE


def _least_of_c_code(found: Part, native: Part | None) -> int:
    """Return the growth of C code's memory that has a sentence.

    It is less if the time was short, but not beside a trace, whose lines say more.
    """
    if native is not None:
        return _SMALLEST_BYTES
    lasting = int(_LEAST_RATE * amount(found, "seconds"))
    return min(_SMALLEST_BYTES, max(_SMALLEST_GROWN, lasting))


def _gains_entries(found: Part, row: Part) -> bool:
    """Whether a row gains entries all the time: a slow leak, if they are small."""
    more = amount(row, "entries") - amount(row, "entries_before")
    least = max(_LEAST_ENTRIES, _LEAST_ENTRIES_PER_S * amount(found, "seconds"))
    return more >= least and words(row, "type") not in ("garbage", "frame")


def _undivided(found: Part | None, native: Part | None) -> Iterator[Statement]:
    """Yield the growth of parts that no copy of the process has divided by owner."""
    lost = words(found or {}, "lost")
    if found is None or not lost:
        return
    grown = dict(parts_grown(found, float("-inf")))
    for names, what, contents in _UNDIVIDED:
        more = sum(grown.get(name, 0) for name in names)
        if more >= _SMALLEST_BYTES:
            sentence = f"{what} grown by {format_size(more)}: {contents}{_taken(native, more)}."
            yield Statement(f"{sentence} {_NO_COPY}: {lost}.", more, _MEMRAY)


def _is_lost(row: Part) -> bool:
    """Whether the objects of a row have references that no object and no call accounts for."""
    return words(row, "type") in LOST


def _native(examination: Examination) -> Iterator[Statement]:
    """Yield the largest native memory that was not freed; Python's own is reported by owner.

    The tracer counts what is younger than itself. If the memory that no object explains has not
    grown by about as much, it is that of objects, as arrays have it, or as much has been freed.
    """
    found, growth = part(examination, "native"), part(examination, "growth")
    most = size(found or {}, "kept_bytes") * _ALARMING_SHARE
    grown = _unexplained_grown(growth or {})
    rows = [row for row in entries(found, "rows") if words(row, "library") != PYTHON]
    for row in rows[:_FINDINGS]:
        taken = size(row, "size_bytes")
        is_explained = grown < taken * _ALARMING_SHARE
        matters = taken >= max(most, _SMALLEST_GROWN) and not is_explained
        yield Statement(native_sentence(row), taken, matters=matters, is_trace=is_explained)


def _unexplained_grown(growth: Part) -> float:
    """Return by how much the memory that no object explains has grown; infinite if unknown."""
    if words(growth, "lost") or amount(growth, "c_heap_bytes") < 0 or not entries(growth, "parts"):
        return float("inf")
    grown = dict(parts_grown(growth, 0))
    more = amount(growth, "c_heap_bytes") - amount(growth, "c_heap_before_bytes")
    return max(more, 0) + sum(grown.get(name, 0) for name in _OF_C_CODE)


def _taken(native: Part | None, more: int) -> str:
    """Return the line that may have allocated the unexplained memory, by memray; else ""."""
    for row in entries(native, "rows"):
        taken = size(row, "size_bytes")
        is_alike = _LEAST_ALIKE * more <= taken <= _MOST_ALIKE * more
        if words(row, "library") == PYTHON and is_alike and (place := native_place(row)):
            return f"; {format_size(taken)} taken at {place} are not freed"
    return ""


def _what_next(found: Part, row: Part) -> str:
    """Return the advice for a growing owner or for C code; "" if its line is enough."""
    more = size(row, "entries") - size(row, "entries_before")
    if _is_lost(row):
        interned = sum(
            size(each, "count") - size(each, "count_before")
            for each in entries(found, "kinds")
            if words(each, "what") == "interned"
        )
        is_interned = words(row, "name").endswith(" str") and interned >= more * _ALARMING_SHARE
        return _INTERNED if is_interned else _LEFT
    slow = size(row, "amount_bytes") < _SMALLEST_BYTES and amount(found, "seconds") < _LONG_S
    return _SLOW if slow else ""


def _more_of(examination: Examination) -> Iterator[Statement]:
    """Yield descriptors and callbacks whose number has grown."""
    found = part(examination, "growth") or {}
    more = size(found, "descriptors") - size(found, "descriptors_before")
    kinds = kinds_grown(found, "descriptors")
    target = part(examination, "target") or {}
    if more >= _MANY_MORE and kinds:
        pid = size(target, "pid") if known(target, "pid") else "PID"
        yield Statement(
            f"There are {more:,} more descriptors: {_listed(kinds)}.",
            remedy="They are opened and not closed. This lists them:",
            command=f"ls -l /proc/{pid}/fd",
            matters=True,
        )
    more = size(found, "threads") - size(found, "threads_before")
    if more >= _MANY_MORE and (kinds := kinds_grown(found, "threads")):
        yield Statement(
            f"There are {more:,} more threads: {_listed(kinds)}.",
            remedy="Use a pool with a limit, and let threads end that wait for work no longer.",
            matters=True,
        )
    for row in entries(found, "kinds"):
        more = size(row, "count") - size(row, "count_before")
        if words(row, "what") == "exit_callbacks" and more >= _MANY_MORE:
            yield Statement(
                f"atexit has {more:,} more callbacks: it keeps their functions and arguments until"
                " the program ends.",
                remedy="Call atexit.unregister() when an object is closed, or register it once.",
                matters=True,
            )


def _c_heap(examination: Examination) -> Iterator[Statement]:
    """Yield memory that no Python object explains, if it is much, or grows."""
    growth, owners = part(examination, "growth") or {}, part(examination, "owners") or {}
    now = amount(growth or owners, "c_heap_bytes")
    if growth:
        more = now - amount(growth, "c_heap_before_bytes")
        rss = rss_change(growth)
        least = _least_of_c_code(growth, part(examination, "native"))
        if more < max(least, rss * _ALARMING_SHARE):
            return
        was_free = more + _free_in_c_heap_grown(growth) < least
        if waiting := _waiting(growth, more):
            if not was_free:
                yield Statement(waiting, int(more), _MEMRAY)
            return
        is_known = amount(growth, "c_heap_halfway_bytes") > 0
        if was_free and is_known and not is_c_heap_steady(growth):
            return  # up and down within what the C library keeps
        rate = f", +{format_size(int(more / max(amount(growth, 'seconds'), 1)))}/s,"
    else:
        more, rate = now, ""
        rss = size(part(examination, "target") or {}, "rss_bytes")
        if now < max(_ALARMING_BYTES, rss * _ALARMING_SHARE):
            return
    yield Statement(
        f"{format_size(int(now))} of the C heap{rate} is C code's: no Python object explains it"
        f"{_taken(part(examination, 'native'), int(more))}{_of_objects(growth, more)}.",
        int(more),
        _MEMRAY,
    )


def _waiting(growth: Part, more: float) -> str:
    """Return the sentence on so much memory of C code that may be that of garbage, else "".

    Objects of C code that wait for the collector keep their memory, as a websocket's compressor or
    the context of a TLS client: up and down, though nothing leaks.
    """
    rows = [
        row
        for row in entries(growth, "owners")
        if words(row, "type") == "garbage" and not _is_collected_again(row)
    ]
    count = sum(size(row, "objects") - size(row, "objects_before") for row in rows)
    if not _is_collected(growth) or more > count * _MOST_OF_GARBAGE:
        return ""
    return (
        f"{format_size(int(more))} more of the C heap is not explained by Python objects: it may be"
        f" that of {words(rows[0], 'name')}, which waits for the collector, or C code's."
    )


def _free_in_c_heap_grown(growth: Part) -> int:
    grown = dict(parts_grown(growth, float("-inf")))
    return sum(grown.get(name, 0) for name in _FREE_IN_C_HEAP)


def _of_objects(growth: Part, more: float, least: int = _LEAST_OF_OBJECT) -> str:
    """Return the classes of C code that have so many more objects that the memory may be theirs.

    Objects that are reached through others of these are parts of them, as statements of a
    connection.
    """
    told: dict[str, str] = {}
    for row in sorted(entries(growth, "classes"), key=lambda row: len(_path(row))):
        count, path = size(row, "objects") - size(row, "objects_before"), _path(row)
        is_part = any(path.startswith(each) for each in told if each)
        is_native = row.get("is_native") is True and not words(row, "type").startswith(_WHOLE)
        if is_native and 0 < count * least <= more and not is_part:
            by = f" by {path}" if path and not path.startswith(_BY_C_CODE) else ""
            told[path] = f"{count:,} more {words(row, 'type')}{by}"
    return f"; it may be that of {_listed([*told.values()][:_CLASSES_NAMED])}" if told else ""


def _path(row: Part) -> str:
    """Return the most frequent path to the objects of a class, "" if there is none."""
    return next((words(way, "path") for way in entries(row, "where")), "")


def _collector(examination: Examination) -> Iterator[Statement]:
    """Yield garbage that has grown, and garbage that no collector will free."""
    growth = part(examination, "growth")
    found = growth or part(examination, "owners") or {}
    rows = [row for row in entries(found, "owners") if words(row, "type") == "garbage"]
    whole = sum(size(row, "kept_bytes") for row in rows)
    frozen = size(found, "frozen_objects")
    target = part(examination, "target") or {}
    is_known = known(target, "pid")
    if growth is not None and rows and (is_known or _is_collected(growth)):
        sentence, more = _garbage_that_waits(growth, rows)
        yield Statement(
            sentence,
            more,
            "To see the lines that make it:" * is_known,
            f"{_DOCTOR}cycles {size(target, 'pid')}" * is_known,
        )
    if not rows or whole < _SMALLEST_BYTES:
        return
    most = f"{format_size(whole)} of cyclic garbage waits, most is {words(rows[0], 'name')}"
    if found.get("collects") is False:
        yield Statement(
            f"The collector is off: {most}.",
            whole,
            "Switch it on with gc.enable(), or call gc.collect() where the program has time.",
            matters=True,
        )
    elif _is_much_frozen(found, frozen):
        yield Statement(
            f"{objects(frozen)} are frozen, which the collector does not look at: {most}.",
            whole,
            "Call gc.freeze() once, before the program takes work; gc.unfreeze() undoes it.",
        )


def _garbage_that_waits(growth: Part, rows: list[Part]) -> tuple[str, int]:
    """Return the sentence on garbage, and the bytes that it is about.

    Much in few objects is told though it has not grown: the collector, which counts objects, lets
    it come again and again.
    """
    collected = _is_collected(growth)
    looks = [
        (sum(size(row, kept) for row in rows), sum(size(row, count) for row in rows), kept)
        for kept, count in (("kept_bytes", "objects"), ("kept_before_bytes", "objects_before"))
    ]
    whole, count, when = max(looks)
    largest_row = max(rows, key=lambda row: size(row, when))
    if collected and whole >= max(_SMALLEST_BYTES, count * _HEAVY):
        return (
            f"{format_size(whole)} of cyclic garbage, {objects(count)} only, waited for the"
            " collector, which counts objects and not bytes; most is"
            f" {words(largest_row, 'name')}{_made_at(largest_row)}."
        ), whole
    most = f"; most is {words(rows[0], 'name')}{_made_at(rows[0])}" if collected else ""
    more = _garbage_grown(rows)
    return (
        f"{format_size(more)} of what has grown is cyclic garbage, which waits for the"
        f" collector{most}."
    ), more


def _many(examination: Examination) -> Iterator[Statement]:
    """Yield threads, tasks and classes that are too many of one kind."""
    resident = part(examination, "resident")
    stacks = [row for row in entries(resident, "parts") if words(row, "name") == "stacks"]
    for group in thread_groups(part(examination, "threads"))[:1]:
        if len(group) >= _MANY_THREADS:
            of = max(size(stacks[0], "count"), len(group)) if stacks else 1
            share = size(stacks[0], "resident_bytes") * len(group) // of if stacks else 0
            yield Statement(
                f"{len(group):,} threads execute `{words(group[0], 'function')}()` at"
                f" {place(group[0])}.",
                share,
                "Use a pool with a limit, and let threads end that wait for work no longer.",
                matters=True,
            )
    for row in entries(part(examination, "tasks"), "tasks")[:1]:
        if size(row, "count") >= _MANY_TASKS:
            yield Statement(
                f"{size(row, 'count'):,} tasks of `{words(row, 'function')}()` have not ended;"
                f" most wait at {place(row)}.",
                0,
                "Give what they wait for a timeout, and limit how many there are.",
                matters=True,
            )
    for row in largest(part(examination, "census"), "same_name", "objects")[:1]:
        if size(row, "objects") >= _MANY_CLASSES:
            yield Statement(
                f"{size(row, 'objects'):,} classes have the name {words(row, 'name')}: it is made"
                " anew again and again.",
                size(row, "size_bytes"),
                "Make it once, at the level of the module, or behind functools.cache.",
                matters=True,
            )


def _advice(examination: Examination) -> Iterator[Statement]:
    """Yield advice about resident memory, except advice that this report already follows."""
    examined = part(examination, "census") is not None
    for row in entries(part(examination, "resident"), "verdict"):
        if not _is_calm(row) and not (examined and words(row, "command").startswith(_DOCTOR)):
            yield _advised(examination, row)


def _calm(examination: Examination) -> Iterator[Statement]:
    """Yield the advice that nothing needs to be done, if there is no other."""
    for row in entries(part(examination, "resident"), "verdict"):
        if _is_calm(row):
            yield _advised(examination, row)


def _is_calm(row: Part) -> bool:
    return not words(row, "command") and not size(row, "frees_bytes")


def _advised(examination: Examination, row: Part) -> Statement:
    found = part(examination, "resident") or {}
    parts = {words(each, "name"): each for each in entries(found, "parts")}
    arenas, pins = inside(found, "arenas"), entries(found, "pins")
    within = [each for each in pins if words(each, "place") == "arenas"]
    above = "; ".join(_pinned(pins, "c_heap_top"))
    who = "; ".join(_pinned(pins, "arenas"))
    kind = words(row, "kind")
    sentence = _PROBLEMS.get(kind, "{size}: {kind}.").format(
        size=format_size(size(row, "size_bytes")),
        kind=kind,
        top=f" Its upper end is occupied by {above}." if above else "",
        heaps=size(parts.get("thread_heaps_free", {}), "count"),
        few=size(arenas, "mostly_free"),
        arenas=size(arenas, "count"),
        blocks=sum(size(each, "objects") for each in within),
        who=f", mainly {who}" if who else "",
        allocator=words(parts.get("other_allocator", {}), "allocator") or "another allocator",
    )
    remedy, command = _sentence(words(row, "remedy")), words(row, "command")
    return Statement(
        sentence, max(size(row, "size_bytes"), size(row, "frees_bytes")), remedy, command
    )


def _pinned(pins: list[Part], where: str) -> Iterator[str]:
    """Yield the holders of free memory in one place, the first few."""
    for pin in [each for each in pins if words(each, "place") == where][:_PINS_NAMED]:
        kind, holder = words(pin, "type"), words(pin, "holder")
        what = (
            "blocks: "
            if kind.startswith(("free,", "memory of ", "of ", "the doctor's"))
            else "of type "
        )
        held = f", held by {holder}" if holder not in ("", "?") else ""
        yield f"{size(pin, 'objects'):,} {what}{kind}{held}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."


def _cycles(examination: Examination) -> Iterator[Statement]:
    rows = causes(part(examination, "cycles"))
    if not rows:
        return
    whole = sum(size(row, "size_bytes") + size(row, "kept_bytes") for row in rows)
    cause = inside(rows[0], "cause")
    lines = "1 line leaves" if len(rows) == 1 else f"{len(rows):,} lines leave"
    where = "it is" if len(rows) == 1 else "the largest is"
    yield Statement(
        f"{lines} {format_size(whole)} of cyclic garbage to the collector; {where} "
        f"{place(inside(cause, 'place'))}, where `{words(cause, 'variable')}` keeps "
        f"{words(cause, 'what')}.",
        whole,
        _sentence(words(cause, "advice")),
    )


def _hoards(examination: Examination) -> Iterator[Statement]:
    for name in ("cycles", "exceptions"):
        if rows := largest(part(examination, name), "hoards", "size_bytes"):
            break
    else:
        return
    whole = sum(size(row, "size_bytes") for row in rows)
    count = sum(size(row, "count") for row in rows)
    kept = (
        "1 exception that is still held keeps"
        if count == 1
        else f"{count:,} exceptions that are still held keep"
    )
    yield Statement(
        f"{kept} {format_size(whole)} alive through the frames of their tracebacks;"
        " the largest part is held by "
        f"{words(rows[0], 'holder')}.",
        whole,
        "Drop them once they have been handled, or keep them with memory.exceptions.detach().",
    )


def _caches(found: Part | None) -> Iterator[Statement]:
    for row in entries(found, "rows"):
        if row.get("worth_it") is True:
            yield Statement(
                f"The cache {words(row, 'name')} has {size(row, 'entries'):,} entries of"
                f" {format_size(size(row, 'size_bytes'))}.",
                size(row, "size_bytes"),
                "Clear it when it is not needed." if words(row, "clear") else "",
                words(row, "clear"),
            )


def _key_sharing(found: Part | None) -> Iterator[Statement]:
    for row in entries(found, "lost"):
        yield Statement(
            f"{size(row, 'instances'):,} instances of {words(row, 'type')} take"
            f" {format_size(size(row, 'cost_bytes'))} more than they need:"
            f" {_sentence(words(row, 'cause'))}",
            size(row, "cost_bytes"),
            _sentence(words(row, "remedy")),
        )
    for row in entries(found, "oversized"):
        saved = size(row, "size_bytes") - size(row, "could_be_bytes")
        yield Statement(
            f"{words(row, 'holder') or 'A dict'} has room for"
            f" {size(row, 'capacity'):,} entries and {size(row, 'entries'):,} in it, which takes"
            f" {format_size(saved)} more than needed.",
            saved,
            _sentence(words(row, "remedy")) or "Copy it: a copy is as small as possible.",
        )

    for row in entries(found, "gains"):
        where = words(row, "made_at") or words(row, "holder")
        yield Statement(
            f"{size(row, 'count'):,} x {words(row, 'what')}{f', {where},' if where else ''}"
            f" {'takes' if size(row, 'count') == 1 else 'take'}"
            f" {format_size(size(row, 'size_bytes'))}, which could be"
            f" {format_size(size(row, 'saves_bytes'))} less.",
            size(row, "saves_bytes"),
            f"{words(row, 'change')}.",
        )


def _growth(examination: Examination) -> Iterator[Statement]:
    samples = entries(examination, "samples")
    if len(samples) < 2:  # noqa: PLR2004
        return
    first, last = samples[0], samples[-1]
    grown = size(last, "rss_bytes") - size(first, "rss_bytes")
    seconds = amount(last, "t_s") - amount(first, "t_s")
    how = "grew" if grown >= 0 else "shrank"
    sentence = f"While it was watched for {seconds:.0f} s, its memory {how} by"
    sentence += f" {format_size(abs(grown))}"
    for most in largest(last, "growth", "size_bytes")[:1]:
        sentence += (
            f"; {words(most, 'name')} grew most, by {size(most, 'objects'):,} objects of"
            f" {format_size(size(most, 'size_bytes'))}"
        )
    yield Statement(f"{sentence}.", abs(grown))
