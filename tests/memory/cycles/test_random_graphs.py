"""Any garbage at all: it is named without a mishap, cleared, and never found a second time."""

import contextlib
import functools
import gc
import random
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cpythonplus.memory import cycles

Pool = list[Any]


class Instance:
    pass


class Slots:
    __slots__ = ("__weakref__", "a", "b")


class OwnDict(dict[Any, Any]):
    pass


class OwnList(list[Any]):
    pass


def function(chance: random.Random, pool: Pool) -> object:
    x, y = chance.choice(pool), chance.choice(pool)

    def inner(a: object = x) -> object:
        return y, inner, a

    return inner


def generator(chance: random.Random, pool: Pool) -> object:
    def steps(x: object, y: object) -> Iterator[object]:
        try:
            yield x
        finally:
            _ = y

    result = steps(chance.choice(pool), chance.choice(pool))
    if chance.random() < 0.7:
        next(result)
    return result


def exception(chance: random.Random, pool: Pool) -> object:
    def fail(depth: int, x: object) -> None:
        if depth:
            fail(depth - 1, x)
        raise ValueError(x)

    def keep(x: object) -> object:
        kept: BaseException | None = None
        try:
            fail(chance.randrange(4), x)
        except ValueError as error:
            kept = error
            kept.__context__ = chance.choice([None, KeyError(kept)])
        return kept

    return keep(chance.choice(pool))


def class_(chance: random.Random, pool: Pool) -> object:
    base = chance.choice([object, Exception, dict, list])
    return type("Made", (base,), {"x": chance.choice(pool), "m": lambda self: self})


def coroutine(chance: random.Random, pool: Pool) -> object:
    async def work(x: object) -> object:
        return x

    result = work(chance.choice(pool))
    if chance.random() < 0.5:
        result.close()
    return result


MAKERS: list[Callable[[random.Random, Pool], object]] = [
    *(lambda _c, _p, kind=kind: kind() for kind in (Instance, Slots, OwnDict, OwnList, list, dict)),
    *(function, generator, exception, class_, coroutine),
    lambda _c, _p: set[object](),
    lambda c, p: (c.choice(p), c.choice(p)),
    lambda c, p: functools.partial(print, c.choice(p)),
    lambda c, p: types.MethodType(print, c.choice(p) or 3),
    lambda c, p: iter([c.choice(p)]),
    lambda c, p: types.SimpleNamespace(x=c.choice(p)),
    lambda c, p: weakref.ref(c.choice([x for x in p if type(x) is Instance] or [Instance()])),
    lambda c, _p: sys._getframe(c.randrange(2)),
    lambda _c, _p: contextlib.ExitStack(),
]


def link(chance: random.Random, source: Any, target: object) -> None:  # noqa: ANN401
    """Let one refer to the other, if it can."""
    with contextlib.suppress(TypeError, AttributeError):
        if isinstance(source, list):
            source.append(target)
        elif isinstance(source, dict):
            source[chance.choice(["key", 1, (1, 2)])] = target
        elif isinstance(source, set):
            source.add(target)
        else:
            setattr(source, chance.choice(["a", "b", "args", "__context__"]), target)


def build(chance: random.Random) -> None:
    pool: Pool = [None, 5]
    for _ in range(chance.randrange(3, 25)):
        pool.append(chance.choice(MAKERS)(chance, pool))
    made = pool[2:]
    for _ in range(chance.randrange(1, 40)):
        link(chance, chance.choice(made), chance.choice(made))


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # coroutines that nobody awaits
        yield


def test_random_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    mishaps: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda each: mishaps.append(each.exc_value))
    found = 0
    with cycles.watch(hoards=False) as w:
        for seed in range(60):
            build(random.Random(seed))
            gc.collect()
            first = w.take()
            gc.collect()
            assert list(map(str, w.take())) == [], f"found again, seed {seed}"
            assert mishaps == [], f"seed {seed}"
            assert all(cycle.cause.variable for cycle in first)
            found += len(first)
    assert found > 60
    assert gc.garbage == []
