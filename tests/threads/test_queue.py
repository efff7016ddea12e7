"""Queue, LifoQueue and PriorityQueue: what they do, beside the standard library's."""

import gc
import itertools
import queue
import sys
import threading
import time
import weakref
from collections import deque
from functools import partial
from typing import Any

import pytest

from tests.threads.sides import Outcomes, Side, Started, on_both_sides, until_waited_for

KINDS = ("Queue", "LifoQueue", "PriorityQueue")

EACH = (
    # arguments
    "{}(1, 2)",
    "{}(size=1)",
    "{}().put()",
    "{}().put(1, 2, 3, 4)",
    "{}().put(1, wait=True)",
    "{}().put(item=1, block=True, timeout=None)",
    "{}().put_nowait()",
    "{}().put_nowait(item=1)",
    "{}().get(1, 2, 3)",
    "{}().get(wait=True)",
    "{}().get_nowait(1)",
    "{}().qsize(1)",
    "{}().empty(1)",
    "{}().full(1)",
    "{}().task_done(1)",
    # getting
    "{}().get(False)",
    "{}().get(block=0)",
    "{}().get_nowait()",
    "{}().get(timeout=0)",
    "{}().get(timeout=pause)",
    "{}().get(True, pause)",
    "{}().get(timeout=-1)",
    "{}().get(timeout=-inf)",
    "{}().get(timeout=inf)",
    "{}().get(timeout=huge)",
    "{}().get(timeout=2 * threading.TIMEOUT_MAX)",
    "{}().get(timeout='1')",
    "{}().get(False, -1)",
    "{}().get(False, '1')",
    "{}().get(False, nan)",
    # also when an item is there
    *(
        f"q = {{}}(); q.put(5); raised(q.get, True, {timeout}), q.qsize()"
        for timeout in ("0", "-1", "huge", "inf", "'1'", "None")
    ),
    # putting into a full one
    "q = {}(1); q.put(1), raised(q.put, 2, False), raised(q.put_nowait, 2), q.qsize()",
    "q = {}(1); q.put(1), raised(q.put, 2, timeout=0), raised(q.put, 2, True, pause), q.qsize()",
    *(
        f"q = {{}}(1); q.put(5), raised(q.put, 6, True, {timeout}), q.qsize(), q.unfinished_tasks"
        for timeout in ("-1", "-inf", "inf", "huge", "'1'", "[]")
    ),
    "q = {}(1); q.put(1), raised(q.put, 2, False, -1), raised(q.put, 2, False, '1')",
    # and into one with room, bounded or not
    *(
        f"q = {{}}({size}); raised(q.put, 5, True, {timeout}), q.qsize()"
        for size, timeout in itertools.product(("", "1"), ("0", "-1", "huge", "inf"))
    ),
    # what comes out
    "q = {}(); [q.put(i) for i in (3, 1, 2)]; [q.get() for _ in 'abc'], q.empty()",
    "q = {}(); [q.put_nowait(i) for i in (3, 1, 2)]; [q.get_nowait() for _ in 'abc'], q.qsize()",
    "q = {}(2); [(q.put(i), q.qsize(), q.empty(), q.full()) for i in (5, 6)], q.get(), q.full()",
    "q = {}(); q.put(None), q.get()",
    # sizes
    "q = {}(-5); q.maxsize, q.put(1), q.full(), q.put(2), q.qsize()",
    "q = {}(0); q.maxsize, q.put(1), q.full()",
    "q = {}(maxsize=7); q.maxsize",
    "q = {}(inf); q.maxsize, q.put(1), q.full(), q.qsize()",
    "{}('x').put(1)",
    "{}(None).put(1)",
    "q = {}(3); [q.put(i) for i in 'abc']; q.maxsize = 2; raised(q.put_nowait, 1), q.full()",
    "q = {}(1); q.put(1); q.maxsize = 2; q.put(2, False), q.full(), raised(q.put, 3, False)",
    "q = {}(1); q.put(1); q.maxsize = 0; q.put(2, False), q.full(), q.maxsize",
    "q = {}(); q.maxsize = 1; q.put(1), q.full(), raised(q.put, 2, False)",
    "q = {}(1); q.put(1); q.maxsize = 'x'; q.put(2, False)",
    # tasks
    "{}().task_done()",
    "q = {}(); q.put(1), q.unfinished_tasks, q.get(), q.unfinished_tasks, q.task_done(), joined(q)",
    "q = {}(); q.put(1), q.task_done(), raised(q.task_done), q.unfinished_tasks, q.qsize()",
    "q = {}(); joined(q)",
    "q = {}(); [q.put(i) for i in 'abc']; q.unfinished_tasks = 1; q.task_done(), joined(q)",
    "q = {}(); q.put(1); q.unfinished_tasks = 0; joined(q), raised(q.task_done)",
    # an object
    "{}()",
    "q = {}(); repr(q).count('object at')",
    "bool({0}()), {0}() == {0}(), len({{{0}(), {0}()}})",
    "len({}())",
    "iter({}())",
    "q = {}(); q.colour = 'red'; q.colour, vars(q)['colour']",
    "{}().colour",
    "pickle.dumps({}())",
    "copy.deepcopy({}())",
    "q = {}(); weakref.ref(q)() is q",
    "weakref.ref({}())()",
    "{}[int]",
    "type({}[int]()).__name__",
    # its inside
    "q = {}(); type(q.mutex) is type(Lock()), isinstance(q.not_empty, Condition)",
    "q = {}(); [c._lock is q.mutex for c in (q.not_empty, q.not_full, q.all_tasks_done)]",
    "q = {}(); len({{id(c) for c in (q.not_empty, q.not_full, q.all_tasks_done)}})",
    "q = {}(); type(q.queue).__name__, len(q.queue)",
    "q = {}(); [q.put(i) for i in (3, 1, 2)]; sorted(q.queue), q.queue[0], 1 in q.queue",
    "q = {}(); [q.put(i) for i in (3, 1, 2)]; list(q.queue)",
    "q = {}(); q.queue.append(5); q.qsize(), q.get(), q.unfinished_tasks",
    "q = {}(); q.put(1), q.put(2); q.queue.clear(); q.qsize(), q.empty(), raised(q.get_nowait)",
    "q = {}(); q.put(1), q.put(2); del q.queue[0]; q.qsize(), q.get()",
    "q = {}(); q.queue is q.queue",
    "q = {}(); q.put(1); held = q.queue; q.put(2); len(held), held is q.queue",
    "q = {}(); q.put(1); q.queue = type(q.queue)([8, 9]); q.qsize(), q.get(), q.get(), q.empty()",
    "q = {}(); q.put(1); q.queue = [8, 9]; q.qsize(), raised(q.get_nowait), raised(q.put, 3)",
    "q = {}(); q.queue = None; raised(q.qsize), raised(q.put, 1), raised(q.get_nowait)",
    "q = {}(); q.queue = 5; raised(q.empty), raised(q.put, 1), raised(q.get_nowait)",
    "q = {}(); q.queue = (); raised(q.empty), raised(q.put, 1), raised(q.get_nowait)",
    "q = {}(); q.queue = 'ab'; raised(q.qsize), raised(q.put, 'c'), raised(q.get_nowait)",
    "q = {}(); q.mutex.acquire(); in_thread(q.mutex.acquire, False), q.mutex.release(), q.put(1)",
    "q = {}(); q.put(1); del q.queue; raised(q.qsize)",
    """
q = {}()
q.put(1), q.put(2)
with q.mutex:
    q.queue.clear()
    q.all_tasks_done.notify_all()
    q.unfinished_tasks = 0
joined(q), q.qsize(), q.put(3), q.get(), q.unfinished_tasks
    """,
    """
q = {}()
q.put(1)
with q.all_tasks_done:
    waited = q.all_tasks_done.wait(pause), q.unfinished_tasks
q.get(), q.task_done()
with q.all_tasks_done:
    done = q.all_tasks_done.wait_for(lambda: not q.unfinished_tasks, pause)
waited, done
    """,
    """
q = {}()
with q.not_empty:
    told = q.not_empty.wait(pause), raised(q.mutex.acquire, False)
told, q.put(1)
    """,
    "q = {}(); raised(q.not_empty.notify), raised(q.not_full.wait), q.put(1)",
    "q = {}(); q._init(5), q._put(1), q._qsize(), q._get(), q._qsize(), q.unfinished_tasks",
    "{}()._get()",
    "{}()._put()",
    # subclasses
    """
log = []
class Child({}):
    def _init(self, maxsize):
        log.append(("init", maxsize, self.maxsize))
        super()._init(maxsize)
    def _put(self, item):
        log.append(("put", item, self.mutex.locked()))
        super()._put(item)
    def _get(self):
        log.append(("get", self.mutex.locked()))
        return super()._get()
q = Child(2)
q.put(2), q.put_nowait(1), raised(q.put, 3, False), raised(q.put, 3, True, pause)
got = q.get(), q.get_nowait(), raised(q.get_nowait), raised(q.get, True, pause)
got, log, q.unfinished_tasks
    """,
    """
class Child({}):
    def _qsize(self):
        asked.append(self.mutex.locked())
        return super()._qsize() * 2
asked = []
q = Child(3)
sizes = q.qsize(), q.put(1), q.qsize(), q.full(), q.put(2), q.full(), raised(q.put_nowait, 3)
sizes, q.get(), q.empty(), q.get(), q.empty(), raised(q.get_nowait), set(asked)
    """,
    """
class Set({}):
    def _init(self, maxsize):
        self.queue = set()
    def _put(self, item):
        self.queue.add(item)
    def _get(self):
        return self.queue.pop()
q = Set(2)
q.put(1), q.put(1), q.put(1), q.qsize(), q.unfinished_tasks, q.get(), raised(q.get_nowait)
    """,
    """
class Counted({}):
    def _init(self, maxsize):
        self.items, self.count = [], 0
    def _qsize(self):
        return len(self.items)
    def _put(self, item):
        self.items.insert(0, (item, self.count))
        self.count += 1
    def _get(self):
        return self.items.pop()
q = Counted(2)
q.put("a"), q.put("b"), q.full(), q.get(), q.get(), q.empty(), raised(getattr, q, "queue")
    """,
    """
class Failing({}):
    def _put(self, item):
        if item == "bad":
            raise KeyError(item)
        super()._put(item)
    def _get(self):
        item = super()._get()
        if item == "cursed":
            raise KeyError(item)
        return item
q = Failing(1)
first = raised(q.put, "bad"), q.qsize(), q.unfinished_tasks, q.mutex.locked()
second = q.put("cursed"), raised(q.get), q.qsize(), q.unfinished_tasks, q.mutex.locked()
first, second, q.put("good", False), q.get()
    """,
    """
class Failing({}):
    def _qsize(self):
        raise KeyError("size")
q = Failing(1)
raised(q.put, 1), raised(q.get), raised(q.qsize), raised(q.empty), q.mutex.locked()
    """,
    """
class Odd({}):
    def _qsize(self):
        return self.size
q = Odd(1)
results = []
for q.size in (0, 1, 3):
    results.append([raised(q.qsize), raised(q.empty), raised(q.full), q.mutex.locked()])
results
    """,
    """
class Failing({}):
    def _init(self, maxsize):
        raise KeyError(maxsize)
Failing(3)
    """,
    """
class Child({}):
    def __init__(self, name):
        super().__init__()
        self.name = name
    def put(self, item, block=True, timeout=None):
        super().put((self.name, item), block, timeout)
    def get(self, block=True, timeout=None):
        return super().get(block, timeout)[1]
q = Child("x")
q.put(1), q.put_nowait(2), sorted(q.queue), q.get(), q.get_nowait()
    """,
    """
q = {}()
q.put(1)
q._put = lambda item: seen.append(item)
q._qsize = lambda: 7
seen = []
q.put(5), seen, q.qsize(), q.full(), q.unfinished_tasks
    """,
    """
class Child({}):
    pass
Child._put = lambda self, item: self.queue.append(-item)
q = Child()
q.put(1), q.get()
    """,
)
CASES = [
    *(case.format(kind) for case in EACH for kind in KINDS),
    "issubclass(PriorityQueue, Queue), issubclass(LifoQueue, Queue)",
    # comparisons of a heap
    "q = PriorityQueue(); q.put(1), raised(q.put, 'x'), q.qsize(), q.unfinished_tasks, q.mutex",
    "q = PriorityQueue(); [q.put(i) for i in ((1, 'a'), (0, 'b'), (1, ''))]; q.get(), q.get()",
    "q = PriorityQueue(); q.put((1, {})), raised(q.put, (1, {})), q.qsize(), q.get()",
    "q = PriorityQueue(); q.queue = [3, 'x', 2]; raised(q.get), q.qsize(), q.mutex.locked()",
    """
class Item:
    def __init__(self, value): self.value = value
    def __lt__(self, other):
        if 7 in (self.value, other.value):
            raise KeyError(7)
        return self.value > other.value
q = PriorityQueue()
for i in (1, 5, 3): q.put(Item(i))
raised(q.put, Item(7)), q.qsize(), q.unfinished_tasks, [item.value for item in q.queue]
    """,
    """
class Vandal:
    def __lt__(self, other):
        q.queue.clear()
        return True
q = PriorityQueue()
q.put(Vandal()), raised(q.put, Vandal()), q.qsize(), q.put(3), q.get()
    """,
    """
class Vandal:
    def __lt__(self, other):
        q.queue = []
        return True
q = PriorityQueue()
q.put(Vandal()), raised(q.put, Vandal()), q.qsize(), q.put(3), q.get()
    """,
]
if sys.version_info >= (3, 13):
    CASES += [
        case.format(kind)
        for case in (
            "q = {}(); q.is_shutdown, q.shutdown(), q.is_shutdown, raised(q.put, 1), raised(q.get)",
            "q = {}(); q.is_shutdown = True; raised(q.put, 1), raised(q.get), raised(q.get_nowait)",
            "q = {}(); q.shutdown(); q.is_shutdown = False; q.put(1), q.get()",
            "{}().shutdown(1, 2)",
            "{}().shutdown(now=True)",
        )
        for kind in KINDS
    ]


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


# ---- with threads -------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@on_both_sides
def test_a_put_ends_a_get_and_the_other_way_round(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    getter = Started(q.get)
    until_waited_for(q)
    q.put("first")
    assert getter.result() == "first"
    q.put("second")
    putter = Started(q.put, "third")
    until_waited_for(q)
    got = [q.get()]
    putter.result()
    got.append(q.get())
    assert sorted(got) == ["second", "third"]
    assert q.unfinished_tasks == 3


@on_both_sides
@pytest.mark.parametrize("maxsize", [1, 2])
def test_many_putters_wait_for_one_getter(side: Side, kind: str, maxsize: int) -> None:
    # Whichever way an item takes, the place that it leaves free is offered to the next putter.
    for hooked in (False, True):
        q = getattr(side, kind)(maxsize)
        if hooked:
            q._put = partial(getattr(type(q), "_put"), q)  # noqa: B009  # of a type that varies
        for i in range(maxsize):
            q.put(i)
        putters = [Started(q.put, i) for i in range(10, 16)]
        until_waited_for(q, 6)
        got = [q.get(timeout=30) for _ in range(maxsize + 6)]
        assert sorted(got) == [*range(maxsize), *range(10, 16)]
        for putter in putters:
            putter.result()


@on_both_sides
def test_many_getters_wait_for_one_putter(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    getters = [Started(q.get, timeout=30) for _ in range(6)]
    until_waited_for(q, 6)
    for i in range(6):
        q.put(i, timeout=30)
    got = [getter.result() for getter in getters]
    assert sorted(got) == list(range(6))  # type: ignore[type-var]
    assert q.empty()


@on_both_sides
def test_a_time_out_long_enough_is_none(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    getter = Started(q.get, timeout=60)
    until_waited_for(q)
    q.put(1, timeout=60)
    assert getter.result() == 1
    q.put(2)
    putter = Started(q.put, 3, timeout=60)
    until_waited_for(q)
    assert q.get(timeout=60) == 2
    putter.result()
    assert q.get() == 3


@on_both_sides
def test_a_wait_is_not_shorter_than_its_time_out(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        with pytest.raises(queue.Empty):
            q.get(timeout=timeout)
        assert time.monotonic() - begin >= timeout
    q.put(1)
    for timeout in (0.001, 0.02):
        begin = time.monotonic()
        with pytest.raises(queue.Full):
            q.put(2, timeout=timeout)
        assert time.monotonic() - begin >= timeout


@on_both_sides
def test_join_waits_for_the_last_task(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    for i in range(3):
        q.put(i)
    joiners = [Started(q.join) for _ in range(2)]
    until_waited_for(q, 2)
    for i in range(3):
        assert all(joiner.thread.is_alive() for joiner in joiners)
        q.get()
        assert q.unfinished_tasks == 3 - i
        q.task_done()
    for joiner in joiners:
        joiner.result()


@on_both_sides
def test_clearing_it_by_hand_ends_join(side: Side, kind: str) -> None:
    # How people empty a queue without getting: under the mutex, with the condition told.
    q = getattr(side, kind)()
    q.put(1)
    joiner = Started(q.join)
    until_waited_for(q)
    with q.mutex:
        q.queue.clear()
        q.unfinished_tasks = 0
        q.all_tasks_done.notify_all()
    joiner.result()
    assert q.empty()


@on_both_sides
def test_making_room_by_hand_ends_put(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    q.put(1)
    putter = Started(q.put, 2)
    until_waited_for(q)
    with q.mutex:
        q.queue.clear()
        q.not_full.notify()
    putter.result()
    assert q.get() == 2
    q.put(3)
    putter = Started(q.put, 4)
    until_waited_for(q, 2 if hasattr(q, "statistics") else 1)
    with q.not_full:
        q.maxsize = 5
        q.not_full.notify_all()
    putter.result()
    assert q.qsize() == 2


@on_both_sides
def test_an_item_put_in_by_hand_ends_get(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    getter = Started(q.get)
    until_waited_for(q)
    with q.not_empty:
        q.queue.append(5)
        q.not_empty.notify()
    assert getter.result() == 5
    assert q.unfinished_tasks == 0


@on_both_sides
def test_waiting_for_its_conditions_from_outside(side: Side, kind: str) -> None:
    q = getattr(side, kind)(2)

    def three_gone() -> bool:
        with q.not_full:
            return bool(q.not_full.wait_for(lambda: q.maxsize == 9, 60))

    def filled() -> int:
        with q.not_empty:
            q.not_empty.wait_for(lambda: len(q.queue) >= 2, 60)
            return len(q.queue)

    def done() -> bool:
        with q.all_tasks_done:
            return bool(q.all_tasks_done.wait_for(lambda: q.unfinished_tasks == 0, 60))

    watcher = Started(filled)
    until_waited_for(q)
    q.put(1)
    q.put(2)
    assert watcher.result() == 2
    watchers = [Started(done), Started(three_gone)]
    until_waited_for(q, 3 if hasattr(q, "statistics") else 2)
    q.maxsize = 9
    q.get()
    q.get()
    q.task_done()
    q.task_done()
    assert [watcher.result() for watcher in watchers] == [True, True]


@on_both_sides
def test_a_watcher_may_take_the_one_notification(side: Side, kind: str) -> None:
    # put() notifies one, and a watcher that wants an item to be got has to pass it on.
    q = getattr(side, kind)()
    seen = []

    def watch() -> None:
        with q.not_empty:
            q.not_empty.wait()
            seen.append(len(q.queue))
            q.not_empty.notify()

    watcher = Started(watch)
    until_waited_for(q)
    getter = Started(q.get)
    until_waited_for(q, 2)
    q.put(7)
    assert getter.result() == 7
    watcher.result()
    assert len(seen) == 1


@on_both_sides
def test_the_hooks_of_an_instance_are_called_while_others_wait(side: Side, kind: str) -> None:
    q = getattr(side, kind)(1)
    put, get = q._put, q._get

    def logged_put(item: object) -> None:
        log.append("put")
        put(item)

    def logged_get() -> Any:  # noqa: ANN401
        log.append("get")
        return get()

    log: list[str] = []
    q._put, q._get = logged_put, logged_get
    getter = Started(q.get)
    until_waited_for(q)
    q.put(1)
    assert getter.result() == 1
    assert log == ["put", "get"]
    q.put(2)
    putter = Started(q.put, 3)
    until_waited_for(q, 2 if hasattr(q, "statistics") else 1)
    assert q.get() == 2
    putter.result()
    assert log == ["put", "get", "put", "get", "put"]


@on_both_sides
def test_order_under_a_slow_comparison(side: Side) -> None:
    class Item:
        def __init__(self, value: int) -> None:
            self.value = value

        def __lt__(self, other: "Item") -> bool:
            time.sleep(0)  # others run now, and must wait for the mutex
            return self.value < other.value

    q = side.PriorityQueue()

    def produce(first: int) -> None:
        for value in range(first, 120, 3):
            q.put(Item((value * 37) % 120))

    producers = [Started(produce, first) for first in range(3)]
    for producer in producers:
        producer.result()
    assert [q.get().value for _ in range(120)] == list(range(120))


@on_both_sides
def test_items_are_let_go_at_once(side: Side, kind: str) -> None:
    class Item:
        def __lt__(self, other: "Item") -> bool:
            return id(self) < id(other)

    q = getattr(side, kind)()
    for _ in range(3):
        q.put(Item())
    for _ in range(3):
        gone = weakref.ref(q.get())
        assert gone() is None
    q.put(Item())
    gone = weakref.ref(q.queue[0])
    del q
    assert gone() is None


@on_both_sides
def test_an_item_handed_to_a_waiter_is_let_go(side: Side, kind: str) -> None:
    class Item:
        pass

    q = getattr(side, kind)()
    getter = Started(q.get)
    until_waited_for(q)
    item = Item()
    gone = weakref.ref(item)
    q.put(item)
    assert getter.result() is item
    del item, getter
    assert gone() is None


@on_both_sides
def test_it_dies_with_its_cycle(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    q.put(q)
    q.me = q
    gone = weakref.ref(q), weakref.ref(q.mutex), weakref.ref(q.not_empty)
    del q
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3


@on_both_sides
def test_the_collector_sees_its_items(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    item = ["an item"]
    q.put(item)
    reached = {id(q)}
    todo = [q]
    while todo:
        for found in gc.get_referents(todo.pop()):
            if id(found) not in reached and isinstance(found, deque | list | dict):
                reached.add(id(found))
                todo.append(found)
    assert id(item) in reached


@on_both_sides
def test_a_waiter_keeps_it_alive(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    waiter = Started(q.get, timeout=0.05)
    until_waited_for(q, timed=waiter)
    gone = weakref.ref(q)
    del q
    with pytest.raises(queue.Empty):
        waiter.result()
    del waiter
    gc.collect()
    assert gone() is None


@on_both_sides
def test_its_mutex_is_held_by_hand_for_several_calls(side: Side, kind: str) -> None:
    q = getattr(side, kind)()
    with q.mutex:
        putter = Started(q.put, 1)
        sizer = Started(q.qsize)
        until_waited_for(q.mutex, 2)
        assert len(q.queue) == 0
        assert putter.thread.is_alive()
        assert sizer.thread.is_alive()
    putter.result()
    assert sizer.result() in {0, 1}
    assert q.get() == 1


@on_both_sides
def test_a_priority_queue_of_a_stream_is_in_order(side: Side) -> None:
    q = side.PriorityQueue(5)
    barrier = threading.Barrier(4)

    def produce(first: int) -> None:
        barrier.wait()
        for i in range(first, 300, 3):
            q.put((i, first))

    producers = [Started(produce, first) for first in range(3)]
    barrier.wait()
    got = [q.get() for _ in range(300)]
    for producer in producers:
        producer.result()
    assert sorted(got) == [(i, i % 3) for i in range(300)]
