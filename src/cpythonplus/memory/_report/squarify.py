"""Divides a rectangle among sizes, each part as near to a square as it can be.

The squarified treemap of M. Bruls, K. Huizing, J. J. van Wijk: Squarified Treemaps, 2000.
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Box", "squarify"]


class Box(NamedTuple):
    """A rectangle, in the units that it was asked for in."""

    x: float
    y: float
    width: float
    height: float


def squarify(sizes: Sequence[float], width: float, height: float) -> list[Box]:
    """Return a box for each size, whose areas are as the sizes are.

    sizes: above 0, the largest first: that is what makes the boxes square.
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
        boxes += _placed(areas[begin:end], free)
        free = _rest(sum(areas[begin:end]), free)
        begin = end
    return boxes


def _row(areas: Sequence[float], begin: int, side: float) -> int:
    """Return where the row ends that begins here: as long as its worst box gets better."""
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


def _placed(areas: Sequence[float], free: Box) -> list[Box]:
    """Lay a row along the shorter side of what is free."""
    total = sum(areas)
    boxes = []
    at = 0.0
    if free.width >= free.height:
        # What is free is a difference, so it may be a rounding error smaller than the area needs.
        across = min(total / free.height, free.width) if free.height else 0.0
        for area in areas:
            length = free.height * area / total
            boxes.append(Box(free.x, free.y + at, across, length))
            at += length
    else:
        across = min(total / free.width, free.height) if free.width else 0.0
        for area in areas:
            length = free.width * area / total
            boxes.append(Box(free.x + at, free.y, length, across))
            at += length
    return boxes


def _rest(total: float, free: Box) -> Box:
    if free.width >= free.height:
        across = min(total / free.height, free.width) if free.height else free.width
        return Box(free.x + across, free.y, free.width - across, free.height)
    across = min(total / free.width, free.height) if free.width else free.height
    return Box(free.x, free.y + across, free.width, free.height - across)
