"""Semaphore and BoundedSemaphore: what they do, beside the standard library's."""

import gc
import time
import weakref

import pytest

from tests.threads.sides import Outcomes, Side, Started, on_both_sides, until_waited_for

EACH = (
    # arguments
    "{}()",
    "{}(0)",
    "{}(value=3)",
    "{}(sys.maxsize)",
    "{}(-1)",
    "{}(value=-1)",
    "{}(-sys.maxsize)",
    "{}('x')",
    "{}(None)",
    "{}(1, 2)",
    "{}(count=1)",
    "{}().acquire()",
    "{}().acquire(False)",
    "{}().acquire(0)",
    "{}().acquire(True, None)",
    "{}().acquire(False, None)",
    "{}().acquire(timeout=pause)",
    "{}().acquire(timeout=0)",
    "{}().acquire(1, 2, 3)",
    "{}().acquire(wait=1)",
    "{}().acquire(False, 1)",
    "{}().acquire(False, 0)",
    "{}(0).acquire(False, 1)",
    "{}(0).acquire(False)",
    "{}(0).acquire(True, 0)",
    "{}(0).acquire(True, pause)",
    "{}(0).acquire(timeout=-1)",
    "{}(0).acquire(timeout=-inf)",
    "{}(0).acquire(timeout=inf)",
    "{}(0).acquire(timeout=huge)",
    "{}(0).acquire(timeout=2 * threading.TIMEOUT_MAX)",
    "{}(0).acquire(timeout='1')",
    "{}(0).acquire(timeout=[])",
    # where a permit is there no time-out is looked at
    "s = {}(9); [s.acquire(timeout=t) for t in (0, -1, huge, inf, nan)]",
    "{}().release(0)",
    "{}().release(-1)",
    "{}().release(n=0)",
    "{}().release('x')",
    "{}().release(None)",
    "{}().release(1, 2)",
    "{}().release(m=1)",
    # what it does
    "s = {}(2); [s.acquire(False) for _ in range(3)]",
    "s = {}(2); [s.acquire(), s.release(), s._value]",
    "s = {}(3); [[s.acquire() for _ in 'abc'], s.release(2), s._value]",
    "s = {}(3); [[s.acquire() for _ in 'abc'], s.release(n=3), s]",
    "{}().release()",
    "{}(5).release(3)",
    "s = {}(2); raised(s.release, 2), s._value, raised(s.release)",
    "s = {}(); s.acquire(); raised(s.release, 2), s._value",
    "s = {}(0); raised(s.release), s",
    # a failure leaves it as it was
    "s = {}(0); raised(s.acquire, True, huge), s, len(s._cond._waiters)",
    "s = {}(0); raised(s.acquire, True, '1'), s, s._cond.acquire(False)",
    # with
    "{}().__enter__()",
    "s = {}(); s.acquire(); s.__exit__(None, None, None)",
    "{}(5).__exit__(None, None, None)",
    """
semaphore = {}(2)
try:
    with semaphore as acquired, semaphore:
        inside = semaphore._value, semaphore.acquire(False)
        1 / 0
except ZeroDivisionError:
    pass
acquired, inside, semaphore._value
    """,
    # an object
    "s = {}(3); s.acquire(); s",
    "class Child({}): pass\nChild(3)._value, repr(Child(3)).endswith('>')",
    "bool({0}()), {0}() == {0}(), len({{{0}(), {0}()}})",
    "s = {}(); s.colour = 'red'; s.colour, vars(s)['colour']",
    "{}().colour",
    "pickle.dumps({}())",
    "copy.deepcopy({}())",
    "s = {}(); weakref.ref(s)() is s",
    "weakref.ref({}())()",
    # its inside
    "s = {}(); isinstance(s._cond, Condition)",
    "s = {}(); [s._cond.acquire(), s._cond.acquire(False)]",
    "s = {}(3); s._value = 1; s.acquire(False), s.acquire(False)",
    "s = {}(3); del s.acquire",
    """
class Child({}):
    def __init__(self, value, name):
        super().__init__(value)
        self.name = name
    def acquire(self, *args, **kwargs):
        return self.name, super().acquire(*args, **kwargs)
    __enter__ = acquire
    def release(self, n=1):
        super().release(n)
        return self.name
child = Child(1, "x")
with child as entered:
    inside = child.acquire(False)
entered, inside, child.acquire(), child.release()
    """,
)
CASES = [
    *(case.format(name) for case in EACH for name in ("Semaphore", "BoundedSemaphore")),
    "issubclass(BoundedSemaphore, Semaphore), isinstance(BoundedSemaphore(), Semaphore)",
    "BoundedSemaphore(3)._initial_value",
    "Semaphore(3)._initial_value",
    "s = BoundedSemaphore(1); s._initial_value = 2; s.release(), s",
]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@pytest.fixture(params=["Semaphore", "BoundedSemaphore"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@on_both_sides
def test_a_release_lets_as_many_in(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(5)
    for _ in range(5):
        semaphore.acquire()
    waiters = [Started(semaphore.acquire) for _ in range(3)]
    waiters += [Started(semaphore.acquire, timeout=60) for _ in range(2)]
    until_waited_for(semaphore, 5)
    semaphore.release()
    semaphore.release(4)
    assert [waiter.result() for waiter in waiters] == [True] * 5
    assert semaphore._value == 0
    assert len(semaphore._cond._waiters) == 0


@on_both_sides
def test_a_release_from_the_inside_lets_one_in(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(1)
    semaphore.acquire()
    waiter = Started(semaphore.acquire)
    until_waited_for(semaphore)
    with semaphore._cond:
        semaphore._value += 1
        semaphore._cond.notify()
    assert waiter.result() is True
    assert semaphore._value == 0


@on_both_sides
def test_a_notification_without_a_permit_lets_nobody_in(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(1)
    semaphore.acquire()
    waiter = Started(semaphore.acquire, timeout=0.05)
    until_waited_for(semaphore, timed=waiter)
    with semaphore._cond:
        semaphore._cond.notify_all()
    assert waiter.result() is False
    assert semaphore._value == 0


@on_both_sides
def test_a_timed_out_waiter_takes_nothing(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(1)
    semaphore.acquire()
    assert Started(semaphore.acquire, timeout=0.001).result() is False
    semaphore.release()
    assert semaphore._value == 1


@on_both_sides
def test_a_wait_is_not_shorter_than_its_time_out(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(0)
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        assert semaphore.acquire(timeout=timeout) is False
        assert time.monotonic() - begin >= timeout


@on_both_sides
def test_it_dies_with_its_cycle(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)()
    semaphore.me = semaphore
    gone = weakref.ref(semaphore)
    del semaphore
    gc.collect()
    assert gone() is None


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side, kind: str) -> None:
    semaphore = getattr(side, kind)(0)
    waiter = Started(semaphore.acquire, timeout=0.05)
    until_waited_for(semaphore, timed=waiter)
    gone = weakref.ref(semaphore)
    del semaphore
    assert waiter.result() is False
    del waiter
    assert gone() is None
