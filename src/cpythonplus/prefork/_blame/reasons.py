"""The kinds of change that make pages a worker's own, and the kind of each changed word."""

import enum
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cpythonplus.prefork._blame.blocks import POOL_BYTES, Block, Chunks, Pool
from cpythonplus.prefork._blame.objects import Objects, Owner, RemoteType, keys_table_bytes
from cpythonplus.prefork._blame.pages import Mapping, Memory

_GC_HEAD_BYTES = 16
_VALUES_SAY_HOW_MANY = sys.version_info >= (3, 13)
_LARGEST_VALUES = 30
_VALUES_APART = 0x0100  # flags: not inside the instance, valid
_HEAD_WORDS = 8  # of a block: the words before an object, and its own first two


class Category(enum.StrEnum):
    """The kind of a change on a page, or of the whole page.

    In the order in which a page's bytes are charged: the changes that are hardest to avoid come
    first.  So the bytes of a category are saved if it and all behind it are avoided.
    """

    NEW_PAGES = "new pages"
    """Pages that the reference process lacks: allocated after the fork."""
    FILE_PAGES = "file pages"
    """Pages of a file that no other process maps at the moment; nothing was copied."""
    STACKS = "stacks"
    """Stacks of threads, and the frames of Python functions."""
    LIBRARY_DATA = "library data"
    """Data segments of the executable and its libraries."""
    C_HEAP = "C heap"
    """Blocks of ``malloc`` outside of Python objects, and malloc's own fields."""
    UNKNOWN = "unknown"
    """In no known block."""
    OBJECT_FIELDS = "object fields"
    """Values: attributes, items of lists, numbers."""
    DICT_TABLES = "dict tables"
    """Dictionaries: their fields and tables."""
    NEW_OBJECTS = "new objects"
    """In a block that was free at the fork, or held an object of another type."""
    ALLOCATOR = "allocator"
    """Pool headers, and blocks that are free now."""
    TYPE_FIELDS = "type fields"
    """Inside of classes: version tags, method caches, lists of subclasses."""
    INLINE_CACHES = "inline caches"
    """Instructions that specialised, and their caches and counters."""
    GC_HEADERS = "gc headers"
    """The links that the garbage collector keeps in front of objects."""
    REFERENCE_COUNTS = "reference counts"
    """Objects that were used; in 3.14 and later also the flags beside the count."""
    RESTORED = "restored"
    """Pages equal to the reference's: written and written back, mostly reference counts."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of addresses. fallback: the category of a change without a better explanation."""

    mapping: Mapping
    fallback: Category
    library: str = ""


_NOBODY: Final = Owner("", "")
_TABLE: Final = Owner("(dict table)", "builtins")
_REFERENCES: Final = Owner("(array of references)", "builtins")
_FRAMES: Final = Owner("(frames)", "")

Verdict = tuple[Category, Owner]
_Contents = tuple[Sequence[int], Sequence[int]]  # the same stretch, in the worker and before


class Reader:
    """Explains changed words; one for a pair of processes that run this interpreter."""

    __slots__ = ("_chunks", "_now", "_now_objects", "_then", "_then_objects")

    def __init__(
        self, now: Memory, then: Memory, now_objects: Objects, then_objects: Objects
    ) -> None:
        """now: the worker; then: the reference, with the contents at the fork."""
        self._now = now
        self._then = then
        self._now_objects = now_objects
        self._then_objects = then_objects
        self._chunks: dict[int, Chunks] = {}

    def explain(
        self,
        place: Stretch,
        address: int,
        now: Sequence[int],
        then: Sequence[int],
        at: Sequence[int],
    ) -> Iterator[Verdict]:
        """Yield the category and the owner of each changed word.

        now, then: the words of one aligned stretch of up to POOL_BYTES at `address`, in both
        processes.  at: the indices of those that differ, rising.
        """
        pool = Pool.read(address, now) if address % POOL_BYTES == 0 else None
        if pool is None:
            yield from self._in_chunks(place, address, at)
        else:
            yield from self._in_pool(pool, Pool.read(address, then), (now, then), at)

    # ---- blocks of pymalloc ---------------------------------------------------------------------

    def _in_pool(
        self, pool: Pool, before: Pool | None, contents: _Contents, at: Sequence[int]
    ) -> Iterator[Verdict]:
        end = 0
        fields = _Fields(Category.ALLOCATOR)
        for i in at:
            where = pool.address + 8 * i
            if where < pool.first:
                yield Category.ALLOCATOR, _NOBODY
                continue
            if where >= end:
                block = pool.block(where)
                end = block.address + block.size
                fields = self._pool_block(pool, before, contents, block)
            yield fields.verdict(where)

    def _pool_block(
        self, pool: Pool, before: Pool | None, contents: _Contents, block: Block
    ) -> "_Fields":
        if pool.is_free(block):
            return _Fields(Category.ALLOCATOR)
        first = (block.address - pool.address) // 8
        heads = [words[first : first + _head_words(block)] for words in contents]
        if before is None or before.size != pool.size or before.is_free(block):
            return self._new(block, heads[0])
        return self._block(block, heads[0], heads[1], Category.UNKNOWN)

    # ---- blocks of malloc and others ------------------------------------------------------------

    def _in_chunks(self, place: Stretch, address: int, at: Sequence[int]) -> Iterator[Verdict]:
        chunks = None if place.library else self._chunks_of(place.mapping)
        start = end = 0
        fields = _Fields(place.fallback)
        for i in at:
            where = address + 8 * i
            if not start <= where < end:
                block = chunks.block(where) if chunks else None
                if block is None:
                    yield self._loose(place, where)
                    continue
                start, end = block.address, block.address + block.size
                fields = self._large_block(block)
            yield fields.verdict(where)

    def _chunks_of(self, mapping: Mapping) -> Chunks:
        found = self._chunks.get(mapping.start)
        if found is None:
            found = self._chunks[mapping.start] = Chunks(self._now, mapping)
        return found

    def _loose(self, place: Stretch, where: int) -> Verdict:
        """Judge a word outside of all blocks: it may be the count of a static object."""
        if place.fallback is Category.LIBRARY_DATA:
            kind = self._now_objects.type_of(where)
            if kind.address and self._then_objects.type_of(where).address == kind.address:
                return Category.REFERENCE_COUNTS, self._now_objects.owner(kind, where)
        return place.fallback, Owner("", place.library)

    def _large_block(self, block: Block) -> "_Fields":
        if block.frames:
            return _Fields(Category.STACKS, _FRAMES)
        count = _head_words(block)
        now, then = self._now.words(block.address, count), self._then.words(block.address, count)
        return self._block(block, now, then, Category.C_HEAP)

    # ---- contents of a block --------------------------------------------------------------------

    def _new(self, block: Block, words: Sequence[int]) -> "_Fields":
        kind = self._now_objects.in_block(words)
        if not kind.address:
            return _Fields(Category.NEW_OBJECTS)
        itself = block.address + 8 * kind.words_before
        return _Fields(Category.NEW_OBJECTS, self._now_objects.owner(kind, itself))

    def _block(
        self, block: Block, now: Sequence[int], then: Sequence[int], fallback: Category
    ) -> "_Fields":
        """Judge a block that was in use at the fork too, by its first words in both processes."""
        kind = self._now_objects.in_block(now)
        if kind.address:
            type_word = kind.words_before + 1
            if type_word >= len(then) or then[type_word] != kind.address:
                return self._new(block, now)
            itself = block.address + 8 * kind.words_before
            owner = self._now_objects.owner(kind, itself)
            return _ObjectFields(owner, kind, itself, self._now_objects)
        # Judge a block that is no object: part of an object, or a block of C code.
        if 0 < keys_table_bytes(now) <= block.size or _is_values_table(now):
            return _Fields(Category.DICT_TABLES, _TABLE)
        if self._are_references(now, self._now_objects):
            same = self._are_references(then, self._then_objects)
            return _Fields(Category.OBJECT_FIELDS if same else Category.NEW_OBJECTS, _REFERENCES)
        return _Fields(fallback)

    def _are_references(self, words: Sequence[int], objects: Objects) -> bool:
        """Whether the first words are addresses of objects, and at least one is."""
        pointers = [word for word in words if word]
        return bool(pointers) and all(objects.type_of(word).address for word in pointers)


class _Fields:
    """A block all of whose words have the same verdict."""

    __slots__ = ("_verdict",)

    def __init__(self, category: Category, owner: Owner = _NOBODY) -> None:
        self._verdict = category, owner

    def verdict(self, address: int) -> Verdict:  # noqa: ARG002  # see _ObjectFields
        return self._verdict


class _ObjectFields(_Fields):
    """A block with an object."""

    __slots__ = ("_itself", "_kind", "_objects", "_owner")

    def __init__(self, owner: Owner, kind: RemoteType, itself: int, objects: Objects) -> None:
        super().__init__(Category.OBJECT_FIELDS, owner)
        self._owner = owner
        self._kind = kind
        self._itself = itself
        self._objects = objects

    def verdict(self, address: int) -> Verdict:
        return self._category(address - self._itself), self._owner

    def _category(self, offset_bytes: int) -> Category:
        kind = self._kind
        if offset_bytes == 0:
            return Category.REFERENCE_COUNTS
        if offset_bytes < 0:
            is_gc = kind.has_gc and offset_bytes >= -_GC_HEAD_BYTES
            return Category.GC_HEADERS if is_gc else Category.OBJECT_FIELDS
        if kind.makes_types:
            return Category.TYPE_FIELDS
        if kind.makes_dicts:
            return Category.DICT_TABLES
        if self._objects.is_code(kind) and self._objects.is_instruction(offset_bytes):
            return Category.INLINE_CACHES
        return Category.OBJECT_FIELDS


def _head_words(block: Block) -> int:
    return min(block.size // 8, _HEAD_WORDS)


def _is_values_table(words: Sequence[int]) -> bool:
    """Whether the block holds an instance's values, apart from the instance.

    Until 3.12 a prefix precedes them: the order of insertion and, in the last two bytes of a word,
    the number of values and the length of the prefix.  From 3.13 on the first word has the capacity
    and the number, one byte each, and two flags.
    """
    if _VALUES_SAY_HOW_MANY:
        first = words[0] if words else 0
        room, used = first & 0xFF, first >> 8 & 0xFF
        return used <= room <= _LARGEST_VALUES and first >> 16 & 0xFFFF == _VALUES_APART
    for i, word in enumerate(words):
        last, used = word >> 56, word >> 48 & 0xFF
        if last == 8 * (i + 1) and used <= last - 2:
            return True
    return False
