"""Programs in processes of their own, and the table of all calls that wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

from tests.support import Child, run_child

PRELUDE = '''
import faulthandler, gc, itertools, os, queue, random, signal, sys, threading, time, traceback
import weakref
from collections import deque

from cpythonplus import threads
from cpythonplus.threads import (
    Barrier, BoundedSemaphore, BrokenBarrierError, Condition, Empty, Event, Full, LifoQueue, Lock,
    PriorityQueue, Queue, RLock, Semaphore, ShutDown, SimpleQueue,
)


def until(condition):
    """Wait for what other threads do; the test's time-out ends it if they don't."""
    while not condition():
        time.sleep(0.001)


def start(call, *args, **kwargs):
    thread = threading.Thread(target=call, args=args, kwargs=kwargs, daemon=True)
    thread.start()
    return thread


def waits(it):
    """How many threads have begun to wait for it by now."""
    if isinstance(it, Condition) and not hasattr(it._lock, "statistics"):
        return it.statistics().waits
    own = it._lock.statistics().waits if isinstance(it, Condition) else 0
    return own + it.statistics().waits


def held_elsewhere(lock):
    """Acquire it in a thread that lives on; returns what ends that."""
    held, release = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            release.wait()
    thread = start(hold)
    held.wait()
    def end():
        release.set()
        thread.join()
    return end


def elsewhere(call, *args, **kwargs):
    """What a call in another thread returns; what it raises is raised here."""
    result = []
    def body():
        try:
            result.append((call(*args, **kwargs), None))
        except BaseException as error:
            result.append((None, error))
    thread = start(body)
    thread.join()
    value, error = result[0]
    if error is not None:
        raise error
    return value


def refused(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def use(it):
    """Use a thing that is free and that nobody waits for, here and from another thread."""
    if isinstance(it, (Lock, RLock, Condition)):
        for _ in range(2):
            assert it.acquire(timeout=30) and elsewhere(it.acquire, False) is False
            waiter = start(it.acquire, True, 30) if isinstance(it, Lock) else start(take, it)
            it.release()
            waiter.join()
            if isinstance(it, Lock):
                it.release()
        if isinstance(it, Condition):
            assert len(it._waiters) == 0
            waiter = start(take, it, 30)
            until(lambda: len(it._waiters) == 1)
            with it:
                it.notify()
            waiter.join()
    elif isinstance(it, Semaphore):
        permits = it._value
        for _ in range(permits):
            assert it.acquire(False)
        assert it.acquire(False) is False and it.acquire(timeout=0.001) is False
        waiter = start(it.acquire, timeout=30)
        it.release()
        waiter.join()
        assert it._value == 0
        if permits:
            it.release(permits)
    elif isinstance(it, Event):
        for _ in range(2):
            it.clear()
            assert it.wait(0.001) is False
            waiter = start(it.wait, 30)
            it.set()
            waiter.join()
            assert it.wait()
        it.clear()
    elif isinstance(it, Barrier):
        assert it.n_waiting == 0 and not it.broken, (it.n_waiting, it.broken)
        for _ in range(2):
            others = [start(it.wait) for _ in range(it.parties - 1)]
            it.wait(30)
            for other in others:
                other.join()
    else:
        if not isinstance(it, SimpleQueue):
            it.maxsize = it.qsize() + 1
        before = it.drain()
        for _ in range(2):
            getter = start(it.get, timeout=30)
            it.put(1)
            getter.join()
            refused(Empty, it.get, timeout=0.001)
        for item in before:
            it.put(item)
        assert it.qsize() == len(before)
        if not isinstance(it, SimpleQueue):
            it.maxsize = 0


def take(lock, timeout=None):
    with lock:
        if timeout is not None:
            assert lock.wait(timeout)


def Child(maxsize=0):
    """A Queue whose hooks are Python."""
    child = Queue(maxsize)
    put, get, it = Queue._put, Queue._get, weakref.ref(child)
    child._put = lambda item: put(it(), item)
    child._get = lambda: get(it())
    return child

'''


@dataclass(frozen=True)
class Wait:
    """A call that waits, as lines of a program that all work on the global `it`.

    begin: makes `it`, and what else is needed for the call to wait, in the thread that will wait.
    call: may use `timeout`.  end: lets the call return, from any thread, in a handler too.  free:
    brings `it` back into the state that use() expects, after an exception ended the call.  never:
    the time-out that stands for none.
    """

    begin: str
    call: str
    end: str
    free: str = "pass"
    never: str = "None"


def _of_a_lock(name: str, call: str, never: str = "-1") -> Wait:
    return Wait(f"it = {name}; it.acquire()", call, "it.release()", "it.release()", never)


def _held_elsewhere(name: str, call: str) -> Wait:
    return Wait(f"it = {name}; let_go = held_elsewhere(it)", call, "let_go()", "let_go()", "-1")


def _notified(name: str, call: str = "it.wait(timeout)", more: str = "") -> Wait:
    end = f"it.acquire(); {more}it.notify(); it.release()"
    return Wait(f"ready = []; it = {name}; it.acquire()", call, end, "it.release()")


def _getting(name: str) -> Wait:
    return Wait(f"it = {name}()", "it.get(timeout=timeout)", "it.put(1)")


def _putting(name: str) -> Wait:
    begin = f"it = {name}(1); it.put(1)"
    return Wait(begin, "it.put(2, timeout=timeout)", "it.get()", "it.drain()")


_ACQUIRE = "it.acquire(timeout=timeout)"
TIMED = {
    "Lock.acquire": _of_a_lock("Lock()", _ACQUIRE),
    "RLock.acquire": _held_elsewhere("RLock()", _ACQUIRE),
    "Condition.acquire": _held_elsewhere("Condition()", _ACQUIRE),
    "Condition.wait": _notified("Condition()"),
    "Condition.wait over Lock": _notified("Condition(Lock())"),
    "Condition.wait over the standard RLock": _notified("Condition(threading.RLock())"),
    "Condition.wait_for": _notified(
        "Condition()", "it.wait_for(lambda: ready, timeout)", "ready.append(1); "
    ),
    "Semaphore.acquire": Wait("it = Semaphore(0)", _ACQUIRE, "it.release()"),
    "BoundedSemaphore.acquire": Wait(
        "it = BoundedSemaphore(); it.acquire()", _ACQUIRE, "it.release()"
    ),
    "Event.wait": Wait("it = Event()", "it.wait(timeout)", "it.set()"),
    "Barrier.wait": Wait("it = Barrier(2)", "it.wait(timeout)", "it.wait()"),
    "Barrier.wait without breaking": Wait(
        "it = Barrier(2)", "it.wait(timeout, breaks=False)", "it.wait()"
    ),
    "Queue.get": _getting("Queue"),
    "Queue.put": _putting("Queue"),
    "Queue.join": Wait("it = Queue(); it.put(1)", "it.join(timeout)", "it.task_done()"),
    "LifoQueue.get": _getting("LifoQueue"),
    "LifoQueue.put": _putting("LifoQueue"),
    "PriorityQueue.get": _getting("PriorityQueue"),
    "PriorityQueue.put": _putting("PriorityQueue"),
    "get of a subclass": _getting("Child"),
    "put of a subclass": _putting("Child"),
    "SimpleQueue.get": _getting("SimpleQueue"),
}
WAITS = TIMED | {
    "with Lock": _of_a_lock("Lock()", "it.__enter__()"),
    "with RLock": _held_elsewhere("RLock()", "it.__enter__()"),
    "with Condition": _held_elsewhere("Condition()", "it.__enter__()"),
    "with Semaphore": Wait("it = Semaphore(0)", "it.__enter__()", "it.release()"),
    "with acquire_timeout": _of_a_lock("Lock()", "it.acquire_timeout(60).__enter__()"),
}
"""All calls that wait; TIMED are those that take a time-out."""


def definitions(wait: Wait) -> str:
    """begin(), block(), end() and free() of a wait."""
    return f"""
def begin():
    global it, let_go, ready
    {wait.begin}

def block(timeout={wait.never}):
    return {wait.call}

def end():
    {wait.end}

def free():
    {wait.free}
"""


def run(
    code: str,
    *,
    before: str = "",
    timeout: float = 30,
    args: Sequence[str] = (),
    status: int | None = 0,
) -> Child:
    """Run `code` after PRELUDE and `before`."""
    program = PRELUDE + before + dedent(code)
    return run_child(program, timeout=timeout, args=args, status=status)
