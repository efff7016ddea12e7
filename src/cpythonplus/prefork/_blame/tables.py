"""The results of sharing and blame, as lines and tables."""

from dataclasses import replace

from cpythonplus._base.reading import Part, amount, entries, inside, size, words
from cpythonplus._base.text.sizes import format_size
from cpythonplus._base.text.tables import Layout, table
from cpythonplus._base.text.text_tables import layout_lines

_MOST_CATEGORIES = 20
_OWNERS_CATEGORIES = 2
"""The number of kinds of change that are listed for a type or a module."""


def text(layout: Layout) -> str:
    """Return the layout as text."""
    return "\n".join(layout_lines(*layout))


def sharing_layout(found: Part, top: int) -> Layout:
    """Return a row for each of the first processes, and the total."""
    processes = entries(found, "processes")
    rows = [*processes[:top], inside(found, "total")]
    tables = table(
        "",
        "process=name|pid|resident:size=resident_bytes|proportional:size=proportional_bytes"
        "|shared:size=shared_bytes|private:size=private_bytes",
        [{**row, "pid": str(size(row, "pid") or "")} for row in rows],
        len(rows),
    )
    return (), tuple(replace(each, left_out=len(processes[top:])) for each in tables)


def blame_layout(found: Part, top: int) -> Layout:
    """Return the pages by kind of change, by type and by module."""
    title = (
        f"process {size(found, 'pid')}: {format_size(size(found, 'private_bytes'))} private,"
        f" {size(found, 'compared_pages'):,} pages compared with process {size(found, 'reference')}"
    )
    note = words(found, "note")
    tables = table(
        "",
        "why=category|charged:size=bytes|pages with it:count=pages|with it alone:count=alone"
        "|words:count",
        entries(found, "by_category"),
        _MOST_CATEGORIES,
    )
    for what in ("type", "module"):
        rows = [{**row, "changed": _changed(row)} for row in entries(found, f"by_{what}")]
        columns = f"share:size=bytes|pages:count|{what}=name|changed:note"
        tables += table(
            f"By {what}, and the words that were changed most there", columns, rows, top
        )
    return (title, f"note: {note}") if note else (title,), tuple(tables)


def _changed(row: Part) -> str:
    words_by_category = inside(row, "by_category")
    largest = sorted(words_by_category, key=lambda name: -amount(words_by_category, name))
    return ", ".join(
        f"{name} {size(words_by_category, name):,}" for name in largest[:_OWNERS_CATEGORIES]
    )
