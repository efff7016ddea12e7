"""Plain-text tables and byte counts for reports that are printed."""

from collections.abc import Sequence

__all__ = ["megabytes", "table"]

_MEGABYTE = 1_000_000


def megabytes(count_bytes: float) -> str:
    """Return a number of bytes in MB (10**6) with one decimal, what is less in kB."""
    if count_bytes < _MEGABYTE:
        return f"{count_bytes / 1e3:.0f} kB"
    return f"{count_bytes / _MEGABYTE:,.1f} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a heading: the first column to the left, all others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    rule = "-" * (sum(widths) + 2 * (len(head) - 1))
    printed = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([printed[0], rule, *printed[1:]])
