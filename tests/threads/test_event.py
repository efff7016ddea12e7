"""Event: what it does, beside the standard library's."""

import time
import weakref

import pytest

from tests.threads.sides import Outcomes, Side, Started, on_both_sides, until_waited_for

CASES = (
    # arguments
    "Event(1)",
    "Event(flag=True)",
    "Event().set(1)",
    "Event().clear(1)",
    "Event().is_set(1)",
    "Event().wait(1, 2)",
    "Event().wait(seconds=1)",
    "Event().wait(0)",
    "Event().wait(0.0)",
    "Event().wait(pause)",
    "Event().wait(timeout=pause)",
    "Event().wait(-1)",
    "Event().wait(-inf)",
    "Event().wait(nan)",
    "Event().wait(inf)",
    "Event().wait(huge)",
    "Event().wait(threading.TIMEOUT_MAX + 1)",
    "Event().wait('1')",
    "Event().wait([])",
    # of one that is set no time-out is looked at
    "e = Event(); e.set(); [e.wait(), e.wait(0), e.wait(-1), e.wait(None)]",
    "e = Event(); e.set(); [e.wait(huge), e.wait(inf), e.wait(nan)]",
    # what it does
    "e = Event(); [e.is_set(), e.set(), e.is_set(), e.clear(), e.is_set()]",
    "e = Event(); [e.set(), e.set(), e.is_set(), e.clear(), e.clear()]",
    "e = Event(); [e.wait(0), e.set(), e.wait(0), e.clear(), e.wait(0)]",
    "Event().isSet()",
    "e = Event(); e.set(); e.isSet()",
    # after a failure it is as it was
    "e = Event(); [raised(e.wait, huge), e.wait(0), e.set(), e.wait()]",
    "e = Event(); [raised(e.wait, '1'), len(e._cond._waiters), e.set(), e.wait()]",
    # an object
    "Event()",
    "e = Event(); e.set(); e",
    "class Child(Event): pass\nrepr(Child()).endswith('unset>')",
    "bool(Event()), Event() == Event(), len({Event(), Event()})",
    "e = Event(); e.colour = 'red'; e.colour, e.__dict__.get('colour')",
    "Event().colour",
    "pickle.dumps(Event())",
    "copy.deepcopy(Event())",
    "e = Event(); weakref.ref(e)() is e",
    "weakref.ref(Event())()",
    # its inside
    "e = Event(); [e._flag, e.set(), e._flag]",
    "e = Event(); [isinstance(e._cond, Condition), e._cond.acquire(), e._cond.acquire(False)]",
    "e = Event(); e._at_fork_reinit()",
    """
event = Event()
event._cond.acquire()
event._at_fork_reinit()
event._cond.acquire(False), event._cond.release(), event.set(), event.wait()
    """,
    """
event = Event()
with event._cond:
    event._flag = True
    event._cond.notify_all()
event.is_set(), event.wait()
    """,
    """
class Child(Event):
    def __init__(self, name):
        super().__init__()
        self.name = name
    def set(self):
        super().set()
        return self.name
child = Child("x")
child.set(), child.is_set(), child.wait()
    """,
    """
class Child(Event):
    def is_set(self):
        return "overridden"
Child().is_set(), Child().wait(0)
    """,
)


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@on_both_sides
def test_set_ends_all_waits(side: Side) -> None:
    event = side.Event()
    waiters = [Started(event.wait) for _ in range(4)]
    waiters += [Started(event.wait, 60) for _ in range(4)]
    until_waited_for(event, 8)
    event.set()
    assert [waiter.result() for waiter in waiters] == [True] * 8
    assert len(event._cond._waiters) == 0


@on_both_sides
def test_a_wait_ends_although_it_is_cleared_at_once(side: Side) -> None:
    event = side.Event()
    waiters = [Started(event.wait) for _ in range(4)]
    until_waited_for(event, 4)
    event.set()
    event.clear()
    assert [waiter.result() for waiter in waiters] == [True] * 4
    assert event.wait(0) is False


@on_both_sides
def test_setting_it_from_the_inside_ends_the_waits(side: Side) -> None:
    event = side.Event()
    waiter = Started(event.wait)
    until_waited_for(event)
    with event._cond:
        event._flag = True
        event._cond.notify_all()
    assert waiter.result() is True


@on_both_sides
def test_a_wait_is_not_shorter_than_its_time_out(side: Side) -> None:
    event = side.Event()
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        assert event.wait(timeout) is False
        assert time.monotonic() - begin >= timeout


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side) -> None:
    event = side.Event()
    waiter = Started(event.wait, 0.05)
    until_waited_for(event, timed=waiter)
    gone = weakref.ref(event)
    del event
    assert waiter.result() is False
    del waiter
    assert gone() is None
