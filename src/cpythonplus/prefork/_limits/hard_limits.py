"""Ending a worker in the middle of a request that takes too long, or has grown too large.

A thread of the worker checks both, once a second.  It logs the running requests and their present
lines, and ends the process.  A thread or task of Python cannot be ended alone: its locks and
connections would never be released.

C code that keeps the GIL stops this thread too.  So it notes the time of each check on the board,
and the master kills a worker whose last check is too old; see `hung_workers`.

Rejected: a timer and SIGALRM, which are the application's to use, and reach the main thread only.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from contextlib import suppress
from itertools import islice
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Any, NoReturn

from cpythonplus._base.stacks import frames_of_threads, outwards
from cpythonplus._base.text.sizes import format_size
from cpythonplus.prefork._blame.sharing import private_bytes
from cpythonplus.prefork._guarding import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from cpythonplus.prefork._board.slots import Slot
    from cpythonplus.prefork._options import Options

    Key = int | asyncio.Task[Any]  # the server of a request: the number of a thread, or a task

_TURN_S = 1.0
_READING_SHARE = 0.01  # of the time at most: a reading takes 1 ms for each 100 MB
_MOST_FRAMES = 24
_MOST_LINES = 40
_MOST_TEXT = 200
_JOIN_S = 1.0
_FAILED_STATUS = 1
_NAME = "cpythonplus hard limits"


class HardLimits:
    """The requests that a worker serves now, and the thread that checks them."""

    def __init__(self) -> None:
        # The thread or task of a request adds and removes its entry; readers copy the dict first.
        self._running: dict[Key, tuple[float, str, str]] = {}
        self._limit_s = 0.0
        self._limit_bytes = 0
        self._slot: Slot | None = None
        self._log: Any = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._memory_at_s = 0.0

    def start(self, options: Options, slot: Slot | None, log: Any) -> bool:  # noqa: ANN401
        """Begin to watch this worker; False if the options set no hard limit."""
        self._running.clear()
        self._limit_s = options.request_timeout
        self._limit_bytes = self._possible(options.hard_private_memory, log)
        self._slot, self._log = slot, log
        self._memory_at_s = 0.0
        if not self._limit_s and not self._limit_bytes:
            return False
        # A new event: a thread that the fork has lost may have been using the parent's.
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=_NAME, daemon=True)
        self._thread.start()
        # The interpreter waits for threads that serve a request before that, and the limits hold
        # until then.
        atexit.unregister(self.stop)
        atexit.register(self.stop)
        return True

    def stop(self) -> None:
        """Stop watching this process."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_JOIN_S)
            self._look_is_over()
            self._slot = None  # a mold's place on the board is soon another worker's

    def begin(self, key: Key, method: str, path: str) -> None:
        """Note that a request begins."""
        self._running[key] = (monotonic(), method, path)

    def end(self, key: Key) -> None:
        """Note that the request has ended."""
        self._running.pop(key, None)

    def around(self, handle: Callable[..., Any], place: int) -> Callable[..., Any]:
        """Return `handle`, which serves a WSGI request (argument `place`), with notes around it."""
        running, get_ident = self._running, threading.get_ident

        def handle_request(*args: Any) -> Any:  # noqa: ANN401
            key, request = get_ident(), args[place]
            running[key] = (monotonic(), request.method, request.path)
            try:
                return handle(*args)
            finally:
                running.pop(key, None)

        return handle_request

    # ---- the thread -----------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            while not self._over.is_set():
                if self._slot is not None:
                    self._slot.write(looked_ns=monotonic_ns())
                self._over.wait(self._look())
        except Exception as error:  # noqa: BLE001  # watching must not end the worker
            self._look_is_over()
            self._log.warning(
                "this worker's hard limits are no longer watched: %s", in_one_line(error)
            )

    def _look_is_over(self) -> None:
        if self._slot is not None:
            self._slot.write(looked_ns=0)

    def _look(self) -> float:
        """Check once, and return the seconds until the next check."""
        now_s = monotonic()
        pause_s = _TURN_S
        if self._limit_s:
            # With pauses of half the limit each request is seen before its time is over; then the
            # pause ends at that time.
            pause_s = min(pause_s, self._limit_s / 2)
            for key, entry in self._running.copy().items():
                left_s = entry[0] + self._limit_s - now_s
                if left_s <= 0:
                    self._end_late(key, entry)
                pause_s = min(pause_s, max(left_s, 0.001))
        if self._limit_bytes and now_s >= self._memory_at_s:
            self._look_at_memory(now_s)
        return pause_s

    def _end_late(self, key: Key, entry: tuple[float, str, str]) -> None:
        told = self._told(key, entry)
        if self._running.get(key) is entry:  # it has not ended meanwhile
            self._end(
                "request_timeout", f"{told}; request_timeout is {self._limit_s:g} s", without=key
            )

    def _look_at_memory(self, now_s: float) -> None:
        try:
            found = private_bytes()
        except (OSError, RuntimeError):  # unavailable here
            self._limit_bytes = 0
            return
        if found > self._limit_bytes:
            self._end(
                "hard_private_memory",
                f"it has {format_size(found)} of private memory; hard_private_memory is"
                f" {format_size(self._limit_bytes)}",
            )
        self._memory_at_s = now_s + max(_TURN_S, (monotonic() - now_s) / _READING_SHARE)

    @staticmethod
    def _possible(limit_bytes: int, log: Any) -> int:  # noqa: ANN401
        """Return the limit, or 0 if a fresh worker exceeds it: else workers would end for ever."""
        with suppress(OSError, RuntimeError):
            found = private_bytes() if limit_bytes else 0
            if found > limit_bytes:
                log.error(
                    "a fresh worker has %s of private memory: hard_private_memory (%s) is ignored",
                    format_size(found),
                    format_size(limit_bytes),
                )
                return 0
        return limit_bytes

    def _end(self, reason: str, why: str, without: Key | None = None) -> NoReturn:
        try:
            self._log.error("worker %d is ended at once: %s", os.getpid(), why)
            for line in islice(self._others(without), _MOST_LINES):
                self._log.error("in worker %d, which is ended: %s", os.getpid(), line)
            if self._slot is not None:
                self._slot.leaves(reason)
        finally:
            os._exit(_FAILED_STATUS)

    # ---- places of requests ---------------------------------------------------------------------

    def _told(self, key: Key, entry: tuple[float, str, str]) -> str:
        began_s, *request = entry
        words = " ".join(ascii(each)[1:-1][:_MOST_TEXT] for each in request)
        place = "an unknown place"
        with suppress(
            Exception
        ):  # an awaited object can be of any kind; the worker is ended all the same
            place = _place(_frames_of(key))
        return f"{words} for {monotonic() - began_s:.1f} s, at {place}"

    def _others(self, key: Key | None) -> Iterator[str]:
        """Yield the other work that ends with the worker, or that a request may wait for."""
        running = self._running.copy()
        for each in running.items():
            if each[0] != key:
                yield self._told(*each)
        tasks = [each for each in running if not isinstance(each, int)]
        if not tasks:
            return
        # Tasks that a request awaits, and code that blocks the event loop.
        for task in asyncio.all_tasks(tasks[0].get_loop()) - set(tasks):
            frames = _frames_of(task)
            if any(map(_is_application, frames)):
                yield f"task {task.get_name()}, at {_place(frames)}"
        told = threading.main_thread() if _current_task(tasks[0]) is not None else None
        for thread in threading.enumerate():
            frames = _stack(thread.ident)
            if thread is not told and any(map(_is_application, frames)):
                yield f"thread {thread.name}, at {_place(frames)}"


def _place(frames: list[FrameType]) -> str:
    """Return the place of a thread or task, the innermost function first."""
    shown = [
        f"{each.f_code.co_filename}:{each.f_lineno} ({each.f_code.co_name})"
        for each in frames[:_MOST_FRAMES]
    ]
    return " < ".join(shown) or "an unknown place"


def _frames_of(key: Key) -> list[FrameType]:
    """Return the frames that serve a request, the innermost first."""
    if isinstance(key, int):
        return _stack(key)
    if _current_task(key) is key:
        return _stack(threading.main_thread().ident)
    frames: list[FrameType] = []
    awaited: Any = key.get_coro()
    for _ in range(sys.getrecursionlimit()):  # not for ever: an object may await itself
        kinds = ("cr_frame", "gi_frame", "ag_frame")
        found = [frame for kind in kinds if (frame := getattr(awaited, kind, None)) is not None]
        frames += found
        inner = (getattr(awaited, name, None) for name in ("cr_await", "gi_yieldfrom", "ag_await"))
        awaited = next((each for each in inner if each is not None), None)
        if awaited is None and found and found[0].f_code.co_filename.startswith(_PREFORK):
            # The metrics step the application's coroutine themselves.
            awaited = getattr(found[0].f_locals.get("self"), "_inner", None)
        if awaited is None:
            break
    return _inside(frames[::-1])


def _stack(ident: int | None) -> list[FrameType]:
    return _inside(outwards(frames_of_threads().get(ident or 0)))


def _inside(frames: list[FrameType]) -> list[FrameType]:
    """Return the frames inside of this package's own functions, which are around a request."""
    ours = [n for n, frame in enumerate(frames) if frame.f_code.co_filename.startswith(_OURS)]
    return frames[: ours[0]] if ours else frames


def _current_task(task: asyncio.Task[Any]) -> asyncio.Task[Any] | None:
    return asyncio.current_task(task.get_loop())


_PREFORK = __file__.rpartition("/_limits/")[0]
_OURS = (_PREFORK, f"{os.path.dirname(_PREFORK)}/_base/web")  # noqa: PTH120
_LIBRARY = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120


def _is_application(frame: FrameType) -> bool:
    """Whether a function belongs neither to the standard library nor to an installed package."""
    name = frame.f_code.co_filename
    return not name.startswith(("<", _LIBRARY)) and "-packages" not in name
