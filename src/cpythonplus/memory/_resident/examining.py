"""Reads the mappings, the heaps and the arenas, one after the other."""

from collections.abc import Mapping

from cpythonplus import UnsupportedPlatform, _native
from cpythonplus.memory._resident import pins, smaps, splitting, verdict
from cpythonplus.memory._resident.model import Arenas, MappedFile, Pin, Resident, ResidentPart
from cpythonplus.memory._resident.rows import ArenaRow, ArenaRows
from cpythonplus.memory._resident.snapshot import Snapshot
from cpythonplus.memory._resident.splitting import CHead, Ledger

_LARGEST_FILES = 3


def examine(snapshot: Snapshot) -> Resident:
    """Return what is in memory; the snapshot has the objects that keep free memory."""
    found = pins.name(snapshot)
    text = smaps.read()
    rows = _native.memory_arenas([], 0)  # first: objects made later are in memory, too
    ledger = Ledger(list(smaps.parse(text)))
    arenas = _arenas(ledger, rows)
    if arenas.unknown and (objects := _objects(ledger, snapshot)) is not None:
        arenas = Arenas(blocks=objects)
    head = splitting.c_heaps(ledger)
    of_arenas_ns = 0 if isinstance(rows, str) else rows[7]
    snapshot.pause_ns = max(snapshot.pause_ns, of_arenas_ns, head.pause_ns)
    return _report(ledger, arenas, head, found, snapshot)


def _report(
    ledger: Ledger, arenas: Arenas, head: CHead, found: tuple[Pin, ...], snapshot: Snapshot
) -> Resident:
    counts = {
        "live_objects": arenas.blocks,
        "mimalloc": arenas.blocks,
        "stacks": splitting.stacks(ledger),
        "large_blocks": splitting.large_blocks(ledger),
        "thread_heaps": head.thread_heaps,
    }
    splitting.variables(ledger)
    other = splitting.other_allocator(ledger)
    splitting.rest(ledger)
    parts = tuple(
        ResidentPart(
            name,
            size_bytes,
            counts.get(name.removesuffix("_used").removesuffix("_free"), 0),
            other if name.startswith("other") else "",
            _largest(name, ledger.files),
        )
        for name, size_bytes in sorted(ledger.parts.items(), key=lambda item: -item[1])
        if size_bytes
    )
    return Resident(
        rss_bytes=sum(mapping.resident_bytes for mapping in ledger.mappings),
        parts=parts,
        arenas=arenas,
        pins=found,
        verdict=verdict.of(parts, arenas, head),
        returnable_bytes=head.returnable_bytes,
        pause_ns=snapshot.pause_ns,
        notes=(*snapshot.notes, *_notes(ledger, arenas, head, other)),
    )


def _largest(kind: str, sizes: Mapping[tuple[str, str], int]) -> tuple[MappedFile, ...]:
    """Return the largest files of a kind. sizes: bytes by kind and path."""
    found = [(size, path) for (of, path), size in sizes.items() if of == kind and size]
    largest = sorted(found, reverse=True)[:_LARGEST_FILES]
    return tuple(MappedFile(path.rpartition("/")[2], size) for size, path in largest)


def _notes(ledger: Ledger, arenas: Arenas, head: CHead, other: str) -> list[str]:
    notes = []
    if arenas.unknown:
        notes.append(f"Python's arenas are not split up: {arenas.unknown}.")
    has_heap = any(mapping.path == "[heap]" for mapping in ledger.mappings)
    if has_heap and not head.known and not other:
        notes.append("The C heap could not be read: it is split up by the C library's own totals.")
    if other == "mimalloc":
        notes.append("mimalloc does not report how much of its memory is free.")
    return notes


# ---- arenas -------------------------------------------------------------------------------------


def _arenas(ledger: Ledger, rows: str | ArenaRows) -> Arenas:
    if isinstance(rows, str):
        return Arenas(unknown=rows)
    for start, end, _blocks, live, overhead, free, _empty in rows[2]:
        ledger.taken.append((start, end))
        ledger.take("live_objects", start, live)
        ledger.take("arena_overhead", start, overhead)
        ledger.take("arena_free", start, free)
    return _summary(rows[0], rows[2])


def _objects(ledger: Ledger, snapshot: Snapshot) -> int | None:
    """Assign mimalloc's segments, which some interpreters have in place of arenas.

    Returns the number of objects. Their bytes, if they are looked at, are assigned first; the rest
    of the segments is free, or of no object.
    """
    try:
        found = _native.memory_mimalloc(snapshot.pins)
    except UnsupportedPlatform:
        found = None
    if found is None:
        return None
    objects, left, segments, pause_ns = found
    snapshot.pause_ns = max(snapshot.pause_ns, pause_ns)
    pieces = [
        (max(start, mapping.start), min(end, mapping.end))
        for start, end in segments
        for mapping in ledger.mappings
        if mapping.is_anonymous and start < mapping.end and mapping.start < end
    ]
    for start, end in sorted(set(pieces)):
        resident = _native.memory_resident_bytes(start, end)
        ledger.taken.append((start, end))
        ledger.take("mimalloc_used", start, min(left, resident))
        ledger.take("mimalloc_free", start, resident - min(left, resident))
        left -= min(left, resident)
    return objects


def _summary(taken: int, rows: list[ArenaRow]) -> Arenas:
    fullness = [0] * 10
    mostly_free = free_in_them = 0
    for _start, _end, blocks, live, overhead, free, _empty in rows:
        whole = max(live + overhead + free, 1)
        fullness[min(10 * (live + overhead) // whole, 9)] += 1
        if blocks and free > whole * 3 // 4:
            mostly_free += 1
            free_in_them += free
    return Arenas(
        count=len(rows),
        blocks=taken,
        live_bytes=sum(row[3] for row in rows),
        overhead_bytes=sum(row[4] for row in rows),
        free_bytes=sum(row[5] for row in rows),
        empty_pools_bytes=sum(row[6] for row in rows),
        mostly_free=mostly_free,
        free_in_them_bytes=free_in_them,
        fullness=tuple(fullness),
    )
