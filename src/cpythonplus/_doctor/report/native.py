"""The findings of memray's tracer, as lines and a table."""

from typing import Final

from cpythonplus._base.reading import Part, amount, entries, inside, size, words
from cpythonplus._base.text.sizes import duration, format_size
from cpythonplus._base.text.tables import Layout, table
from cpythonplus._doctor.report.owners import with_package

PYTHON: Final = "Python"
"""The name of the library that allocates Python's own objects."""
_ENDED: Final = {
    "fork": "; it ended early, because the program forked or ended",
    "size": "; it ended early, because its file was full",
    "doctor": "; it ended early, because the doctor did",
}


def native_layout(found: Part, top: int) -> Layout:
    """Return the holders of memory that was not freed, and the cost of the tracer."""
    seconds = amount(found, "seconds")
    busy = amount(found, "cpu_s") / seconds if seconds > 0 else 0.0
    ended = _ENDED.get(words(found, "ended_by"), "")
    seen = f"{size(found, 'allocations'):,} allocations"
    kept, file = (format_size(size(found, name)) for name in ("kept_bytes", "file_bytes"))
    pause = duration(size(found, "pause_ns"))
    cost = (
        f"memray traced the program for {seconds:.1f} s{ended}: {seen}, {kept} of them not freed",
        f"cost: a file of {file}, removed; longest pause {pause}; {busy:.0%} of a processor used",
    )
    rows = [
        {
            **row,
            "library": words(row, "library") or "?",
            "at": _place(inside(row, "place"), short=True),
            "called_from": with_package(words(row, "called_from")),
        }
        for row in entries(found, "rows")
    ]
    columns = "not freed:size=size_bytes|blocks:count=count|from=library|called at=at"
    columns += "|in the program at=called_from|native:note"
    return cost, tuple(table("Who has taken it", columns, rows, top))


def native_sentence(row: Part) -> str:
    """Return `26.9 MiB from pydantic_core, called at type_adapter.py:210; native: validate`."""
    place, native = native_place(row), words(row, "native")
    called = f", called at {place}" if place else ""
    return (
        f"{format_size(size(row, 'size_bytes'))} from {words(row, 'library') or 'unknown code'}"
        f"{called}{f'; native: {native}' if native else ''}."
    )


def native_place(row: Part) -> str:
    """Return `type_adapter.py:210 by app.py:14`, "" if the line is not known."""
    place, own = _place(inside(row, "place")), words(row, "called_from")
    return f"{place} by {own}" if place and own else place


def _place(row: Part, *, short: bool = False) -> str:
    file, line = words(row, "file"), size(row, "line")
    return f"{with_package(file) if short else file}:{line}" if line else ""
