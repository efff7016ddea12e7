"""Finds objects that would take less as dicts that share keys, as Records or as CompactDicts."""

import sysconfig
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from cpythonplus import _native
from cpythonplus.memory._dicts.report import Gain

# The results of memory_walk_dicts().
_Rows: TypeAlias = tuple[int, int, int, int, int, int, list[dict[str, Any]]]
_Small: TypeAlias = tuple[int, int, int, list[dict[Any, Any]]]
_Huge: TypeAlias = tuple[Any, int, int, int, int]

_NAMED = 5
"""The most keys that are named."""
_MOST_SHARED = 29
"""The most keys that the interpreter shares."""

_SHARED = "rows = list(memory.share_keys(rows))"
_PARSED = "json.loads(text, object_pairs_hook=memory.shared_dict)"
_COMPACT = "memory.CompactDict(...) instead of {...}"
_RECORD = "class {}(memory.Record), if no cycle goes through its instances"

_LIBRARY = sysconfig.get_path("stdlib")


def find_gains(
    rows: Sequence[_Rows], small: _Small, huge: Sequence[_Huge], *, worth_bytes: int, top: int
) -> list[tuple[Gain, object]]:
    """Return the `top` that save most, each at least `worth_bytes`, with an object of each.

    rows, small, huge: the results of `memory_walk_dicts()`.
    """
    can_share = _native.memory_sharing_refusal() is None
    found: list[tuple[Gain, object]] = []
    found += [(_of_rows(row, can_share=can_share), row[-1][-1]) for row in rows if row[-1]]
    found += [(_of_huge(row), row[0]) for row in huge]
    if small[-1]:
        found.append((_of_small(small), small[-1][-1]))
    worth = [pair for pair in found if pair[0].saves_bytes >= worth_bytes]
    return sorted(worth, key=lambda pair: -pair[0].saves_bytes)[:top]


def class_gain(name: str, instances: int, size_bytes: int, record_bytes: int) -> Gain:
    """Return the gain of a class's instances as Records."""
    return Gain(
        what=name,
        count=instances,
        holder="",
        made_at="",
        size_bytes=size_bytes,
        shared_bytes=None,
        record_bytes=record_bytes,
        compact_bytes=None,
        change=_RECORD.format(name.rpartition(".")[2]),
        saves_bytes=size_bytes - record_bytes,
    )


def _of_rows(row: _Rows, *, can_share: bool) -> Gain:
    keys, count, size_bytes, shared_bytes, record_bytes, compact_bytes, samples = row
    shares = can_share and keys <= _MOST_SHARED
    names = list(samples[-1])
    more = ", ..." if len(names) > _NAMED else ""
    made_at, is_parsed = _made_at(samples)
    change = _PARSED if is_parsed else _SHARED
    return Gain(
        what=f"dict with {', '.join(names[:_NAMED])}{more}",
        count=count,
        holder="",
        made_at=made_at,
        size_bytes=size_bytes,
        shared_bytes=shared_bytes if shares else None,
        record_bytes=record_bytes,
        compact_bytes=compact_bytes,
        change=change if shares else _RECORD.format("Row"),
        saves_bytes=size_bytes - (shared_bytes if shares else record_bytes),
    )


def _of_huge(row: _Huge) -> Gain:
    table, entries, _, size_bytes, compact_bytes = row
    return _compacted(f"dict of {entries:,}", 1, size_bytes, compact_bytes, _made_at([table])[0])


def _of_small(small: _Small) -> Gain:
    count, size_bytes, compact_bytes, samples = small
    return _compacted("other small dicts", count, size_bytes, compact_bytes, _made_at(samples)[0])


def _compacted(what: str, count: int, size_bytes: int, compact_bytes: int, made_at: str) -> Gain:
    return Gain(
        what=what,
        count=count,
        holder="",
        made_at=made_at,
        size_bytes=size_bytes,
        shared_bytes=None,
        record_bytes=None,
        compact_bytes=compact_bytes,
        change=_COMPACT,
        saves_bytes=size_bytes - compact_bytes,
    )


def _made_at(samples: Sequence[object]) -> tuple[str, bool]:
    """Return the line that made most of the samples, and whether that was by parsing JSON."""
    places = Counter(place for place in map(_place, samples) if place is not None)
    return places.most_common(1)[0][0] if places else ("", False)


def _place(op: object) -> tuple[str, bool] | None:
    """Return the last line outside of libraries, if tracemalloc has kept so many frames."""
    traceback = tracemalloc.get_object_traceback(op) if tracemalloc.is_tracing() else None
    if traceback is None:
        return None
    frames = list(traceback)[::-1]
    is_parsed = frames[0].filename.startswith(f"{_LIBRARY}/json/")
    own = [frame for frame in frames if not _is_library(frame.filename)]
    place = (own or frames)[0]
    return f"{place.filename}:{place.lineno}", is_parsed


def _is_library(filename: str) -> bool:
    return filename.startswith(f"{_LIBRARY}/") and "/site-packages/" not in filename
