"""Python objects in another process's memory: their types, and the places of their fields.

No contents are trusted: an address counts as a type only if its own type leads to `type` and its
name can be read, and as an object only if its header fits that type's flags.  Offsets that differ
between versions are taken from the running interpreter, so the other process must run the same one;
`Layout.of` verifies it.
"""

import os
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Final, NamedTuple

from cpythonplus.prefork._blame.blocks import POOL_BYTES, Pool
from cpythonplus.prefork._blame.pages import Mapping, Memory

_WORD = 8
# Words of a type object; those up to tp_dict have had these indexes since Python 3.0.
_TP_NAME, _TP_FLAGS, _TP_DICT = 3, 21, 33
_TYPE_WORDS = _TP_DICT + 1

_FLAGS_PREHEADER = 1 << 4 if sys.version_info < (3, 12) else 1 << 3 | 1 << 4
_FLAGS_READY = 1 << 12
_FLAGS_GC = 1 << 14
_FLAGS_DICT = 1 << 29
_FLAGS_TYPE = 1 << 31

# The offset of an object inside its block: words of the gc header and of the pointers to an
# instance's dictionary and weak references may come before it.
_PREHEADER_WORDS = _GC_WORDS = 2
_BEFORE = (0, 2, 4)

_METACLASS_DEPTH = 4
_STRING_LIMIT_BYTES = 4096
_LARGEST_LOG2_KEYS = 32
_ENTRIES_LIMIT = 10_000  # of a class's dictionary


class Owner(NamedTuple):
    """The owner of a changed field: a type's name and its module, or another origin."""

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class RemoteType:
    """A type of the other process.  address: 0 for none."""

    address: int
    name: str
    flags: int

    @property
    def has_gc(self) -> bool:
        """Whether its instances have the collector's header in front of them."""
        return bool(self.flags & _FLAGS_GC)

    @property
    def makes_types(self) -> bool:
        """Whether its instances are types."""
        return bool(self.flags & _FLAGS_TYPE)

    @property
    def makes_dicts(self) -> bool:
        """Whether its instances are dictionaries."""
        return bool(self.flags & _FLAGS_DICT)

    @property
    def words_before(self) -> int:
        """The number of words before an instance in its block."""
        before = _GC_WORDS if self.flags & _FLAGS_GC else 0
        return before + (_PREHEADER_WORDS if self.flags & _FLAGS_PREHEADER else 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """The addresses and offsets in the other process's interpreter.

    type_address: of `type`.  code_type: of `types.CodeType`.  str_type: of `str`.
    ascii_offset: bytes from a str to its characters.  code_bytes: bytes from a code object to its
    instructions.  code_filename: words from a code object to its ``co_filename``.
    """

    type_address: int
    code_type: int
    str_type: int
    ascii_offset: int
    code_bytes: int
    code_filename: int

    @classmethod
    def of(cls, own: Sequence[Mapping], other: Sequence[Mapping]) -> "Layout | None":
        """Return the layout of another process, by the mappings of this process and of that one.

        None if the other process runs another interpreter, or if the interpreter's objects have
        another layout (free-threaded, traced references).
        """
        if sysconfig.get_config_var("Py_GIL_DISABLED") or hasattr(sys, "getobjects"):
            return None
        home = next((each for each in own if each.start <= id(type) < each.end), None)
        if home is None or not home.inode:
            return None
        there = [each for each in other if (each.file, each.offset) == (home.file, home.offset)]
        if not there or not _is_as_expected():
            return None
        return _layout(there[0].start - home.start)


def _layout(moved_by: int) -> Layout:
    return Layout(
        type_address=id(type) + moved_by,
        code_type=id(CodeType) + moved_by,
        str_type=id(str) + moved_by,
        ascii_offset=sys.getsizeof("") - 1,
        code_bytes=CodeType.__basicsize__,
        code_filename=_code_filename_word(),
    )


def _code_filename_word() -> int:
    """Return the index of the word of a code object that is ``co_filename``; 0 if there is none."""
    code = _code_filename_word.__code__
    with Memory(os.getpid()) as memory:
        words = memory.words(id(code), CodeType.__basicsize__ // _WORD)
    wanted = id(code.co_filename)
    return next((i for i, word in enumerate(words) if word == wanted), 0)


class _Sample:
    """An object with a dictionary and weak references."""


def _is_as_expected() -> bool:
    """Test the readers on objects of this process, whose types and modules are known.

    An interpreter with another layout gets no names, rather than wrong ones.
    """
    samples: tuple[object, ...] = (_Sample(), 1234.5, [_Sample], str(id(_Sample)))
    with Memory(os.getpid()) as memory:
        objects = Objects(memory, _layout(0))
        kind = objects.type_at(id(_Sample))
        if objects.owner(kind, 0) != (f"{__name__}.{_Sample.__name__}", __name__):
            return False
        return all(_is_found(objects, memory, sample) for sample in samples)


def _is_found(objects: "Objects", memory: Memory, sample: object) -> bool:
    start = id(sample) - id(sample) % POOL_BYTES
    pool = Pool.read(start, memory.words(start, POOL_BYTES // _WORD))
    if pool is None:  # another allocator
        return objects.type_of(id(sample)).address == id(type(sample))
    block = pool.block(id(sample))
    found = objects.in_block(memory.words(block.address, block.size // _WORD))
    return (
        found.address == id(type(sample))
        and block.address + _WORD * found.words_before == id(sample)
        and not pool.is_free(block)
    )


_NO_TYPE: Final = RemoteType(0, "", 0)


class Objects:
    """The types and objects of one process."""

    __slots__ = ("_layout", "_memory", "_owners", "_types")

    def __init__(self, memory: Memory, layout: Layout) -> None:
        self._memory = memory
        self._layout = layout
        self._types: dict[int, RemoteType] = {}
        self._owners: dict[tuple[int, int], Owner] = {}

    # ---- types ----------------------------------------------------------------------------------

    def type_at(self, address: int) -> RemoteType:
        """Return the type at that address; one with address 0 if there is none."""
        known = self._types.get(address)
        if known is None:
            known = self._types[address] = self._read_type(address)
        return known

    def _read_type(self, address: int) -> RemoteType:
        words = self._type_words(address)
        if not words or not self._is_type(address, _METACLASS_DEPTH):
            return _NO_TYPE
        name = self._memory.string(words[_TP_NAME])
        return RemoteType(address, name, words[_TP_FLAGS]) if name else _NO_TYPE

    def _type_words(self, address: int) -> Sequence[int]:
        return () if address % _WORD else self._memory.words(address, _TYPE_WORDS)

    def _is_type(self, address: int, depth: int) -> bool:
        """Follow the type's type up to `type`, which is its own."""
        if address == self._layout.type_address:
            return True
        words = self._type_words(address)
        if not depth or not words or not words[_TP_FLAGS] & _FLAGS_READY:
            return False
        return words[1] != address and self._is_type(words[1], depth - 1)

    # ---- objects --------------------------------------------------------------------------------

    def in_block(self, words: Sequence[int]) -> RemoteType:
        """Return the type of the object that a block holds, by the block's first words."""
        # Most objects have links to other objects in front, which are not worth examining: types
        # that were seen before come first.
        for look in (self._seen, self.type_at):
            for before in _BEFORE:
                if before + 1 < len(words):
                    found = look(words[before + 1])
                    if found.address and found.words_before == before:
                        return found
        return _NO_TYPE

    def _seen(self, address: int) -> RemoteType:
        return self._types.get(address, _NO_TYPE)

    def type_of(self, address: int) -> RemoteType:
        """Return the type of the object at that address, if there is one."""
        words = () if address % _WORD else self._memory.words(address, 2)
        return self.type_at(words[1]) if words else _NO_TYPE

    def is_code(self, kind: RemoteType) -> bool:
        """Whether that is the type of code objects."""
        return kind.address == self._layout.code_type

    def is_instruction(self, offset_bytes: int) -> bool:
        """Whether that offset in a code object is behind its fields: instructions and caches."""
        return offset_bytes >= self._layout.code_bytes

    # ---- names ----------------------------------------------------------------------------------

    def owner(self, kind: RemoteType, address: int) -> Owner:
        """Return the name and origin of an object of that type at that address.

        A type has its own name; the origin of a code object is its file.
        """
        itself = kind.makes_types or self.is_code(kind)
        key = kind.address, address if itself else 0
        known = self._owners.get(key)
        if known is None:
            known = self._owners[key] = self._owner(kind, address)
        return known

    def _owner(self, kind: RemoteType, address: int) -> Owner:
        if self.is_code(kind):
            words = self._memory.words(address + _WORD * self._layout.code_filename, 1)
            return Owner("code", (self.text(words[0]) if words else "") or "?")
        if kind.makes_types:
            named = self.type_at(address)
            if named.address:
                module = self._module(named)
                return Owner(f"type {_qualified(named, module)}", module)
        module = self._module(kind)
        return Owner(_qualified(kind, module), module)

    def _module(self, kind: RemoteType) -> str:
        """Return ``__module__`` of the type's dictionary, else the part in front of its name."""
        in_name, dot, _ = kind.name.rpartition(".")
        if dot:
            return in_name
        words = self._type_words(kind.address)
        found = self._item(words[_TP_DICT], "__module__") if words and words[_TP_DICT] else 0
        return (self.text(found) if found else "") or "builtins"

    def text(self, address: int) -> str:
        """Return the str at that address if it is one of ASCII characters; else nothing."""
        words = () if address % _WORD else self._memory.words(address, 3)
        if not words or words[1] != self._layout.str_type or words[2] > _STRING_LIMIT_BYTES:
            return ""
        raw = self._memory.read(address + self._layout.ascii_offset, words[2])
        return raw.decode("ascii") if raw.isascii() and raw.decode("ascii").isprintable() else ""

    def _item(self, dictionary: int, name: str) -> int:
        """Return the address of the value for a string key of a dictionary; 0 if there is none."""
        # Behind the header of two words: ma_used, ma_version_tag, ma_keys, ma_values.
        words = self._memory.words(dictionary, 6)
        head = self._memory.words(words[4], 4) if words else ()
        if not head or words[5] or not keys_table_bytes(head) or head[3] > _ENTRIES_LIMIT:
            return 0
        entry_words = 2 if head[1] >> 16 & 0xFF else 3
        start = words[4] + 32 + (1 << (head[1] >> 8 & 0xFF))
        entries = self._memory.words(start, entry_words * head[3])
        for i in range(0, len(entries), entry_words):
            key, value = entries[i + entry_words - 2], entries[i + entry_words - 1]
            if key and value and self.text(key) == name:
                return value
        return 0


def _qualified(kind: RemoteType, module: str) -> str:
    name = kind.name.rpartition(".")[2]
    return name if module == "builtins" else f"{module}.{name}"


def keys_table_bytes(head: Sequence[int]) -> int:
    """Return the bytes of a dictionary's key table, given its first four words.

    0 if they are not the head of one.  The words: reference count; one byte each for log2 of the
    number of slots, log2 of the bytes of all slots, kind of keys; entries free; entries used.
    """
    if len(head) < 4:  # noqa: PLR2004  # words of the head
        return 0
    log2_slots, log2_bytes, kind = head[1] & 0xFF, head[1] >> 8 & 0xFF, head[1] >> 16 & 0xFF
    if not 3 <= log2_slots <= _LARGEST_LOG2_KEYS or kind > 2:  # noqa: PLR2004
        return 0
    width = next(i for i, limit in enumerate((8, 16, 32, 99)) if log2_slots < limit)
    usable = (1 << log2_slots) * 2 // 3
    if log2_bytes != log2_slots + width or head[2] + head[3] > usable:
        return 0
    return 32 + (1 << log2_bytes) + usable * (16 if kind else 24)
