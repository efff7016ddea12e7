"""Atomic sections: the Python half of ``cpythonplus.gil.atomic``."""

import functools
import inspect
import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from cpythonplus._base.errors import UnsupportedPlatform
from cpythonplus.gil._control import free_threaded

__all__ = ["LockAtomic", "OverlongSection", "atomic"]

P = ParamSpec("P")
R = TypeVar("R")

_MAX_LIMIT_MS = 1e9
_NOTHING: Any = object()


@dataclass(frozen=True, slots=True)
class OverlongSection:
    """An atomic section that lasted longer than the configured limit.

    duration_ns: how long, to a tick of the coarse clock.  thread: its name.  stack: where the
    thread was when it left the section, outermost frame first.
    """

    duration_ns: int
    thread: str
    stack: traceback.StackSummary

    def __str__(self) -> str:
        where = "".join(self.stack.format()).rstrip()
        milliseconds = self.duration_ns / 1e6
        return (
            f"atomic section of {milliseconds:.0f} ms in thread {self.thread!r}, left at:\n{where}"
        )


def _make_reporter(report: Callable[[OverlongSection], object]) -> Callable[[int], None]:
    def reporter(duration_ns: int) -> None:
        stack = traceback.extract_stack()[:-1]
        summary = traceback.StackSummary.from_list(stack)
        report(OverlongSection(duration_ns, threading.current_thread().name, summary))

    return reporter


def _decorate(function: Callable[P, R], section: Callable[[], Any] | None = None) -> Callable[P, R]:
    if not callable(function):
        raise TypeError(f"atomic() takes a function, not {type(function).__name__}")
    for unfit in (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    ):
        if unfit(function):
            name = getattr(function, "__qualname__", function)
            raise TypeError(
                f"{name} is suspended while it runs and cannot be atomic as a whole; "
                "put `with atomic():` around the steps that must be"
            )

    enter = atomic if section is None else section

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with enter():
            return function(*args, **kwargs)

    return wrapper


class LockAtomic:
    """The form of ``atomic`` on a free-threaded build: one re-entrant lock for the whole process.

    Atomic sections exclude each other, and nothing else: other threads run beside them.  The lock
    stays taken during a blocking call.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._local = threading.local()

    @overload
    def __call__(self, /) -> "LockSection": ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...
    def __call__(self, function: Any = _NOTHING, /) -> Any:
        """Return a section, or ``function`` run inside one."""
        return LockSection(self) if function is _NOTHING else _decorate(function, self)

    def enter(self) -> None:
        """Begin an atomic section of this thread.  Sections nest."""
        self._lock.acquire()
        self._local.depth = getattr(self._local, "depth", 0) + 1

    def leave(self) -> None:
        """End the innermost section; RuntimeError when this thread is not inside one."""
        if not self.inside():
            raise RuntimeError("atomic.leave() without atomic.enter() in this thread")
        self._local.depth -= 1
        self._lock.release()

    def inside(self) -> bool:
        """Return whether this thread is inside an atomic section."""
        return getattr(self._local, "depth", 0) > 0

    def configure(self, *, limit_ms: float = 20.0, report: object = None) -> None:
        """Accept the arguments of the GIL build; sections are not timed here."""
        if not 0.0 < limit_ms <= _MAX_LIMIT_MS:
            raise ValueError("limit_ms must be above 0 and at most 1e9")
        if report is not None and not callable(report):
            raise TypeError(f"report must be callable or None, not {type(report).__name__}")


class LockSection:
    """One section of a ``LockAtomic``."""

    __slots__ = ("_atomic",)

    def __init__(self, atomic_: LockAtomic) -> None:
        self._atomic = atomic_

    def __enter__(self) -> Self:
        self._atomic.enter()
        return self

    def __exit__(self, kind: object, value: object, where: object) -> None:
        self._atomic.leave()


class _NoAtomic(LockAtomic):
    """The form of ``atomic`` without the extension module: each use raises UnsupportedPlatform."""

    def enter(self) -> None:
        raise UnsupportedPlatform("the GIL cannot be held here: the extension module is missing")


if TYPE_CHECKING:
    from cpythonplus._native import atomic
elif free_threaded():
    atomic = LockAtomic()
    # As with a GIL, no other thread is inside at a fork: the child could not leave for it.
    os.register_at_fork(
        before=atomic.enter, after_in_parent=atomic.leave, after_in_child=atomic.leave
    )
else:
    try:
        from cpythonplus._native import atomic
    except ImportError:
        atomic = _NoAtomic()
    else:
        atomic._setup(_decorate, _make_reporter)  # noqa: SLF001  # its other half
