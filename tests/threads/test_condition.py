"""Condition: what it does, beside the standard library's, over locks of both sides and others."""

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from tests.threads.sides import (
    NATIVE,
    STOCK,
    Outcomes,
    Side,
    Started,
    on_both_sides,
    until,
    until_waited_for,
)

# A lock that has only what a condition demands, and one with all that it may have.
FOREIGN = """
class Plain:
    def __init__(self):
        self._lock = threading.Lock()
        self.acquire, self.release = self._lock.acquire, self._lock.release
        self.locked = self._lock.locked  # 3.14's asks for it
    def __enter__(self):
        return self.acquire()
    def __exit__(self, *exception):
        self.release()

class Full(Plain):
    log = []
    def _is_owned(self):
        self.log.append("owned")
        return self._lock.locked()
    def _release_save(self):
        self.log.append("save")
        self.release()
        return "saved"
    def _acquire_restore(self, saved):
        self.log.append(saved)
        self.acquire()
"""

CASES = [
    # arguments
    "Condition()",
    "Condition(None)",
    "Condition(lock=None)",
    "Condition(Lock())",
    "Condition(lock=RLock())",
    "Condition(Lock(), 1)",
    "Condition(mutex=Lock())",
    "Condition(5)",
    "Condition('x')",
    "c = Condition(); c.acquire(); c.wait(1, 2)",
    "c = Condition(); c.acquire(); c.wait(seconds=1)",
    "c = Condition(); c.acquire(); c.wait_for()",
    "c = Condition(); c.acquire(); c.wait_for(bool, 1, 2)",
    "c = Condition(); c.acquire(); c.notify(1, 2)",
    "c = Condition(); c.acquire(); c.notify_all(1)",
    # without the lock
    "Condition().wait()",
    "Condition().wait(0)",
    "Condition().wait('1')",
    "Condition().notify()",
    "Condition().notify(0)",
    "Condition().notify_all()",
    "Condition().notifyAll()",
    "Condition().release()",
    "Condition(Lock()).wait()",
    "Condition(Lock()).notify()",
    "Condition(Lock()).notify_all()",
    "Condition(Lock()).release()",
    "Condition().wait_for(lambda: 7)",
    "Condition().wait_for(lambda: 0)",
    "Condition().wait_for(lambda: 0, 0)",
    "c = Condition(); c.acquire(); in_thread(c.wait, 0)",
    "c = Condition(); c.acquire(); in_thread(c.notify)",
    # that somebody else holds a plain lock cannot be told
    "c = Condition(Lock()); c.acquire(); in_thread(c.notify)",
    # with it
    "c = Condition(); c.acquire(); [c.notify(), c.notify(0)]",
    "c = Condition(); c.acquire(); [c.notify(-1), c.notify(5)]",
    "c = Condition(); c.acquire(); c.notify(n=10**30)",
    "c = Condition(); c.acquire(); c.notify_all()",
    "c = Condition(); c.acquire(); c.notifyAll()",
    "c = Condition(); c.acquire(); [c.wait(0), c.wait(pause)]",
    "c = Condition(); c.acquire(); [c.wait(-1), c.wait(-inf)]",
    "c = Condition(); c.acquire(); c.wait(timeout=pause)",
    "c = Condition(Lock()); c.acquire(); c.wait(timeout=pause)",
    # a failed wait leaves the lock held and nothing behind
    *(
        f"""
condition = Condition({lock})
with condition:
    told = raised(condition.wait, {timeout})
    state = condition._is_owned(), len(condition._waiters)
told, state, in_thread(condition.acquire, False)
        """
        for lock in ("", "Lock()")
        for timeout in ("nan", "inf", "huge", "threading.TIMEOUT_MAX + 1", "'1'", "[]")
    ),
    # the lock is given back as deeply as it was held
    """
condition = Condition()
with condition, condition, condition:
    told = condition.wait(pause)
    free = in_thread(condition.acquire, False)
told, free, condition._is_owned(), in_thread(condition.acquire, False)
    """,
    # wait_for: the last value, and how often it is asked for
    *(
        f"""
asked = []
condition = Condition()
with condition:
    value = condition.wait_for(lambda: asked.append(1) or {value}, {timeout})
value, len(asked), condition._is_owned()
        """
        for value, timeout in (("7", "None"), ("7", "-1"), ("[]", "0"), ("''", "-1"), ("[]", "-5"))
    ),
    "c = Condition(); c.acquire(); c.wait_for(lambda: 0, pause)",
    "c = Condition(); c.acquire(); c.wait_for(lambda: 7, huge)",
    "c = Condition(); c.acquire(); c.wait_for(lambda: 0, huge)",
    "c = Condition(); c.acquire(); c.wait_for(lambda: 0, '1')",
    "c = Condition(); c.acquire(); c.wait_for(predicate=lambda: 7)",
    "c = Condition(); c.acquire(); c.wait_for(5)",
    """
condition = Condition()
with condition:
    told = raised(condition.wait_for, lambda: 1 / 0)
    owned = condition._is_owned()
told, owned
    """,
    """
class Moody:
    def __bool__(self):
        raise ValueError("moody")
condition = Condition()
with condition:
    told = raised(condition.wait_for, Moody)
told, condition._is_owned()
    """,
    # the lock's own methods
    "c = Condition(); [c.acquire(), c.acquire(), c.release()]",
    "c = Condition(); [c.acquire(False), c.acquire(timeout=1)]",
    "c = Condition(Lock()); [c.acquire(), c.acquire(False)]",
    "c = Condition(Lock()); [c.acquire(), c.acquire(timeout=pause)]",
    "Condition().acquire(False, 1)",
    "Condition().acquire(timeout=-5)",
    "Condition(Lock()).acquire(timeout=nan)",
    "Condition().__enter__()",
    "Condition(Lock()).__enter__()",
    "Condition().__exit__(None, None, None)",
    "c = Condition(); c.acquire(); c.__exit__(None, None, None)",
    "lock = RLock(); c = Condition(lock); [c._lock is lock, c.acquire(), lock]",
    "c = Condition(); [c._is_owned(), c.acquire(), c._is_owned()]",
    "c = Condition(Lock()); [c._is_owned(), c.acquire(), c._is_owned()]",
    "c = Condition(); c.acquire(); in_thread(c._is_owned)",
    "c = Condition(Lock()); c.acquire(); in_thread(c._is_owned)",
    """
condition = Condition()
condition.acquire(), condition.acquire()
saved = condition._release_save()
free = not condition._is_owned()
condition._acquire_restore(saved)
free, condition.release(), condition._is_owned(), condition.release(), condition._is_owned()
    """,
    """
condition = Condition(Lock())
condition.acquire()
saved = condition._release_save()
free = not condition._is_owned()
condition._acquire_restore(saved)
saved, free, condition._is_owned()
    """,
    "c = Condition(); c.acquire(); [c._at_fork_reinit(), c._is_owned()]",
    # over one of the other side's, and over anybody's
    "c = Condition(threading.Lock()); c.acquire(); c.wait(pause)",
    "c = Condition(threading.RLock()); c.acquire(); c.wait(pause)",
    "c = Condition(threads.Lock()); c.acquire(); c.wait(pause)",
    "c = Condition(threads.RLock()); c.acquire(); c.wait(pause)",
    "c = Condition(threading._PyRLock()); c.acquire(); c.wait(pause)",
    "Condition(threading._PyRLock()).notify()",
    FOREIGN + "condition = Condition(Plain()); condition.wait(0)",
    FOREIGN + "condition = Condition(Plain()); condition.acquire(); condition.wait(pause)",
    FOREIGN + "condition = Condition(Plain()); condition.acquire(); condition.notify()",
    FOREIGN + "condition = Condition(Plain()); condition.__enter__(), condition.__exit__(1, 2, 3)",
    FOREIGN + "condition = Condition(Plain()); condition.acquire(); condition._release_save()",
    FOREIGN
    + """
condition = Condition(Full())
with condition:
    told = condition.wait(pause)
    condition.notify()
told, Full.log, condition._is_owned()
    """,
    """
class Broken:
    def acquire(self, *args): return True
    def release(self): pass
    def locked(self): pass
    def _is_owned(self): raise ValueError("is it?")
raised(Condition(Broken()).wait, 0), raised(Condition(Broken()).notify)
    """,
    """
class Broken:
    acquired = []
    def acquire(self, *args): self.acquired.append(1); return True
    def release(self): pass
    def locked(self): pass
    def _is_owned(self): return True
    def _release_save(self): raise ValueError("not now")
condition = Condition(Broken())
raised(condition.wait, 0), Broken.acquired
    """,
    # an object
    "c = Condition(Lock()); c.acquire(); c",
    "bool(Condition()), Condition() == Condition(), len({Condition(), Condition()})",
    "c = Condition(); c.colour = 'red'; c.colour, vars(c)['colour']",
    "Condition().colour",
    "pickle.dumps(Condition())",
    "copy.deepcopy(Condition())",
    "c = Condition(); weakref.ref(c)() is c",
    "weakref.ref(Condition())()",
    """
class Child(Condition):
    def __init__(self, name, lock=None):
        super().__init__(lock)
        self.name = name
    def wait(self, timeout=None):
        super().wait(0)
        return self.name
    def notify(self, n=1):
        super().notify(n)
        return n
child = Child("x")
with child:
    result = child.wait(), child.notify(), child.notify(3), child.notify_all()
result
    """,
    "class Child(Condition): pass\ntype(Child()).__name__, repr(Child())",
]
if sys.version_info >= (3, 14):
    CASES += [
        "condition = Condition(); [condition.locked(), condition.acquire(), condition.locked()]",
        "condition = Condition(); condition.acquire(); condition.wait(nan)",
    ]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


class _Plain:
    """A lock of somebody else's that has no more than a condition demands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acquire = self._lock.acquire
        self.release = self._lock.release
        self.locked = self._lock.locked  # from 3.14 on

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()


MAKERS: dict[str, Callable[[], object]] = {
    "stock": STOCK.Condition,
    "native": NATIVE.Condition,
    "native over Lock": lambda: NATIVE.Condition(NATIVE.Lock()),
    "native over the standard Lock": lambda: NATIVE.Condition(threading.Lock()),
    "native over the standard RLock": lambda: NATIVE.Condition(threading.RLock()),
    "native over somebody else's": lambda: NATIVE.Condition(_Plain()),
    "standard over native Lock": lambda: threading.Condition(NATIVE.Lock()),
    "standard over native RLock": lambda: threading.Condition(NATIVE.RLock()),
}
of_all_kinds = pytest.mark.parametrize("kind", MAKERS)


class Waiters:
    """Threads that wait for a condition in the order of their numbers."""

    def __init__(self, kind: str, count: int) -> None:
        self.condition: threading.Condition = MAKERS[kind]()  # type: ignore[assignment]
        self.ended: list[int] = []
        self.threads: list[Started] = []
        self.start(count)

    def start(self, count: int) -> None:
        for i in range(count):
            self.threads.append(Started(self._body, i))
            until(lambda count: self.waiting() == count, i + 1)

    def waiting(self) -> int:
        return len(self.condition._waiters)  # type: ignore[attr-defined]

    def _body(self, i: int) -> bool:
        with self.condition:
            told = self.condition.wait()
            self.ended.append(i)
            return told

    def results(self) -> list[object]:
        return [thread.result() for thread in self.threads]


@of_all_kinds
def test_the_longest_waiting_are_notified_first(kind: str) -> None:
    waiters = Waiters(kind, 5)
    for round_, ended in ((1, {0}), (2, {0, 1, 2}), (9, {0, 1, 2, 3, 4})):
        with waiters.condition:
            waiters.condition.notify(round_)
        until(lambda all_: set(waiters.ended) == all_, ended)
        assert waiters.waiting() == 5 - len(ended)
    assert waiters.results() == [True] * 5


@of_all_kinds
def test_notify_all_ends_all_waits(kind: str) -> None:
    waiters = Waiters(kind, 5)
    with waiters.condition:
        waiters.condition.notify_all()
    assert waiters.results() == [True] * 5


@of_all_kinds
def test_who_is_notified_goes_on_when_the_lock_is_released(kind: str) -> None:
    waiters = Waiters(kind, 3)
    with waiters.condition:
        waiters.condition.notify(3)
        assert waiters.waiting() == 0
        assert waiters.ended == []
    assert waiters.results() == [True] * 3


@of_all_kinds
def test_a_notification_is_not_kept_for_later(kind: str) -> None:
    condition: threading.Condition = MAKERS[kind]()  # type: ignore[assignment]
    with condition:
        condition.notify()
        condition.notify_all()
        assert condition.wait(0.001) is False


@of_all_kinds
def test_who_timed_out_takes_no_notification(kind: str) -> None:
    waiters = Waiters(kind, 0)
    with waiters.condition:
        assert waiters.condition.wait(0.001) is False
    waiters.start(1)
    with waiters.condition:
        waiters.condition.notify()
    assert waiters.results() == [True]


@of_all_kinds
def test_a_wait_is_not_shorter_than_its_time_out(kind: str) -> None:
    condition: threading.Condition = MAKERS[kind]()  # type: ignore[assignment]
    for timeout in (0.001, 0.02):
        with condition:
            begin = time.monotonic()
            assert condition.wait(timeout) is False
            assert time.monotonic() - begin >= timeout
            begin = time.monotonic()
            assert not condition.wait_for(lambda: False, timeout)
            assert time.monotonic() - begin >= timeout


@of_all_kinds
def test_wait_for_asks_after_each_notification(kind: str) -> None:
    condition: threading.Condition = MAKERS[kind]()  # type: ignore[assignment]
    state = 0

    def wait() -> object:
        with condition:
            return condition.wait_for(lambda: state if state >= 4 else 0)

    waiter = Started(wait)
    for _ in range(4):
        until(lambda: len(condition._waiters) == 1)  # type: ignore[attr-defined]
        with condition:
            state += 1
            condition.notify()
    assert waiter.result() == 4


@of_all_kinds
def test_a_nested_hold_is_given_back_and_restored(kind: str) -> None:
    condition: threading.Condition = MAKERS[kind]()  # type: ignore[assignment]
    if "RLock" not in kind and kind not in {"stock", "native"}:
        pytest.skip("its lock is not re-entrant")
    notified = []

    def wait() -> None:
        with condition, condition, condition:
            notified.append(condition.wait())
            for _ in range(3):
                assert condition._is_owned()  # type: ignore[attr-defined]
                condition.release()
            assert not condition._is_owned()  # type: ignore[attr-defined]
            for _ in range(3):
                condition.acquire()

    waiter = Started(wait)
    until(lambda: len(condition._waiters) == 1)  # type: ignore[attr-defined]
    with condition:
        condition.notify()
    waiter.result()
    assert notified == [True]


@on_both_sides
def test_two_conditions_share_a_lock(side: Side) -> None:
    lock = side.Lock()
    full, empty = side.Condition(lock), side.Condition(lock)
    cell: list[int] = []

    def produce() -> None:
        for i in range(200):
            with full:
                empty.wait_for(lambda: not cell)
                cell.append(i)
                full.notify()

    def consume() -> list[int]:
        got = []
        for _ in range(200):
            with empty:
                full.wait_for(lambda: cell)
                got.append(cell.pop())
                empty.notify()
        return got

    producer, consumer = Started(produce), Started(consume)
    producer.result()
    assert consumer.result() == list(range(200))


@on_both_sides
def test_garbage_in_a_cycle_is_collected(side: Side) -> None:
    class Lock:
        def acquire(self, blocking: bool = True) -> bool:
            return blocking

        def release(self) -> None:
            pass

        locked = release

    lock = Lock()
    condition = side.Condition(lock)
    lock.condition = condition  # type: ignore[attr-defined]
    condition.me = condition
    gone = weakref.ref(condition), weakref.ref(lock)
    del condition, lock
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side) -> None:
    condition = side.Condition()

    def wait(condition: threading.Condition) -> bool:
        with condition:
            return condition.wait(0.05)

    waiter = Started(wait, condition)
    until_waited_for(condition, timed=waiter)
    gone = weakref.ref(condition)
    del condition
    assert waiter.result() is False
    del waiter
    gc.collect()
    assert gone() is None
