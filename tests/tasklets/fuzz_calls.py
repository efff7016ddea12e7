"""Calls of the whole API of tasklets, channels, locks and queues, at random: nothing may crash.

    python fuzz_calls.py SEED CALLS [--thread]

Tasklets, callbacks of the scheduler and of channels, a signal's handler, trace functions,
finalisers and comparisons all call on.  Exceptions mean nothing here; a crash, a hang or a message
of the interpreter does.  --thread: a second thread does the same with the same objects.  Prints
how many calls were made.
"""

# ruff: noqa: ANN401  # whatever it is: that is the point

import argparse
import contextlib
import contextvars
import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from cpythonplus import tasklets
from cpythonplus.tasklets import io, locks

Call = Callable[[], object]

DEEP = 4
"""Calls inside of calls."""

KEPT = 12
"""Objects of each kind that are known; a new one takes the place of another."""

SHORT_S = 0.0003

TICK_S = 0.003 if sys.version_info >= (3, 12) else 0.012
"""Between two signals.  On 3.11 a traced thread stands still while one waits for the main thread,
which needs 5 ms to get the GIL."""

STACKS = (256 << 10, 1 << 20) if sys.version_info >= (3, 14) else (64 << 10, 256 << 10, 1 << 20)
"""Bytes.  On small ones the interpreter puts deallocations off; from 3.14 on sys.settrace() runs
them, finalisers too, while it holds a lock that the next sys.settrace() wants."""

STUCK_TICKS = 50
"""Signals without a call between them, after which something waits for ever."""


class BoomError(Exception):
    """What is thrown."""


class Fuzz:
    """All that takes part, and what may be done with it."""

    def __init__(self, seed: int, calls: int, without: frozenset[str] = frozenset()) -> None:
        self.random = random.Random(seed)
        self.left = calls
        self.calls = 0
        self.depth = 0
        self.seen = self.stuck = 0
        self.meddling_signals = False
        self.tasklets: list[Any] = [tasklets.getcurrent()]
        self.channels: list[Any] = [tasklets.channel()]
        self.locks: list[Any] = [locks.Lock(), locks.RLock()]
        self.queues: list[Any] = [locks.Queue(2), locks.SimpleQueue()]
        self.waits: list[Any] = [locks.Event(), locks.Condition(), locks.Semaphore()]
        self.local = locks.local()
        # An import that another tasklet interrupts holds its lock for ever.
        self.imported = [getattr(io, name) for name in io.__all__]
        self.operations: list[Call] = [
            getattr(self, name)
            for name in dir(self)
            if name.startswith("do_") and name.removeprefix("do_") not in without
        ]

    # ---- choosing ----------------------------------------------------------------------------

    def some(self, kind: list[Any]) -> Any:
        return self.random.choice(kind)

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def keep(self, kind: list[Any], made: Any) -> Any:
        if len(kind) < KEPT:
            kind.append(made)
        else:
            kind[self.random.randrange(len(kind))] = made
        return made

    def value(self) -> Any:
        return self.random.choice(
            (
                lambda: None,
                lambda: self.random.randrange(9),
                lambda: (1, 2),
                lambda: Meddler(self),
                lambda: self.some(self.tasklets),
                lambda: self.some(self.channels),
                self.error,
                lambda: tasklets.bomb(BoomError, BoomError("value")),
                lambda: self.body,
            )
        )()

    def error(self) -> Any:
        return self.random.choice((BoomError, BoomError("thrown"), KeyError, tasklets.TaskletExit))

    def one(self) -> None:
        """Make one call."""
        if self.left <= 0 or self.depth >= DEEP:
            return
        self.left -= 1
        self.calls += 1
        self.depth += 1
        try:
            self.random.choice(self.operations)()
        except BaseException:  # noqa: BLE001  # what it means is others' matter
            pass
        finally:
            self.depth -= 1

    def body(self, *_arguments: object, **_keywords: object) -> Any:
        """What tasklets run."""
        self.depth = 0
        for _ in range(self.random.randrange(8)):
            self.one()
            self.depth = 0
        if self.random.random() < 0.1:
            raise BoomError("at the end")
        return self.value()

    def at_signal(self, *_: object) -> None:
        """Call on, and end what waits for ever: a handler inside of a lock's own code may."""
        if self.seen != self.calls:
            self.seen, self.stuck = self.calls, 0
        self.stuck += 1
        if self.stuck >= STUCK_TICKS:
            self.stuck = 0
            raise BoomError("waited for ever")
        if self.meddling_signals:
            self.meddle()
            self.seen = self.calls

    def meddle(self, *_: object) -> None:
        """What callbacks do."""
        if self.random.random() < 0.3:
            self.one()

    # ---- tasklets ----------------------------------------------------------------------------

    def do_make(self) -> None:
        made = tasklets.tasklet(self.body)
        if self.flag():
            made(self.value())
        self.keep(self.tasklets, made)

    def do_make_derived(self) -> None:
        self.keep(self.tasklets, Derived(self.body, (self.value(),), {}))

    def do_setup(self) -> None:
        self.some(self.tasklets).setup(self.value())

    def do_call(self) -> None:
        self.some(self.tasklets)(self.value())

    def do_bind(self) -> None:
        arguments: tuple[Any, ...] = self.random.choice(
            ((), (None,), (self.body,), (self.body, (), {}), (None, (), {}))
        )
        self.some(self.tasklets).bind(*arguments)

    def do_insert(self) -> None:
        self.some(self.tasklets).insert()

    def do_remove(self) -> None:
        self.some(self.tasklets).remove()

    def do_run_it(self) -> None:
        self.some(self.tasklets).run()

    def do_switch(self) -> None:
        self.some(self.tasklets).switch()

    def do_throw(self) -> None:
        self.some(self.tasklets).throw(self.error(), pending=self.flag())

    def do_raise(self) -> None:
        self.some(self.tasklets).raise_exception(BoomError, 1)

    def do_kill(self) -> None:
        task = self.some(self.tasklets)
        if not task.is_main:
            task.kill(pending=self.flag())

    def do_flags(self) -> None:
        task = self.some(self.tasklets)
        self.random.choice(
            (
                lambda: task.set_atomic(self.flag()),
                lambda: task.set_ignore_nesting(self.flag()),
                lambda: setattr(task, "block_trap", self.random.random() < 0.1),
                lambda: setattr(task, "tempval", self.value()),
                lambda: setattr(task, "trace_function", self.random.choice((None, self.trace))),
                lambda: setattr(task, "profile_function", self.random.choice((None, self.trace))),
            )
        )()

    def do_context(self) -> None:
        task = self.some(self.tasklets)
        if self.flag():
            task.set_context(contextvars.copy_context())
        else:
            task.context_run(self.one)

    def do_bind_thread(self) -> None:
        self.some(self.tasklets).bind_thread(self.random.choice((-1, *tasklets.getthreads())))

    def do_look(self) -> None:
        task = self.some(self.tasklets)
        repr((task, task.next, task.prev, task.frame, task.thread_id, task.recursion_depth))
        repr((task.nesting_level, task.context_id, task.restorable, task.alive, task.scheduled))
        repr((task.trace_function, task.profile_function, task.tempval, task.paused))

    def do_compare(self) -> None:
        one, other = self.some(self.tasklets), self.some(self.channels)
        repr((one == Meddler(self), Meddler(self) == other, {one, other}))

    # ---- the scheduler -----------------------------------------------------------------------

    def do_schedule(self) -> None:
        tasklets.schedule(self.value())

    def do_schedule_remove(self) -> None:
        tasklets.schedule_remove(self.value())

    def do_run(self) -> None:
        if self.flag():
            tasklets.run()
        else:
            tasklets.run_for(SHORT_S, soft=self.flag(), ignore_nesting=self.flag())

    def do_run_counted(self) -> None:
        tasklets.run(self.random.choice((0, 100, 5000)), soft=self.flag(), totaltimeout=self.flag())

    def do_atomic(self) -> None:
        with tasklets.atomic():
            self.one()

    def do_callbacks(self) -> None:
        choice = self.random.choice((None, self.meddle))
        self.random.choice(
            (
                tasklets.set_schedule_callback,
                tasklets.set_channel_callback,
                lambda hook: tasklets.set_error_handler(hook and self.meddle_with_error),
            )
        )(choice)

    def meddle_with_error(self, *_: object) -> None:
        self.meddle()
        if self.flag():
            raise BoomError("in the handler")

    def trace(self, *_: object) -> Any:
        self.meddle()
        return self.random.choice((None, self.trace))

    def do_trace_all(self) -> None:
        sys.settrace(self.random.choice((None, self.trace)))

    def do_switch_trap(self) -> None:
        tasklets.switch_trap(1)
        try:
            self.one()
        finally:
            tasklets.switch_trap(-1)

    def do_stacks(self) -> None:
        self.random.choice(
            (
                lambda: tasklets.trim_stacks(0),
                lambda: tasklets.stack_size(self.random.choice(STACKS)),
                gc.collect,
                tasklets.getruncount,
                tasklets.get_thread_info,
            )
        )()

    def do_deep(self) -> None:
        def deeper(left: int) -> None:
            if left:
                deeper(left - 1)
            else:
                self.one()

        deeper(self.random.randrange(60))

    def do_generator(self) -> None:
        def values() -> Any:
            try:
                yield 1
                self.one()
                yield 2
            finally:
                self.one()

        for _ in values():
            if self.flag():
                break

    # ---- channels ----------------------------------------------------------------------------

    def do_make_channel(self) -> None:
        made = self.random.choice((tasklets.channel, DerivedChannel))()
        made.preference = self.random.choice((-1, 0, 1))
        made.schedule_all = self.flag()
        self.keep(self.channels, made)

    def do_send(self) -> None:
        self.some(self.channels).send(self.value())

    def do_receive(self) -> None:
        self.some(self.channels).receive()

    def do_send_error(self) -> None:
        it = self.some(self.channels)
        self.random.choice(
            (
                lambda: it.send_exception(BoomError, 1),
                lambda: it.send_throw(BoomError, BoomError("sent"), None),
                lambda: it.send_sequence(iter((1, 2))),
                lambda: next(it),
            )
        )()

    def do_close(self) -> None:
        it = self.some(self.channels)
        self.random.choice((it.close, it.open, it.open))()

    def do_look_at_channel(self) -> None:
        it = self.some(self.channels)
        repr((it.balance, it.queue, it.closing, it.closed, it.made_at))

    # ---- locks, queues, waiting --------------------------------------------------------------

    def do_lock(self) -> None:
        lock = self.some(self.locks)
        if lock.acquire(timeout=self.random.choice((0, SHORT_S))):
            try:
                self.one()
            finally:
                lock.release()

    def do_unbalanced(self) -> None:
        lock = self.some(self.locks)
        self.random.choice(
            (lock.release, lock.locked, lambda: lock.acquire(timeout=SHORT_S), lock.statistics)
        )()

    def do_make_lock(self) -> None:
        self.keep(self.locks, self.random.choice((locks.Lock, locks.RLock))())

    def do_condition(self) -> None:
        it = self.some(self.waits)
        if isinstance(it, locks.Condition):
            if it.acquire(timeout=SHORT_S):
                try:
                    self.random.choice((it.notify, it.notify_all, lambda: it.wait(SHORT_S)))()
                finally:
                    it.release()
        elif isinstance(it, locks.Event):
            self.random.choice((it.set, it.clear, lambda: it.wait(SHORT_S)))()
        else:
            self.random.choice((it.release, lambda: it.acquire(timeout=SHORT_S)))()

    def do_make_wait(self) -> None:
        kind = self.random.choice((locks.Event, locks.Condition, locks.Semaphore))
        self.keep(self.waits, kind())

    def do_queue(self) -> None:
        it = self.some(self.queues)
        self.random.choice(
            (
                lambda: it.put(self.value(), timeout=SHORT_S),
                lambda: it.get(timeout=SHORT_S),
                it.qsize,
                lambda: it.put(self.value(), block=False),
                lambda: it.get(block=False),
            )
        )()

    def do_make_queue(self) -> None:
        kind = self.random.choice(
            (locks.Queue, locks.LifoQueue, locks.PriorityQueue, locks.SimpleQueue)
        )
        self.keep(self.queues, kind())

    def do_local(self) -> None:
        self.local.value = self.value()
        del self.local.value

    def do_wait(self) -> None:
        self.random.choice(
            (
                lambda: io.sleep(0),
                lambda: io.sleep(SHORT_S),
                lambda: io.wait_readable(self.pipe()[0], SHORT_S),
                lambda: io.call_later(SHORT_S, self.meddle),
            )
        )()

    def do_time_limit(self) -> None:
        with io.timeout(SHORT_S):
            self.one()

    _pipe: tuple[int, int] | None = None

    def pipe(self) -> tuple[int, int]:
        if self._pipe is None:
            self._pipe = os.pipe()
        return self._pipe


class Meddler:
    """Calls on where it is compared, hashed or freed."""

    def __init__(self, fuzz: Fuzz) -> None:
        self.fuzz = fuzz

    def __eq__(self, other: object) -> bool:
        self.fuzz.meddle()
        return self is other

    def __lt__(self, other: object) -> bool:
        self.fuzz.meddle()
        return self.fuzz.flag()

    def __hash__(self) -> int:
        self.fuzz.meddle()
        return 1

    def __del__(self) -> None:
        self.fuzz.meddle()


class Derived(tasklets.tasklet):
    """Has a dict, and a finaliser that calls on."""

    fuzz: Fuzz

    def __del__(self) -> None:
        self.fuzz.meddle()
        if self.fuzz.flag():
            super().__del__()  # type: ignore[misc]


class DerivedChannel(tasklets.channel):
    """The same of a channel."""

    fuzz: Fuzz

    def __del__(self) -> None:
        self.fuzz.meddle()


def arguments() -> argparse.Namespace:
    """Return what to do, and without what."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("calls", type=int)
    parser.add_argument("--thread", action="store_true")
    parser.add_argument("--no-signals", action="store_true")
    parser.add_argument("--without", default="", metavar="NAME,...", help="of operations")
    options = parser.parse_args()
    options.without = set(options.without.split(","))
    if options.thread and sys.version_info < (3, 12):
        # What is traced in a section outside the main thread: docs/explanation/atomic-sections.md.
        options.without |= {"atomic", "flags"}
    return options


def main() -> None:
    """Do it."""
    options = arguments()
    faulthandler.enable()
    faulthandler.dump_traceback_later(100, exit=True)
    # A loop that is ended is interrupted, too, as anything is.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited")
    # Not of Python: that could be interrupted, too.
    sys.unraisablehook = id
    threading.excepthook = id
    fuzz = Fuzz(options.seed, options.calls, frozenset(options.without))
    Derived.fuzz = DerivedChannel.fuzz = fuzz
    signal.signal(signal.SIGALRM, fuzz.at_signal)
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    fuzz.meddling_signals = not options.no_signals

    def go_on() -> None:
        while fuzz.left > 0:
            try:
                while fuzz.left > 0:
                    fuzz.depth = 0
                    fuzz.one()
                    tasklets.getcurrent().block_trap = False
            except BaseException:  # noqa: BLE001  # of a signal's handler in between, or a deadlock
                pass

    def beside() -> None:
        mains.append(tasklets.getcurrent())
        go_on()

    mains: list[Any] = []
    thread = threading.Thread(target=beside)
    if options.thread:
        thread.start()
    go_on()
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.settrace(None)
    for _ in range(STUCK_TICKS * 20):  # signals do not end what waits for ever there
        if not thread.is_alive():
            break
        for main in mains:
            with contextlib.suppress(RuntimeError):  # its thread ends just now
                main.throw(BoomError, pending=True)
        thread.join(TICK_S)
    else:  # nor can anybody, in a callback: for a lock that a paused tasklet of this thread has
        print(fuzz.calls, "and one thread that waits for ever", flush=True)
        os._exit(0)
    tasklets.set_schedule_callback(None)
    tasklets.set_channel_callback(None)
    tasklets.set_error_handler(None)
    print(fuzz.calls, time.process_time())


if __name__ == "__main__":
    main()
