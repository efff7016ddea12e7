"""Lock: what it does, beside the standard library's."""

import pickle
import threading
import time
import weakref

import pytest

from tests.threads.sides import NATIVE, Outcomes, Side, Started, on_both_sides, until_waited_for

CASES = (
    # arguments
    "Lock(1)",
    "Lock(name='x')",
    "Lock().acquire()",
    "Lock().acquire(True)",
    "Lock().acquire(False)",
    "Lock().acquire(0)",
    "Lock().acquire(True, -1)",
    "Lock().acquire(False, -1)",
    "Lock().acquire(True, 0)",
    "Lock().acquire(True, 0.0)",
    "Lock().acquire(timeout=0.25)",
    "Lock().acquire(timeout=3)",
    "Lock().acquire(timeout=True)",
    "Lock().acquire(timeout=threading.TIMEOUT_MAX)",
    "Lock().acquire(blocking=True, timeout=1)",
    "Lock().acquire(1, blocking=True)",
    "Lock().acquire(1, 2, 3)",
    "Lock().acquire(wait=1)",
    "Lock().acquire(False, 0)",
    "Lock().acquire(False, 1)",
    "Lock().acquire(False, -5)",
    "Lock().acquire(True, -5)",
    "Lock().acquire(timeout=-0.5)",
    "Lock().acquire(timeout=nan)",
    "Lock().acquire(False, nan)",
    "Lock().acquire(timeout=inf)",
    "Lock().acquire(timeout=-inf)",
    "Lock().acquire(timeout=huge)",
    "Lock().acquire(timeout=threading.TIMEOUT_MAX + 1)",
    "Lock().acquire(timeout=10**30)",
    "Lock().acquire(timeout=10**400)",
    "Lock().acquire(timeout='1')",
    "Lock().acquire(timeout=None)",
    "Lock().acquire(timeout=[])",
    "Lock().release(1)",
    "Lock().locked(1)",
    "type(Lock()).acquire(5)",
    "type(Lock()).release('x')",
    # what it does
    "lock = Lock(); [lock.locked(), lock.acquire(), lock.locked(), lock.release(), lock.locked()]",
    "lock = Lock(); lock.acquire(); [lock.acquire(False), lock.acquire(timeout=0), lock.locked()]",
    "lock = Lock(); lock.acquire(); [lock.acquire(True, pause), lock.locked()]",
    "lock = Lock(); [lock.acquire_lock(), lock.locked_lock(), lock.release_lock(), lock.locked()]",
    "lock = Lock(); lock.acquire(); [lock.acquire_lock(False), lock.acquire_lock(timeout=pause)]",
    "Lock().release()",
    "Lock().release_lock()",
    "lock = Lock(); lock.acquire(); lock.release(); lock.release()",
    "lock = Lock(); lock.acquire(); in_thread(lock.release), lock.locked()",
    "lock = Lock(); in_thread(lock.acquire), lock.locked(), lock.acquire(False), lock.release()",
    "lock = Lock(); in_thread(lock.acquire), in_thread(lock.acquire, timeout=pause)",
    # with
    "Lock().__enter__()",
    "Lock().__exit__(None, None, None)",
    "lock = Lock(); lock.acquire(); [lock.__exit__(None, None, None), lock.locked()]",
    """
with Lock() as acquired:
    pass
acquired
    """,
    """
lock = Lock()
try:
    with lock:
        1 / 0
except ZeroDivisionError:
    pass
lock.locked()
    """,
    """
lock = Lock()
with lock:
    lock.release()
    """,
    # an object
    "Lock()",
    "lock = Lock(); lock.acquire(); lock",
    "str(Lock()), bool(Lock()), Lock() == Lock(), len({Lock(), Lock()})",
    "lock = Lock(); lock == lock, hash(lock) == hash(lock)",
    "Lock() < Lock()",
    "lock = Lock(); lock.colour = 1",
    "lock = Lock(); lock.acquire = 1",
    "lock = Lock(); del lock.release",
    "copy.copy(Lock())",
    "copy.deepcopy(Lock())",
    "pickle.dumps(Lock())",
    "lock = Lock(); weakref.ref(lock)() is lock",
    "weakref.ref(Lock())()",
    "type('Child', (type(Lock()),), {})",
    "class Child(Lock): pass\n1",
    # after a fork
    "lock = Lock(); [lock._at_fork_reinit(), lock.locked(), lock.acquire(False)]",
    "lock = Lock(); lock.acquire(); [lock._at_fork_reinit(), lock.locked(), lock.acquire(False)]",
)


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@on_both_sides
def test_a_release_lets_the_waiter_in(side: Side) -> None:
    lock = side.Lock()
    lock.acquire()
    waiter = Started(lock.acquire)
    until_waited_for(lock)
    lock.release()
    assert waiter.result() is True
    assert lock.locked()


@on_both_sides
def test_every_waiter_gets_it_once(side: Side) -> None:
    lock = side.Lock()
    inside = []

    def body(i: int) -> None:
        with lock:
            inside.append(i)
            assert inside == [i]
            inside.remove(i)

    with lock:
        waiters = [Started(body, i) for i in range(8)]
        until_waited_for(lock, 8)
    for waiter in waiters:
        waiter.result()
    assert not lock.locked()


@on_both_sides
def test_a_wait_is_not_shorter_than_its_time_out(side: Side) -> None:
    lock = side.Lock()
    lock.acquire()
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        assert lock.acquire(timeout=timeout) is False
        assert time.monotonic() - begin >= timeout


@on_both_sides
def test_a_timed_out_waiter_is_forgotten(side: Side) -> None:
    lock = side.Lock()
    lock.acquire()
    assert Started(lock.acquire, timeout=0.001).result() is False
    lock.release()
    assert not lock.locked()
    assert lock.acquire(blocking=False)


@on_both_sides
def test_the_lock_of_an_ended_thread_stays_held(side: Side) -> None:
    # As long as the process is the same: only a fork frees what nobody can release.
    lock = side.Lock()
    Started(lock.acquire).result()
    assert lock.locked()
    assert not lock.acquire(blocking=False)
    assert Started(lock.release).result() is None
    assert not lock.locked()


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side) -> None:
    lock = side.Lock()
    lock.acquire()
    waiter = Started(lock.acquire, timeout=0.05)
    until_waited_for(lock, timed=waiter)
    gone = weakref.ref(lock)
    del lock
    assert waiter.result() is False
    del waiter
    assert gone() is None


def test_hooks_of_the_interpreter() -> None:
    # threading, and others with it, compare with the type or ask for it.
    assert isinstance(NATIVE.Lock(), NATIVE.Lock)
    assert (NATIVE.Lock.__module__, NATIVE.Lock.__qualname__) == ("_thread", "lock")
    assert not isinstance(NATIVE.Lock(), type(threading.Lock()))


def test_pickle_names_the_type() -> None:
    # Other packages' tests look for these words.
    with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object"):
        pickle.dumps(NATIVE.Lock())
