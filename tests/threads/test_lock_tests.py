"""CPython's own tests of locks and queues, with our types in place of the standard library's.

`test.lock_tests` is written to be used like this; of `test.test_queue` each class gets the patched
module.  Each class runs in a process of its own, all of them side by side, as they
mostly sleep.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support import finish_child, start_child

pytestmark = pytest.mark.skipif(
    find_spec("test") is None or find_spec("test.lock_tests") is None,
    reason="this installation of Python comes without its own tests (Debian: libpython3-testsuite)",
)

# Class of test.lock_tests: attribute that it takes the type from, and the type.
LOCK_TESTS = {
    "LockTests": ("locktype", "Lock"),
    "RLockTests": ("locktype", "RLock"),
    "EventTests": ("eventtype", "Event"),
    "ConditionTests": ("condtype", "Condition"),
    "SemaphoreTests": ("semtype", "Semaphore"),
    "BoundedSemaphoreTests": ("semtype", "BoundedSemaphore"),
    "BarrierTests": ("barriertype", "Barrier"),
}
QUEUE_TESTS = (
    "CQueueTest",
    "CLifoQueueTest",
    "CPriorityQueueTest",
    "CFailingQueueTest",
    "CSimpleQueueTest",
)
# Left out.
NOT_OURS = {"test_simplequeue_sizeof": "the size of the standard library's own C structure"}

PROGRAM = (
    f"NOT_OURS = {NOT_OURS}"
    """
import sys, unittest

from cpythonplus import threads

threads.patch()
name, kind = sys.argv[1:]
if kind == "queue":
    import queue
    from test import test_queue as module

    given = {"queue": queue}
else:
    from test import lock_tests as module

    attribute, _, kind = kind.partition("=")
    import threading

    given = {attribute: staticmethod(getattr(threading, kind))}
for test, reason in NOT_OURS.items():
    if hasattr(getattr(module, name), test):
        given[test] = unittest.skip(reason)(lambda self: None)
tests = type(name, (getattr(module, name),), given)
suite = unittest.TestLoader().loadTestsFromTestCase(tests)
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
assert result.testsRun > 0
sys.exit(not result.wasSuccessful())
"""
)

CLASSES = {name: "=".join(given) for name, given in LOCK_TESTS.items()}
CLASSES |= dict.fromkeys(QUEUE_TESTS, "queue")


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """The processes by the names of their classes, started together."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(PROGRAM)
        processes = {n: start_child(path, args=[n, kind]) for n, kind in CLASSES.items()}
        yield processes
        # Another worker of a parallel run may have had some of the tests.
        for process in processes.values():
            if process.returncode is None:
                process.kill()
                process.communicate()


@pytest.mark.parametrize("name", CLASSES)
def test_cpythons_own(name: str, running: dict[str, subprocess.Popen[str]]) -> None:
    child = finish_child(running[name], timeout=120)
    if child.status != 0 or "OK" not in child.out:
        pytest.fail(str(child))
