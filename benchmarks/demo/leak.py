"""A program with a leak: what each visitor leaves is kept for ever."""

import itertools
import sys
import time

SESSIONS: dict[str, list[str]] = {}


def visit(number: int) -> None:
    """Remember a visitor, whom nobody forgets."""
    SESSIONS[f"visitor {number}"] = [f"item {number} {i}" for i in range(60)]


if __name__ == "__main__":
    end = time.monotonic() + float(sys.argv[1])
    for number in itertools.count():
        visit(number)
        time.sleep(0.0005)
        if time.monotonic() > end:
            break
