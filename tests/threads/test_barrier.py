"""Barrier: what it does, beside the standard library's."""

import gc
import sys
import threading
import weakref

import pytest

from tests.threads.sides import Outcomes, Side, Started, on_both_sides, until

CASES = [
    # arguments
    "Barrier()",
    "Barrier(2)",
    "Barrier(parties=2, action=None, timeout=None)",
    "Barrier(1, None, None, 4)",
    "Barrier(1, call=5)",
    "Barrier(1).wait(1, 2, 3)",
    "Barrier(1).wait(seconds=1)",
    "Barrier(1).reset(1)",
    "Barrier(1).abort(1)",
    "Barrier(1).wait()",
    "Barrier(1).wait(timeout=5)",
    # no time-out is looked at where nobody has to wait
    "[Barrier(1).wait(t) for t in (0, -1, huge, inf, nan)]",
    "b = Barrier(1); b.wait(), b.wait(), b.n_waiting, b.broken",
    # it breaks
    *(
        f"b = Barrier(2); raised(b.wait, {timeout}), b.broken, b.n_waiting"
        for timeout in ("0", "pause", "-1", "-inf", "huge", "inf", "'1'", "[]")
    ),
    "b = Barrier(2, timeout=pause); raised(b.wait), b.broken",
    "b = Barrier(2, None, 0); raised(b.wait), b.broken",
    "b = Barrier(2, timeout='1'); raised(b.wait), b.broken, b.n_waiting",
    "b = Barrier(2, timeout=60); raised(b.wait, pause), b.broken",
    "b = Barrier(2); b.abort(), b.broken, raised(b.wait), b.n_waiting",
    "b = Barrier(1); b.abort(), raised(b.wait), b.reset(), b.wait()",
    "b = Barrier(2); raised(b.wait, 0), b.reset(), b.broken",
    "b = Barrier(2); b.reset(), b.broken, b.n_waiting",
    "b = Barrier(1); b.reset(), b.wait(), b.abort(), b.abort()",
    # the action
    "called = []; b = Barrier(1, lambda: called.append(1)); b.wait(), b.wait(), called",
    "b = Barrier(1, action=lambda: 1 / 0); raised(b.wait), b, raised(b.wait)",
    "b = Barrier(1, 5); raised(b.wait), b.broken",
    "b = Barrier(1, lambda: b.n_waiting); b.wait()",
    """
def action():
    seen.append((barrier.n_waiting, barrier.broken, barrier._count, barrier._state))
seen = []
barrier = Barrier(1, action)
barrier.wait(), seen, barrier._count, barrier._state
    """,
    # an object
    "b = Barrier(1); b.abort(); b",
    "b = Barrier(4, action=print, timeout=1); b.parties, b.n_waiting, b.broken",
    "b = Barrier(1); b.parties = 5",
    "b = Barrier(1); b.n_waiting = 5",
    "b = Barrier(1); b.broken = True",
    "class Child(Barrier): pass\nChild(1).wait(), repr(Child(1)).endswith('0/1>')",
    "bool(Barrier(1)), Barrier(1) == Barrier(1), len({Barrier(1), Barrier(1)})",
    "b = Barrier(1); b.colour = 'red'; b.colour, vars(b)['colour']",
    "Barrier(1).colour",
    "pickle.dumps(Barrier(1))",
    "copy.deepcopy(Barrier(1))",
    "b = Barrier(1); weakref.ref(b)() is b",
    "weakref.ref(Barrier(1))()",
    """
class Child(Barrier):
    def __init__(self, name):
        super().__init__(1)
        self.name = name
    def wait(self, timeout=None):
        return self.name, super().wait(timeout)
Child("x").wait()
    """,
    # its inside
    "b = Barrier(3, print, 5); b._parties, b._action is print, b._timeout",
    "b = Barrier(3); b._state, b._count, isinstance(b._cond, Condition)",
    "b = Barrier(3); b.abort(); b._state, b._count",
    "b = Barrier(1); b._cond.acquire(), b._cond.acquire(False)",
]
if sys.version_info >= (3, 13):
    # Before, one of no parties could be made, and let nobody pass.
    CASES += ["Barrier(0)", "Barrier(-1)", "Barrier(parties=0)", "Barrier('x')", "Barrier(None)"]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@on_both_sides
def test_all_pass_together_again_and_again(side: Side) -> None:
    barrier = side.Barrier(4)
    rounds: list[list[int]] = [[] for _ in range(30)]

    def body(me: int) -> list[int]:
        indices = []
        for arrived in rounds:
            arrived.append(me)
            indices.append(barrier.wait())
            assert sorted(arrived) == [0, 1, 2, 3]
        return indices

    threads = [Started(body, i) for i in range(4)]
    columns = [thread.result() for thread in threads]
    for indices in zip(*columns, strict=True):
        assert sorted(indices) == [0, 1, 2, 3]
    assert barrier.n_waiting == 0
    assert not barrier.broken


@on_both_sides
def test_the_last_one_runs_the_action_before_anybody_passes(side: Side) -> None:
    ran_in = []
    barrier = side.Barrier(3, lambda: ran_in.append(threading.get_ident()))

    def body() -> tuple[int, int, int]:
        index = barrier.wait()
        return index, threading.get_ident(), len(ran_in)

    others = [Started(body) for _ in range(2)]
    until(lambda: barrier.n_waiting == 2)
    assert ran_in == []
    assert repr(barrier).endswith("waiters=2/3>")
    assert barrier.wait() == 2
    assert ran_in == [threading.get_ident()]
    for other in others:
        other.result()


@on_both_sides
@pytest.mark.parametrize("end", ["abort", "reset", "raising action", "time-out of one"])
def test_who_waits_when_it_breaks(side: Side, end: str) -> None:
    barrier = side.Barrier(4 if end != "raising action" else 3, lambda: 1 // 0)
    others = [Started(barrier.wait) for _ in range(2)]
    until(lambda: barrier.n_waiting == 2)
    if end == "time-out of one":
        with pytest.raises(threading.BrokenBarrierError):
            barrier.wait(0.001)
    elif end == "raising action":
        with pytest.raises(ZeroDivisionError):
            barrier.wait()
    else:
        getattr(barrier, end)()
    for other in others:
        with pytest.raises(threading.BrokenBarrierError):
            other.result()
    assert barrier.broken is (end != "reset")
    assert barrier.n_waiting == 0
    barrier.reset()
    assert not barrier.broken


@on_both_sides
def test_it_can_be_used_after_a_reset(side: Side) -> None:
    barrier = side.Barrier(2)
    broken = Started(barrier.wait)
    until(lambda: barrier.n_waiting == 1)
    barrier.abort()
    barrier.reset()
    # Who comes now waits until those who broke with it have left.
    other = Started(barrier.wait)
    indices = {barrier.wait(), other.result()}
    assert indices == {0, 1}
    with pytest.raises(threading.BrokenBarrierError):
        broken.result()


@on_both_sides
def test_an_exception_in_a_wait_leaves_no_trace(side: Side) -> None:
    barrier = side.Barrier(2)
    with pytest.raises(OverflowError):
        barrier.wait(1e100)
    assert barrier.n_waiting == 0
    assert not barrier.broken
    other = Started(barrier.wait)
    assert {barrier.wait(), other.result()} == {0, 1}


@on_both_sides
def test_its_action_may_hold_it_in_a_cycle(side: Side) -> None:
    class Owner:
        def __init__(self) -> None:
            self.barrier = side.Barrier(1, self.act)

        def act(self) -> None:
            pass

    owner = Owner()
    owner.barrier.wait()
    gone = weakref.ref(owner), weakref.ref(owner.barrier)
    del owner
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side) -> None:
    barrier = side.Barrier(2)
    waiter = Started(barrier.wait, 0.05)
    until(lambda it: it.n_waiting == 1 or it.broken, barrier)
    gone = weakref.ref(barrier)
    del barrier
    with pytest.raises(threading.BrokenBarrierError):
        waiter.result()
    del waiter
    gc.collect()
    assert gone() is None
