"""What our types have beyond the standard library's."""

import dataclasses
import inspect
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import MethodType
from typing import Any

import pytest

from cpythonplus import threads
from tests.threads.sides import NAMES, NATIVE, QUEUES, STOCK, Started, until, until_waited_for

WAITS_FOR_SPACE = ("Queue", "LifoQueue", "PriorityQueue")
MAKERS: dict[str, Callable[[], Any]] = {
    **{name: getattr(NATIVE, name) for name in NAMES if name != "Barrier"},
    "Barrier": lambda: NATIVE.Barrier(2),
}


@pytest.fixture(params=QUEUES)
def q(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401
    return getattr(NATIVE, request.param)()


@pytest.fixture(params=WAITS_FOR_SPACE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# ---- everything that the standard library's have ------------------------------------------------

# What differs on purpose.
MORE = {
    "Barrier.wait": "(self, timeout=None, *, breaks=True)",
    "Queue.join": "(self, timeout=None)",
    "LifoQueue.join": "(self, timeout=None)",
    "PriorityQueue.join": "(self, timeout=None)",
}


def make(side: Any, name: str) -> Any:  # noqa: ANN401
    return getattr(side, name)(*([2] if name == "Barrier" else []))


@pytest.mark.parametrize("name", NAMES)
def test_they_have_all_attributes(name: str) -> None:
    stock, native = set(dir(make(STOCK, name))), set(dir(make(NATIVE, name)))
    assert stock - native == set()
    it = make(NATIVE, name)
    assert [name for name in dir(it) if not hasattr(it, name)] == []
    assert len(dir(it)) == len(set(dir(it)))


@pytest.mark.parametrize("name", ["Queue", "Event"])
def test_a_class_that_was_asked_for_its_annotations(name: str) -> None:
    """As multiprocessing's managers do: all that `dir` names is there."""
    inspect.get_annotations(getattr(STOCK, name))
    assert getattr(STOCK, name).__annotations__ == {}
    it = make(NATIVE, name)
    assert [name for name in dir(it) if not hasattr(it, name)] == []


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in {"Lock", "RLock", "SimpleQueue"}]
)
def test_their_bound_methods_are_as_of_python_functions(name: str) -> None:
    """Who keeps callbacks weakly, as the signals of Django do, asks for `__func__`."""
    stock, it = make(STOCK, name), make(NATIVE, name)
    names = [each for each in dir(stock) if isinstance(getattr(stock, each), MethodType)]
    for each in set(names) - {"__init__", "__repr__", "__class_getitem__", "is_set"}:
        method = getattr(it, each)
        assert isinstance(method, MethodType), each
        assert method.__self__ is it
        assert weakref.WeakMethod(method)() == method
        assert method.__name__ == each
        assert method.__func__.__doc__ == method.__doc__


def test_a_bound_methods_function() -> None:
    event = make(NATIVE, "Event")
    function: Any = event.clear.__func__
    event.set()
    assert function(event) is None
    assert not event.is_set()
    for wrong in ((), (3,), (event, 1)):
        with pytest.raises(TypeError):
            function(*wrong)
    with pytest.raises(TypeError):
        type(function)()


@pytest.mark.parametrize("name", NAMES)
def test_they_have_no_public_attributes_but_those_and_the_additions(name: str) -> None:
    stock, native = set(dir(make(STOCK, name))), set(dir(make(NATIVE, name)))
    more = {name for name in native - stock if not name.startswith("_")}
    added = {"statistics"}
    if name in {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"}:
        added.add("acquire_timeout")
    if name in {"RLock", "Condition"} and sys.version_info < (3, 14):
        added.add("locked")
    if name in QUEUES:
        added.add("drain")
    if name in WAITS_FOR_SPACE and sys.version_info < (3, 13):
        added |= {"shutdown", "is_shutdown"}
    assert more == added


@pytest.mark.parametrize("name", NAMES)
def test_their_signatures_and_docstrings_can_be_read(name: str) -> None:
    if name == "RLock":  # that of `_thread` has none, and CPython's tests hold it to that
        assert NATIVE.RLock.__text_signature__ is None
    else:
        inspect.signature(getattr(NATIVE, name))
    assert "--" not in (make(NATIVE, name).__doc__ or "").splitlines()


def signature(side: Any, name: str, method: str) -> str | None:  # noqa: ANN401
    """Parameters and defaults; None where the interpreter's own C code does not tell."""
    try:
        found = inspect.signature(getattr(type(make(side, name)), method))
    except ValueError:
        return None
    if [parameter.name for parameter in found.parameters.values()][1:] == ["args", "kwargs"]:
        return None
    text = str(found.replace(return_annotation=inspect.Signature.empty))
    return text.replace("(self, /", "(self").replace(", /)", ")")


METHODS = [
    f"{name}.{method}"
    for name in NAMES
    for method, _ in inspect.getmembers(type(make(STOCK, name)), inspect.isroutine)
    if not method.startswith("_")
]


@pytest.mark.parametrize("method", METHODS)
def test_methods_have_the_same_parameters(method: str) -> None:
    name, _, method_name = method.partition(".")
    native = signature(NATIVE, name, method_name)
    stock = MORE.get(method) or signature(STOCK, name, method_name)
    if stock is None or native is None:
        pytest.skip("this interpreter does not tell")
    assert native == stock


@pytest.mark.parametrize("method", METHODS)
def test_methods_say_what_they_do(method: str) -> None:
    name, _, method_name = method.partition(".")
    assert getattr(getattr(NATIVE, name), method_name).__doc__


@pytest.mark.parametrize("name", NAMES)
def test_types_tell_their_home(name: str) -> None:
    # As the standard library's: messages and pickles go by that, and what looks for a lock's type.
    stock, native = type(make(STOCK, name)), getattr(NATIVE, name)
    assert (native.__module__, native.__qualname__) == (stock.__module__, stock.__qualname__)
    assert native.__doc__


@pytest.mark.parametrize("name", ["Condition", "Semaphore", "BoundedSemaphore", "Event", *QUEUES])
def test_types_tell_their_parameters(name: str) -> None:
    stock, native = (inspect.signature(getattr(side, name)) for side in (STOCK, NATIVE))
    assert str(native) == str(stock)


def test_exceptions_are_the_standard_librarys() -> None:
    assert threads.Empty is queue.Empty
    assert threads.Full is queue.Full
    assert threads.BrokenBarrierError is threading.BrokenBarrierError
    if sys.version_info >= (3, 13):
        assert threads.ShutDown is queue.ShutDown
    else:
        assert issubclass(threads.ShutDown, Exception)
        assert not issubclass(threads.ShutDown, queue.Empty | queue.Full)


# ---- acquire_timeout ----------------------------------------------------------------------------

HOLDABLE: dict[str, Callable[[], Any]] = {
    "Lock": NATIVE.Lock,
    "RLock": NATIVE.RLock,
    "Condition": NATIVE.Condition,
    "Condition over Lock": lambda: NATIVE.Condition(NATIVE.Lock()),
    "Condition over the standard RLock": lambda: NATIVE.Condition(threading.RLock()),
    "Semaphore": NATIVE.Semaphore,
    "BoundedSemaphore": NATIVE.BoundedSemaphore,
}


@pytest.fixture(params=HOLDABLE)
def lock(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401
    return HOLDABLE[request.param]()


def is_free(lock: Any) -> bool:  # noqa: ANN401
    """Whether another thread could acquire it."""

    def probe() -> bool:
        if not lock.acquire(False):
            return False
        lock.release()
        return True

    return bool(Started(probe).result())


def test_acquire_timeout_holds_for_the_block(lock: Any) -> None:  # noqa: ANN401
    for timeout in (0.001, 5, 0, None):
        with lock.acquire_timeout(timeout) as acquired:
            assert acquired is True
            assert not is_free(lock)
        assert is_free(lock)


def test_acquire_timeout_releases_nothing_that_it_did_not_get(lock: Any) -> None:  # noqa: ANN401
    inside, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            release.wait(60)

    holder = Started(hold)
    inside.wait()
    for timeout in (0.001, 0):
        begin = time.monotonic()
        with lock.acquire_timeout(timeout) as acquired:
            assert acquired is False
            assert time.monotonic() - begin >= timeout
            assert not is_free(lock)
        assert not is_free(lock)
    release.set()
    holder.result()
    assert is_free(lock)


def test_acquire_timeout_waits(lock: Any) -> None:  # noqa: ANN401
    def hold() -> bool:
        with lock.acquire_timeout(60) as acquired:
            return bool(acquired)

    with lock:
        waiter = Started(hold)
        if hasattr(getattr(lock, "_lock", lock), "statistics"):
            inside = lock if hasattr(lock, "_cond") else getattr(lock, "_lock", lock)
            until_waited_for(inside)
        assert waiter.thread.is_alive()
    assert waiter.result() is True
    assert is_free(lock)


def test_acquire_timeout_lets_exceptions_out(lock: Any) -> None:  # noqa: ANN401
    with pytest.raises(KeyError), lock.acquire_timeout(1):
        raise KeyError
    assert is_free(lock)


def test_acquire_timeout_refuses_what_acquire_refuses(lock: Any) -> None:  # noqa: ANN401
    lock.acquire()

    def refused(timeout: object) -> str:
        try:
            with lock.acquire_timeout(timeout):
                return "entered"
        except (TypeError, ValueError, OverflowError) as error:
            return type(error).__name__

    assert Started(refused, "1").result() == "TypeError"
    assert Started(refused, 1e100).result() == "OverflowError"
    with pytest.raises(TypeError):
        lock.acquire_timeout()
    lock.release()
    assert is_free(lock)


def test_acquire_timeout_nests_in_a_reentrant_lock() -> None:
    lock = NATIVE.RLock()
    with lock.acquire_timeout(1) as first, lock.acquire_timeout(1) as second:
        assert first is second is True
        assert lock._recursion_count() == 2
    assert not lock._is_owned()


# ---- join with a time-out -----------------------------------------------------------------------


def test_join_tells_whether_all_is_done(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    assert q.join() is True
    assert q.join(0) is True
    assert q.join(timeout=1) is True
    q.put(1)
    assert q.join(0) is False
    begin = time.monotonic()
    assert q.join(timeout=0.02) is False
    assert time.monotonic() - begin >= 0.02
    waiter = Started(q.join, 60)
    until_waited_for(q, 2)
    q.get()
    assert q.join(0.001) is False
    q.task_done()
    assert waiter.result() is True
    assert q.join(0) is True


def test_join_refuses_what_is_no_time_out(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    q.put(1)
    with pytest.raises(ValueError, match="non-negative"):
        q.join(-1)
    with pytest.raises(ValueError, match="NaN"):
        q.join(float("nan"))
    with pytest.raises(OverflowError):
        q.join(1e100)
    with pytest.raises(TypeError):
        q.join("1")
    with pytest.raises(TypeError):
        q.join(1, 2)
    assert q.unfinished_tasks == 1
    assert not q.mutex.locked()


# ---- drain --------------------------------------------------------------------------------------


def test_drain_takes_all_that_is_there(q: Any) -> None:  # noqa: ANN401
    assert q.drain() == []
    for i in (3, 1, 2):
        q.put(i)
    expected = {"LifoQueue": [2, 1, 3], "PriorityQueue": [1, 2, 3]}
    assert q.drain() == expected.get(type(q).__name__, [3, 1, 2])
    assert q.empty()
    assert q.drain() == []


def test_drain_takes_at_most_so_many(q: Any) -> None:  # noqa: ANN401
    for i in range(5):
        q.put(i)
    assert len(q.drain(2)) == 2
    assert len(q.drain(max_items=1)) == 1
    assert q.drain(0) == []
    assert len(q.drain(None)) == 2
    q.put(1)
    assert q.drain(1000) == [1]


def test_drain_refuses_what_is_no_count(q: Any) -> None:  # noqa: ANN401
    q.put(1)
    for wrong in ("x", 1.5, ()):
        with pytest.raises(TypeError):
            q.drain(wrong)
    with pytest.raises(ValueError, match="max_items"):
        q.drain(-1)
    with pytest.raises(TypeError):
        q.drain(1, 2)
    assert q.qsize() == 1


def test_drain_counts_no_task_as_done(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    for i in range(3):
        q.put(i)
    q.drain()
    assert q.unfinished_tasks == 3
    assert q.join(0) is False


def test_drain_makes_room_for_as_many_putters(kind: str) -> None:
    q = getattr(NATIVE, kind)(3)
    for i in range(3):
        q.put(i)
    putters = [Started(q.put, i) for i in range(3, 6)]
    until_waited_for(q, 3)
    got = q.drain()
    assert {0, 1, 2} <= set(got)
    for putter in putters:
        putter.result()
    # What a waiting putter has may have come in as soon as there was room.
    assert sorted(got + q.drain()) == [0, 1, 2, 3, 4, 5]


def test_drain_calls_the_hook_that_a_queue_was_given(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    get = q._get

    def doubled() -> Any:  # noqa: ANN401
        item = get()
        if item == 13:
            raise KeyError(item)
        return item * 2

    q._get = doubled
    for i in (1, 2, 3):
        q.put(i)
    assert sorted(q.drain()) == [2, 4, 6]
    q.put(13)
    with pytest.raises(KeyError):
        q.drain()
    assert not q.mutex.locked()


def test_drain_does_not_wait_for_what_comes(q: Any) -> None:  # noqa: ANN401
    getter = Started(q.get)
    until_waited_for(q)
    assert q.drain() == []
    q.put(1)
    assert getter.result() == 1


def test_drain_of_a_shut_down_queue(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    q.put(1)
    q.shutdown()
    assert q.drain() == [1]
    with pytest.raises(threads.ShutDown):
        q.get()


def test_items_of_drain_and_of_a_stream_are_each_there_once(q: Any) -> None:  # noqa: ANN401
    def produce(first: int) -> None:
        for i in range(first, 2000, 2):
            q.put(i)

    producers = [Started(produce, first) for first in (0, 1)]
    got: list[int] = []
    while len(got) < 2000:
        got.append(q.get())
        got.extend(q.drain(7))
    for producer in producers:
        producer.result()
    assert sorted(got) == list(range(2000))


# ---- Barrier.wait(breaks=False) -----------------------------------------------------------------


def test_who_leaves_a_barrier_does_not_break_it() -> None:
    barrier = NATIVE.Barrier(3)
    other = Started(barrier.wait)
    until(lambda: barrier.n_waiting == 1)
    for timeout in (0.02, 0, -1):
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            barrier.wait(timeout, breaks=False)
        assert time.monotonic() - begin >= timeout
        assert not barrier.broken
        assert barrier.n_waiting == 1
    third = Started(barrier.wait, 60, breaks=False)
    indices = {barrier.wait(breaks=False), other.result(), third.result()}
    assert indices == {0, 1, 2}
    assert barrier.n_waiting == 0


def test_the_index_of_who_leaves_is_given_to_another() -> None:
    barrier = NATIVE.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        for _ in range(5):
            leaving = pool.submit(barrier.wait, 0.005, breaks=False)
            # On a slow machine it may have left before anyone looked.
            until(lambda gone=leaving.done: barrier.n_waiting == 1 or gone())
            staying = pool.submit(barrier.wait)
            with pytest.raises(TimeoutError):
                leaving.result(60)
            last = pool.submit(barrier.wait)
            assert {barrier.wait(), staying.result(60), last.result(60)} == {0, 1, 2}


def test_breaks_is_the_default_and_is_given_by_name_only() -> None:
    barrier = NATIVE.Barrier(2)
    with pytest.raises(TypeError):
        barrier.wait(0.001, False)
    assert not barrier.broken
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(0.001, breaks=True)
    assert barrier.broken
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(0.001, breaks=False)
    barrier.reset()
    barrier = NATIVE.Barrier(2, timeout=0.001)
    with pytest.raises(TimeoutError):
        barrier.wait(breaks=False)
    assert not barrier.broken


# ---- shutdown, on every version -----------------------------------------------------------------


def test_a_shut_down_queue_gives_out_what_it_has(kind: str) -> None:
    q = getattr(NATIVE, kind)(5)
    before = q.is_shutdown
    q.put(1)
    q.put(1)
    q.shutdown()
    assert (before, q.is_shutdown) == (False, True)
    for put in (q.put, q.put_nowait):
        with pytest.raises(threads.ShutDown):
            put(2)
    with pytest.raises(threads.ShutDown):
        q.put(2, timeout=1)
    assert (q.qsize(), q.get(), q.get_nowait()) == (2, 1, 1)
    for get in (q.get, q.get_nowait):
        with pytest.raises(threads.ShutDown):
            get()
    with pytest.raises(threads.ShutDown):
        q.get(timeout=0)
    assert q.join(0) is False
    q.task_done()
    q.task_done()
    assert q.join() is True
    q.shutdown()


def test_an_immediate_shutdown_drops_what_it_has(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    q.put(1)
    q.put(2)
    q.get()
    q.shutdown(immediate=True)
    assert (q.is_shutdown, q.qsize(), q.unfinished_tasks) == (True, 0, 1)
    with pytest.raises(threads.ShutDown):
        q.get_nowait()
    q.task_done()
    assert q.join(0) is True
    with pytest.raises(ValueError, match="too many"):
        q.task_done()


def test_a_shutdown_may_become_immediate_and_not_the_other_way(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    q.put(1)
    q.shutdown()
    assert q.qsize() == 1
    q.shutdown(True)
    assert q.qsize() == 0
    q.shutdown(immediate=False)
    assert q.is_shutdown


@pytest.mark.parametrize("immediate", [False, True])
def test_a_shutdown_ends_the_waits(kind: str, immediate: bool) -> None:
    q = getattr(NATIVE, kind)(1)
    getters = [Started(q.get), Started(q.get, timeout=60)]
    until_waited_for(q, 2)
    q.shutdown(immediate)
    for getter in getters:
        with pytest.raises(threads.ShutDown):
            getter.result()
    q = getattr(NATIVE, kind)(1)
    q.put(1)
    putters = [Started(q.put, 2), Started(q.put, 2, timeout=60)]
    joiners = [Started(q.join), Started(q.join, 60)]
    until_waited_for(q, 4)
    q.shutdown(immediate)
    for putter in putters:
        with pytest.raises(threads.ShutDown):
            putter.result()
    if not immediate:
        assert q.get() == 1
        q.task_done()
    assert [joiner.result() for joiner in joiners] == [True, True]


def test_an_immediate_shutdown_leaves_tasks_in_work(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    q.put(1)
    q.put(2)
    q.get()
    joiner = Started(q.join)
    until_waited_for(q)
    q.shutdown(immediate=True)
    assert q.join(0) is False
    q.task_done()
    assert joiner.result() is True


def test_the_flag_may_be_set_by_hand(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    getter = Started(q.get)
    until_waited_for(q)
    with q.mutex:
        q.is_shutdown = True
        q.not_empty.notify_all()
    with pytest.raises(threads.ShutDown):
        getter.result()
    q.is_shutdown = False
    q.put(1)
    assert q.get() == 1


def test_a_shutdown_calls_the_hook_that_a_queue_was_given(kind: str) -> None:
    q = getattr(NATIVE, kind)()
    get, log = q._get, []

    def logged() -> Any:  # noqa: ANN401
        log.append(get())
        return log[-1]

    q._get = logged
    q.put(1)
    q.put(2)
    q.shutdown(immediate=True)
    assert sorted(log) == [1, 2]
    assert q.unfinished_tasks == 0


# ---- threads.join -------------------------------------------------------------------------------


def test_joining_a_thread_tells_whether_it_has_ended() -> None:
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    assert threads.join(thread, 0) is False
    begin = time.monotonic()
    assert threads.join(thread, timeout=0.02) is False
    assert time.monotonic() - begin >= 0.02
    go.set()
    assert threads.join(thread) is True
    assert threads.join(thread, 0) is True


def test_joining_a_thread_refuses_what_thread_join_refuses() -> None:
    with pytest.raises(RuntimeError, match="before it is started"):
        threads.join(threading.Thread())
    with pytest.raises(RuntimeError, match="current thread"):
        threads.join(threading.current_thread(), 1)


# ---- statistics ---------------------------------------------------------------------------------

FIELDS = [
    "waits",
    "contended",
    "timeouts",
    "spins",
    "spins_paid",
    "hand_overs",
    "total_wait_ns",
    "longest_wait_ns",
]


@pytest.mark.parametrize("name", MAKERS)
def test_statistics_begin_at_zero(name: str) -> None:
    told = MAKERS[name]().statistics()
    assert type(told) is threads.WaitStatistics
    assert [field.name for field in dataclasses.fields(told)] == FIELDS
    assert told.as_json() == dict.fromkeys(FIELDS, 0)
    assert told == threads.WaitStatistics()
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.waits = 1  # type: ignore[misc]


WITHOUT_WAITING = {
    "Lock": "with it: pass\nit.acquire(); it.acquire(False); it.locked()",
    "RLock": "with it, it: pass\nit.acquire(timeout=1)",
    "Condition": "with it: it.notify(); it.notify_all()",
    "Semaphore": "with it: it.acquire(False)",
    "BoundedSemaphore": "with it: it.acquire(False)",
    "Event": "it.set(); it.wait(); it.wait(1); it.clear()",
    "Barrier": "it.n_waiting; it.abort(); it.reset()",
    "Queue": "it.put(1); it.get(); it.task_done(); it.join(); it.drain()",
    "LifoQueue": "it.put(1); it.get(); it.task_done(); it.join(); it.drain()",
    "PriorityQueue": "it.put(1); it.get(); it.task_done(); it.join(); it.drain()",
    "SimpleQueue": "it.put(1); it.get(); it.drain()",
}


@pytest.mark.parametrize("name", MAKERS)
def test_who_finds_it_free_does_not_wait(name: str) -> None:
    it = MAKERS[name]()
    exec(WITHOUT_WAITING[name], {"it": it})
    assert it.statistics() == threads.WaitStatistics()


def held(name: str) -> Any:  # noqa: ANN401
    """One that a thread would have to wait for."""
    it = MAKERS[name]()
    if name in {"Lock", "Semaphore", "BoundedSemaphore"}:
        it.acquire()
    elif name == "RLock":
        Started(it.acquire).result()
    return it


TIMED_WAITS = {
    "Lock": "it.acquire(timeout={})",
    "RLock": "it.acquire(timeout={})",
    "Condition": "with it: it.wait({})",
    "Semaphore": "it.acquire(timeout={})",
    "BoundedSemaphore": "it.acquire(timeout={})",
    "Event": "it.wait({})",
    "Barrier": "it.wait({}, breaks=False)",
    "Queue": "it.get(timeout={})",
    "LifoQueue": "it.get(timeout={})",
    "PriorityQueue": "it.get(timeout={})",
    "SimpleQueue": "it.get(timeout={})",
}


def wait(it: Any, name: str, timeout: str) -> None:  # noqa: ANN401
    with suppress(queue.Empty, TimeoutError):
        exec(TIMED_WAITS[name].format(timeout), {"it": it})


@pytest.mark.parametrize("name", MAKERS)
def test_a_wait_that_timed_out_is_counted(name: str) -> None:
    it = held(name)
    for i in (1, 2):
        wait(it, name, "0.005")
        told = it.statistics()
        assert (told.waits, told.timeouts, told.hand_overs) == (i, i, 0)
        assert told.total_wait_ns >= i * 5_000_000
        assert 5_000_000 <= told.longest_wait_ns <= told.total_wait_ns
        assert 0 <= told.spins_paid <= told.spins <= told.waits


@pytest.mark.parametrize("name", MAKERS)
def test_a_wait_that_succeeded_is_counted(name: str) -> None:
    it = held(name)
    if name == "RLock":
        it = NATIVE.RLock()
        it.acquire()
    waiters = [Started(wait, it, name, "60") for _ in range(1 if name == "Barrier" else 3)]
    until_waited_for(it, len(waiters))
    if name in {"Lock", "Semaphore", "BoundedSemaphore"}:
        for i in range(3):
            it.release()
            until(lambda i: sum(not w.thread.is_alive() for w in waiters) > i, i)
    elif name == "RLock":
        it.release()
        waiters = waiters[:0]
        until(lambda: it.statistics().total_wait_ns)
    elif name == "Condition":
        with it:
            it.notify_all()
    elif name == "Event":
        it.set()
    elif name == "Barrier":
        it.wait()
    else:
        for i in range(3):
            it.put(i)
    for waiter in waiters:
        waiter.result()
    told = it.statistics()
    assert told.timeouts == 0
    assert told.waits >= len(waiters)
    assert 0 < told.longest_wait_ns <= told.total_wait_ns
    assert told.contended <= told.waits


def test_a_queue_adds_up_all_who_wait_for_it(kind: str) -> None:
    q = getattr(NATIVE, kind)(1)
    with pytest.raises(queue.Empty):
        q.get(timeout=0.001)
    q.put(1)
    with pytest.raises(queue.Full):
        q.put(2, timeout=0.001)
    assert q.join(0.001) is False
    told = q.statistics()
    assert (told.waits, told.timeouts) == (3, 3)
    parts = [q.not_empty, q.not_full, q.all_tasks_done]
    assert [part.statistics().waits for part in parts] == [1, 1, 1]
    assert told.total_wait_ns == sum(part.statistics().total_wait_ns for part in parts)
    assert told.longest_wait_ns == max(part.statistics().longest_wait_ns for part in parts)


def test_statistics_are_ready_for_json() -> None:
    lock = NATIVE.Lock()
    lock.acquire()
    lock.acquire(timeout=0.001)
    told = lock.statistics().as_json()
    assert list(told) == FIELDS
    assert all(type(value) is int for value in told.values())
