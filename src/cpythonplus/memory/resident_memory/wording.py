"""What stands in the table for people."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from cpythonplus.base.sizes import format_size
from cpythonplus.memory.resident_memory.model import Advice, Pin, Resident

__all__ = ["note", "text"]

_WIDTH = 100
_LARGEST_FILES = 3
_TITLES = {
    "live_objects": "Python objects",
    "arena_free": "free in arenas",
    "arena_overhead": "arenas' overhead",
    "c_heap_used": "C heap, in use",
    "c_heap_free": "C heap, free inside",
    "c_heap_top": "C heap, free at its top",
    "thread_caches": "threads' caches",
    "thread_heaps_used": "threads' heaps, in use",
    "thread_heaps_free": "threads' heaps, free",
    "large_blocks": "large blocks",
    "other_allocator": "other allocator, in use",
    "other_allocator_free": "other allocator, free",
    "stacks": "stacks",
    "code": "code",
    "data": "data",
    "files": "files",
    "mappings": "mappings",
    "shared": "shared memory",
    "kernel": "kernel",
}

_NOTES = {
    "live_objects": "{} blocks of up to 512 bytes, in pymalloc's arenas",
    "arena_free": "free in arenas that still have a block in use",
    "arena_overhead": "headers of pools, and what no whole block fits into",
    "c_heap_used": "blocks over 512 bytes of objects, and what C code allocated",
    "c_heap_free": "free between blocks of the C library's main heap",
    "c_heap_top": "free at the upper end of the C library's main heap",
    "thread_caches": "freed, and kept by the C library for the next request of a thread",
    "thread_heaps_used": "the same as c_heap_used, in {} heaps that threads got for themselves",
    "thread_heaps_free": "free in these heaps",
    "large_blocks": "{} blocks that malloc mapped each for itself: they go back when freed",
    "stacks": "stacks of {} threads, those kept for the next thread included",
    "mappings": "anonymous mappings of C code, mmap, and the interpreter itself",
    "shared": "shared memory: counted in each process that maps it",
    "kernel": "mapped by the kernel",
    "other_allocator": "in use in {}",
    "other_allocator_free": "free in {}, which gives it back by and by",
}
_OF_FILES = {
    "code": "code and constants of libraries",
    "data": "variables of libraries and of the interpreter",
    "files": "other files that are mapped",
}


def note(
    name: str, counts: Mapping[str, int], other: str, files: Mapping[tuple[str, str], int]
) -> str:
    """Return what a part is, for people.

    counts: how many there are, by part; other: the name of the allocator that was loaded; files:
    bytes by part and path.
    """
    if name in _OF_FILES:
        return _OF_FILES[name] + _largest(name, files)
    number = counts.get(name.removesuffix("_used").removesuffix("_free"), 0)
    return _NOTES[name].format(other if name.startswith("other") else f"{number:,}")


def _largest(name: str, files: Mapping[tuple[str, str], int]) -> str:
    """Return the largest files of the kind with their sizes."""
    sizes = [(size, path) for (kind, path), size in files.items() if kind == name and size]
    largest = sorted(sizes, reverse=True)[:_LARGEST_FILES]
    shown = [f"{path.rpartition('/')[2]} {format_size(size)}" for size, path in largest]
    return f" ({', '.join(shown)})" if shown else ""


def text(found: Resident, top: int) -> str:
    """Return the parts, the arenas, the pins and the verdict, as lines."""
    lines = [f"resident memory: {format_size(found.rss_bytes)}", *_parts(found)]
    if found.arenas.count:
        lines += ["", *_arenas(found)]
    if found.pins:
        lines += ["", "what keeps the free memory", *_pins(found.pins, top)]
    lines += ["", "verdict"]
    for advice in found.verdict:
        lines.extend(_advice(advice))
    for note in found.notes:
        lines.extend(_wrapped("note: " + note, "  ", "  "))
    lines.append(f"  ({found.pause_ns / 1e6:.1f} ms with the program standing still)")
    return "\n".join(lines)


def _parts(found: Resident) -> Iterator[str]:
    for part in found.parts:
        share = 100 * part.resident_bytes / max(found.rss_bytes, 1)
        size = format_size(part.resident_bytes)
        title = _TITLES.get(part.name, part.name)
        yield f"  {title:<24} {size:>9} {share:5.1f} %  {part.note}"


def _arenas(found: Resident) -> Iterator[str]:
    arenas = found.arenas
    yield f"arenas: {arenas.count:,}, of which by how full they are"
    for tenth, count in enumerate(arenas.fullness):
        if count:
            yield f"  {10 * tenth:3} to {10 * tenth + 10:3} %  {count:>7,}"


def _pins(pins: Sequence[Pin], top: int) -> Iterator[str]:
    rows = [("type", "blocks", "size", "keeps", "held by")]
    for pin in pins[:top]:
        where = " (end of the C heap)" if pin.place == "c_heap_top" else ""
        size, kept = format_size(pin.size_bytes), format_size(pin.held_bytes)
        rows.append((pin.type + where, f"{pin.objects:,}", size, kept, pin.holder))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for name, blocks, size, kept, holder in rows:
        line = (
            f"  {name:<{widths[0]}}  {blocks:>{widths[1]}}  {size:>{widths[2]}}"
            f"  {kept:>{widths[3]}}  {holder}"
        )
        yield line.rstrip()
    if len(pins) > top:
        yield f"  ... and {len(pins) - top} more"


def _advice(advice: Advice) -> Iterator[str]:
    yield from _wrapped(advice.problem, "  * ", "    ")
    yield from _wrapped("-> " + advice.remedy, "    ", "       ")
    if advice.command:
        yield f"       {advice.command}"


def _wrapped(words: str, first: str, further: str) -> list[str]:
    return wrap(words, _WIDTH, initial_indent=first, subsequent_indent=further)
