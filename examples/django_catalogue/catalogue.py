"""The catalogue: all items and the indexes over them, made once and then only read.

`build` makes the same items from the same seed, in every process and version of Python. An item is
about 21 objects and 2 KB: an instance, strings, lists, dictionaries, prices. Amounts of money are
in cents, stocks in pieces.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SEED = 20_240_229

TAGS = tuple(f"tag-{number:03d}" for number in range(240))
CATEGORIES = tuple(f"category-{number:03d}" for number in range(800))
BRANDS = tuple(f"brand-{number:03d}" for number in range(400))
CURRENCIES = ("EUR", "USD", "GBP")
WAREHOUSES = ("berlin", "leeds", "lyon", "turin")

_ATTRIBUTES = ("colour", "material", "size", "origin", "model", "barcode")
_WORDS = (
    *("steel", "oak", "linen", "glass", "copper", "cork", "felt", "stone", "birch", "wool"),
    *("lamp", "chair", "kettle", "shelf", "clock", "basket", "mirror", "bench", "bowl", "rug"),
)


@dataclass(slots=True)
class Price:
    """What an item costs in one currency."""

    currency: str
    amount_cents: int
    discount_percent: int

    def net_cents(self) -> int:
        """Return the amount after the discount."""
        return self.amount_cents * (100 - self.discount_percent) // 100


@dataclass(slots=True)
class Item:
    """One thing that the shop sells."""

    sku: str
    name: str
    description: str
    category: str
    brand: str
    tags: list[str]
    attributes: dict[str, str]
    prices: dict[str, Price]
    """By currency."""
    stock: dict[str, int]
    """Pieces by warehouse."""
    related: list[str]
    """Keys of other items."""

    def available(self) -> int:
        """Return how many pieces there are in all warehouses."""
        return sum(self.stock.values())


@dataclass(frozen=True, slots=True)
class PriceSummary:
    """Prices of one category, in the first of CURRENCIES, in cents."""

    items: int
    lowest_cents: int
    highest_cents: int
    mean_cents: int


@dataclass(slots=True)
class Catalogue:
    """All items and where to find them."""

    by_sku: dict[str, Item] = field(default_factory=dict)
    by_tag: dict[str, list[Item]] = field(default_factory=lambda: defaultdict(list))
    """The cheapest first."""
    by_category: dict[str, list[Item]] = field(default_factory=lambda: defaultdict(list))
    by_brand: dict[str, list[Item]] = field(default_factory=lambda: defaultdict(list))

    def add(self, item: Item) -> None:
        """Take `item` into all indexes."""
        self.by_sku[item.sku] = item
        self.by_category[item.category].append(item)
        self.by_brand[item.brand].append(item)
        for tag in item.tags:
            self.by_tag[tag].append(item)

    def sort(self) -> None:
        """Put the items of each tag in order, the cheapest first."""
        for items in self.by_tag.values():
            items.sort(key=lambda item: (item.prices[CURRENCIES[0]].net_cents(), item.sku))

    def search(self, tag: str) -> Sequence[Item]:
        """Return the items with `tag`, the cheapest first."""
        return self.by_tag.get(tag, ())

    def related(self, item: Item, count: int) -> list[Item]:
        """Return up to `count` items that go with `item`: the named ones, then of its brand."""
        found = {sku: self.by_sku[sku] for sku in item.related}
        for other in self.by_brand[item.brand]:
            if len(found) >= count:
                break
            if other is not item:
                found[other.sku] = other
        return list(found.values())[:count]

    def price_summary(self, category: str) -> PriceSummary:
        """Return the prices of the items of `category`; zeros where there are none."""
        items = self.by_category.get(category, ())
        cents = [item.prices[CURRENCIES[0]].net_cents() for item in items]
        if not cents:
            return PriceSummary(0, 0, 0, 0)
        return PriceSummary(len(cents), min(cents), max(cents), sum(cents) // len(cents))


def sku_of(number: int) -> str:
    """Return the key of the item with `number`, from 0 on."""
    return f"SKU-{number:07d}"


def build(count: int, seed: int = SEED) -> Catalogue:
    """Return a catalogue of `count` items."""
    catalogue = Catalogue()
    for item in _items(count, random.Random(seed)):  # noqa: S311 - made-up goods, no secrets
        catalogue.add(item)
    catalogue.sort()
    return catalogue


def _items(count: int, chance: random.Random) -> Iterator[Item]:
    for number in range(count):
        yield Item(
            sku=sku_of(number),
            name=f"{_words(chance, 3)} {number}",
            description=f"{_words(chance, 22)}, no. {number}",
            category=_pick(chance, CATEGORIES),
            brand=_pick(chance, BRANDS),
            tags=sorted({_pick(chance, TAGS) for _ in range(3)}),
            attributes={name: f"{_words(chance, 1)} {number % 9973}" for name in _ATTRIBUTES},
            prices={currency: _price(chance, currency) for currency in CURRENCIES},
            stock={name: int(chance.random() * 40) for name in WAREHOUSES},
            related=[sku_of(int(chance.random() * count)) for _ in range(4)],
        )


def _pick(chance: random.Random, choices: Sequence[str]) -> str:
    # Several times as fast as random.choice, which matters for half a million calls.
    return choices[int(chance.random() * len(choices))]


def _words(chance: random.Random, count: int) -> str:
    return " ".join([_pick(chance, _WORDS) for _ in range(count)])


def _price(chance: random.Random, currency: str) -> Price:
    return Price(currency, 300 + int(chance.random() * 90_000), int(chance.random() * 30))
