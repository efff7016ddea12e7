"""Dicts that store equal keys once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from cpythonplus import _native

__all__ = ["share_keys", "shared_dict"]

K = TypeVar("K")
V = TypeVar("V")

shared_dict = _native.shared_dict


def share_keys(rows: Iterable[Mapping[K, V] | Iterable[tuple[K, V]]]) -> Iterator[dict[K, V]]:
    """Return an iterator over the rows as dicts that store equal keys once.

        rows = list(memory.share_keys(csv.DictReader(file)))

    rows: dicts, other mappings, or any other argument of dict(), such as `sqlite3.Row`.

    Each row becomes a `shared_dict()` when the iterator comes to it.  A dict whose keys cannot be
    shared, and one of a class derived from dict, is returned as it is.

    Raises the exceptions of dict(row).
    """
    return map(_native.memory_share_row, rows)
