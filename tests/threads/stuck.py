"""Programs that are deadlocked, and programs that are merely slow; see test_waits.py.

The lines that a report has to name end with a comment: `#: name`. A deadlocked program says which
threads wait at which line, for a lock made at which line, held at which line.
"""

import sys
from dataclasses import dataclass
from textwrap import dedent

__all__ = ["SLOW", "STUCK", "Stuck"]

# The names that every program may use.
HEAD = """\
import os, signal, sys, threading, time, weakref
from concurrent.futures import ThreadPoolExecutor
from queue import Queue, SimpleQueue
from threading import Barrier, BoundedSemaphore, Condition, Event, Lock, RLock, Thread

def start(*functions):
    threads = [Thread(target=each, name=each.__name__, daemon=True) for each in functions]
    for each in threads:
        each.start()
    return threads

def runs():
    while True:
        time.sleep(0.01)
"""


@dataclass(frozen=True)
class Stuck:
    """kind: of the deadlock. waits: (thread, line, line that made the lock, line that holds it)."""

    name: str
    kind: str
    waits: frozenset[tuple[str, str, str, str]]
    inside: str
    source: str


STUCK: list[Stuck] = []
SLOW: dict[str, str] = {}


def _stuck(
    name: str, kind: str, *waits: tuple[str, str, str, str], source: str, inside: str = ""
) -> None:
    STUCK.append(Stuck(name, kind, frozenset(waits), inside, HEAD + dedent(source)))


_stuck(
    "two locks in opposite order",
    "cycle",
    ("first", "1 waits", "b made", "2 holds"),
    ("second", "2 waits", "a made", "1 holds"),
    source="""
    a = Lock()  #: a made
    b = Lock()  #: b made
    both = Barrier(2)
    def first():
        with a:  #: 1 holds
            both.wait()
            with b:  #: 1 waits
                pass
    def second():
        with b:  #: 2 holds
            both.wait()
            with a:  #: 2 waits
                pass
    start(first, second)
    time.sleep(60)
    """,
)
_stuck(
    "three locks in a ring",
    "cycle",
    ("first", "waits", "made", "holds"),
    ("second", "waits", "made", "holds"),
    ("third", "waits", "made", "holds"),
    source="""
    locks = [
        Lock() for _ in range(3)  #: made
    ]
    all_three = Barrier(3)
    def take(one):
        with locks[one]:  #: holds
            all_three.wait()
            with locks[(one + 1) % 3]:  #: waits
                pass
    def first(): take(0)
    def second(): take(1)
    def third(): take(2)
    start(first, second, third)
    time.sleep(60)
    """,
)
_stuck(
    "a Lock and an RLock that is held twice",
    "cycle",
    ("first", "1 waits", "made", "2 holds"),
    ("second", "2 waits", "r made", "1 holds"),
    source="""
    a = Lock()  #: made
    r = RLock()  #: r made
    both = Barrier(2)
    def first():
        with r:  #: 1 holds again
            with r:  #: 1 holds
                both.wait()
                a.acquire()  #: 1 waits
    def second():
        with a:  #: 2 holds
            both.wait()
            r.acquire()  #: 2 waits
    start(first, second)
    time.sleep(60)
    """,
)
_stuck(
    "locks taken by acquire(): held where their thread is",
    "cycle",
    ("first", "1 waits", "b made", "2 waits"),
    ("second", "2 waits", "a made", "1 waits"),
    source="""
    a = Lock()  #: a made
    b = Lock()  #: b made
    both = Barrier(2)
    def first():
        a.acquire()
        both.wait()
        b.acquire()  #: 1 waits
    def second():
        b.acquire()
        both.wait()
        a.acquire()  #: 2 waits
    start(first, second)
    time.sleep(60)
    """,
)
_stuck(
    "a lock taken twice by one thread",
    "itself",
    ("MainThread", "waits", "made", "holds"),
    source="""
    class Account:
        def __init__(self):
            self.lock = Lock()  #: made
        def balance(self):
            with self.lock:  #: waits
                return 1
        def report(self):
            with self.lock:  #: holds
                return self.balance()
    Account().report()
    """,
)
_stuck(
    "a finalizer takes the lock that its thread holds",
    "itself",
    ("MainThread", "waits", "made", "holds"),
    inside="the finalizer Connection.__del__",
    source="""
    lock = Lock()  #: made
    class Connection:
        def __del__(self):
            with lock:  #: waits
                pass
    with lock:  #: holds
        Connection()
    """,
)
_stuck(
    "a finalizer in a collection, under acquire()",
    "itself",
    ("MainThread", "waits", "made", "waits"),
    inside="the finalizer Node.__del__",
    source="""
    import gc
    lock = Lock()  #: made
    class Node:
        def __init__(self):
            self.itself = self
        def __del__(self):
            lock.acquire()  #: waits
    Node()
    lock.acquire()
    gc.collect()
    """,
)
_stuck(
    "weakref.finalize takes the lock that its thread holds",
    "itself",
    ("MainThread", "waits", "made", "holds"),
    inside="a finalizer of weakref.finalize",
    source="""
    lock = Lock()  #: made
    def give_back():
        with lock:  #: waits
            pass
    class Resource: pass
    one = Resource()
    weakref.finalize(one, give_back)
    with lock:  #: holds
        del one
    """,
)
_stuck(
    "a signal handler takes the lock that the main thread holds",
    "itself",
    ("MainThread", "waits", "made", "holds"),
    inside="the signal handler on_alarm",
    source="""
    lock = Lock()  #: made
    def on_alarm(number, frame):
        with lock:  #: waits
            pass
    signal.signal(signal.SIGALRM, on_alarm)
    with lock:  #: holds
        signal.raise_signal(signal.SIGALRM)
    """,
)
_stuck(
    "a signal handler logs while the main thread logs",
    "itself",
    ("MainThread", "waits", "made", "waits"),
    inside="the signal handler Service.stop",
    source="""
    lock = Lock()  #: made
    class Service:
        def stop(self, number, frame):
            lock.acquire()  #: waits
    signal.signal(signal.SIGTERM, Service().stop)
    lock.acquire()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
    """,
)
_stuck(
    "a thread is joined under the lock that it needs",
    "cycle",
    ("MainThread", "1 waits", "", "2 waits"),
    ("worker", "2 waits", "made", "1 holds"),
    source="""
    lock = Lock()  #: made
    def worker():
        with lock:  #: 2 waits
            pass
    with lock:  #: 1 holds
        start(worker)[0].join()  #: 1 waits
    """,
)
_stuck(
    "the owner of a lock has never waited",
    "cycle",
    ("MainThread", "1 waits", "", "2 waits"),
    ("worker", "2 waits", "made", "1 holds"),
    source="""
    class Started:
        def __init__(self): self.flag = False
        def is_set(self): return self.flag
        def set(self): self.flag = True
        def wait(self, timeout=None): return True
    lock = Lock()  #: made
    def worker():
        with lock:  #: 2 waits
            pass
    thread = Thread(target=worker, name="worker", daemon=True)
    thread._started = Started()  # start() does not wait
    with lock:  #: 1 holds
        thread.start()
        while not thread._started.is_set():
            time.sleep(0.01)
        thread.join()  #: 1 waits
    """,
)
_stuck(
    "a pool is shut down under the lock that its work needs",
    "cycle",
    ("MainThread", "1 waits", "", "2 waits"),
    ("pool_0", "2 waits", "made", "1 holds"),
    source="""
    lock = RLock()  #: made
    def work():
        with lock:  #: 2 waits
            pass
    pool = ThreadPoolExecutor(1, "pool")
    with lock:  #: 1 holds
        pool.submit(work)
        pool.shutdown(wait=True)  #: 1 waits
    """,
)
_stuck(
    "the end of the program waits for a thread, which waits for the main thread's lock",
    "cycle",
    ("MainThread", "", "", "2 waits"),
    ("worker", "2 waits", "made", ""),
    source="""
    lock = Lock()  #: made
    def worker():
        with lock:  #: 2 waits
            pass
    lock.acquire()
    Thread(target=worker, name="worker").start()
    """,
)
_stuck(
    "two threads join each other",
    "cycle",
    ("first", "1 waits", "", "2 waits"),
    ("second", "2 waits", "", "1 waits"),
    source="""
    both = Barrier(2)
    def first():
        both.wait()
        threads[1].join()  #: 1 waits
    def second():
        both.wait()
        threads[0].join()  #: 2 waits
    threads = []
    threads += [Thread(target=each, name=each.__name__, daemon=True) for each in (first, second)]
    for each in threads:
        each.start()
    time.sleep(60)
    """,
)
_stuck(
    "two bounded semaphores in opposite order",
    "cycle",
    ("first", "1 waits", "b made", "2 holds"),
    ("second", "2 waits", "a made", "1 holds"),
    source="""
    a = BoundedSemaphore()  #: a made
    b = BoundedSemaphore()  #: b made
    both = Barrier(2)
    def first():
        with a:  #: 1 holds
            both.wait()
            with b:  #: 1 waits
                pass
    def second():
        with b:  #: 2 holds
            both.wait()
            with a:  #: 2 waits
                pass
    start(first, second)
    time.sleep(60)
    """,
)
_stuck(
    "an import under a lock that the module needs",
    "cycle",
    ("importer", "1 waits", "made", "2 holds"),
    ("MainThread", "2 waits", "", "1 waits"),
    source="""
    import importlib.abc, importlib.machinery
    lock = Lock()  #: made
    begun = Event()
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            if name == "needs_a_lock":
                return importlib.machinery.ModuleSpec(name, self)
        def exec_module(self, module):
            begun.set()
            lock.acquire()  #: 1 waits
    sys.meta_path.insert(0, Finder())
    def importer():
        import needs_a_lock
    with lock:  #: 2 holds
        start(importer)
        begun.wait()
        import needs_a_lock  #: 2 waits
    """,
)
_stuck(
    "two conditions, whose threads need each other's lock",
    "cycle",
    ("first", "1 waits", "b made", "2 holds"),
    ("second", "2 waits", "a made", "1 holds"),
    source="""
    a = Condition(Lock())  #: a made
    b = Condition()  #: b made
    both = Barrier(2)
    def first():
        with a:  #: 1 holds
            both.wait()
            with b:  #: 1 waits
                b.notify()
    def second():
        with b:  #: 2 holds
            both.wait()
            with a:  #: 2 waits
                a.notify()
    start(first, second)
    time.sleep(60)
    """,
)
_stuck(
    "a condition waits under an outer lock, which the notifier needs",
    "all",
    ("waiter", "1 waits", "made", ""),
    ("notifier", "2 waits", "outer made", "1 holds"),
    ("MainThread", "3 waits", "", "2 waits"),
    source="""
    outer = Lock()  #: outer made
    ready = Condition()  #: made
    inside = Event()
    def waiter():
        with outer:  #: 1 holds
            with ready:
                inside.set()
                ready.wait()  #: 1 waits
    def notifier():
        inside.wait()
        with outer:  #: 2 waits
            with ready:
                ready.notify()
    start(waiter)
    start(notifier)[0].join()  #: 3 waits
    """,
)
_stuck(
    "a full queue is filled under the lock of its consumer",
    "all",
    ("MainThread", "1 waits", "made", ""),
    ("consumer", "2 waits", "lock made", "1 holds"),
    source="""
    queue = Queue(1)  #: made
    lock = Lock()  #: lock made
    def consumer():
        with lock:  #: 2 waits
            queue.get()
    with lock:  #: 1 holds
        start(consumer)
        queue.put(1)
        queue.put(2)  #: 1 waits
    """,
)
_stuck(
    "work of a pool waits for work of the same pool",
    "all",
    ("MainThread", "1 waits", "", ""),
    ("pool_0", "2 waits", "", ""),
    source="""
    pool = ThreadPoolExecutor(1, "pool")
    def outer():
        return pool.submit(int).result()  #: 2 waits
    pool.submit(outer).result()  #: 1 waits
    """,
)
_stuck(
    "two threads wait for each other's item",
    "all",
    ("first", "1 waits", "a made", ""),
    ("second", "2 waits", "b made", ""),
    ("MainThread", "3 waits", "event made", ""),
    source="""
    a, b = (
        SimpleQueue(),  #: a made
        SimpleQueue(),  #: b made
    )
    done = Event()  #: event made
    def first():
        b.put(a.get())  #: 1 waits
    def second():
        a.put(b.get())  #: 2 waits
        done.set()
    start(first, second)
    done.wait()  #: 3 waits
    """,
)
_stuck(
    "a barrier with too few parties, and a queue whose worker has ended",
    "all",
    ("party", "1 waits", "barrier made", ""),
    ("MainThread", "2 waits", "made", ""),
    source="""
    queue = Queue()  #: made
    barrier = Barrier(3)  #: barrier made
    def party():
        barrier.wait()  #: 1 waits
    start(party)
    queue.put(1)
    queue.join()  #: 2 waits
    """,
)

_stuck(
    "the owner of an RLock has ended, and another thread runs",
    "ended",
    ("MainThread", "waits", "made", ""),
    source="""
    lock = RLock()  #: made
    def takes():
        lock.acquire()
    start(takes)[0].join()
    start(runs)
    with lock:  #: waits
        pass
    """,
)
_stuck(
    "a child of a fork does not have the owner of an RLock",
    "ended",
    ("MainThread", "waits", "made", ""),
    source="""
    from cpythonplus import gil
    gil.install()  # without it the lost thread is not known to have ended
    lock = RLock()  #: made
    taken = Event()
    def takes():
        with lock:
            taken.set()
            time.sleep(60)
    start(takes)
    taken.wait()
    child = os.fork()
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    start(runs)
    with lock:  #: waits
        pass
    """,
)
_stuck(
    "a callback of the collector takes the lock that its thread holds",
    "itself",
    ("MainThread", "waits", "made", "waits"),
    inside="the callback of the collector Hook.on_collection",
    source="""
    import gc
    lock = Lock()  #: made
    class Hook:
        def on_collection(self, phase, info):
            lock.acquire()  #: waits
    start(runs)
    lock.acquire()
    gc.callbacks.append(Hook().on_collection)
    gc.collect()
    """,
)
_stuck(
    "a handler of logging takes a lock under which another thread logs",
    "cycle",
    ("MainThread", "1 waits", "made", "2 holds"),
    # From 3.13 on a `with` of logging holds its lock.
    ("other", "2 waits", "", "" if sys.version_info >= (3, 13) else "1 waits"),
    source="""
    import logging
    lock = Lock()  #: made
    inside, begun = Event(), Event()
    class Handler(logging.Handler):
        def emit(self, record):
            inside.set()
            begun.wait()
            with lock:  #: 1 waits
                pass
    logging.getLogger().addHandler(Handler())
    def other():
        with lock:  #: 2 holds
            inside.wait()
            begun.set()
            logging.error("two")  #: 2 waits
    start(other)
    logging.error("one")
    """,
)
_stuck(
    "a module joins a thread that imports it",
    "cycle",
    ("imports", "1 waits", "", "2 waits"),
    ("MainThread", "2 waits", "", "1 waits"),
    source="""
    import importlib.abc, importlib.machinery
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            if name == "joins":
                return importlib.machinery.ModuleSpec(name, self)
        def exec_module(self, module):
            start(imports)[0].join()  #: 2 waits
    sys.meta_path.insert(0, Finder())
    def imports():
        import joins  #: 1 waits
    import joins
    """,
)
_stuck(
    "a coroutine awaits a result of its own loop",
    "all",
    ("MainThread", "waits", "", ""),
    source="""
    import asyncio
    async def never(): pass
    async def main():
        asyncio.run_coroutine_threadsafe(never(), asyncio.get_running_loop()).result()  #: waits
    asyncio.run(main())
    """,
)

# Each must end by itself, with the status 0.
SLOW.update(
    {
        "the holder of a lock works": """
    lock = Lock()
    def other():
        with lock:
            pass
    with lock:
        threads = start(other, other)
        for i in range(100):
            sum(range(50_000))
    for each in threads:
        each.join()
    """,
        "the holder of a lock sleeps": """
    lock = Lock()
    def other():
        with lock:
            time.sleep(0.05)
    threads = start(other, other, other)
    for each in threads:
        each.join()
    """,
        "two locks in opposite order, with time-outs": """
    a, b = Lock(), Lock()
    both = Barrier(2)
    def take(one, other):
        with one:
            both.wait()
            if other.acquire(timeout=0.2):
                other.release()
    threads = [Thread(target=take, args=each) for each in ((a, b), (b, a))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    """,
        "modules that import each other, in two threads": """
    import importlib.abc, importlib.machinery
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path, target=None):
            if name.startswith(("one_", "two_")):
                return importlib.machinery.ModuleSpec(name, self)
        def exec_module(self, module):
            both.wait()
            which, number = module.__name__.split("_")
            __import__(("two_" if which == "one" else "one_") + number)
    sys.meta_path.insert(0, Finder())
    for number in range(300):
        both = Barrier(2)
        names = (f"one_{number}", f"two_{number}")
        threads = [Thread(target=__import__, args=(name,)) for name in names]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    """,
        "imports of many modules": """
    import subprocess
    for _ in range(30):
        for name in ("traceback", "logging", "json", "json.decoder", "json.scanner", "string"):
            sys.modules.pop(name, None)
            __import__(name)
    """,
        "many threads on one lock": """
    lock = Lock()
    def worker():
        for _ in range(2000):
            with lock:
                sum(range(20))
    for each in start(*[worker] * 8):
        each.join()
    """,
        "a slow producer": """
    queue = Queue(2)
    def consumer():
        while queue.get() is not None:
            queue.task_done()
    threads = start(consumer, consumer)
    for i in range(20):
        time.sleep(0.01)
        queue.put(i)
    queue.join()
    queue.put(None), queue.put(None)
    for each in threads:
        each.join()
    """,
        "all wait, and a signal handler ends it": """
    queue, done = SimpleQueue(), Event()
    thread, = start(queue.get)
    signal.signal(signal.SIGALRM, lambda *ignored: done.set())
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    done.wait()
    queue.put(1)
    thread.join()
    """,
        "all wait, and a timer ends it": """
    queue, done = SimpleQueue(), Event()
    thread, = start(queue.get)
    threading.Timer(0.3, done.set).start()
    done.wait()
    queue.put(1)
    thread.join()
    """,
        "a lock is held over I/O": """
    import socket
    lock = Lock()
    one, other = socket.socketpair()
    def reader():
        with lock:
            one.recv(1)
    def next_reader():
        with lock:
            pass
    threads = start(reader, next_reader)
    def writer():
        time.sleep(0.3)
        other.send(b"x")
    start(writer)
    for each in threads:
        each.join()
    """,
        "a lock is a signal: taken twice by a thread, released by another": """
    gate = Lock()
    gate.acquire()
    def opens():
        for _ in range(10):
            time.sleep(0.02)
            gate.release()
    thread, = start(opens)
    for _ in range(10):
        gate.acquire()
    thread.join()
    """,
        "a child process is waited for under a lock": """
    import subprocess
    lock = Lock()
    def child():
        with lock:
            subprocess.run([sys.executable, "-c", "import time; time.sleep(0.3)"])
    def other():
        with lock:
            pass
    for each in start(child, other):
        each.join()
    """,
        "two threads ping-pong over conditions": """
    ready, turn = Condition(), [0]
    def player(own):
        for _ in range(500):
            with ready:
                ready.wait_for(lambda: turn[0] == own)
                turn[0] = 1 - own
                ready.notify_all()
    threads = [Thread(target=player, args=(own,)) for own in (0, 1)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    """,
        "a pool that is idle between two tasks": """
    pool = ThreadPoolExecutor(4)
    for _ in range(10):
        list(pool.map(time.sleep, [0.01] * 4))
        time.sleep(0.01)
    pool.shutdown()
    """,
    }
)
SLOW.update({name: HEAD + dedent(source) for name, source in SLOW.items()})
