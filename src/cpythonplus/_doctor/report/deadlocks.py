"""The threads that wait for each other, and the deadlocks, as lines."""

from cpythonplus._base.reading import Part
from cpythonplus._base.text.tables import Layout
from cpythonplus.threads._waits_text import deadlock_lines, wait_lines

__all__ = ["deadlock_layout"]


def deadlock_layout(found: Part, top: int) -> Layout:
    """Return the deadlocks, then the longest of the other waits."""
    dead, others = deadlock_lines(found), wait_lines(found, top)
    lines = [*(dead or ["no deadlock"])]
    if others:
        lines += ["", "other threads that wait:", *others]
    return (*lines,), ()
