"""RLock: what it does, beside the standard library's."""

import gc
import sys
import time
import weakref

import pytest

from tests.threads.sides import (
    NATIVE,
    Outcomes,
    Side,
    Started,
    on_both_sides,
    until,
    until_waited_for,
)

CASES = [
    # arguments
    "RLock().acquire()",
    "RLock().acquire(False)",
    "RLock().acquire(True, -1)",
    "RLock().acquire(False, -1)",
    "RLock().acquire(timeout=0)",
    "RLock().acquire(timeout=0.25)",
    "RLock().acquire(timeout=threading.TIMEOUT_MAX)",
    "RLock().acquire(1, 2, 3)",
    "RLock().acquire(wait=1)",
    "RLock().acquire(False, 1)",
    "RLock().acquire(True, -5)",
    "RLock().acquire(timeout=nan)",
    "RLock().acquire(timeout=inf)",
    "RLock().acquire(timeout=huge)",
    "RLock().acquire(timeout=threading.TIMEOUT_MAX + 1)",
    "RLock().acquire(timeout='1')",
    "RLock().acquire(timeout=None)",
    "RLock().release(1)",
    # also when it is held already
    "lock = RLock(); lock.acquire(); lock.acquire(timeout=-5)",
    "lock = RLock(); lock.acquire(); lock.acquire(False, 1)",
    "lock = RLock(); lock.acquire(); lock.acquire(timeout=nan)",
    # what it does
    "lock = RLock(); [lock.acquire(), lock.acquire(), lock.release(), lock.release()]",
    "lock = RLock(); [lock.acquire(), lock.acquire(False), lock.acquire(timeout=pause)]",
    "RLock().release()",
    "lock = RLock(); lock.acquire(); lock.release(); lock.release()",
    "lock = RLock(); lock.acquire(); in_thread(lock.release), lock._is_owned()",
    "lock = RLock(); lock.acquire(); in_thread(lock.acquire, False)",
    "lock = RLock(); lock.acquire(); in_thread(lock.acquire, timeout=pause)",
    "lock = RLock(); lock.acquire(); lock.release(); in_thread(lock.acquire, False)",
    "lock = RLock(); in_thread(lock.acquire), lock.acquire(False), lock.acquire(timeout=pause)",
    "lock = RLock(); in_thread(lock.acquire), raised(lock.release)",
    # with
    "RLock().__enter__()",
    "RLock().__exit__(None, None, None)",
    """
lock = RLock()
with lock as acquired, lock:
    inside = lock._is_owned()
acquired, inside, lock._is_owned()
    """,
    """
lock = RLock()
try:
    with lock:
        1 / 0
except ZeroDivisionError:
    pass
lock._is_owned()
    """,
    # what threading uses of it
    "lock = RLock(); [lock._is_owned(), lock.acquire(), lock._is_owned()]",
    "lock = RLock(); lock.acquire(); in_thread(lock._is_owned)",
    "RLock()._release_save()",
    "lock = RLock(); lock.acquire(); lock.acquire(); lock._release_save()[0]",
    "lock = RLock(); lock.acquire(); lock._release_save()[1] == threading.get_ident()",
    "lock = RLock(); lock.acquire(); len(lock._release_save())",
    """
lock = RLock()
lock.acquire(), lock.acquire()
saved = lock._release_save()
free = in_thread(lock.acquire, False)
lock = RLock()
lock._acquire_restore(saved)
free, lock._is_owned(), lock.release(), lock.release(), raised(lock.release)
    """,
    "RLock()._acquire_restore()",
    "RLock()._acquire_restore(None)",
    "RLock()._acquire_restore((1, 2, 3))",
    "RLock()._acquire_restore(('a', 'b'))",
    "lock = RLock(); [lock._at_fork_reinit(), lock._is_owned(), lock.acquire(False)]",
    "lock = RLock(); lock.acquire(); [lock._at_fork_reinit(), lock._is_owned()]",
    "lock = RLock(); lock.acquire(); lock._at_fork_reinit(); lock.release()",
    # an object
    "RLock()",
    "lock = RLock(); lock.acquire(); lock.acquire(); lock",
    "lock = RLock(); lock.acquire(); in_thread(repr, lock)",
    "str(RLock()), bool(RLock()), RLock() == RLock(), len({RLock(), RLock()})",
    "lock = RLock(); lock.colour = 1",
    "copy.deepcopy(RLock())",
    "pickle.dumps(RLock())",
    "lock = RLock(); weakref.ref(lock)() is lock",
    "weakref.ref(RLock())()",
]
if sys.version_info >= (3, 12):
    CASES += [
        "lock = RLock(); [lock._recursion_count(), lock.acquire(), lock._recursion_count()]",
        "lock = RLock(); lock.acquire(); lock.acquire(); lock._recursion_count()",
        "lock = RLock(); lock.acquire(); in_thread(lock._recursion_count)",
    ]
if sys.version_info >= (3, 14):
    CASES += [
        "lock = RLock(); [lock.locked(), lock.acquire(), lock.locked()]",
        "lock = RLock(); lock.acquire(); in_thread(lock.locked)",
    ]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@on_both_sides
def test_only_the_last_release_lets_the_waiter_in(side: Side) -> None:
    lock = side.RLock()
    lock.acquire()
    lock.acquire()
    waiter = Started(lock.acquire)
    until_waited_for(lock)
    lock.release()
    assert lock._is_owned()
    assert waiter.thread.is_alive()
    lock.release()
    assert waiter.result() is True
    assert not lock._is_owned()


@on_both_sides
def test_restoring_waits_for_the_lock(side: Side) -> None:
    lock = side.RLock()
    lock.acquire()
    lock.acquire()
    saved = lock._release_save()
    passed = []

    def other() -> None:
        with lock:
            passed.append("acquired")
            until_waited_for(lock)
            passed.append("released")

    thread = Started(other)
    until(lambda: passed)
    lock._acquire_restore(saved)
    assert passed == ["acquired", "released"]
    thread.result()
    lock.release()
    assert lock._is_owned()
    lock.release()
    assert not lock._is_owned()


@on_both_sides
def test_a_wait_is_not_shorter_than_its_time_out(side: Side) -> None:
    lock = side.RLock()
    lock.acquire()

    def timed(timeout: float) -> float:
        begin = time.monotonic()
        assert lock.acquire(timeout=timeout) is False
        return time.monotonic() - begin

    for timeout in (0.001, 0.02):
        took = Started(timed, timeout).result()
        assert isinstance(took, float)
        assert took >= timeout


def test_a_new_thread_with_an_old_ones_ident_does_not_own_it() -> None:
    # pthread idents are used again at once; an owner is more than that.
    lock = NATIVE.RLock()
    Started(lock.acquire).result()
    for _ in range(20):
        assert Started(lock._is_owned).result() is False
        assert Started(lock.acquire, blocking=False).result() is False


def test_it_tells_whether_it_is_locked() -> None:
    # Also before 3.14, where the standard library's came to it.
    lock = NATIVE.RLock()
    assert lock.locked() is False
    with lock, lock:
        assert lock.locked() is True
        assert Started(lock.locked).result() is True
    assert lock.locked() is False


def test_subclasses() -> None:
    class Counted(NATIVE.RLock):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.entered = 0

        def __enter__(self) -> bool:
            self.entered += 1
            return bool(super().__enter__())

    lock = Counted()
    with lock, lock:
        assert lock._is_owned()
    assert lock.entered == 2
    assert "Counted" in repr(lock)
    lock.me = lock
    gone = weakref.ref(lock)
    del lock
    gc.collect()
    assert gone() is None
