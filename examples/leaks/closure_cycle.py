"""Functions that refer to themselves, with the collector off."""

import gc
from collections.abc import Callable

from examples.leaks.service import serve

gc.disable()


def tick(number: int) -> None:
    """Walk through a tree."""
    page = bytearray(800 + number % 3)

    def walk(depth: int) -> int:  # noqa: CYC201  # LEAK walk()
        return len(page) if depth == 0 else walk(depth - 1)

    visit: Callable[[int], int] = walk
    visit(2)


serve(tick)
