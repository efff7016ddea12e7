"""CPython's own tests of locks and queues, with our types in place of the standard library's.

Each class of `test.lock_tests` and `test.test_queue` runs three times: what it starts are threads,
tasklets of its own thread, or one and the other by turns.  Each run is a process of its own, all of
them side by side, as they mostly sleep.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import Child, finish_child, start_child
from tests.threads.test_lock_tests import LOCK_TESTS, QUEUE_TESTS

pytestmark = pytest.mark.skipif(
    find_spec("test") is None or find_spec("test.lock_tests") is None,
    reason="this installation of Python comes without its own tests (Debian: libpython3-testsuite)",
)

WAYS = ("threads", "tasklets", "mixed")

# Left out.
NOT_OURS = {"test_simplequeue_sizeof": "the size of the standard library's own C structure"}
# What only a thread can be.
NOT_OF_TASKLETS = {
    "test_shutdown_all_methods_in_many_threads": "polls until others do something",
    "test_shutdown_immediate_all_methods_in_many_threads": "polls until others do something",
}

PROGRAM = (
    f"NOT_OURS = {NOT_OURS}\nNOT_OF_TASKLETS = {NOT_OF_TASKLETS}"
    """
import itertools, sys, time, types, unittest
import _thread, threading

from cpythonplus import tasklets
from cpythonplus._native import io_sleep
from cpythonplus.tasklets import locks

way, name, kind = sys.argv[1:]
if kind == "queue":
    from test import test_queue as module

    names = ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "Empty", "Full", "ShutDown")
    given = {"queue": types.SimpleNamespace(**{name: getattr(locks, name) for name in names})}
else:
    from test import lock_tests as module

    attribute, _, kind = kind.partition("=")
    given = {attribute: staticmethod(getattr(locks, kind))}
    if kind not in ("Lock", "RLock"):
        getattr(locks, kind).__module__ = "locks"  # the tests of repr() expect a name without dots

turns = {"threads": "t", "tasklets": "m", "mixed": "mt"}[way]
turn = itertools.cycle(turns)
started = {"t": 0, "m": 0}
start_thread = _thread.start_new_thread


def start_new_thread(function, args, kwargs={}):
    which = next(turn)
    started[which] += 1
    if which == "t":
        return start_thread(function, args, kwargs)
    return id(tasklets.tasklet(function)(*args, **kwargs))


class Thread:
    '''What test_queue needs of threading.Thread.'''

    def __init__(self, group=None, target=None, args=(), kwargs={}):
        self.call = target, args, kwargs
        self.ended = locks.Event()
        self.daemon = True

    def run(self):
        target, args, kwargs = self.call
        target(*args, **kwargs)

    def main(self):
        try:
            self.run()
        finally:
            self.ended.set()

    def start(self):
        start_new_thread(self.main, ())

    def join(self, timeout=None):
        self.ended.wait(timeout)

    def is_alive(self):
        return not self.ended.is_set()


module.start_new_thread = start_new_thread
if way != "threads":
    time.sleep = io_sleep
    if kind == "queue":
        names = ("Lock", "RLock", "Condition", "Semaphore", "Event", "Barrier")
        ours = {name: getattr(locks, name) for name in names}
        module.threading = types.SimpleNamespace(**{**vars(threading), **ours, "Thread": Thread})
        module._TriggerThread = type("_TriggerThread", (Thread,), {
            "__init__": lambda self, fn, args: (
                setattr(self, "fn", fn), setattr(self, "args", args),
                setattr(self, "startedEvent", locks.Event()), Thread.__init__(self), None)[-1],
            "run": lambda self: (io_sleep(0.1), self.startedEvent.set(), self.fn(*self.args)),
        })
refused = dict(NOT_OURS)
if way == "tasklets":
    refused |= NOT_OF_TASKLETS
for test, reason in refused.items():
    if hasattr(getattr(module, name), test):
        given[test] = unittest.skip(reason)(lambda self: None)
tests = type(name, (getattr(module, name),), given)
suite = unittest.TestLoader().loadTestsFromTestCase(tests)
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
assert result.testsRun > 0
print(started)
assert kind == "queue" or all(started[which] for which in turns)
sys.exit(not result.wasSuccessful())
"""
)

CLASSES = {name: "=".join(given) for name, given in LOCK_TESTS.items()}
CLASSES |= dict.fromkeys(QUEUE_TESTS, "queue")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_cpythons_own(way: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(PROGRAM)
        processes = {
            name: start_child(path, args=[way, name, given]) for name, given in CLASSES.items()
        }
        children = {}
        for name, process in processes.items():
            try:
                children[name] = finish_child(process, timeout=60)
            except pytest.fail.Exception as failure:
                children[name] = Child(-1, "", str(failure))
    bad = [f"{n}: {c}" for n, c in children.items() if c.status != 0 or "OK" not in c.out]
    assert not bad, "\n".join(bad)
