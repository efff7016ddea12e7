"""Advice drawn from the numbers, with the bytes that it is about."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cpythonplus.memory._resident.model import Advice, Arenas, ResidentPart
from cpythonplus.memory._resident.splitting import CHead

_WORTH_BYTES: Final = 4 << 20
_WORTH_SHARE: Final = 0.1
_IN_USE: Final = (
    "live_objects",
    "mimalloc_used",
    "c_heap_used",
    "thread_heaps_used",
    "large_blocks",
    "mappings",
    "other_allocator",
)
_JEMALLOC: Final = "cpythonplus run --malloc jemalloc SCRIPT"


def of(parts: Sequence[ResidentPart], arenas: Arenas, head: CHead) -> tuple[Advice, ...]:
    """Return the advice, most bytes first; advice not to act comes last.

    Parts that are not worth acting on are left out.
    """
    sizes = {part.name: part.resident_bytes for part in parts}
    rss_bytes = sum(sizes.values())
    worth = max(_WORTH_BYTES, int(rss_bytes * _WORTH_SHARE))
    found = [each for each in _all(sizes, arenas, head) if each.size_bytes >= worth]
    in_use = sum(sizes.get(name, 0) for name in _IN_USE)
    if in_use > rss_bytes // 2 and in_use >= worth:
        remedy = "memory.census() shows what it is by type, and what refers to it."
        found.append(Advice("in_use", in_use, remedy, "cpythonplus doctor run SCRIPT"))
    if not any(advice.command or advice.frees_bytes for advice in found):
        free = sum(sizes[name] for name in sizes if name.endswith(("_free", "c_heap_top")))
        found.append(Advice("nothing", free, "Nothing to do: it is not worth giving back."))
    found.sort(key=lambda each: (not each.command, each.kind == "nothing", -each.size_bytes))
    return tuple(found)


def _all(sizes: Mapping[str, int], arenas: Arenas, head: CHead) -> Iterator[Advice]:
    yield Advice(
        "c_heap",
        sum(sizes.get(name, 0) for name in ("c_heap_top", "c_heap_free", "thread_caches")),
        "memory.trim() returns it now; for good, start the program under an allocator that "
        "does so by itself.",
        "cpythonplus run --malloc glibc-tuned SCRIPT",
        head.returnable_bytes or None,
    )
    yield Advice(
        "thread_heaps",
        sizes.get("thread_heaps_free", 0),
        "memory.trim() returns it now; for good, start the program under an allocator that "
        "does so by itself. Fewer heaps (MALLOC_ARENA_MAX) made it worse when measured.",
        _JEMALLOC,
        head.returnable_bytes or None,
    )
    yield Advice(
        "arenas",
        arenas.free_in_them_bytes,
        "Create long-lived objects before the work that needs much memory; or do that work in "
        "memory.in_subprocess(); or have objects allocated by jemalloc.",
        _JEMALLOC,
    )
    yield Advice(
        "other_allocator",
        sizes.get("other_allocator_free", 0),
        "With a short decay and a background thread it returns it within seconds, even "
        "while the program is idle.",
        _JEMALLOC,
    )
    yield Advice(
        "files",
        sizes.get("files", 0) + sizes.get("code", 0),
        "Nothing to do: other processes use the same pages, and the kernel reclaims them when it "
        "needs memory.",
    )
    yield Advice(
        "shared",
        sizes.get("shared", 0),
        "It is returned when the last process has released it (mmap.close(), "
        "SharedMemory.unlink()).",
    )
