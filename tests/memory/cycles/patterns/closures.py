"""Functions that refer to themselves by a free variable, and how not to."""

import functools
from collections.abc import Callable, Iterator

from tests.memory.cycles.patterns.pattern import Pattern


def recursive() -> int:
    def walk(n: int) -> int:  # <- here
        return n and walk(n - 1)

    return walk(3)


def _walk(n: int) -> int:
    return n and _walk(n - 1)


def recursive_twin() -> int:
    return _walk(3)


def mutually_recursive() -> bool:
    def even(n: int) -> bool:  # <- here
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    return even(4)


def mutually_recursive_twin() -> bool:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)  # noqa: F821  # it is deleted below

    try:
        return even(4)
    finally:
        del even


def recursive_generator() -> int:
    def walk(n: int) -> Iterator[int]:  # <- here
        yield n
        if n:
            yield from walk(n - 1)

    return sum(walk(3))


def recursive_generator_twin() -> int:
    def walk(n: int) -> Iterator[int]:
        yield n
        if n:
            yield from walk(n - 1)  # noqa: F821  # it is deleted below

    try:
        return sum(walk(3))
    finally:
        del walk


def decorated() -> int:
    @functools.lru_cache  # <- here
    def walk(n: int) -> int:
        return n and walk(n - 1)

    return walk(3)


def decorated_twin() -> int:
    @functools.lru_cache
    def walk(n: int) -> int:
        return n and walk(n - 1)  # noqa: F821  # it is deleted below

    try:
        return walk(3)
    finally:
        del walk


class Widget:
    def __init__(self, *, leak: bool) -> None:
        self.x = 1
        self.handlers: dict[str, list[Callable[[], int]]] = {"click": []}
        self.callback: Callable[[], int] | None = None
        if leak:
            self.callback = lambda: self.x  # <- here

    def listen(self) -> None:
        def clicked() -> int:
            return self.x

        self.handlers["click"].append(clicked)  # <- here


def lambda_on_self() -> None:
    Widget(leak=True)


def lambda_on_self_twin() -> None:
    Widget(leak=False)


def over_self() -> None:
    Widget(leak=False).listen()


def over_self_twin() -> None:
    widget = Widget(leak=False)
    widget.listen()
    widget.handlers.clear()


def in_a_list() -> int:
    hooks: list[Callable[[], int]] = []

    def count() -> int:
        return len(hooks)

    hooks.append(count)  # <- here
    return count()


def in_a_list_twin() -> int:
    hooks: list[Callable[[], int]] = []

    def count() -> int:
        return len(hooks)

    hooks.append(count)
    try:
        return count()
    finally:
        hooks.clear()


PATTERNS = [
    Pattern(name, leak, twin, "closure", function, variable, marked)
    for name, leak, twin, function, variable, marked in (
        ("recursive function", recursive, recursive_twin, "recursive", "walk", None),
        (
            "mutually recursive",
            mutually_recursive,
            mutually_recursive_twin,
            "mutually_recursive",
            "even",
            None,
        ),
        (
            "recursive generator",
            recursive_generator,
            recursive_generator_twin,
            "recursive_generator",
            "walk",
            None,
        ),
        ("cached recursion", decorated, decorated_twin, "decorated", "walk", None),
        (
            "lambda on self",
            lambda_on_self,
            lambda_on_self_twin,
            "Widget.__init__",
            "self.callback",
            Widget.__init__,
        ),
        (
            "closure over self",
            over_self,
            over_self_twin,
            "Widget.listen",
            "self.handlers['click'][]",
            Widget.listen,
        ),
        ("list of hooks", in_a_list, in_a_list_twin, "in_a_list", "hooks[]", None),
    )
]
