"""`to_builtins()` keeps the fields of a struct that is written as an array."""

import msgspec


class Box(msgspec.Struct, array_like=True):
    x: float
    y: float
    z: float


class Row(msgspec.Struct):
    box: Box


def tick(number):
    for n in range(20):
        msgspec.to_builtins(Row(Box(number + 0.5, n + 0.25, number * 1.5)))


PER_SECOND = 500
