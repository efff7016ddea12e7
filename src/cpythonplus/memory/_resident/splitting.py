"""Assigns resident memory to its parts, mapping by mapping."""

import _thread
import os
import resource
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from cpythonplus import _native
from cpythonplus._base.modules import imported
from cpythonplus._base.stacks import frames_of_threads
from cpythonplus.memory._resident.smaps import Mapping
from cpythonplus.memory._resident.snapshot import main_heap, walk

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_HEAP_BYTES = 64 << 20  # glibc's heaps of other arenas begin at multiples of it
_PROBES = 400_000  # pages that are probed one by one, for at most half a second, without the GIL
_UNLIMITED_BYTES = 2 << 20  # glibc's stacks if there is no limit, on x86-64
_THREAD_BYTES = 4096  # more than glibc's struct pthread takes, at the upper end of a stack


@dataclass(slots=True)
class Ledger:
    """The parts, and the bytes of each mapping that are left."""

    mappings: list[Mapping]
    parts: dict[str, int] = field(default_factory=dict)
    taken: list[tuple[int, int]] = field(default_factory=list)
    """Assigned pieces of mappings, (start, end)."""
    files: dict[tuple[str, str], int] = field(default_factory=dict)
    """Bytes by part and path, of the parts that are of files."""

    def take(self, name: str, start: int, size_bytes: int) -> None:
        """Assign so many bytes of the mapping around an address, or those that are left of it."""
        mapping = self.around(start)
        if mapping is not None:
            size_bytes = min(size_bytes, mapping.left_bytes)
            mapping.left_bytes -= size_bytes
            self.parts[name] = self.parts.get(name, 0) + size_bytes

    def around(self, address: int) -> Mapping | None:
        """Return the mapping around an address, None if there was none at the time of reading."""
        i = bisect_right(self.mappings, address, key=lambda mapping: mapping.start) - 1
        return self.mappings[i] if i >= 0 and address < self.mappings[i].end else None

    def gaps(self, mapping: Mapping) -> Iterator[tuple[int, int]]:
        """Yield the pieces of a mapping that are not assigned yet."""
        at = mapping.start
        for start, end in sorted(self.taken):
            if end > at and start < mapping.end:
                if start > at:
                    yield at, start
                at = end
        if at < mapping.end:
            yield at, mapping.end


# ---- the C library's heaps ----------------------------------------------------------------------


@dataclass(slots=True)
class CHead:
    """The C library's heaps.

    known: the main one could be read; returnable: by malloc_trim(). pause_ns: the longest time that
    the GIL was held.
    """

    top_bytes: int = 0
    returnable_bytes: int = 0
    thread_heaps: int = 0
    pause_ns: int = 0
    known: bool = False


def c_heaps(ledger: Ledger) -> CHead:
    """Assign the main heap and those of other arenas."""
    head = CHead()
    heap = [mapping for mapping in ledger.mappings if mapping.path == "[heap]"]
    if heap:
        _main_heap(ledger, heap, head)
    for mapping in ledger.mappings:
        if mapping.is_anonymous:
            first = -(-mapping.start // _HEAP_BYTES) * _HEAP_BYTES
            for start in range(first, mapping.end, _HEAP_BYTES):
                _thread_heap(ledger, start, head)
    return head


def _main_heap(ledger: Ledger, heap: list[Mapping], head: CHead) -> None:
    ledger.taken.append((heap[0].start, heap[-1].end))
    now = main_heap()  # it may have grown meanwhile
    row = None if now is None else walk(*now, is_main=True)
    if row is None:
        _by_totals(ledger, heap)
        return
    _end, used, cached, free, top, returnable, _chunks, pause_ns = row
    head.pause_ns = max(head.pause_ns, pause_ns)
    head.known = True
    head.top_bytes = top
    head.returnable_bytes += returnable
    totals = _native.memory_malloc_totals()
    fast = min(used, totals[4] if totals else 0)
    _spread(ledger, heap, "c_heap_top", top)
    _spread(ledger, heap, "c_heap_free", free)
    _spread(ledger, heap, "thread_caches", cached + fast)
    _spread(ledger, heap, "c_heap_used", used - fast)
    for mapping in heap:  # memory that was added meanwhile
        ledger.take("c_heap_used", mapping.start, mapping.left_bytes)


def _spread(ledger: Ledger, heap: list[Mapping], name: str, size_bytes: int) -> None:
    for mapping in reversed(heap):
        part = min(size_bytes, mapping.left_bytes)
        ledger.take(name, mapping.start, part)
        size_bytes -= part


def _by_totals(ledger: Ledger, heap: list[Mapping]) -> None:
    """Assign the main heap by the C library's sums of all its heaps."""
    totals = _native.memory_malloc_totals()
    _arena, used, free, top, fast, _mapped = totals or (0, 0, 0, 0, 0, 0)
    whole = max(used + free, 1)
    resident = sum(mapping.left_bytes for mapping in heap)
    for name, part in (
        ("c_heap_top", top),
        ("c_heap_free", free - top - fast),
        ("thread_caches", fast),
    ):
        _spread(ledger, heap, name, max(part, 0) * resident // whole)
    _spread(ledger, heap, "c_heap_used", resident)


def _thread_heap(ledger: Ledger, start: int, head: CHead) -> None:
    # The limit is the largest heap, not the mapping: the heap may have grown since the mapping was
    # read.
    row = walk(start, start + _HEAP_BYTES, is_main=False)
    if row is None:
        return
    end, used, cached, free, top, returnable, _chunks, pause_ns = row
    head.pause_ns = max(head.pause_ns, pause_ns)
    ledger.taken.append((start, -(-end // _PAGE_BYTES) * _PAGE_BYTES))
    head.thread_heaps += 1
    head.returnable_bytes += returnable
    ledger.take("thread_heaps_used", start, used)
    ledger.take("thread_heaps_free", start, free + top)
    ledger.take("thread_caches", start, cached)


def large_blocks(ledger: Ledger) -> int:
    """Assign blocks that malloc mapped one by one; return their number."""
    totals = _native.memory_malloc_totals()
    enough = totals[5] if totals else 0
    count, probes = 0, _PROBES
    # First blocks that follow each other; then page by page, which may take long.
    for exhaustive in (False, True):
        for mapping in ledger.mappings:
            if enough <= 0 or probes <= 0 or not _may_have_blocks(mapping):
                continue
            for start, end in list(ledger.gaps(mapping)):
                allowed = min(probes, (end - start) // _PAGE_BYTES) if exhaustive else 1
                probes -= allowed if exhaustive else 0
                for address, size, resident in _native.memory_large_blocks(
                    start, end, enough, allowed
                ):
                    ledger.taken.append((address, address + size))
                    ledger.take("large_blocks", address, resident)
                    enough -= size
                    count += 1
    return count


def _may_have_blocks(mapping: Mapping) -> bool:
    return mapping.is_anonymous and mapping.left_bytes > 0 and mapping.path != "[heap]"


# ---- stacks -------------------------------------------------------------------------------------


def stacks(ledger: Ledger) -> int:
    """Assign the stacks of threads; return their number.

    The upper end of a stack has the structure at pthread_self(), which refers to itself. The lower
    end has a guard: a mapping that may not be touched, but from glibc 2.42 on only pages of the
    same mapping. Then the stacks of threads that Python does not know, and those kept for the next
    thread, are not found.
    """
    for mapping in ledger.mappings:
        if mapping.path == "[stack]":
            ledger.take("stacks", mapping.start, mapping.left_bytes)
    found = 1
    size_bytes = _usual_stack_bytes()
    known = _thread_tops()
    for mapping in ledger.mappings:
        if not mapping.is_anonymous or mapping.left_bytes <= 0:
            continue
        tops = [min(top, mapping.end) for top in known if mapping.start < top <= mapping.end]
        if mapping.guarded and not tops:
            tops = _unknown_tops(mapping, size_bytes)
        before = mapping.start
        for top in tops:
            start = max(before, top - size_bytes)
            ledger.taken.append((start, top))
            ledger.take("stacks", start, _native.memory_resident_bytes(start, top))
            before = top
        found += len(tops)
    return found


def _usual_stack_bytes() -> int:
    """Return the size of threads' stacks, with their guard."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return _thread.stack_size() or (limit if limit > 0 else _UNLIMITED_BYTES)


def _thread_tops() -> list[int]:
    """Return the ends of the stacks of Python's threads but the main one, by address."""
    threading = imported("threading")
    if threading is None:
        return []
    idents = set(frames_of_threads())
    idents.discard(threading.main_thread().ident)
    return sorted((ident + _THREAD_BYTES) & -_PAGE_BYTES for ident in idents)


def _unknown_tops(mapping: Mapping, size_bytes: int) -> list[int]:
    """Return the end of a stack that begins with the mapping; nothing if there is none."""
    # Another mapping may follow without a gap.
    for end in (mapping.end, mapping.start + size_bytes - _PAGE_BYTES):
        at = max(mapping.start, end - 2 * _THREAD_BYTES)
        words = _native.memory_read_words(at, (end - at) // 8) if end <= mapping.end else ()
        for i in range(len(words) - 2):
            if words[i] == at + 8 * i and words[i + 2] == words[i]:
                return [end]
    return []


# ---- other parts --------------------------------------------------------------------------------


def other_allocator(ledger: Ledger) -> str:
    """Assign the memory of a replacement of the C library's allocator; "" if there is none."""
    told = _native.memory_foreign_malloc()
    if told is None:
        return ""
    name, used, resident = told
    for mapping in sorted(ledger.mappings, key=lambda each: -each.left_bytes):
        if mapping.is_anonymous:
            left = mapping.left_bytes
            part = min(used, left) if resident else left  # mimalloc does not tell
            free = min(max(resident - used, 0), left - part)
            ledger.take("other_allocator", mapping.start, part)
            ledger.take("other_allocator_free", mapping.start, free)
            used -= part
            resident -= part + free
    return name


def variables(ledger: Ledger) -> None:
    """Assign anonymous memory of libraries' variables: those without contents in the file."""
    for start, end in _native.memory_segments():
        mapping = ledger.around(end - 1)
        if mapping is not None and mapping.is_anonymous:
            first = max(start, mapping.start)
            size_bytes = _native.memory_resident_bytes(first, end)
            ledger.taken.append((first, -(-end // _PAGE_BYTES) * _PAGE_BYTES))
            ledger.take("data", first, size_bytes)


def rest(ledger: Ledger) -> None:
    """Assign the rest: code and data of libraries, other files, shared memory, mappings."""
    libraries = {mapping.path for mapping in ledger.mappings if "x" in mapping.permissions}
    for mapping in ledger.mappings:
        kind = _kind(mapping, libraries)
        path = mapping.path
        if path.startswith("/"):
            size_bytes = ledger.files.get((kind, path), 0) + mapping.left_bytes
            ledger.files[kind, path] = size_bytes
        ledger.take(kind, mapping.start, mapping.left_bytes)


def _kind(mapping: Mapping, libraries: set[str]) -> str:
    path, permissions = mapping.path, mapping.permissions
    if path.startswith("[v"):
        return "kernel"
    if _is_shared_memory(path):
        return "shared"
    if path.startswith("/"):
        if path not in libraries:
            return "files"
        return "data" if "w" in permissions else "code"
    return "mappings" if "p" in permissions else "shared"


def _is_shared_memory(path: str) -> bool:
    return path.startswith(("/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"))  # noqa: S108  # a look
