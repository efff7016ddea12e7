"""Look at the instances of all classes, and at all dicts and sets."""

from typing import Any

from cpythonplus import _native
from cpythonplus.memory._cycles.holders import every_object, find_holders
from cpythonplus.memory._cycles.looking import qualified_name, type_name
from cpythonplus.memory._key_sharing.causes import Counts, explain
from cpythonplus.memory._key_sharing.report import KeySharing, LostSharing, Oversized

__all__ = ["key_sharing"]


def key_sharing(*, worth_bytes: int = 64 * 1024, top: int = 20) -> KeySharing:
    """Return which classes and which tables take more memory than they need.

    worth_bytes: what a class, or a dict or set, must cost to be told of.
    top: of how many dicts and sets the holders are looked for, which takes about as long as a
    collection of the heap, several times.

    Makes no dict of an instance, runs no code of the program and changes nothing.  Other threads
    wait meanwhile, about as long as for a collection.

    Raises ValueError for numbers below 0, and UnsupportedPlatform on a free-threaded build.
    """
    if worth_bytes < 0 or top < 0:
        raise ValueError("worth_bytes and top must not be negative")
    _native.memory_refuse_free_threaded()
    try:
        classes, tables, count, size = _native.memory_walk_dicts(max(worth_bytes, 1), top)
    except RuntimeError as e:
        return KeySharing((), (), 0, 0, (f"Key sharing: {e}.",))
    lost = [row for row in map(_class_row, classes) if row.cost_bytes >= max(worth_bytes, 1)]
    return KeySharing(
        lost=tuple(sorted(lost, key=lambda row: -row.cost_bytes)),
        oversized=tuple(_table_rows(tables)),
        oversized_count=count,
        oversized_bytes=size,
    )


def _class_row(found: tuple[Any, ...]) -> LostSharing:
    kind, storages, sizes, reasons, names = found
    instances, inline, split, combined = storages
    size_bytes, lost, lost_bytes, could_be_bytes = sizes
    cause, remedy = explain(Counts(lost - combined, combined, *reasons, *names))
    return LostSharing(
        type=qualified_name(kind),
        instances=instances,
        inline=inline,
        split=split,
        combined=combined,
        size_bytes=size_bytes,
        cost_bytes=max(lost_bytes - could_be_bytes, 0),
        cause=cause,
        remedy=remedy,
    )


def _table_rows(tables: list[tuple[Any, int, int, int, int]]) -> list[Oversized]:
    if not tables:
        return []
    tables.sort(key=lambda row: row[4] - row[3])
    targets = [row[0] for row in tables]
    holders = find_holders(every_object(), targets, [tables, targets, *tables])
    return [_table_row(row, holder) for row, holder in zip(tables, holders, strict=True)]


def _table_row(found: tuple[Any, int, int, int, int], holder: str) -> Oversized:
    table, entries, capacity, size_bytes, could_be_bytes = found
    kind = type_name(type(table))
    return Oversized(
        kind=kind,
        holder=holder,
        entries=entries,
        capacity=capacity,
        size_bytes=size_bytes,
        could_be_bytes=could_be_bytes,
        remedy=_remedy(kind, entries),
    )


def _remedy(kind: str, entries: int) -> str:
    if entries == 0:
        return "clear() it, or create a new one"
    return (
        f"replace it by {kind}(it)"
        if kind in ("dict", "set")
        else "create a new one from its entries"
    )
