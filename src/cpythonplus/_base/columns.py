"""Tables for people, in plain text: columns as wide as what is in them."""

from collections.abc import Sequence

__all__ = ["columns"]


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), gap: str = "  ") -> str:
    """Return the rows below each other, their cells in columns.

    rows: with the headings as the first, all of the same length; the last column may be of any
    width.  right: the columns, from 0, that end at the same place instead of beginning there.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        gap.join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
