"""What two censuses tell of what was made between them.

A script, as threads of a test runner make lists and dicts, too: prints what it found as JSON.
"""

import gc
import json
import sys
import types
from typing import Any

from cpythonplus import memory

NUMBER = 500


class Plain:
    def __init__(self, number: int) -> None:
        self.first = float(number)
        self.second = f"s{number}"


class Slotted:
    __slots__ = ("first", "second")


class ManyNames:
    pass


class Growth:
    """Kinds of content; what each returns is kept."""

    @staticmethod
    def instances() -> object:
        return [Plain(i) for i in range(NUMBER)] + [Slotted() for _ in range(10)]

    @staticmethod
    def nested() -> object:
        shared = [None]
        return [[shared, ("a", (i, {str(i): (i, 0.5)}))] for i in range(NUMBER)]

    @staticmethod
    def owned_dicts() -> object:
        kept = [Plain(i) for i in range(NUMBER)]
        dicts = [vars(each) for each in kept]
        function: Any = lambda: None  # noqa: E731  # with attributes
        function.attribute = 1
        return kept, dicts, function, types.ModuleType("made_up"), type("MadeUp", (), {})

    @staticmethod
    def shared_dict() -> object:
        shared: dict[str, object] = {"a": 1}
        kept = [ManyNames() for _ in range(50)]
        for each in kept:
            each.__dict__ = shared
        return kept

    @staticmethod
    def bytes_() -> object:
        return [b"x" * (1000 + i % 9) for i in range(NUMBER)]


GROWTHS = [name for name in vars(Growth) if not name.startswith("_")]


def measure(name: str) -> dict[str, dict[str, int]]:
    make = getattr(Growth, name)
    make()  # what is only made the first time
    first = memory.census()
    second = memory.census()
    del first  # as large as the second, which was not there when it was made
    kept = make()
    difference = memory.census() - second
    assert kept
    tables = ("by_type", "by_owner", "by_size_class")
    return {
        table: {row.name: row.objects for row in getattr(difference, table)} for table in tables
    }


if __name__ == "__main__":
    gc.collect()
    gc.disable()
    json.dump({name: measure(name) for name in GROWTHS}, sys.stdout)
