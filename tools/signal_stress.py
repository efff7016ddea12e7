"""Signals at 1 kHz into a main thread that waits for each primitive of `threads`, and a channel.

    python tools/signal_stress.py [--seconds 60] [--seed 0]

Eight threads enter sections under the same few locks, pass tokens on through queues, and meet at
conditions, an event and a barrier.  One of them is the main thread, whose signal handler does the
same things with the same objects, and now and then raises.  A handler waits without a time-out only
where its thread can have what it wants: for an RLock, a token, a second permit, or the mutex of a
queue, which the main thread has within calls only.

Counted are sections with two owners, things that were lost or came twice, and hangs: a thread that
gets nowhere for 60 s, upon which the stacks of all are printed.  None of them may be.  One line at
the end says what was done; the status is 1 where anything is wrong.
"""

import argparse
import faulthandler
import os
import platform
import queue
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from cpythonplus import tasklets, threads
from cpythonplus.tasklets.io import timeout

THREADS = 8
PERIOD_S = 0.001
HANG_S = 60
SHORT_S = 0.002
PERMITS = 2
TOKENS = 3

Take = Callable[[Callable[[], Any]], list[Any]]
"""Calls, and returns the result in a list: an empty one where a handler's exception came."""


class Interrupt(Exception):
    """What the handler raises."""


class Guarded:
    """What one thread at a time may have, or so many."""

    def __init__(
        self, taker: Any, most: int = 1, *, again: bool = False, waits: bool = True
    ) -> None:
        self.taker, self.most, self.again = taker, most, again
        self.waits_in_handler = waits
        self.inside: list[int] = []
        self.entered = 0
        self.too_many: list[str] = []

    def use(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        patient = (self.waits_in_handler or not handler) and rng.random() < 0.5
        call = self.taker.acquire if patient else partial(self.taker.acquire, timeout=SHORT_S)
        if not any(take(call)):
            return
        try:
            self.section(rng)
        finally:
            self.taker.release()

    def section(self, rng: random.Random) -> None:
        me = threading.get_ident()
        others = [each for each in self.inside if each != me or not self.again]
        if len(others) >= self.most:
            self.too_many.append(f"{self.taker} by {me} beside {others}")
        self.inside.append(me)
        self.entered += 1
        if rng.random() < 0.3:
            time.sleep(rng.choice((0, 0.0001, 0.001)))
        self.inside.remove(me)


class Stress:
    """All that the threads share."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.pipe: Any = queue.Queue(1)
        self.jobs: Any = queue.Queue()
        self.conditions: list[Any] = [threading.Condition(threading.Lock()), threading.Condition()]
        self.channel = tasklets.channel()
        self.sent: list[None] = []
        self.received: list[None] = []
        self.event, self.barrier = threading.Event(), threading.Barrier(2)
        self.guarded = [
            Guarded(threading.Lock(), waits=False),
            Guarded(self.pipe.mutex),
            Guarded(threading.RLock(), again=True),
            Guarded(self.conditions[0], waits=False),
            Guarded(self.conditions[1], again=True),
            Guarded(threading.Semaphore(PERMITS), PERMITS),
            Guarded(threading.BoundedSemaphore(PERMITS), PERMITS),
        ]
        self.queues: list[Any] = [
            queue.Queue(), queue.LifoQueue(), queue.PriorityQueue(), queue.SimpleQueue()
        ]  # fmt: skip
        for each in self.queues:
            for token in range(TOKENS):
                each.put(token)
        self.progress = [0] * (THREADS + 1)
        self.piped: list[int] = []  # 1 for each put, -1 for each get
        self.signals = self.handled = self.raised = 0
        self.handling = self.stopped = False
        self.main_rng, self.handler_rng = random.Random(seed), random.Random(seed + 1000)

    # --- what threads and handlers do

    def steps(self) -> list[Callable[..., None]]:
        return [
            *[each.use for each in self.guarded if each.taker is not self.pipe.mutex],
            *[partial(self.pass_token, each) for each in self.queues],
            *[partial(self.meet, each) for each in self.conditions], self.await_thread,
            self.use_pipe, self.use_pipe, self.use_event, self.use_barrier, self.use_jobs,
            self.use_channel,
        ]  # fmt: skip

    def pass_token(self, tokens: Any, rng: random.Random, take: Take, *, handler: bool) -> None:
        get = tokens.get if rng.random() < 0.5 else partial(tokens.get, timeout=SHORT_S)
        try:
            got = take(get)
        except queue.Empty:
            return
        if rng.random() < 0.3:
            time.sleep(0)
        for token in got:
            while not take(partial(tokens.put, token)):
                pass

    def use_pipe(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        """The mutex is held in workers only, for a handler waits for it."""
        choice = rng.random()
        try:
            if choice < 0.4:
                self.piped += [1 for _ in take(partial(self.pipe.put, 1, timeout=SHORT_S))]
            elif choice < 0.8:
                self.piped += [-1 for _ in take(partial(self.pipe.get, timeout=SHORT_S))]
            elif handler or threading.current_thread() is not threading.main_thread():
                self.guarded[1].use(rng, take, handler=handler)
        except (queue.Full, queue.Empty):
            pass

    def use_channel(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        """What has come is noted in C at once: a handler may raise what is due for its thread."""
        if handler and tasklets.getcurrent() is not tasklets.getmain():
            return  # a time-out's own, which is killed when its body ends
        call, done = (
            (partial(self.channel.send, None), self.sent)
            if rng.random() < 0.5
            else (self.channel.receive, self.received)
        )
        with suppress(TimeoutError), timeout(SHORT_S):
            take(partial(done.extend, islice(iter(call, NEVER), 1)))

    def meet(self, condition: Any, rng: random.Random, take: Take, *, handler: bool) -> None:
        call = partial(condition.acquire, timeout=SHORT_S)
        if not any(take(call)):
            return
        try:
            choice = rng.random()
            if choice < 0.5:
                condition.notify(rng.randrange(1, 4))
            elif not handler:  # what the main thread has is not a handler's to let go
                waits = partial(condition.wait_for, bool) if choice < 0.7 else condition.wait
                take(partial(waits, timeout=SHORT_S))
        finally:
            condition.release()

    def use_event(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        choice = rng.random()
        if choice < 0.5:
            take(partial(self.event.wait, SHORT_S))
        elif choice < 0.8:
            take(self.event.set)
        else:
            take(self.event.clear)

    def use_barrier(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        """A wait inside a wait would be for the thread's own leaving, with stock too."""
        if handler:
            take(self.barrier.reset)
            return
        try:
            take(partial(self.barrier.wait, SHORT_S))
        except threading.BrokenBarrierError:
            take(self.barrier.reset)

    def use_jobs(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        if rng.random() < 0.2 and not handler:
            take(partial(self.jobs.join, SHORT_S))
        else:
            for _ in take(partial(self.jobs.put, 1)):
                while not take(self.jobs.get):
                    pass
                while not take(self.jobs.task_done):
                    pass

    def await_thread(self, rng: random.Random, take: Take, *, handler: bool) -> None:
        if handler:
            return  # the main thread may be about to start one, with a plain lock of the module's
        thread = threading.Thread(target=time.sleep, args=(rng.choice((0, 0.0005)),), daemon=True)
        thread.start()
        while not take(thread.join):
            pass

    # --- threads

    def work(self, number: int) -> None:
        rng = random.Random(self.seed * THREADS + number)
        steps = self.steps()
        while not self.stopped:
            rng.choice(steps)(rng, at_once, handler=False)
            self.progress[number] += 1

    def send(self, main: int) -> None:
        while not self.stopped:
            time.sleep(PERIOD_S)
            self.signals += 1
            signal.pthread_kill(main, signal.SIGUSR1)

    def handle(
        self, steps: list[Callable[..., None]], _number: int, frame: FrameType | None
    ) -> None:
        """One inside another does nothing."""
        if self.handling:
            return
        self.handling = True
        try:
            rng = self.handler_rng
            rng.choice(steps)(rng, at_once, handler=True)
            self.handled += 1
            self.progress[THREADS] += 1
        finally:
            self.handling = False
        if frame is not None and (frame.f_code, frame.f_lineno) == RAISES and rng.random() < 0.2:
            self.raised += 1
            raise Interrupt

    def run(self, seconds: float) -> None:
        steps = self.steps()
        signal.signal(signal.SIGUSR1, partial(self.handle, steps))
        workers = [
            threading.Thread(target=self.work, args=(number,), daemon=True)
            for number in range(1, THREADS)
        ]
        sender = threading.Thread(target=self.send, args=(threading.get_ident(),), daemon=True)
        for thread in (*workers, sender, threading.Thread(target=self.watch, daemon=True)):
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.main_rng.choice(steps)(self.main_rng, interruptible, handler=False)
            self.progress[0] += 1
        self.stopped = True
        for thread in (sender, *workers):
            while thread.is_alive():
                interruptible(partial(thread.join, HANG_S))

    def watch(self) -> None:
        """Ends the process if anyone hangs; so does faulthandler, if this thread hangs, too."""
        seen, since = self.progress.copy(), [time.monotonic()] * len(self.progress)
        while True:
            faulthandler.dump_traceback_later(3 * HANG_S, exit=True)
            time.sleep(1)
            now = time.monotonic()
            for number, count in enumerate(self.progress):
                if count != seen[number] or (number == THREADS and not self.handling):
                    seen[number], since[number] = count, now
                elif now - since[number] > HANG_S and not self.stopped:
                    print(f"signal stress: HANG of thread {number}", file=sys.stderr, flush=True)
                    faulthandler.dump_traceback(all_threads=True)
                    os._exit(1)

    # --- in the end

    def lost(self) -> list[str]:
        """What is not there any more, or twice."""
        result = [
            f"{type(each).__name__}: {found} instead of {TOKENS} tokens"
            for each in self.queues
            if (found := sorted(each.get() for _ in range(each.qsize()))) != list(range(TOKENS))
        ]
        if self.pipe.qsize() != sum(self.piped):
            result.append(f"{self.pipe.qsize()} things in the pipe instead of {sum(self.piped)}")
        if len(self.sent) != len(self.received):
            result.append(f"{len(self.sent)} sent, {len(self.received)} received")
        if self.jobs.unfinished_tasks or self.jobs.qsize():
            result.append("jobs are left")
        for each in self.guarded:
            free = [each.taker.acquire(blocking=False) for _ in range(each.most + 1 - each.again)]
            if free.count(True) != each.most:
                result.append(f"{each.taker} is held")
        return result


def at_once(call: Callable[[], Any]) -> list[Any]:
    return [call()]


def interruptible(call: Callable[[], Any]) -> list[Any]:
    """The handler raises in the one line only, in which a result is in the list at once."""
    got: list[Any] = []
    with suppress(Interrupt):
        got.extend(islice(iter(call, NEVER), 1))
    return got


NEVER = object()
RAISES = (interruptible.__code__, interruptible.__code__.co_firstlineno + 4)


def main() -> int:
    parser = argparse.ArgumentParser(description="Signal handlers and waits for the same things.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    threads.patch()
    faulthandler.enable()
    stress = Stress(options.seed)
    stress.run(options.seconds)
    too_many = [line for each in stress.guarded for line in each.too_many]
    lost = stress.lost()
    print(
        f"signal stress: {platform.python_version()}, {options.seconds:g} s, {THREADS} threads:"
        f" {sum(stress.progress[:THREADS])} steps, {sum(each.entered for each in stress.guarded)}"
        f" sections, {len(too_many)} with two owners, {stress.signals} signals, {stress.handled}"
        f" handled, {stress.raised} raised, {len(lost)} lost, 0 hangs"
    )
    for line in (*too_many[:20], *lost):
        print(f"signal stress: {line}", file=sys.stderr)
    return int(bool(too_many or lost))


if __name__ == "__main__":
    sys.exit(main())
