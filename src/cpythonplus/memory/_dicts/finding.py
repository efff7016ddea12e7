"""Looks at the instances of all classes, and at all dicts and sets."""

from dataclasses import replace
from typing import Any

from cpythonplus import _native
from cpythonplus.memory._cycles.holders import every_object, find_holders
from cpythonplus.memory._cycles.looking import qualified_name, type_name
from cpythonplus.memory._dicts.causes import Counts, explain
from cpythonplus.memory._dicts.gains import class_gain, find_gains
from cpythonplus.memory._dicts.report import Gain, KeySharing, LostSharing, Oversized


def key_sharing(*, worth_bytes: int = 64 * 1024, top: int = 20) -> KeySharing:
    """Return classes and tables that take more memory than they need, and the remedies.

    worth_bytes: the least cost of a class, or a dict or set, that is reported. top: the number of
    dicts and sets whose holders are looked for, which takes about as long as a collection of the
    heap, several times.

    Makes no dict of an instance, runs no code of the program and changes nothing. Other threads
    wait meanwhile, about as long as for a collection.

    Raises ValueError for numbers below 0, and UnsupportedPlatform on a free-threaded build and if
    the interpreter's structures are not the known ones.
    """
    if worth_bytes < 0 or top < 0:
        raise ValueError("worth_bytes and top must not be negative")
    _native.memory_refuse_free_threaded()
    worth_bytes = max(worth_bytes, 1)
    found = _native.memory_walk_dicts(worth_bytes, top)
    classes, tables, count, size, rows, small, huge = found
    tables.sort(key=lambda row: row[4] - row[3])
    pairs = find_gains(rows, small, huge, worth_bytes=worth_bytes, top=top)
    targets = [row[0] for row in tables] + [sample for _, sample in pairs]
    names: list[str] = []
    if targets:
        own = [found, tables, rows, huge, pairs, targets, *tables, *rows, *small, *huge, *pairs]
        own += [small, *(row[-1] for row in rows)]
        names = find_holders(every_object(), targets, own)
    held = zip(pairs, names[len(tables) :], strict=True)
    gains = [replace(gain, holder=name) for (gain, _), name in held]
    gains += [gain for gain in map(_class_gain, classes) if gain.saves_bytes >= worth_bytes]
    lost = [row for row in map(_class_row, classes) if row.cost_bytes >= worth_bytes]
    refusal = _native.memory_sharing_refusal()
    return KeySharing(
        lost=tuple(sorted(lost, key=lambda row: -row.cost_bytes)),
        oversized=tuple(map(_table_row, tables, names)),
        oversized_count=count,
        oversized_bytes=size,
        gains=tuple(sorted(gains, key=lambda gain: -gain.saves_bytes)[:top]),
        left_out=() if refusal is None else (f"Dicts that share keys: {refusal}.",),
    )


def _class_gain(found: tuple[Any, ...]) -> Gain:
    kind, (instances, *_), (size_bytes, *_, record_bytes), *_ = found
    return class_gain(qualified_name(kind), instances, size_bytes, record_bytes)


def _class_row(found: tuple[Any, ...]) -> LostSharing:
    kind, storages, sizes, reasons, names = found
    instances, inline, split, combined = storages
    size_bytes, lost, lost_bytes, could_be_bytes, _ = sizes
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
