"""What the numbers mean, in plain words, with the remedy for each case."""

from collections.abc import Iterator, Mapping, Sequence

from cpythonplus.base.sizes import format_size
from cpythonplus.memory.resident_memory.model import Advice, Arenas, Part, Pin
from cpythonplus.memory.resident_memory.splitting import CHead

__all__ = ["of"]

_WORTH_BYTES = 4 << 20
_WORTH_SHARE = 0.1
_NAMED = 3  # pins in a sentence


def of(
    parts: Sequence[Part], arenas: Arenas, pins: Sequence[Pin], head: CHead, other: str
) -> tuple[Advice, ...]:
    """Return what can be done, most bytes first, then what need not be done.

    What is not worth doing is left out.
    """
    sizes = {part.name: part.resident_bytes for part in parts}
    rss_bytes = sum(sizes.values())
    worth = max(_WORTH_BYTES, int(rss_bytes * _WORTH_SHARE))
    found: list[tuple[int, Advice]] = []
    for each in (
        _c_heap(sizes, pins, head),
        _thread_heaps(sizes, head),
        _arenas(arenas, pins),
        _other(sizes, other),
        _files(sizes),
        _shared(sizes),
        _live(rss_bytes, sizes),
    ):
        found.extend(pair for pair in each if pair[0] >= worth)
    if not any(advice.command or advice.frees_bytes for _, advice in found):
        found.append((0, _nothing(sizes)))
    found.sort(key=lambda pair: (not pair[1].command, -pair[0]))
    return tuple(advice for _, advice in found)


_Findings = Iterator[tuple[int, Advice]]


def _c_heap(sizes: Mapping[str, int], pins: Sequence[Pin], head: CHead) -> _Findings:
    top, inside = sizes.get("c_heap_top", 0), sizes.get("c_heap_free", 0)
    cached = sizes.get("thread_caches", 0)
    above = [pin for pin in pins if pin.place == "c_heap_top"]
    who = "; ".join(map(_who, above[:_NAMED]))
    pinned = f" At its upper end lie {who}." if who else ""
    yield (
        top + inside + cached,
        Advice(
            f"{format_size(top + inside + cached)} are free inside the C library's heap, which "
            f"gives back only what lies above its last block.{pinned}",
            "memory.trim() gives them back now; for good, start the program under an "
            "allocator that does so by itself.",
            "cpythonplus run --malloc glibc-tuned SCRIPT",
            head.returnable_bytes or None,
        ),
    )


def _thread_heaps(sizes: Mapping[str, int], head: CHead) -> _Findings:
    free = sizes.get("thread_heaps_free", 0)
    yield (
        free,
        Advice(
            f"{format_size(free)} are free in {head.thread_heaps} heaps that the C library made "
            "for threads: what one thread freed is kept for that heap's threads.",
            "memory.trim() gives them back now; for good, start the program under an allocator "
            "that does so by itself. Fewer heaps (MALLOC_ARENA_MAX) made it worse when measured.",
            "cpythonplus run --malloc jemalloc SCRIPT",
            head.returnable_bytes or None,
        ),
    )


def _arenas(arenas: Arenas, pins: Sequence[Pin]) -> _Findings:
    inside = [pin for pin in pins if pin.place == "arenas"]
    blocks = sum(pin.objects for pin in inside)
    who = "; first of all " + "; ".join(map(_who, inside[:_NAMED])) if inside else ""
    yield (
        arenas.free_in_them_bytes,
        Advice(
            f"{format_size(arenas.free_in_them_bytes)} are free in {arenas.mostly_free} of "
            f"pymalloc's {arenas.count} arenas, but {blocks:,} blocks lie there{who}. An arena "
            "goes back only when nothing is left in it.",
            "Make what lives long before the work that needs much memory; or do that work in "
            "memory.in_subprocess(); or have objects allocated by jemalloc.",
            "cpythonplus run --malloc jemalloc SCRIPT",
            None,
        ),
    )


def _who(pin: Pin) -> str:
    held = f", held by {pin.holder}" if pin.holder not in ("", "?") else ""
    what = "of type " if not pin.type.startswith(("free,", "memory of ", "of ")) else "blocks: "
    return f"{pin.objects:,} {what}{pin.type}{held}"


def _other(sizes: Mapping[str, int], other: str) -> _Findings:
    free = sizes.get("other_allocator_free", 0)
    yield (
        free,
        Advice(
            f"{format_size(free)} are free in {other}, which keeps them for a while.",
            "With a short decay and a thread in the background it gives them back within "
            "seconds, also while the program is idle.",
            "cpythonplus run --malloc jemalloc SCRIPT",
            None,
        ),
    )


def _files(sizes: Mapping[str, int]) -> _Findings:
    size_bytes = sizes.get("files", 0) + sizes.get("code", 0)
    yield (
        size_bytes,
        Advice(
            f"{format_size(size_bytes)} are pages of files.",
            "Nothing to do: other processes use the same pages, and the kernel takes them away "
            "when it needs them.",
            "",
            None,
        ),
    )


def _shared(sizes: Mapping[str, int]) -> _Findings:
    size_bytes = sizes.get("shared", 0)
    yield (
        size_bytes,
        Advice(
            f"{format_size(size_bytes)} are shared memory, which no file on a disk lies behind: it "
            "counts in each process that maps it.",
            "It goes back when the last process has let go of it (mmap.close(), "
            "SharedMemory.unlink()).",
            "",
            None,
        ),
    )


_LIVE = (
    "live_objects",
    "c_heap_used",
    "thread_heaps_used",
    "large_blocks",
    "mappings",
    "other_allocator",
)


def _live(rss_bytes: int, sizes: Mapping[str, int]) -> _Findings:
    live = sum(sizes.get(name, 0) for name in _LIVE)
    if live > rss_bytes // 2:
        yield (
            live,
            Advice(
                f"{format_size(live)} are in use: they do not come back because something holds "
                "them.",
                "memory.census() tells what it is by type, and who refers to it.",
                "cpythonplus doctor run SCRIPT",
                None,
            ),
        )


def _nothing(sizes: Mapping[str, int]) -> Advice:
    free = sum(
        size for name, size in sizes.items() if name.endswith("_free") or name == "c_heap_top"
    )
    return Advice(
        f"{format_size(free)} are free and kept by the allocators.",
        "Nothing to do: it is not worth giving back.",
        "",
        None,
    )
