"""What the arguments of `python -m benchmarks` may be."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SECONDS = 3600


def count(text: str) -> int:
    """Return a number from 1 on."""
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return value


def seconds(text: str) -> float:
    """Return a number of seconds above 0, up to an hour."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to {MAX_SECONDS}")
    return value


def names(text: str) -> list[str]:
    """Return the names between commas."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise ArgumentTypeError(f"{text!r} has an empty name")
    return found


def sides(known: Sequence[str], text: str) -> list[str]:
    """Return names, all of them sides that are `known`."""
    found = names(text)
    for name in found:
        if name not in known:
            raise ArgumentTypeError(f"there is no side {name!r}; sides are {', '.join(known)}")
    return found
