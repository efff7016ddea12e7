"""Finds the objects that keep free memory, before anything else is imported or made."""

from cpythonplus import _native
from cpythonplus.memory._resident.own import namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpythonplus.memory._resident.rows import CHeapRow, ChunkRow, OwnerRow, OwnRow, PinRow

TRY_AGAIN = 11  # EAGAIN
_ATTEMPTS = 4
_TYPES = 64  # limit of different types
_WORD_BYTES = 8
_CHUNK_HEAD_BYTES = 16


class Snapshot:
    """The objects that keep free memory, as returned by `_native`.

    chunks: blocks at the upper end of the C heap; kept_bytes: free bytes between and above them.
    pins: whether objects are looked at. own: blocks of the examinations, their bytes, and the bytes
    that these hold back. notes: sentences on failures.
    """

    __slots__ = ("chunks", "kept_bytes", "notes", "own", "owners", "pause_ns", "pins", "rows")

    def __init__(self, *, pins: bool) -> None:
        self.pins = pins
        self.chunks: list[ChunkRow] = []
        self.kept_bytes = 0
        self.rows: list[PinRow] = []
        self.owners: list[OwnerRow] = []
        self.own: OwnRow = (0, 0, 0)
        self.pause_ns = 0
        self.notes: list[str] = []

    def read_heap(self, start: int, end: int) -> None:
        """Find the blocks above the largest free piece of the heap, if they are few enough.

        They keep that piece, and the free memory between them, from going back.
        """
        row = walk(start, end, is_main=True)
        if row is None:
            return
        self.pause_ns = max(self.pause_ns, row[7])
        if not row[6]:
            return
        chunks = row[6]
        free = [chunk[2] for chunk in chunks]
        count = 1 + free.index(max(free))
        self.chunks = chunks[:count]
        self.kept_bytes = row[4] + sum(free[:count])


def take(*, pins: bool) -> Snapshot:
    """Return the objects that keep free memory; nothing if `pins` is false."""
    snapshot = Snapshot(pins=pins)
    if not pins:
        return snapshot
    heap = main_heap()
    if heap is not None:
        snapshot.read_heap(*heap)
    # An owner refers to a block's contents, behind the chunk's head.
    blocks = [
        (start + _CHUNK_HEAD_BYTES, start + size_bytes + _WORD_BYTES)
        for start, size_bytes, _free_below, is_cached in snapshot.chunks
        if not is_cached
    ]
    found = _native.memory_arenas(blocks, _TYPES, namespaces())
    if not isinstance(found, str):
        snapshot.pause_ns = max(snapshot.pause_ns, found[7])
        snapshot.rows, snapshot.owners, snapshot.own = found[3], found[4], found[8]
    return snapshot


def main_heap() -> tuple[int, int] | None:
    """Return the addresses of the C library's main heap."""
    found = None
    # pathlib may not have been imported yet.
    with open("/proc/self/maps", "rb") as maps:  # noqa: PTH123
        for line in maps:
            if line.endswith(b" [heap]\n"):
                first, last = (int(each, 16) for each in line.split()[0].split(b"-"))
                found = (first if found is None else found[0], last)
    return found


def walk(start: int, end: int, *, is_main: bool) -> "CHeapRow | None":
    """Return the sums of a heap of the C library; None if it is none, or changes all the time."""
    for attempt in range(_ATTEMPTS):
        found = _native.memory_c_heap(start, end, is_main, attempt == _ATTEMPTS - 1)
        if not isinstance(found, int):
            return found
        if found != TRY_AGAIN:
            break
    return None
