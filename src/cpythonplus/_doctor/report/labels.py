"""Titles, notes and colours of the parts of resident memory."""

from typing import Final, NamedTuple

from cpythonplus._base.reading import Part, entries, size, words
from cpythonplus._base.text.sizes import format_size


class Label(NamedTuple):
    """The title of a part, with its colour.

    colour: a class of the page's style: in use (green), free but kept (amber), of files (blue),
    mapped (violet). note: {} is a number or a name.
    """

    title: str
    colour: str
    note: str = ""


LABELS: Final = {
    "live_objects": Label(
        "live Python objects", "used", "{} blocks of up to 512 bytes, in pymalloc's arenas"
    ),
    "unexplained_blocks": Label(
        "blocks that no object explains",
        "rest",
        "in pymalloc's arenas, of no known object",
    ),
    "arena_free": Label(
        "free in Python's arenas", "free", "free in arenas that still have a block in use"
    ),
    "arena_overhead": Label(
        "overhead of the arenas", "over", "headers of pools, and remainders too small for a block"
    ),
    "mimalloc_used": Label("Python objects", "used", "{} objects, in mimalloc's segments"),
    "mimalloc_free": Label(
        "rest of mimalloc's segments",
        "free",
        "free, kept for reuse, or of C code, in segments with objects",
    ),
    "c_heap_used": Label(
        "C heap in use", "used2", "blocks over 512 bytes of objects, and what C code allocated"
    ),
    "c_heap_free": Label(
        "free inside the C heap", "free2", "free between blocks of the C library's main heap"
    ),
    "c_heap_top": Label(
        "free at the C heap's top", "free3", "free at the upper end of the C library's main heap"
    ),
    "thread_caches": Label(
        "C heap's thread caches",
        "free2",
        "freed, but kept by the C library for the next request of a thread",
    ),
    "thread_heaps_used": Label(
        "threads' heaps in use",
        "used3",
        "the same as the C heap in use, in {} heaps of individual threads",
    ),
    "thread_heaps_free": Label("free inside threads' heaps", "free2", "free in these heaps"),
    "large_blocks": Label(
        "large blocks of the C heap",
        "used2",
        "{} blocks that malloc mapped separately: returned as soon as they are freed",
    ),
    "other_allocator": Label("another allocator, in use", "used2", "in use in {}"),
    "other_allocator_free": Label(
        "another allocator, free", "free2", "free in {}, which returns it gradually"
    ),
    "stacks": Label(
        "thread stacks",
        "used3",
        "stacks of {} threads, those kept for the next thread included",
    ),
    "code": Label("code", "file", "code and constants of libraries"),
    "data": Label("data of libraries", "file2", "variables of libraries and of the interpreter"),
    "files": Label("mapped files", "file", "other files that are mapped"),
    "mappings": Label(
        "anonymous mappings",
        "map",
        "anonymous mappings of C code, mmap, and the interpreter itself",
    ),
    "shared": Label(
        "shared memory", "file2", "shared memory: counted in each process that maps it"
    ),
    "kernel": Label("kernel", "over", "mapped by the kernel"),
}


def label(name: str) -> Label:
    """Return the label of a part; for an unknown part, its name."""
    return LABELS.get(name) or Label(name.replace("_", " "), "rest")


def note(row: Part) -> str:
    """Return a note on a part of resident memory, in a few words."""
    told = words(row, "allocator") or f"{size(row, 'count'):,}"
    text = label(words(row, "name")).note.replace("{}", told)
    files = [
        f"{words(f, 'name')} {format_size(size(f, 'size_bytes'))}" for f in entries(row, "files")
    ]
    return f"{text} ({', '.join(files)})" if files else text
