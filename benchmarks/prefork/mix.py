"""Which requests the catalogue gets: the same ones on every side, from a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

SEED = 7

# How the example names what it has; it is not imported, since it would build its catalogue.
TAGS = 240
CATEGORIES = 800
CURRENCIES = ("EUR", "USD", "GBP")

PAGES = 3
"""Visitors look at the first pages of what was found."""


def paths(items: int, count: int, seed: int = SEED) -> Iterator[str]:
    """Yield `count` paths that a catalogue of `items` items answers with 200.

    45 of 100 ask for an item, 25 search, 15 want what goes with an item, 10 the prices of a
    category, 5 whether the service is healthy. Without items the first and third kind ask for the
    service's health instead.
    """
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    for _ in range(count):
        kind = chance.random()
        sku = f"SKU-{chance.randrange(items):07d}" if items else ""
        if kind < 0.45:  # noqa: PLR2004 - the shares that the docstring gives
            yield f"/items/{sku}/" if items else "/health/"
        elif kind < 0.70:  # noqa: PLR2004
            yield _search(chance, items)
        elif kind < 0.85:  # noqa: PLR2004
            yield f"/items/{sku}/related/" if items else "/health/"
        elif kind < 0.95:  # noqa: PLR2004
            yield f"/prices/category-{chance.randrange(CATEGORIES):03d}/"
        else:
            yield "/health/"


def _search(chance: random.Random, items: int) -> str:
    tag, currency = chance.randrange(TAGS), chance.choice(CURRENCIES)
    page = 1 + chance.randrange(_pages(items))
    return f"/items/?tag=tag-{tag:03d}&currency={currency}&page={page}"


def _pages(items: int) -> int:
    # Three tags an item and twenty items a page: each of PAGES is there for sure only where a tag
    # has several times as many items on average.
    return PAGES if items * 3 / TAGS > 4 * 20 * PAGES else 1
