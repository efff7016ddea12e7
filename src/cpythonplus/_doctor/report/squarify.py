"""Divides a rectangle into parts by size, each as close to a square as possible.

The squarified treemap of M. Bruls, K. Huizing, J. J. van Wijk: Squarified Treemaps, 2000.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle, in the caller's units."""

    x: float
    y: float
    width: float
    height: float


def squarify(sizes: Sequence[float], width: float, height: float) -> list[Box]:
    """Return a box for each size; the areas are proportional to the sizes.

    sizes: above 0, the largest first: this order makes the boxes square.
    """
    if not sizes:
        return []
    scale = width * height / sum(sizes)
    areas = [each * scale for each in sizes]
    boxes: list[Box] = []
    free = Box(0, 0, width, height)
    begin = 0
    while begin < len(areas):
        end = _row(areas, begin, min(free.width, free.height))
        row, free = _placed(areas[begin:end], free)
        boxes += row
        begin = end
    return boxes


def _row(areas: Sequence[float], begin: int, side: float) -> int:
    """Return the end of the row that begins here: it grows while its worst box gets better."""
    total = areas[begin]
    worst = _worst(areas[begin], areas[begin], total, side)
    for end in range(begin + 1, len(areas)):
        total += areas[end]
        now = _worst(areas[begin], areas[end], total, side)
        if now > worst:
            return end
        worst = now
    return len(areas)


def _worst(largest: float, smallest: float, total: float, side: float) -> float:
    """Return the ratio of the longest box of a row along `side`; 1: a square."""
    if not side or not total or not smallest:
        return float("inf")
    return max(side * side * largest / (total * total), total * total / (side * side * smallest))


def _placed(areas: Sequence[float], free: Box) -> tuple[list[Box], Box]:
    """Lay a row along the shorter side of the free box; return it, and the remaining free box."""
    total, wide = sum(areas), free.width >= free.height
    side, depth = (free.height, free.width) if wide else (free.width, free.height)
    # The free box is a difference, so a rounding error may make it smaller than the area needs.
    across = min(total / side, depth) if side else 0.0
    boxes, at = [], 0.0
    for area in areas:
        length = side * area / total
        x, y = (free.x, free.y + at) if wide else (free.x + at, free.y)
        boxes.append(Box(x, y, across, length) if wide else Box(x, y, length, across))
        at += length
    if wide:
        return boxes, free._replace(x=free.x + across, width=depth - across)
    return boxes, free._replace(y=free.y + across, height=depth - across)
