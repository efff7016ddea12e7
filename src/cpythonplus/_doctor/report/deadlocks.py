"""The threads and tasklets that wait, and the deadlocks, as lines."""

from collections.abc import Iterator

from cpythonplus._base.reading import Part, entries, inside, largest, size, words
from cpythonplus._base.text.sizes import duration
from cpythonplus._base.text.tables import Layout
from cpythonplus.threads._waits_text import deadlock_lines, wait_lines


def deadlock_layout(found: Part, top: int) -> Layout:
    """Return the deadlocks, then the longest of the other waits."""
    lines = deadlock_lines(found)
    lines += deadlock_lines(inside(found, "among_tasklets"), of="tasklet")
    lines = lines or ["no deadlock"]
    if others := wait_lines(found, top):
        lines += ["other threads that wait:", *others]
    if entries(found, "tasklets"):
        lines += ["tasklets that wait:", *_tasklets(found, top)]
    return (*lines,), ()


def _tasklets(found: Part, top: int) -> Iterator[str]:
    rows = largest(found, "tasklets", "waited_ns")
    for row in rows[:top]:
        at, made_at = inside(row, "at"), inside(row, "made_at")
        more = f", and {size(row, 'more')} more like it" if size(row, "more") else ""
        name = f"{words(row, 'function')} in {words(row, 'thread')}"
        yield f"  {name}: {words(row, 'state')} for {duration(size(row, 'waited_ns'))}{more}"
        made = f", on what was made at {_place(made_at)}" if made_at else ""
        yield f"    at {_place(at)}{made}"
    if len(rows) > top:
        yield f"  and {len(rows) - top} more"


def _place(place: Part) -> str:
    return f"{words(place, 'file')}:{size(place, 'line')} in {words(place, 'function')}"
