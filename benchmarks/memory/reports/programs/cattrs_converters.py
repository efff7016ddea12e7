"""Each converter leaves the source of its functions in `linecache.cache`."""

import cattr
from attrs import define


@define
class Order:
    number: int
    name: str
    lines: list[int]


def tick(number):
    converter = cattr.GenConverter(detailed_validation=True)
    converter.structure({"number": number, "name": "x", "lines": [1, 2]}, Order)


PER_SECOND = 40
