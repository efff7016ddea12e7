"""What programs do with the classes of `threading` and `queue`: subclasses, copies, other insides.

Each case ran on the standard library before; it has to on ours.  Both sides are compared.
"""

import pytest

from tests.threads.patched import run
from tests.threads.sides import Outcomes

CASES = (
    # A hook that gets the item as one argument: a tuple is one item.
    """
class Own(Queue):
    def _put(self, item):
        self.queue.append(item)
q = Own()
for item in ((1,), (1, 2), (), [3]):
    q.put(item)
[q.get() for _ in range(4)]
    """,
    """
class Own(PriorityQueue):
    def _put(self, item):
        super()._put((-item[0], item))
    def _get(self):
        return super()._get()[1]
q = Own()
for item in ((1, "a"), (3, "b"), (2, "c")):
    q.put(item)
[q.get() for _ in range(3)]
    """,
    # A lock of another kind, and what waits on it.
    """
class Own(Queue):
    def __init__(self, maxsize=0):
        Queue.__init__(self, maxsize)
        self.mutex = threading.RLock()
        self.not_empty = threading.Condition(self.mutex)
        self.not_full = threading.Condition(self.mutex)
        self.all_tasks_done = threading.Condition(self.mutex)
    def put_all(self, items):
        with self.mutex:
            for item in items:
                self.put(item)
q = Own()
q.put_all([1, (2, 3)])
q.get(), q.get(), q.qsize(), raised(q.get, timeout=pause)
    """,
    """
class Own(Event):
    def __init__(self):
        super().__init__()
        self._cond = threading.Condition(threading.RLock())
    def set_once(self):
        with self._cond:
            if not self._flag:
                self.set()
                return True
        return False
e = Own()
e.wait(pause), e.set_once(), e.set_once(), e.wait(), e.is_set()
    """,
    """
class Own(Semaphore):
    def __init__(self, value):
        super().__init__(value)
        self._cond = Condition(RLock())
        self._value = value + 1
s = Own(1)
s.acquire(), s.acquire(), s.acquire(False), s.release(), s._value
    """,
    # Counted, bounded by something else, replaced containers.
    """
class Unique(Queue):
    def _init(self, maxsize):
        self.queue = set()
    def _put(self, item):
        self.queue.add(item)
    def _get(self):
        return self.queue.pop()
q = Unique()
for item in ((1, 1), (1, 1)):
    q.put(item)
q.qsize(), q.get(), q.empty(), q.unfinished_tasks
    """,
    # Copies share the locks, as the standard library's do, and keep their own counts.
    """
q = Queue(5)
q.put((1, 2))
other = copy.copy(q)
other.put(3)
counts = q.unfinished_tasks, other.unfinished_tasks, q.qsize()
other.mutex is q.mutex, other.queue is q.queue, counts
    """,
    "q = Queue(); q.colour = 'red'; copy.copy(q).colour, q.colour, vars(q)['colour']",
    "sorted(vars(Queue(3)))[:4], vars(Queue(3))['maxsize']",
    "sorted(vars(Event())), vars(Event())['_flag']",
    "sorted(vars(Semaphore(3))), vars(Semaphore(3))['_value']",
    "sorted(vars(BoundedSemaphore(3))), vars(BoundedSemaphore(3))['_initial_value']",
    "sorted(vars(Barrier(3))), vars(Barrier(3))['_parties']",
    "sorted(vars(Condition())), sorted(vars(Condition(Lock())))",
    "e = Event(); vars(e)['note'] = 5; e.note, vars(e)['note']",
    "raised(copy.deepcopy, Queue())",
    "raised(pickle.dumps, Event())",
    # A state without the lock: the usual way to make such a thing picklable.
    """
class Own(Event):
    def __getstate__(self):
        state = self.__dict__.copy()
        del state["_cond"]
        return state
    def __setstate__(self, state):
        self.__dict__.update(state)
        self._cond = threading.Condition()
e = Own()
e.set()
other = copy.copy(e)
other.is_set(), other.wait(), other.clear(), e.is_set()
    """,
    """
class Own(Queue):
    def __getstate__(self):
        return self.maxsize, list(self.queue)
    def __setstate__(self, state):
        self.__init__(state[0])
        for item in state[1]:
            self.put(item)
q = Own(7)
q.put((1, 2))
other = copy.deepcopy(q)
other.get(), q.qsize(), other.maxsize
    """,
    # A way to copy and pickle that somebody has registered.
    """
import copyreg
copyreg.pickle(Event, lambda event: (str, ("an event",)))
copies = copy.copy(Event()), copy.deepcopy([Event()]), pickle.loads(pickle.dumps(Event()))
del copyreg.dispatch_table[Event]
copies, raised(pickle.dumps, Event())
    """,
    # What copyreg keeps in the class.
    """
e = Event()
copy.copy(e), Event.__annotations__
[name for name in dir(e) if not hasattr(e, name)]
    """,
    # Methods of one object, which others of its methods call.
    """
q, calls = Queue(), []
q.put = lambda *args, **kwargs: calls.append((args, kwargs))
q.get = lambda *args, **kwargs: (args, kwargs)
q.put_nowait((1, 2)), q.get_nowait(), calls, raised(q.put_nowait)
    """,
    """
c, calls, values = Condition(), [], [0, 0, 5]
c.wait = lambda *args: calls.append(args)
c.notify = lambda n: calls.append(n)
with c:
    c.notify_all()
c.wait_for(lambda: values.pop(0)), calls
    """,
    """
calls = []
for s in (Semaphore(), BoundedSemaphore()):
    s.release = lambda: calls.append(s._value)
    with s:
        pass
calls
    """,
    # With other classes.
    """
import abc
class Base(abc.ABC):
    @abc.abstractmethod
    def name(self): ...
class Own(Base, Event):
    def name(self):
        return "own"
raised(type("Half", (Base, Event), {})), Own().name(), isinstance(Own(), Event), Own().wait(0)
    """,
    "class A(Condition): pass\nclass B(A): pass\nb = B(); [b.acquire(), b.notify(), b.release()]",
    "Own = type('Own', (Barrier,), {'__slots__': ('x',)}); o = Own(1); o.x = 5; o.wait(), o.x",
    "class Own(Queue):\n def __new__(cls, *a): return super().__new__(cls)\nOwn(3).maxsize",
    # With what has a __new__ of its own, and perhaps another layout.
    """
class Named:
    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        self.made_with = args, kwargs
        return self
class Own(Semaphore, Named): pass
class Both(Event, Named, Condition):
    def __init__(self, **kwargs):
        Event.__init__(self)
Own(3).made_with, Own(3)._value, Both(a=1).made_with, Both().wait(0)
    """,
    """
def use(other):
    own = type("Own", (Event, other), {"__init__": lambda self: Event.__init__(self)})()
    return own.wait(0), own.set(), own.wait(), isinstance(own, other), vars(own)["_flag"]
[use(other) for other in (threading.local, dict, list, str, tuple, Exception, threading.Thread)]
    """,
    "issubclass(LifoQueue, Queue), isinstance(LifoQueue(), Queue), isinstance(Queue(), LifoQueue)",
    "isinstance(BoundedSemaphore(), Semaphore), issubclass(BoundedSemaphore, Semaphore)",
    "isinstance(Event(), Event), Event().__class__ is Event, type(Event()).__name__",
    # The class's own functions with a plain object.
    "q = Queue(); Queue.put(q, (1, 2)); q.qsize(), Queue.get(q), raised(Queue.get, q, False)",
    "q = PriorityQueue(2); Queue.put(q, 2); Queue.put(q, 1); q.get(), Queue.get(q), Queue.empty(q)",
    "e = Event(); Event.set(e); Event.wait(e), e.wait(), Event.clear(e), e.is_set()",
    "s = Semaphore(2); Semaphore.acquire(s), s.acquire(), Semaphore.release(s), s._value",
    "b = Barrier(1); Barrier.wait(b), b.wait(), Barrier.abort(b), b.broken, Barrier.reset(b)",
    """
c, woken = Condition(), []
def waits(function):
    with c:
        woken.append(function(c, 30))
waiters = [threading.Thread(target=waits, args=(f,))
           for f in (Condition.wait, lambda c, t: c.wait(t)) for _ in range(2)]
for waiter in waiters:
    waiter.start()
while True:
    with c:
        if len(c._waiters) == 4:
            break
with c:
    c.notify(3)
    left = len(c._waiters)
    Condition.notify_all(c)
for waiter in waiters:
    waiter.join()
woken, left, len(c._waiters)
    """,
    # Values that the standard classes take.
    "s = Semaphore(1.5); s.acquire(), s.acquire(False), s._value",
    "s = Semaphore(True); s.acquire(), s.acquire(False)",
    "raised(Semaphore, 'x'), raised(Semaphore, -1), raised(BoundedSemaphore, None)",
    "raised(Barrier, 0), raised(Barrier, -1), raised(Barrier, '2')",
    "raised(Queue, 1, 2), raised(Event, 1), raised(Condition, 5), raised(Condition, odd=2)",
    "q = Queue('x'); raised(q.put, 1)",
    "q = Queue(2.5); [q.put(i) for i in range(3)], q.full(), raised(q.put, 1, False)",
)


@pytest.mark.parametrize("case", CASES)
def test_as_the_standard_librarys(case: str, outcomes: Outcomes) -> None:
    outcomes.check(case)


# Whole messages: the comparison above leaves those of TypeErrors to the argument parser.
WORDS = (
    "threading.Event().wait('x')",
    "threading.Event().wait(1, 2)",
    "threading.Event(1)",
    "threading.Condition(1)",
    "threading.Condition().notify('x')",
    "(c := threading.Condition(), c.acquire(), c.wait('x'))",
    "threading.Semaphore().acquire(timeout='x')",
    "threading.Semaphore().release('x')",
    "threading.Semaphore('x')",
    "threading.Barrier('x')",
    "threading.Barrier()",
    "queue.Queue().get(timeout='x')",
    "queue.Queue().put()",
    "queue.Queue().put(1, 2, 3, 4)",
    "queue.Queue(1, 2)",
    "threading.Lock().acquire('x', 'y')",
    "threading.Lock().acquire(1, 2, 3)",
    "threading.Lock().acquire(timeout='x')",
    "threading.Lock().acquire(odd=1)",
    "__import__('pickle').dumps(threading.Lock())",
    "__import__('pickle').dumps(threading.RLock())",
    "__import__('pickle').dumps(queue.SimpleQueue())",
)


def test_words_of_errors() -> None:
    run(
        f"""
        import queue, threading

        def words(code):
            try:
                return type(eval(code)).__name__
            except Exception as error:
                return str(error)

        stock = {{code: words(code) for code in {WORDS}}}
        threads.patch()
        for code, said in stock.items():
            assert words(code) == said, (code, said, words(code))
        """
    )


# ---- a class that somebody changes --------------------------------------------------------------


def test_a_mocked_method_is_called() -> None:
    run(
        """
        import queue, threading
        from unittest import mock
        threads.patch()
        before, waiting, plain, calls = threading.Event(), queue.LifoQueue(), queue.Queue(), []
        with mock.patch.object(threading.Event, "wait", return_value=7) as wait:
            later = threading.Event()
            assert later.wait(1) == 7 and type(later) is threading.Event
            assert before.wait() == 7 and before.wait is wait  # one that existed
        assert before.wait(0) is False and later.wait(0) is False
        assert is_native(threading.Event)
        with mock.patch("queue.Queue.put", autospec=True) as put:
            queue.LifoQueue().put(5)
            assert put.call_args.args[1] == 5
            waiting.put(6)
            assert put.call_args.args == (waiting, 6)
        with mock.patch.object(queue.LifoQueue, "put", lambda self, item: calls.append(item),
                               create=True):
            waiting.put(8)
            plain.put(9)
        assert calls == [8] and plain.get() == 9
        waiting.put(7)
        assert waiting.get() == 7 and is_native(queue.LifoQueue)
        """
    )


def test_a_method_that_is_wrapped_for_good() -> None:
    """As agents for tracing do it: before the patch, or after."""
    for first in (True, False):
        run(
            f"""
            import queue, threading
            seen = []

            def wrap(owner, name):
                function = getattr(owner, name)
                def wrapped(self, *args, **kwargs):
                    seen.append(name)
                    return function(self, *args, **kwargs)
                setattr(owner, name, wrapped)

            if not {first}:
                threads.patch()
            existing = threading.Condition()
            for owner, name in ((queue.Queue, "get"), (queue.Queue, "__init__"),
                                (threading.Condition, "wait"), (threading.Condition, "notify")):
                wrap(owner, name)
            if {first}:
                threads.patch()
            waiting = queue.Queue()
            getter = threading.Thread(target=waiting.get)
            getter.start()
            waiting.put((1, 2))
            getter.join()
            assert {{"get", "__init__"}} <= set(seen), seen
            for condition in (existing, threading.Condition()):
                del seen[:]
                def body():
                    with condition:
                        told.append(1)
                        condition.notify()
                told, thread = [], threading.Thread(target=body)
                with condition:
                    thread.start()
                    assert condition.wait_for(lambda: told, 30)
                thread.join()
                if condition is not existing:
                    assert "wait" in seen and "notify" in seen, seen
            """
        )


def test_a_method_that_other_methods_call() -> None:
    run(
        """
        import queue, threading
        threads.patch()
        waiting, condition = queue.Queue(), threading.Condition()
        bounded = threading.BoundedSemaphore()
        calls = []

        def replace(owner, name):
            function = getattr(owner, name)
            setattr(owner, name, lambda *args, **kwargs: calls.append(name))
            return owner, name, function

        replaced = [replace(queue.Queue, "get"), replace(threading.Condition, "wait"),
                    replace(threading.Semaphore, "release")]
        waiting.get_nowait()
        condition.wait_for([0, 1].pop)
        condition.wait_for([1, 0].pop)
        assert calls == ["get", "wait"], calls
        with bounded:  # has one of its own
            pass
        assert "release" not in calls and bounded._value == 1
        try:
            bounded.release()
        except ValueError as error:
            assert "too many times" in str(error)
        else:
            raise AssertionError("nothing raised")
        for owner, name, function in replaced:
            setattr(owner, name, function)
        waiting.put_nowait((1, 2))
        assert waiting.get_nowait() == (1, 2) and is_native(queue.Queue)
        """
    )


def test_a_method_that_is_added() -> None:
    run(
        """
        import queue
        threads.patch()
        queue.Queue.peek = lambda self: self.queue[0]
        waiting = queue.Queue()
        waiting.put((1, 2))
        assert waiting.peek() == (1, 2) and waiting.get() == (1, 2)
        del queue.Queue.peek
        assert is_native(queue.Queue)
        """
    )


def test_a_mock_ends_with_the_class_that_it_was_put_on() -> None:
    run(
        """
        import importlib, queue
        from unittest import mock
        threads.patch()
        waiting = queue.Queue()
        with mock.patch.object(queue.Queue, "put", return_value=7):
            importlib.reload(queue)
            queue.Queue().put(1)
        waiting.put((1, 2))
        assert waiting.get_nowait() == (1, 2) and is_native(queue.Queue)
        """
    )


# ---- what looks for the types of locks ----------------------------------------------------------


def test_the_types_that_thread_names() -> None:
    run(
        """
        import _thread
        threads.patch()
        import threading
        from _thread import LockType, RLock, allocate_lock
        for lock in (threading.Lock(), allocate_lock(), _thread.allocate()):
            assert type(lock) is LockType and isinstance(lock, LockType)
        assert type(threading.RLock()) is RLock
        assert type(threading.RLock()).__module__ == type(threading.Lock()).__module__ == "_thread"
        threads.unpatch()
        assert not is_native(_thread.LockType) and not is_native(_thread.RLock)
        assert not is_native(_thread.allocate_lock) and not is_native(threading._allocate_lock)
        """
    )


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"])
def test_a_tuple_survives_a_handler_that_raises(kind: str) -> None:
    """What was handed to a get() that its own signal handler ends goes back as it is."""
    run(
        f"""
        import queue, signal
        threads.patch()

        class Alarm(Exception):
            pass

        def alarm(*_):
            waiting.put((1, 2))
            raise Alarm

        signal.signal(signal.SIGALRM, alarm)
        waiting = queue.{kind}()
        for _ in range(3):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.01)  # it may come before the wait
                waiting.get()
            except Alarm:
                pass
            else:
                raise AssertionError("not interrupted")
            assert waiting.get_nowait() == (1, 2) and waiting.empty()
        """
    )
