"""Blocking calls, made in a thread while only the tasklet waits.

The threads are real ones, whatever is patched: they are started and fed by `_thread` and `_queue`,
which no patch touches. An idle thread soon ends: starting another one takes less time than a
look-up.
"""

import _queue
import _thread
import contextvars
import operator
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from cpythonplus._native import io_delivery

_P = ParamSpec("_P")
_R = TypeVar("_R")

_IDLE_S = 0.2


class _Job:
    """A call and its result."""

    __slots__ = "__weakref__", "args", "call", "cancelled", "delivery", "error", "kwargs", "result"

    def __init__(
        self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.call, self.args, self.kwargs = call, args, kwargs
        self.cancelled = False
        self.delivery = io_delivery()
        self.result: Any = None
        self.error: BaseException | None = None

    def work(self) -> None:
        if self.cancelled:
            return
        try:
            self.result = self.call(*self.args, **self.kwargs)
        except BaseException as error:  # noqa: BLE001  # any exception belongs to the caller
            self.error = error  # noqa: CYC104  # in_thread() takes it out and raises it
        self.delivery.deliver()


class _Server:
    """Stands for a thread, which refers to it."""

    __slots__ = ("__weakref__",)


class _Pool:
    """A limited number of threads, and their jobs.

    It has no lock: a tasklet or a signal handler may enter while another tasklet of its thread is
    in here.  A handler may raise in here: what it ended takes no place, as only weak references
    count places.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.queue: _queue.SimpleQueue[_Job] = _queue.SimpleQueue()
        self.unfinished: WeakSet[_Job] = WeakSet()
        self.threads: WeakSet[_Server] = WeakSet()

    def submit(self, job: _Job) -> None:
        self.unfinished.add(job)
        self.queue.put(job)
        # Checked after put(): a thread that ends removes itself before it checks the queue.
        if len(self.threads) < min(self.limit, len(self.unfinished)):
            self.start(job)

    def start(self, job: _Job) -> None:
        server = _Server()
        self.threads.add(server)
        if len(self.threads) > self.limit:  # another tasklet was faster
            self.threads.discard(server)
            return
        try:
            _thread.start_new_thread(self.serve, (server,))
        except RuntimeError:
            self.threads.discard(server)
            if not self.threads:  # with other threads, one of them does the job later
                job.cancelled = True
                self.unfinished.discard(job)
                raise

    def serve(self, server: _Server) -> None:
        while True:
            try:
                job = self.queue.get(timeout=_IDLE_S)
            except _queue.Empty:
                self.threads.discard(server)
                if self.queue.empty():
                    return
                self.threads.add(server)
                continue
            job.work()
            self.unfinished.discard(job)
            del job  # its result must not live until the next job comes


_pool = _Pool(limit=min(32, (os.cpu_count() or 1) + 4))


def in_thread(func: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call `func` in another thread; return what it returns, or raise what it raises.

    Only the tasklet waits. The call sees the caller's context variables, as a copy. When the
    waiting tasklet is killed the call goes on to its end, and its result is dropped.

    RuntimeError in the child of a fork for calls that were under way, and when no thread can be
    started.
    """
    job = _Job(contextvars.copy_context().run, (func, *args), kwargs)
    _pool.submit(job)
    job.delivery.wait()
    error, result = job.error, job.result
    del job
    if error is None:
        return result  # type: ignore[no-any-return]
    try:
        raise error
    finally:
        del error  # its traceback refers to this frame


def set_thread_limit(limit: int) -> None:
    """Limit the number of simultaneous calls of in_thread(); others wait for their turn.

    The default is the number of processors plus four, at most 32. ValueError below 1, TypeError for
    a limit that is no integer.
    """
    if operator.index(limit) < 1:
        raise ValueError("the limit must be at least 1")
    _pool.limit = limit


def _after_fork_in_child() -> None:
    global _pool
    lost, _pool = _pool, _Pool(_pool.limit)
    for job in lost.unfinished:
        job.error = RuntimeError("the thread of in_thread() is not in the child of the fork")
        job.delivery.deliver()


os.register_at_fork(after_in_child=_after_fork_in_child)
