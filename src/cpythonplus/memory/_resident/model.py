"""The result of `resident()`."""

from dataclasses import dataclass

from cpythonplus.memory._examined import Examined

__all__ = ["Advice", "Arenas", "MappedFile", "Pin", "Resident", "ResidentPart"]


@dataclass(frozen=True, slots=True)
class MappedFile:
    """What of a file is in memory. name: without its folder."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ResidentPart:
    """One kind of memory.

    name: a key that stays the same. count: of blocks, threads or heaps, where that is known.
    allocator: whose it is, "" for the C library's own. files: the largest ones.
    """

    name: str
    resident_bytes: int
    count: int = 0
    allocator: str = ""
    files: tuple[MappedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Pin:
    """What keeps free memory from going back.

    type: of the objects, "memory of TYPE" for blocks that such objects refer to, or "the doctor's
    own" for the modules that examinations have loaded. objects: how many blocks. size_bytes: of
    these. held_bytes: the free bytes around them, those of each arena shared out equally among its
    blocks. holder: who refers to the one that keeps most; "" below 1 MiB of them. place:
    "arenas", or "c_heap_top" for blocks above the largest free piece of the C library's heap,
    which share what is free there.
    """

    type: str
    objects: int
    size_bytes: int
    held_bytes: int
    holder: str
    place: str = "arenas"


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding with its remedy.

    kind: `c_heap`, `thread_heaps`, `arenas`, `other_allocator`, `files`, `shared`, `in_use`, or
    `nothing`. size_bytes: what it is about. frees_bytes: what the remedy gives back at once, if it
    does. remedy: what to do; command: to be copied, "" if there is none.
    """

    kind: str
    size_bytes: int
    remedy: str
    command: str = ""
    frees_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Arenas:
    """pymalloc's arenas.

    unknown: why they could not be seen, "" if they were; then all numbers are 0. fullness: how
    many arenas are up to a tenth, two tenths, ... full. mostly_free: arenas of whose memory more
    than three quarters are free, with free_in_them_bytes. empty_pools_bytes: free memory in pages
    that have no block in use beside them, which `trim()` may give back.
    """

    count: int = 0
    blocks: int = 0
    live_bytes: int = 0
    overhead_bytes: int = 0
    free_bytes: int = 0
    empty_pools_bytes: int = 0
    mostly_free: int = 0
    free_in_them_bytes: int = 0
    fullness: tuple[int, ...] = (0,) * 10
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Resident(Examined):
    """What of this process is in memory.

    rss_bytes: all of it. parts: what it consists of, largest first; they add up to it.
    pins: what keeps free memory, most bytes first. verdict: what can be done, most bytes first.
    returnable_bytes: free memory of the C library's heaps that `trim()` gives back.
    pause_ns: the longest time for which it was paused. notes: what could not be found out.
    """

    examination = "resident"

    rss_bytes: int
    parts: tuple[ResidentPart, ...]
    arenas: Arenas
    pins: tuple[Pin, ...]
    verdict: tuple[Advice, ...]
    returnable_bytes: int
    pause_ns: int
    notes: tuple[str, ...] = ()

    def part(self, name: str) -> int:
        """Return the bytes of a part, 0 if there is none of the name."""
        return sum(part.resident_bytes for part in self.parts if part.name == name)
