"""`memory.attribute`: a block, or a function, whose growth is attributed to a name."""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final, ParamSpec, Self, TypeVar, cast

from cpythonplus.memory._attribution.recording import NAMES, SHARE, Span, configure, refuse

_P = ParamSpec("_P")
_R = TypeVar("_R")
_KINDS: Final = (classmethod, staticmethod, property)


class attribute:  # noqa: N801  # used like a function
    """Attribute the growth of the process, while a block or a function is executed, to a name.

    name: of a task or a route. There should be few, and no numbers or keys in them: from the 65th
    on all go to `(other)` together. Only the first 200 characters of a name count.

    A context manager, and a decorator of functions, coroutines, generators and asynchronous
    generators; the same one may be used more than once, also at once. A generator counts from its
    first step until it is closed. An exception passes, and the call counts.

    Each call counts itself; the growth is *measured* for some of them, see `configure`.
    `attributed()` returns the findings. A forked child begins anew.

    Raises TypeError if the name is no text, ValueError if it is empty, UnsupportedPlatform without
    a GIL.
    """

    __slots__ = ("_name", "_spans")

    def __init__(self, name: str) -> None:
        """Make it; nothing is measured yet."""
        if not isinstance(name, str):
            raise TypeError(f"attribute: expected a name, got {type(name).__qualname__}")
        if not name:
            raise ValueError("attribute: expected a name, got an empty one")
        refuse()
        self._name = name
        self._spans: list[Span] = []

    def __enter__(self) -> Self:
        span = Span(self._name)
        self._spans.append(span)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        spans = self._spans
        if len(spans) == 1:
            spans.pop().end()
        elif spans:
            self._own(spans).end()

    @staticmethod
    def _own(spans: list[Span]) -> Span:
        """Take the caller's span off the list; others may use the same object at the same time."""
        for span in reversed(spans[:]):
            if span.is_own() and span in spans:
                spans.remove(span)
                return span
        return spans.pop()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return the function with each of its calls attributed; TypeError for any other object."""
        if isinstance(function, (type, *_KINDS)) or not callable(function):
            kind = type(function).__qualname__
            raise TypeError(
                f"attribute: expected a function, got {kind};"
                " below @classmethod, @staticmethod and @property is its place"
            )
        return cast("Callable[_P, _R]", functools.wraps(function)(_wrapped(function, self._name)))

    @staticmethod
    def configure(*, share: float = SHARE, names: int = NAMES) -> None:
        """Forget all findings, and go on with other limits.

        share: the share of the time that measuring may take, about, more than 0 and at most 1; 1:
        without a limit. names: the number of different names, 1 to 1000; each takes up to 10 KiB.
        Raises ValueError for another number.
        """
        configure(share, names)


def _wrapped(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        return _coroutine(function, name)
    if inspect.isasyncgenfunction(function):
        return _async_generator(function, name)
    if inspect.isgeneratorfunction(function):
        return _generator(function, name)

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        span = Span(name)
        try:
            return function(*args, **kwargs)
        finally:
            span.end()

    return call


def _coroutine(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        span = Span(name)
        try:
            return await function(*args, **kwargs)
        finally:
            span.end()

    return call


def _generator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401
        span = Span(name, nests=False)
        try:
            return (yield from function(*args, **kwargs))
        finally:
            span.end()

    return call


def _async_generator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401
        span = Span(name, nests=False)
        inner = function(*args, **kwargs)
        step = inner.asend(None)
        try:
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001  # raised by the inner generator
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)
        finally:
            try:
                await inner.aclose()
            finally:
                span.end()

    return call
