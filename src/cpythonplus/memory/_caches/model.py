"""One cache, and one fixed cost."""

from dataclasses import dataclass
from typing import Final

WORTH_BYTES: Final = 1 << 20
"""Clearing less than this is not worth the trouble."""


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache.

    size_bytes: the bytes that clearing it would free: objects that only the cache refers to. clear:
    the statement that clears it, "" if nothing does. worth_it: whether it is large enough (1 MiB),
    and its entries are not used all the time. note: other facts about it.
    """

    name: str
    entries: int
    size_bytes: int
    clear: str
    worth_it: bool
    note: str


@dataclass(frozen=True, slots=True)
class FixedCost:
    """The memory of a program's text, for as long as it runs; nothing clears it."""

    name: str
    objects: int
    size_bytes: int
    note: str
