"""The standard library's contextlib."""

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Coroutine, Iterator

from survey.drivers.support import awaits_failing, fails

# One loop for all calls: what a loop leaves behind is asyncio's.
_LOOP = asyncio.new_event_loop()


def _run(work: Coroutine[object, object, None]) -> None:
    _LOOP.run_until_complete(work)


@contextlib.contextmanager
def _plain() -> Iterator[int]:
    yield 1


@contextlib.contextmanager
def _cleans_up() -> Iterator[int]:
    try:
        yield 1
    finally:
        str()  # noqa: UP018


@contextlib.contextmanager
def _replaces() -> Iterator[int]:
    try:
        yield 1
    except ValueError as error:
        raise KeyError("replaced") from error


@contextlib.contextmanager
def _swallows() -> Iterator[int]:
    with contextlib.suppress(ValueError):
        yield 1


@contextlib.contextmanager
def _twice() -> Iterator[int]:
    yield 1
    yield 2


@contextlib.contextmanager
def _never() -> Iterator[int]:
    yield from ()


@contextlib.asynccontextmanager
async def _asynchronous() -> AsyncIterator[int]:
    yield 1


def _refuse() -> object:
    raise ValueError("refused")


def _within(manager: contextlib.AbstractContextManager[object]) -> None:
    with manager:
        _refuse()


def context_manager() -> None:
    with _plain():
        pass


def exit_stack() -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_plain())
        stack.callback(str)
        stack.enter_context(_swallows())


def decorator() -> None:
    _plain()(str)()


def redirect() -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.closing(io.StringIO()):
        print("x")


def async_exit_stack() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(_asynchronous())
            stack.enter_context(_plain())

    _run(work())


def raising_in_the_block() -> None:
    fails(ValueError, lambda: _within(_plain()))


def raising_where_it_cleans_up() -> None:
    fails(ValueError, lambda: _within(_cleans_up()))


def replaced_exception() -> None:
    fails(KeyError, lambda: _within(_replaces()))


def swallowed_exception() -> None:
    _within(_swallows())


def generator_that_does_not_yield() -> None:
    fails(RuntimeError, lambda: _within(_never()))


def generator_that_does_not_stop() -> None:
    fails(RuntimeError, lambda: _twice()(str)())


def raising_in_an_exit_stack() -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_cleans_up())
        stack.enter_context(_swallows())
        _refuse()


def raising_through_an_exit_stack() -> None:
    def work() -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_cleans_up())
            stack.callback(str)
            _refuse()

    fails(ValueError, work)


def failing_callbacks_of_an_exit_stack() -> None:
    def work() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(_refuse)
            stack.callback(_refuse)

    fails(ValueError, work)


def replaced_in_an_exit_stack() -> None:
    def work() -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_replaces())
            stack.callback(_refuse)

    fails(KeyError, work)


def raising_in_an_async_exit_stack() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(_asynchronous())
            stack.enter_context(_swallows())
            _refuse()

    _run(work())


def failing_callbacks_of_an_async_exit_stack() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(_refuse)
            stack.enter_context(_replaces())

    _run(awaits_failing(ValueError, work()))


ORDINARY = [context_manager, exit_stack, decorator, redirect, async_exit_stack]
ERRORS = [
    raising_in_the_block,
    raising_where_it_cleans_up,
    replaced_exception,
    swallowed_exception,
    generator_that_does_not_yield,
    generator_that_does_not_stop,
    raising_in_an_exit_stack,
    raising_through_an_exit_stack,
    failing_callbacks_of_an_exit_stack,
    replaced_in_an_exit_stack,
    raising_in_an_async_exit_stack,
    failing_callbacks_of_an_async_exit_stack,
]
