"""Classes made in functions, and made once."""

import abc
import enum
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from tests.memory.cycles.patterns.pattern import Pattern


def plain() -> object:
    class Local:  # <- here
        pass

    return Local()


class Shared:
    pass


def once() -> object:
    return Shared()


def with_methods() -> object:
    class Node:  # <- here
        def __init__(self) -> None:
            self.x = 1

    return Node()


def with_super() -> object:
    class Derived(Shared):  # <- here
        def __init__(self) -> None:
            super().__init__()

    return Derived()


def data_class() -> object:
    @dataclass  # <- here
    class Point:
        x: int = 0

    return Point()


def named_tuple() -> object:
    return namedtuple("Pair", "a b")  # noqa: PYI024  # <- here


def typed_named_tuple() -> object:
    class Typed(NamedTuple):  # <- here
        a: int

    return Typed(1)


def typed_dict() -> object:
    class Movie(TypedDict):  # <- here
        name: str

    return Movie(name="x")


def enumeration() -> object:
    class Color(enum.Enum):  # <- here
        RED = 1

    return Color.RED.name


def abstract() -> object:
    class Base(abc.ABC):  # <- here
        @abc.abstractmethod
        def run(self) -> None: ...

    return Base.__name__


def by_type() -> object:
    return type("Made", (), {})()  # <- here


def exception_class() -> object:
    class LocalError(Exception):  # <- here
        pass

    try:
        raise LocalError  # noqa: TRY301
    except LocalError as e:
        return str(e)


PATTERNS = [
    Pattern(leak.__name__, leak, once, "class", leak.__name__, variable)
    for leak, variable in (
        (plain, "Local"),
        (with_methods, "Node"),
        (with_super, "Derived"),
        (data_class, "Point"),
        (named_tuple, "Pair"),
        (typed_named_tuple, "Typed"),
        (typed_dict, "Movie"),
        (enumeration, "Color"),
        (abstract, "Base"),
        (by_type, "Made"),
        (exception_class, "LocalError"),
    )
]
