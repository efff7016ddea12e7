"""Whatever is done to them, they raise exceptions: no crash, no internal error, no endless wait.

Nothing here has a defined result; it is about what C code must survive.
"""

import pytest

from tests.threads.programs import run
from tests.threads.sides import NAMES

HARNESS = """
import pickle

class Alarm(Exception):
    pass


def alarm(*_):
    raise Alarm


def attempt(call, *args, **kwargs):
    \"\"\"Call it; a wait is ended by a signal, and an internal error is one.\"\"\"
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            return call(*args, **kwargs)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except SystemError:
        raise
    except Exception:
        return None


class Odd:
    \"\"\"Cannot be compared, converted, hashed or asked for its truth.\"\"\"

    def __bool__(self):
        raise KeyError("bool")

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = None
    __index__ = __float__ = __len__ = __call__ = __bool__


ODD = (None, 0, 1, -1, 2**70, 0.5, float("nan"), "x", (), Odd(), int, Odd)
ARGUMENTS = [(), *[(odd,) for odd in ODD], (False, 0), (True, "x"), (1, False, -1), (1,) * 6]


def call_everything(it):
    for name in dir(it):
        if name in ("__class__", "__reduce__", "__reduce_ex__", "__getstate__"):
            continue
        attribute = attempt(getattr, it, name)
        if not callable(attribute) or name in ("__init_subclass__", "__subclasshook__"):
            continue
        for arguments in ARGUMENTS:
            attempt(attribute, *arguments)
        attempt(attribute, odd=1)


def change_everything(make):
    for name in dir(make()):
        for odd in ODD:
            it = make()
            if name not in ("__class__", "__dict__") and attempt(setattr, it, name, odd) is None:
                use_a_bit(it)
        it = make()
        attempt(delattr, it, name)
        use_a_bit(it)


def use_a_bit(it):
    for name, *arguments in (
        ("acquire", False), ("release",), ("put", 1, False), ("put", 2, True, 0.0001),
        ("get", False), ("wait", 0), ("set",), ("clear",), ("qsize",), ("full",), ("empty",),
        ("task_done",), ("join", 0), ("drain",), ("notify",), ("shutdown",), ("reset",), ("abort",),
        ("__repr__",), ("statistics",), ("_at_fork_reinit",),
    ):
        method = attempt(getattr, it, name)
        if callable(method):
            attempt(method, *arguments)
    gc.get_referents(it)


signal.signal(signal.SIGALRM, alarm)
"""
MADE = {"Barrier": "Barrier(2)", "Queue": "Queue(1)", "Condition": "Condition(Lock())"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("made", ["made", "not initialised"])
def test_every_method_with_odd_arguments(name: str, made: str) -> None:
    maker = {
        "made": MADE.get(name, f"{name}()"),
        "not initialised": f"{name}.__new__({name})",
    }[made]
    run(
        f"""
        call_everything({maker})
        use_a_bit({maker})
        gc.collect()
        """,
        before=HARNESS,
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_set_and_deleted(name: str) -> None:
    run(
        f"""
        change_everything(lambda: {MADE.get(name, f"{name}()")})
        gc.collect()
        """,
        before=HARNESS,
    )


def test_locks_that_misbehave_under_a_condition() -> None:
    run(
        """
        class Lock_:
            def __init__(self, **methods):
                self.calls = []
                for name, method in methods.items():
                    setattr(self, name, method)
            def acquire(self, *args):
                return True
            def release(self):
                pass

        def fail(*args):
            raise KeyError("lock")

        for name in ("acquire", "release", "_is_owned", "_release_save", "_acquire_restore"):
            for method in (fail, lambda *_: None, lambda *_: Odd(), lambda *_: True, 5):
                condition = attempt(Condition, Lock_(**{"_is_owned": lambda: True, name: method}))
                if condition is not None:
                    for call in (condition.wait, condition.notify, condition.notify_all,
                                 condition.acquire, condition.release, condition.__enter__):
                        attempt(call)
                    attempt(condition.wait, 0.0001)
                    attempt(condition.wait_for, int, 0.0001)
                    assert len(condition._waiters) == 0
        for lock in (Condition(), Semaphore(), Queue(), Event(), int, Lock, 5):
            condition = attempt(Condition, lock)
            if condition is not None:
                for call in (condition.__enter__, condition.notify, condition.release):
                    attempt(call)
                attempt(condition.wait, 0.0001)
        """,
        before=HARNESS,
    )


def test_callbacks_that_come_back() -> None:
    run(
        """
        condition = Condition()
        def predicate():
            condition.notify_all()
            assert condition.wait(0) is False
            condition.__init__()
            condition.acquire()
            return depth.append(1) or len(depth) > 5
        depth = []
        with condition:
            attempt(condition.wait_for, predicate, 0.01)

        barrier = Barrier(1, lambda: attempt(lambda: barrier.wait(0)))
        attempt(barrier.wait)
        barrier = Barrier(1, lambda: barrier.__init__(3))
        attempt(barrier.wait)
        use_a_bit(barrier)

        class Item:
            def __init__(self, other=None):
                self.other = other
            def __del__(self):
                attempt(q.put, 1, False)
                attempt(q.get, False)
                attempt(q.qsize)
        for kind in (Queue, LifoQueue, PriorityQueue, SimpleQueue):
            for _ in range(20):
                q = kind()
                for _ in range(3):
                    attempt(q.put, Item())
                attempt(q.get, False)
                attempt(q.drain)
                attempt(q.put, Item())
                if hasattr(q, "queue"):
                    q.queue = type(q.queue)([Item()])
                    q.queue.clear()
                q.__init__()
        gc.collect()
        """,
        before=HARNESS,
    )


def test_parts_that_are_replaced_while_other_threads_use_them() -> None:
    run(
        """
        sys.setswitchinterval(1e-5)
        q, heap, condition = Queue(), PriorityQueue(), Condition()
        semaphore, barrier, event = Semaphore(2), Barrier(2, None, 1e-4), Event()
        everything = (q, heap, condition, semaphore, barrier, event)

        def short():
            return random.choice((0, 1e-5, 1e-4))

        def notify():
            with condition:
                condition.wait(short())
                condition.notify()

        REPLACE = (
            lambda: setattr(q, "queue", deque([1])),
            lambda: setattr(q, "maxsize", random.choice((0, 3, 2.5, 2**70))),
            lambda: setattr(heap, "queue", []),
            lambda: setattr(barrier, "_action", lambda: None),
            lambda: setattr(barrier, "_timeout", 1e-4 + random.random() / 1e4),
            lambda: setattr(event, "__dict__", {}),
            lambda: setattr(event, "x", [1]),
            lambda: q.__init__(random.choice((0, 2))),
            lambda: semaphore.__init__(random.choice((1, 2))),
            lambda: barrier.__init__(2, int, 1e-4),
            lambda: [vars(it) for it in everything],
            lambda: condition._waiters,
        )
        USE = (
            lambda: q.put(1, timeout=short()),
            lambda: q.get(timeout=short()),
            lambda: (q.qsize(), q.full(), q.maxsize, q.queue, q.unfinished_tasks),
            lambda: (heap.put(1, timeout=short()), heap.get(timeout=short())),
            lambda: semaphore.acquire(timeout=short()) and semaphore.release(),
            lambda: barrier.wait(random.choice((None, short()))),
            lambda: (barrier.reset(), barrier.n_waiting),
            lambda: (event.set(), event.wait(short()), event.clear()),
            lambda: [repr(it) for it in everything],
            notify,
        )

        def some(calls):
            for _ in range(600):
                try:
                    random.choice(calls)()
                except BrokenBarrierError:
                    pass
                except (SystemError, RuntimeError) as error:
                    wrong.append(error)
                except Exception:
                    pass

        wrong = []
        others = [start(some, calls) for calls in (REPLACE, USE) * 4]
        for other in others:
            other.join()
        assert not wrong, wrong
        for it in everything[2:]:
            it.__init__(2) if it in (semaphore, barrier) else None
            use(it)
        """
    )


# Several threads do these at once, each of them thousands of times.
TIGHT = {
    "container": (
        "q = LifoQueue()",
        "lambda: setattr(q, 'queue', [1, 2])",
        "lambda: setattr(q, 'queue', [])",
        "lambda: q.put_nowait(1)",
        "q.get_nowait",
        "lambda: q.queue",
    ),
    "waiters": (
        "condition = Condition()",
        *["brief"] * 2,
        *["lambda: condition._waiters"] * 3,
    ),
}


@pytest.mark.parametrize("name", TIGHT)
def test_a_part_that_is_replaced_again_and_again(name: str) -> None:
    setup, *calls = TIGHT[name]
    run(
        f"""
        {setup}
        def brief():
            with condition:
                condition.wait(1e-5)

        def many(call):
            try:
                for _ in range({30_000 if name == "waiters" else 300_000}):
                    with suppress(Empty, IndexError):
                        call()
            except Exception as error:
                wrong.append(error)

        from contextlib import suppress
        wrong = []
        others = [start(many, call) for call in ({", ".join(calls)})]
        for other in others:
            other.join()
        assert not wrong, wrong
        """
    )


# The last reference to a container, while C code works with it.
VANDALS = {
    "heappush": ("PriorityQueue", "__lt__", "q.put(Vandal()); q.put(Vandal())"),
    "heappop": ("PriorityQueue", "__lt__", "q.queue = [Vandal() for _ in range(9)]; q.get()"),
    "drain": ("PriorityQueue", "__lt__", "q.queue = [Vandal() for _ in range(9)]; q.drain()"),
}


@pytest.mark.parametrize("name", VANDALS)
def test_a_container_is_kept_while_it_is_worked_on(name: str) -> None:
    kind, method, calls = VANDALS[name]
    run(
        f"""
        def alone():
            held = []
            return sys.getrefcount(held)

        class Vandal:
            def {method}(self, other):
                held = q.queue
                q.queue = []
                counts.append(sys.getrefcount(held))
                return True

        counts = []
        q = {kind}()
        try:
            exec({calls!r}, globals())
        except IndexError:  # what is compared is gone
            pass
        assert counts and counts[0] > alone(), counts
        """,
        before=HARNESS,
    )


@pytest.mark.parametrize("name", ["Queue", "LifoQueue", "PriorityQueue"])
def test_many_queues_in_each_other_go_without_recursion(name: str) -> None:
    run(
        f"""
        outer = inner = None
        for _ in range(200_000):
            inner, outer = outer, {name}()
            outer.put((1, inner) if {name} is PriorityQueue else inner)
        del inner
        last = weakref.ref(outer)
        del outer
        assert last() is None
        """
    )


def test_every_mistake_from_many_threads_at_once() -> None:
    run(
        """
        def refused_or_not(call, *args):
            try:
                call(*args)
            except (RuntimeError, ValueError, TypeError, Empty, Full, BrokenBarrierError):
                pass

        def body(seed):
            mine = random.Random(seed)
            for _ in range(1500):
                refused_or_not(*mine.choice(calls))

        lock, rlock, condition, semaphore, event, barrier, q, simple = (
            Lock(), RLock(), Condition(Lock()), BoundedSemaphore(2), Event(), Barrier(3), Queue(2),
            SimpleQueue())
        calls = [
            (lock.release,), (lock.acquire, False), (lock.acquire, True, 0.0001),
            (lock._at_fork_reinit,),
            (rlock.release,), (rlock.acquire, False), (rlock.acquire, True, 0.0001),
            (condition.notify,), (condition.notify_all,), (condition.wait, 0.0001),
            (condition.acquire, False), (condition.release,),
            (semaphore.release,), (semaphore.acquire, False), (semaphore.acquire, True, 0.0001),
            (event.set,), (event.clear,), (event.wait, 0.0001),
            (barrier.wait, 0.0001), (barrier.reset,), (barrier.abort,),
            (q.put, 1, False), (q.put, 1, True, 0.0001), (q.get, True, 0.0001), (q.task_done,),
            (q.mutex.acquire, False), (q.mutex.release,), (q.drain,), (q.join, 0.0001),
            (q.queue.clear,), (setattr, q, "maxsize", 3), (setattr, q, "unfinished_tasks", 0),
            (simple.put, 1), (simple.get, True, 0.0001), (simple.drain, 2),
        ]
        running = [start(body, seed) for seed in range(8)]
        def unstick():
            # A lock that nobody has released: what is left behind is not the question here.
            while any(thread.is_alive() for thread in running):
                for each in (condition, q.mutex):
                    refused_or_not(each.release)
                time.sleep(0.001)
        helper = start(unstick)
        for thread in running:
            thread.join()
        """
    )
