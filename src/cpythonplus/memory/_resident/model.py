"""The result of `resident()`."""

from dataclasses import dataclass

from cpythonplus.memory._examined import Examined


@dataclass(frozen=True, slots=True)
class MappedFile:
    """The resident memory of a file. name: without its folder."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ResidentPart:
    """One kind of memory.

    name: a stable key. count: of blocks, threads or heaps, if known. allocator: the allocator's
    name, "" for the C library's own. files: the largest ones.
    """

    name: str
    resident_bytes: int
    count: int = 0
    allocator: str = ""
    files: tuple[MappedFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Pin:
    """Objects that keep free memory from going back to the kernel.

    type: of the objects, "memory of TYPE" for blocks that such objects refer to, or "the doctor's
    own" for the modules that examinations have loaded. objects: number of blocks. size_bytes: of
    these. held_bytes: the free bytes around them, those of each arena shared out equally among its
    blocks. holder: the path to the one that keeps most; "" below 1 MiB of them. place: "arenas", or
    "c_heap_top" for blocks above the largest free piece of the C library's heap, which share the
    free bytes there.
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
    `nothing`. size_bytes: the memory that it is about. frees_bytes: the bytes that the remedy gives
    back at once, if any. remedy: the advice; command: to be copied, "" if there is none.
    """

    kind: str
    size_bytes: int
    remedy: str
    command: str = ""
    frees_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Arenas:
    """pymalloc's arenas.

    unknown: the reason if they could not be read, else ""; then all numbers are 0. fullness: the
    numbers of arenas that are up to a tenth, two tenths, ... full. mostly_free: arenas of whose
    memory more than three quarters are free, with free_in_them_bytes. empty_pools_bytes: free
    memory in pages without a block in use, which `trim()` may give back.
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
    """The resident memory of this process.

    rss_bytes: all of it. parts: its parts, largest first; they add up to it. pins: the objects that
    keep free memory, most bytes first. verdict: advice, most bytes first. returnable_bytes: free
    memory of the C library's heaps that `trim()` gives back. pause_ns: the longest pause of the
    process. notes: sentences on facts that could not be found out.
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
