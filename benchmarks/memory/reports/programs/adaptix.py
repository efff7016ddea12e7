"""Each converter that is compiled leaves its source in `linecache.cache`."""

from dataclasses import dataclass

from adaptix import Retort


@dataclass
class Order:
    number: int
    name: str
    lines: list[int]


def tick(number):
    Retort().load({"number": number, "name": "x", "lines": [1, 2]}, Order)


PER_SECOND = 40
