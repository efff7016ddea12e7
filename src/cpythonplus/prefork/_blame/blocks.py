"""Finding the allocated block that an address lies in: pymalloc's pools, the C library's heap.

A pool is 16 KiB, aligned, and begins with a header of six words: blocks in use; first free block;
two neighbours; index of the arena, size class; offset of the first block never used, the largest
such offset.  Its blocks follow, all of one size.  Larger blocks come from ``malloc``, whose chunks
have their size in the word before them.  Both are checked for agreeing with themselves.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from cpythonplus.prefork._blame.pages import PAGE_BYTES, Mapping, Memory

POOL_BYTES = 16384
_POOL_HEAD_BYTES = 48
_LARGEST_CLASS = 31
_GRAIN_BYTES = 16  # of both allocators

_CHUNK_HEAD_BYTES = 16
_CHUNK_FLAGS = 7
_CHUNK_MAPPED = 2
_HEAP_READ_BYTES = 1 << 20
# A chunk of Python frames (16 KiB, or doubled until it fits): the chunk before, size, first free.
_FRAMES_BYTES = 16384


@dataclass(frozen=True, slots=True)
class Block:
    """A block: address and size in bytes.  frames: it holds the frames of running functions."""

    address: int
    size: int
    frames: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of pymalloc.

    first: address of the first block.  size: of each, in bytes.  never_used: address of the first
    block that has not been given away yet.  free: addresses of those that have come back.
    """

    address: int
    first: int
    size: int
    never_used: int
    free: frozenset[int]

    @classmethod
    def read(cls, address: int, words: Sequence[int]) -> "Pool | None":
        """Return the pool whose contents these words are, or None if it is none."""
        if len(words) * 8 != POOL_BYTES:
            return None
        size_class, next_offset = words[4] >> 32, words[5] & 0xFFFFFFFF
        size = (size_class + 1) * _GRAIN_BYTES
        if size_class > _LARGEST_CLASS or words[5] >> 32 != POOL_BYTES - size:
            return None
        # In a full pool the next offset has gone past the largest one.
        if not _POOL_HEAD_BYTES < next_offset <= POOL_BYTES + size or words[0] >> 32:
            return None
        first = address + _POOL_HEAD_BYTES
        free = _chain(address, words, size)
        return None if free is None else cls(address, first, size, address + next_offset, free)

    def block(self, address: int) -> Block:
        """Return the block around an address behind the header."""
        return Block(address - (address - self.first) % self.size, self.size)

    def is_free(self, block: Block) -> bool:
        """Whether the allocator could give the block away."""
        return block.address >= self.never_used or block.address in self.free


def _chain(pool: int, words: Sequence[int], size: int) -> frozenset[int] | None:
    """Follow the list of free blocks; None if it leads out of the pool."""
    found: set[int] = set()
    block = words[1]
    while block:
        offset = block - pool
        inside = _POOL_HEAD_BYTES <= offset < POOL_BYTES
        if not inside or (offset - _POOL_HEAD_BYTES) % size or block in found:
            return None
        found.add(block)
        block = words[offset // 8]
    return frozenset(found)


class Chunks:
    """The blocks that ``malloc`` and the interpreter got from the kernel, in one mapping."""

    __slots__ = ("_ends", "_frames", "_starts")

    def __init__(self, memory: Memory, mapping: Mapping) -> None:
        """Look through a mapping: ``[heap]`` chunk by chunk, any other for single large blocks."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._frames: set[int] = set()
        if mapping.path == "[heap]":
            self._walk(memory, mapping)
        else:
            self._look_for_large(memory, mapping)

    def block(self, address: int) -> Block | None:
        """Return the block around an address, in use or free; None if it is unknown."""
        i = bisect_right(self._starts, address) - 1
        if i < 0 or address >= self._ends[i]:
            return None
        start = self._starts[i]
        return Block(start, self._ends[i] - start, start in self._frames)

    def _walk(self, memory: Memory, mapping: Mapping) -> None:
        """Go from chunk to chunk; memory behind a chunk that makes no sense remains unknown."""
        at = mapping.start
        base, words = 0, memory.words(at, 0)
        while at + _CHUNK_HEAD_BYTES < mapping.end:
            if not base <= at < base + 8 * len(words) - _CHUNK_HEAD_BYTES:
                count = min(_HEAP_READ_BYTES, mapping.end - at) // 8
                base, words = at, memory.words(at, count)
                if not words:
                    return
            size = words[(at - base) // 8 + 1] & ~_CHUNK_FLAGS
            if size < 2 * _CHUNK_HEAD_BYTES or size % _GRAIN_BYTES or at + size > mapping.end:
                return
            # A chunk in use also owns the first word of the next one.
            self._add(at + _CHUNK_HEAD_BYTES, at + size + 8)
            at += size

    def _look_for_large(self, memory: Memory, mapping: Mapping) -> None:
        """Search a mapping's present pages for one that begins like a large block's header."""
        for page in memory.present_pages(mapping.start, mapping.end):
            head = memory.words(page, 3)
            if not head or (self._ends and page < self._ends[-1]):
                continue
            before, size, first_free = head
            length = 0 if before else _mapped_bytes(size)
            if length and page + length <= mapping.end:
                self._add(page + _CHUNK_HEAD_BYTES, page + length)
            elif _is_frames(before, size, first_free) and page + size <= mapping.end:
                self._frames.add(page)
                self._add(page, page + size)

    def _add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)


def _mapped_bytes(size_word: int) -> int:
    """Return the bytes of a chunk with a mapping of its own, head included; 0 if it is none.

    Its size is that of the mapping, whole pages; from glibc 2.43 on without the head.
    """
    size = size_word & ~_CHUNK_FLAGS
    if size_word & _CHUNK_FLAGS != _CHUNK_MAPPED or not size:
        return 0
    return next((n for n in (size, size + _CHUNK_HEAD_BYTES) if n % PAGE_BYTES == 0), 0)


def _is_frames(before: int, size: int, first_free: int) -> bool:
    doubled, rest = divmod(size, _FRAMES_BYTES)
    is_size = not rest and doubled > 0 and doubled & (doubled - 1) == 0
    return is_size and before % PAGE_BYTES == 0 and first_free <= size // 8
