"""Heaps of known content, each measured twice: by the census and by tracemalloc.

A script, so that nothing else allocates meanwhile: prints what it found as JSON.
"""

import array
import ctypes
import gc
import json
import sys
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from typing import Any

from cpythonplus import _native

MANY = 2000
_NAMES = [sys.intern(f"name{i}") for i in range(MANY)]

_as_utf8 = ctypes.pythonapi.PyUnicode_AsUTF8
_as_utf8.argtypes = [ctypes.py_object]
_as_utf8.restype = ctypes.c_void_p


class Plain:
    def __init__(self, number: int) -> None:
        self.first = float(number)
        self.second = f"s{number}"


class Slotted:
    __slots__ = ("first", "second")


class ManyNames:
    pass


class MyList(list[int]):
    pass


class MyStr(str):
    __slots__ = ()


class MyTuple(tuple[int, ...]):
    __slots__ = ()


Point = namedtuple("Point", "x y")  # noqa: PYI024  # the one without types


class Heap:
    """Kinds of content, each made from numbers."""

    @staticmethod
    def instances() -> object:
        return [Plain(i) for i in range(MANY)]

    @staticmethod
    def instances_with_dicts() -> object:
        kept = [Plain(i) for i in range(MANY)]
        for each in kept:
            vars(each)
        return kept

    @staticmethod
    def different_names() -> object:
        kept = [ManyNames() for _ in range(MANY)]
        for i, each in enumerate(kept):
            setattr(each, _NAMES[i], None)
        return kept

    @staticmethod
    def slots() -> object:
        return [Slotted() for _ in range(MANY)]

    @staticmethod
    def text() -> object:
        return [chr(65 + i % 1000) * (i % 90) + str(i) for i in range(MANY)]

    @staticmethod
    def text_encoded() -> object:
        """Strings with a second copy of their text."""
        kept = [f"\xe9{i}" for i in range(MANY)]
        for each in kept:
            _as_utf8(each)
        return kept

    @staticmethod
    def numbers() -> object:
        return [int.from_bytes(b"\x7f" * (i % 120)) for i in range(MANY)] + [
            i / 7 for i in range(MANY)
        ]

    @staticmethod
    def bytes_() -> object:
        return [b"x" * i for i in range(500)] + [bytearray(i) for i in range(MANY)]

    @staticmethod
    def tuples() -> object:
        return [(i, None) * (i % 9 + 1) for i in range(MANY)]

    @staticmethod
    def lists() -> object:
        return [[None] * (i % 50) for i in range(MANY)]

    @staticmethod
    def grown_lists() -> object:
        kept: list[list[int]] = [[] for _ in range(MANY)]
        for i, each in enumerate(kept):
            for _ in range(i % 40):
                each.append(5)
        return kept

    @staticmethod
    def key_sharing() -> object:
        return [{str(j): None for j in range(i % 70)} for i in range(MANY)]

    @staticmethod
    def dicts_of_numbers() -> object:
        return [dict.fromkeys(range(i % 70)) for i in range(MANY)]

    @staticmethod
    def large_dict() -> object:
        return dict.fromkeys(range(20000))

    @staticmethod
    def sets() -> object:
        kept: list[object] = [set(range(i % 70)) for i in range(MANY)]
        return kept + [frozenset(range(i % 9)) for i in range(MANY)]

    @staticmethod
    def derived() -> object:
        kept: list[object] = [MyList(range(i % 9)) for i in range(MANY)]
        kept += [MyStr("x" * (i % 50)) for i in range(MANY)]
        kept += [MyTuple(range(i % 9)) for i in range(MANY)]
        return kept + [Point(i, None) for i in range(MANY)]

    @staticmethod
    def functions() -> object:
        return [lambda number=i: number for i in range(MANY)]

    @staticmethod
    def collections_() -> object:
        kept: list[object] = [deque(range(i % 200)) for i in range(MANY)]
        kept += [Counter("abc") for _ in range(MANY)]
        kept += [defaultdict(int, {1: 2}) for _ in range(MANY)]
        kept += [OrderedDict.fromkeys(range(i % 20)) for i in range(MANY)]
        return kept + [array.array("d", [0.0] * (i % 50)) for i in range(MANY)]


HEAPS = [name for name in vars(Heap) if not name.startswith("_")]


def total_bytes(taken: Any) -> int:  # noqa: ANN401  # what the native part returns
    return sum(own[1] for _, own, *_ in taken[4])


def bytes_by_type(taken: Any) -> dict[str, int]:  # noqa: ANN401
    return {str(kind): own[1] for kind, own, *_ in taken[4]}


def measure(name: str) -> dict[str, Any]:
    make = getattr(Heap, name)
    # What is freed here goes to free lists, and tracemalloc sees nothing of what comes from there.
    warm = make()  # empties them, and classes learn the names of their instances' attributes
    first = _native.memory_census()
    second = _native.memory_census()
    gc.collect()
    tracemalloc.start()
    kept = make()
    traced_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del first  # as large as the second, which was not there when it was made
    third = _native.memory_census()
    before = bytes_by_type(second)
    grown = {kind: n - before.get(kind, 0) for kind, n in bytes_by_type(third).items()}
    assert kept
    assert warm
    return {
        "counted_bytes": total_bytes(third) - total_bytes(second),
        "traced_bytes": traced_bytes,
        "grown": {kind: n for kind, n in grown.items() if n},
    }


if __name__ == "__main__":
    gc.collect()
    gc.disable()
    json.dump({name: measure(name) for name in HEAPS}, sys.stdout)
