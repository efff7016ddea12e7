"""SimpleQueue: what it does, beside the standard library's, also when it is entered again."""

import gc
import queue
import sys
import time
import weakref

import pytest

from tests.support import run_child
from tests.threads.sides import Outcomes, Side, Started, on_both_sides, until_waited_for

CASES = [
    # arguments
    "SimpleQueue(1)",
    "SimpleQueue(maxsize=1)",
    "SimpleQueue().put()",
    "SimpleQueue().put(1)",
    "SimpleQueue().put(1, False)",
    "SimpleQueue().put(1, True, None)",
    "SimpleQueue().put(1, True, -1)",
    "SimpleQueue().put(1, True, 'x')",
    "SimpleQueue().put(item=1, block=False, timeout=3)",
    "SimpleQueue().put(1, 2, 3, 4)",
    "SimpleQueue().put(1, wait=2)",
    "SimpleQueue().put_nowait()",
    "SimpleQueue().put_nowait(1)",
    "SimpleQueue().put_nowait(item=1)",
    "SimpleQueue().get(1, 2, 3)",
    "SimpleQueue().get(wait=1)",
    "SimpleQueue().get_nowait(1)",
    "SimpleQueue().qsize(1)",
    "SimpleQueue().empty(1)",
    # getting from an empty one
    "SimpleQueue().get(False)",
    "SimpleQueue().get(block=0)",
    "SimpleQueue().get_nowait()",
    "SimpleQueue().get(True, 0)",
    "SimpleQueue().get(True, 0.0)",
    "SimpleQueue().get(timeout=pause)",
    "SimpleQueue().get(timeout=-1)",
    "SimpleQueue().get(timeout=-inf)",
    "SimpleQueue().get(timeout=nan)",
    "SimpleQueue().get(timeout=inf)",
    "SimpleQueue().get(timeout=huge)",
    "SimpleQueue().get(timeout=2 * threading.TIMEOUT_MAX)",
    "SimpleQueue().get(timeout='1')",
    "SimpleQueue().get(timeout=[])",
    # also when an item is there
    *(
        f"q = SimpleQueue(); q.put(5); raised(q.get, True, {timeout}), q.qsize()"
        for timeout in ("0", "-1", "nan", "huge", "'1'", "None")
    ),
    # what it does
    "q = SimpleQueue(); [q.put(i) for i in (3, 1, 2)]; [q.get() for _ in 'abc'], q.empty()",
    "q = SimpleQueue(); q.empty(), q.put(1), q.empty(), q.qsize(), q.get(), q.qsize(), q.empty()",
    "q = SimpleQueue(); q.put(None), q.put(q), q.get(), q.get() is q",
    "q = SimpleQueue(); [q.put(i) for i in range(900)]; all(q.get() == i for i in range(900))",
    "q = SimpleQueue(); [(q.put(i), q.put(-i), q.get()) for i in range(40)]; q.qsize(), q.get()",
    # an object
    "SimpleQueue()",
    "bool(SimpleQueue()), SimpleQueue() == SimpleQueue(), len({SimpleQueue(), SimpleQueue()})",
    "len(SimpleQueue())",
    "iter(SimpleQueue())",
    "q = SimpleQueue(); q.colour = 1",
    "SimpleQueue().queue",
    "SimpleQueue().mutex",
    "copy.deepcopy(SimpleQueue())",
    "pickle.dumps(SimpleQueue())",
    "q = SimpleQueue(); weakref.ref(q)() is q",
    "weakref.ref(SimpleQueue())()",
    "SimpleQueue[int]",
    "type(SimpleQueue[int]()).__name__",
    """
class Child(SimpleQueue):
    def __init__(self):
        self.name = "x"
    def get(self, *args, **kwargs):
        return self.name, super().get(*args, **kwargs)
q = Child()
q.put(1), q.get(), q.put(2), q.get_nowait()
    """,
]
if sys.version_info >= (3, 15):
    CASES += ["SimpleQueue().get(False, -1)", "SimpleQueue().get(False, '1')"]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


@on_both_sides
def test_a_put_ends_a_get(side: Side) -> None:
    q = side.SimpleQueue()
    for timeout in (None, 60):
        getter = Started(q.get, timeout=timeout)
        until_waited_for(q)
        q.put("item")
        assert getter.result() == "item"
    assert q.empty()


@on_both_sides
def test_each_item_goes_to_one_getter(side: Side) -> None:
    q = side.SimpleQueue()
    getters = [Started(q.get) for _ in range(6)]
    until_waited_for(q, 6)
    for i in range(6):
        q.put(i)
    got = [getter.result() for getter in getters]
    assert sorted(got) == list(range(6))  # type: ignore[type-var]


@on_both_sides
def test_a_timed_out_getter_takes_nothing(side: Side) -> None:
    q = side.SimpleQueue()
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        with pytest.raises(queue.Empty):
            q.get(timeout=timeout)
        assert time.monotonic() - begin >= timeout
    q.put(1)
    assert q.get(timeout=0) == 1


@on_both_sides
def test_items_are_let_go_at_once(side: Side) -> None:
    class Item:
        pass

    q = side.SimpleQueue()
    for _ in range(20):
        q.put(Item())
    for _ in range(20):
        gone = weakref.ref(q.get())
        assert gone() is None
    getter = Started(q.get)
    until_waited_for(q)
    item = Item()
    gone = weakref.ref(item)
    q.put(item)
    assert getter.result() is item
    del item, getter
    assert gone() is None
    item = Item()
    gone = weakref.ref(item)
    q.put(item)
    del item, q
    assert gone() is None


@on_both_sides
def test_it_dies_with_its_cycle(side: Side) -> None:
    q = side.SimpleQueue()
    q.put(q)
    q.put([q])
    gone = weakref.ref(q)
    del q
    gc.collect()
    assert gone() is None


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side) -> None:
    q = side.SimpleQueue()
    waiter = Started(q.get, timeout=0.05)
    until_waited_for(q, timed=waiter)
    gone = weakref.ref(q)
    del q
    with pytest.raises(queue.Empty):
        waiter.result()
    del waiter
    gc.collect()
    assert gone() is None


# ---- entered again ------------------------------------------------------------------------------

REENTRY = """
import gc, itertools, queue, signal, sys, threading
from cpythonplus import threads

SimpleQueue = getattr(queue if sys.argv[1] == "stock" else threads, "SimpleQueue")
q = SimpleQueue()
"""
of_both_sides = pytest.mark.parametrize("side", ["stock", "native"])


def run(code: str, side: str) -> None:
    run_child(REENTRY + code, args=[side])


@of_both_sides
def test_a_finaliser_puts(side: str) -> None:
    # The collector may begin anywhere in put() or get(), and run this.
    run(
        """
class Circular:
    def __init__(self):
        self.me = self
    def __del__(self):
        q.put(next(numbers))

numbers = itertools.count()
gc.set_threshold(5)
got = []
while not got or got[-1] < 10_000:
    circular = Circular()
    q.put(next(numbers))
    del circular
    got.append(q.get())
assert got == list(range(len(got))), "out of order, or lost"
""",
        side,
    )


@of_both_sides
def test_the_finaliser_of_an_item_puts_and_gets(side: str) -> None:
    run(
        """
class Item:
    def __del__(self):
        q.put("ghost")
        ghosts.append(q.get_nowait())

ghosts = []
for _ in range(200):
    q.put(Item())
    q.get()
assert ghosts == ["ghost"] * 200
for _ in range(5):
    q.put(Item())
del q  # its items go with it, and find nothing to put into
""",
        side,
    )


@of_both_sides
def test_a_signal_handler_puts(side: str) -> None:
    run(
        """
numbers = itertools.count()
# The standard library's get() sleeps on if the signal comes just before; the next one wakes it.
again = 5 if sys.argv[1] == "stock" else 0
def put(*_):
    q.put(next(numbers))
    # Only now the next one: between next() and put() it would overtake this one.
    signal.setitimer(signal.ITIMER_REAL, 0.0005, again)
signal.signal(signal.SIGALRM, put)
put()
got = [q.get() for _ in range(300)]
signal.setitimer(signal.ITIMER_REAL, 0)
assert got == list(range(300))
""",
        side,
    )


@of_both_sides
def test_a_signal_handler_puts_while_others_put_and_get(side: str) -> None:
    run(
        """
sent = []
def alarm(*_):
    q.put("alarm")
    sent.append("alarm")

def produce():
    for _ in range(3000):
        q.put("item")

def consume(got):
    while (item := q.get()) != "end":
        got.append(item)

signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
got = [[], []]
workers = [threading.Thread(target=produce) for _ in range(2)]
workers += [threading.Thread(target=consume, args=(part,)) for part in got]
for worker in workers:
    worker.start()
for _ in range(3000):
    q.put("item")
for worker in workers[:2]:
    worker.join()
signal.setitimer(signal.ITIMER_REAL, 0)
q.put("end")
q.put("end")
for worker in workers[2:]:
    worker.join()
everything = got[0] + got[1]
while not q.empty():
    everything.append(q.get())
assert everything.count("item") == 9000
assert everything.count("alarm") == len(sent)
""",
        side,
    )
