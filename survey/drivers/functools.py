"""The standard library's functools."""

import functools

from survey.drivers.support import fails


def _refuse(*_: object) -> object:
    raise ValueError("refused")


class _Place:
    @functools.cached_property
    def value(self) -> int:
        return 1

    @functools.cached_property
    def refused(self) -> object:
        return _refuse()

    @functools.singledispatchmethod
    def method(self, argument: object) -> object:
        return argument

    part = functools.partialmethod(_refuse, 1)


def lru_cache() -> None:
    cached = functools.lru_cache(maxsize=4)(abs)
    for n in range(6):
        cached(-n)
    cached.cache_clear()


def singledispatch() -> None:
    generic = functools.singledispatch(_refuse)
    generic.register(int, abs)
    generic(1)


def wraps() -> None:
    functools.wraps(_refuse)(functools.partial(_refuse, 1))


def _compare(left: int, right: int) -> int:
    return left - right


def cmp_to_key() -> None:
    sorted([3, 1, 2], key=functools.cmp_to_key(_compare))


def cached_property() -> None:
    assert _Place().value == 1


def single_dispatch_method() -> None:
    _Place().method(1)


def reduce() -> None:
    functools.reduce(lambda a, b: a + b, range(10))


def lru_cache_of_what_raises() -> None:
    fails(ValueError, lambda: functools.lru_cache(_refuse)(1))


def lru_cache_of_an_unhashable() -> None:
    fails(TypeError, lambda: functools.lru_cache(_refuse)([]))  # type: ignore[arg-type]


def singledispatch_that_raises() -> None:
    fails(ValueError, lambda: functools.singledispatch(_refuse)(1))


def singledispatch_of_nothing() -> None:
    fails(TypeError, lambda: functools.singledispatch(_refuse)())


def register_what_has_no_annotation() -> None:
    fails(TypeError, lambda: functools.singledispatch(_refuse).register(lambda x: x))  # type: ignore[call-overload]


def cached_property_that_raises() -> None:
    fails(ValueError, lambda: _Place().refused)


def partial_method_that_raises() -> None:
    fails(ValueError, lambda: _Place().part())


def reduce_of_nothing() -> None:
    fails(TypeError, lambda: functools.reduce(lambda a, b: a + b, []))


ORDINARY = [
    lru_cache,
    singledispatch,
    wraps,
    cmp_to_key,
    cached_property,
    single_dispatch_method,
    reduce,
]
ERRORS = [
    lru_cache_of_what_raises,
    lru_cache_of_an_unhashable,
    singledispatch_that_raises,
    singledispatch_of_nothing,
    register_what_has_no_annotation,
    cached_property_that_raises,
    partial_method_that_raises,
    reduce_of_nothing,
]
