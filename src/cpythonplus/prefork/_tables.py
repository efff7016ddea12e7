"""Plain-text tables and byte counts for reports that are printed."""

from collections.abc import Sequence

from cpythonplus._base.columns import columns

__all__ = ["megabytes", "table"]

_MEGABYTE = 1_000_000


def megabytes(count_bytes: float) -> str:
    """Return a number of bytes in MB (10**6) with one decimal, what is less in kB."""
    if count_bytes < _MEGABYTE:
        return f"{count_bytes / 1e3:.0f} kB"
    return f"{count_bytes / _MEGABYTE:,.1f} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a heading: the first column to the left, all others to the right."""
    first, *rest = columns([head, *rows], right=range(1, len(head))).splitlines()
    return "\n".join([first, "-" * len(first), *rest])
