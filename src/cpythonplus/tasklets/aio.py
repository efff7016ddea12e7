"""asyncio in both directions: a tasklet waits for a coroutine, a coroutine awaits a tasklet.

    result = aio.run(fetch(url))            # in a tasklet
    result = await aio.spawn(parse, text)   # in a coroutine

Both use the event loop of their thread. That is the program's while it runs one and has used
`spawn`, otherwise the one that sleeps for the thread's tasklets (cpythonplus.tasklets.io).
"""

# asyncio._get_running_loop() returns the thread's loop, or None without RuntimeError.
# ruff: noqa: SLF001

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from cpythonplus import _native
from cpythonplus._native import TaskletExit, getcurrent, tasklet
from cpythonplus.tasklets.io._hub import attach, loop_of_thread

__all__ = ["run", "spawn"]

T = TypeVar("T")
P = ParamSpec("P")


def run(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable in a tasklet; return its result or raise its exception.

    Only the tasklet waits: the awaitable runs in the event loop of the thread, as a task with a
    copy of the tasklet's context. When the tasklet gets an exception meanwhile (kill(), throw(),
    timeout(), KeyboardInterrupt), the task is cancelled and its end is waited for, as
    asyncio.wait_for() does; a second exception ends that waiting, too. asyncio.CancelledError if
    the task was cancelled by others. SystemExit and KeyboardInterrupt of the awaitable come to the
    tasklet and not to the loop. RuntimeError inside of a coroutine, which is to `await` instead,
    and for a future of another loop; TypeError if it cannot be awaited.
    """
    if not inspect.isawaitable(awaitable):
        raise TypeError(f"expected an awaitable, got {type(awaitable).__name__}")
    if asyncio._get_running_loop() is not None:
        _never_begun(awaitable)
        raise RuntimeError("aio.run() inside a coroutine: use `await` there")
    try:
        context = contextvars.copy_context()
        task = loop_of_thread().create_task(_keep(awaitable), context=context)
    except BaseException:
        _never_begun(awaitable)
        raise
    try:
        _wait_for(task)
        result = task.result()
        if isinstance(result, _Ended):
            raise result.error
        return result
    finally:
        if task.done():
            _never_begun(awaitable)
        task = result = None  # type: ignore[assignment]  # breaks a cycle with an exception


@dataclass(slots=True)
class _Ended:
    """Stands for a result: the awaitable ended with this exception."""

    error: BaseException


async def _keep(awaitable: Awaitable[T]) -> T | _Ended:
    """Await the awaitable; exceptions that would end the loop are kept for the waiting tasklet."""
    try:
        return await awaitable
    except (SystemExit, KeyboardInterrupt) as error:
        return _Ended(error)


def _never_begun(awaitable: Awaitable[object]) -> None:
    """Close a coroutine that has not begun, so that no warning comes."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()


def _wait_for(task: asyncio.Task[T]) -> None:
    waiting = getcurrent()

    def wake(_task: asyncio.Task[T]) -> None:
        _native.io_awaited(waiting)

    task.add_done_callback(wake)
    try:
        while not task.done():
            _native.io_await()
    except BaseException:
        while not task.done() and not task.get_loop().is_closed():
            task.cancel()
            _native.io_await()
        raise
    finally:
        task.remove_done_callback(wake)


def spawn(func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Call a function in a tasklet of this thread; return a future of its result, to be awaited.

    It is called in a coroutine. From then on the tasklets of the thread have their turns in the
    running loop, which may be any loop with add_reader(). While no tasklet can run, the loop does
    nothing for them. The tasklet's context is a copy of the caller's. If the future is cancelled,
    the tasklet is killed (it gets TaskletExit in its wait, at its next turn); if the tasklet is
    killed, the future is cancelled. A tasklet that outlives the loop goes on like any other, and
    its exception goes to the main tasklet. RuntimeError if no event loop runs; TypeError if `func`
    cannot be called.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def body() -> None:
        if future.cancelled():
            return
        try:
            result = func(*args, **kwargs)
        except (TaskletExit, asyncio.CancelledError):
            if not loop.is_closed():
                future.cancel()
        except (SystemExit, KeyboardInterrupt) as error:
            _fail(future, error)
            raise
        except BaseException as error:
            if loop.is_closed():
                raise  # no coroutine awaits it any more
            _fail(future, error)
        else:
            _succeed(future, result)

    if not callable(func):
        raise TypeError(f"expected a function, got {type(func).__name__}")
    attach(loop)
    call = tasklet(body, ())
    future.add_done_callback(lambda done: call.kill(pending=True) if done.cancelled() else None)
    call.insert()
    return future


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done() and not future.get_loop().is_closed():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done() and not future.get_loop().is_closed():
        if isinstance(error, StopIteration):  # a future does not accept it
            cause = error
            error = RuntimeError("the tasklet raised StopIteration")
            error.__cause__ = cause
        future.set_exception(error)
