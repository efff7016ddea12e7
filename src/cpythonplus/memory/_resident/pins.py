"""Names the objects that keep free memory: their types, and the owner of an example of each."""

from collections import Counter

from cpythonplus import _native
from cpythonplus.memory._census.steps import path_steps
from cpythonplus.memory._cycles.looking import qualified_name
from cpythonplus.memory._resident.model import Pin
from cpythonplus.memory._resident.snapshot import Snapshot

_NAMED = 5
"""The most pins of each kind whose holder is looked for."""
_LEAST_BYTES = 1 << 20
"""An arena's size: no holder is looked for of what keeps less."""
_LONGEST_S = 10
_CHUNK_HEAD_BYTES = 16
_OWN = __file__.rpartition("/")[0]
_SHORTEST = 2  # steps of a path: its root, and a name
_WAY_CHARACTERS = 80
_CACHED = "free, in a thread's cache"
_OWN_KIND = "the doctor's own"
_UNKNOWN = "memory of C code, or kept for reuse"


def name(snapshot: Snapshot) -> tuple[Pin, ...]:
    """Return the objects that keep free memory, most first; releases the snapshot's objects."""
    holders = _holders(snapshot)
    found = [
        Pin(type_name(row[0], is_object=row[1]), *row[2:5], holders.get(("arenas", place), ""))
        for place, row in enumerate(snapshot.rows)
    ]
    if snapshot.own[0]:
        found.append(Pin(_OWN_KIND, *snapshot.own, ""))
    found.extend(_of_heap(snapshot, holders))
    snapshot.rows.clear()
    snapshot.owners.clear()
    found.sort(key=lambda pin: -pin.held_bytes)
    return tuple(found)


def _of_heap(snapshot: Snapshot, holders: dict[tuple[str, int], str]) -> list[Pin]:
    """Return the blocks above the largest free piece of the C heap, by type."""
    owners = {row[0]: place for place, row in enumerate(snapshot.owners)}
    blocks: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    told: dict[str, str] = {}
    for start, size_bytes, _free, is_cached in snapshot.chunks:
        kind, holder = _CACHED, ""
        if not is_cached:
            place = owners.get(start + _CHUNK_HEAD_BYTES, -1)
            kind = _owner_name(snapshot, place)
            holder = holders.get(("c_heap_top", place), "")
        blocks[kind] += 1
        sizes[kind] += size_bytes
        told[kind] = told.get(kind) or holder
    each = snapshot.kept_bytes // max(blocks.total(), 1)
    return [
        Pin(kind, count, sizes[kind], each * count, told[kind], "c_heap_top")
        for kind, count in blocks.items()
    ]


def _owner_name(snapshot: Snapshot, place: int) -> str:
    """Return the name of a block of the C heap, as far as its owner is known."""
    if place < 0 or snapshot.owners[place][1] is None:
        return _UNKNOWN
    _start, owner, is_own = snapshot.owners[place]
    return _OWN_KIND if is_own else type_name(type(owner), is_object=True)


def type_name(kind: type | None, *, is_object: bool) -> str:
    """Return the full name of a type, or of memory that objects of the type refer to."""
    if kind is None:
        return "of other types" if is_object else _UNKNOWN
    return qualified_name(kind) if is_object else f"memory of {qualified_name(kind)}"


def _holders(snapshot: Snapshot) -> dict[tuple[str, int], str]:
    """Return the paths to the examples, by the place and the index of the pin."""
    rows, owners = snapshot.rows, snapshot.owners
    first = max(0, len(owners) - _NAMED)  # those nearest to the upper end
    in_arenas = [
        place
        for place in range(len(rows))[:_NAMED]
        if rows[place][0] is not None and rows[place][4] >= _LEAST_BYTES
    ]
    in_heap = [
        place
        for place in range(len(owners))[first:]
        if snapshot.kept_bytes >= _LEAST_BYTES
        and owners[place][1] is not None
        and not owners[place][2]
    ]
    places = [("arenas", place) for place in in_arenas] + [("c_heap_top", p) for p in in_heap]
    examples = [rows[place][5] for place in in_arenas] + [owners[p][1] for p in in_heap]
    if not examples:
        return {}
    try:
        paths, pause_ns = _native.memory_root_paths(tuple(examples), _OWN, _LONGEST_S)
    except (RuntimeError, OSError) as error:
        snapshot.notes.append(f"Who holds what keeps free memory was not looked for: {error}.")
        return {}
    snapshot.pause_ns = max(snapshot.pause_ns, pause_ns)
    return {
        place: _way(*path) for place, path in zip(places, paths, strict=True) if path is not None
    }


def _way(root: object, name: str | None, objects: list[object]) -> str:
    """Return the path to an object: `app.cache['use...].name`; "" if it has no step."""
    steps = [each.step or f"({each.type})" for each in path_steps(root, name, objects)]
    if len(steps) < _SHORTEST:
        return ""
    way = "".join(step if step[0] in ".[" else f", {step}," for step in steps[1:])
    return _shortened(steps[0].removeprefix("module ") + way.removesuffix(","))


def _shortened(way: str) -> str:
    half = _WAY_CHARACTERS // 2
    return way if len(way) <= _WAY_CHARACTERS else f"{way[:half]} ... {way[-half:]}"
