"""Tables of numbers: to the right, the names last."""

from collections.abc import Sequence

from cpythonplus.base.columns import columns
from cpythonplus.base.sizes import format_size

__all__ = ["signed_size", "table"]


def signed_size(size_bytes: int) -> str:
    """Return an amount of memory with its sign, as a change."""
    return format_size(size_bytes) if size_bytes < 0 else f"+{format_size(size_bytes)}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines."""
    return columns([head, *rows], right=range(len(head) - 1)).split("\n")
