"""Nothing stays behind, whatever of the locks is called how often."""

import json

import pytest

from cpythonplus.tasklets import locks
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

CALLS = {
    "Lock": "x = locks.Lock(); x.acquire(); x.acquire(timeout=0.0001); x.release(); repr(x)",
    "Lock waited for": "x = locks.Lock(); x.acquire(); waits(x.acquire); x.release(); run()",
    "Lock abandoned": "x = locks.Lock(); x.acquire(); waits(x.acquire); del x; gc.collect()",
    "Lock refused": (
        "x = locks.Lock(); refused(TypeError, locks.Lock, 5); refused(RuntimeError, x.release)"
    ),
    "killed": "x = locks.Lock(); x.acquire(); waits(x.acquire).kill()",
    "RLock": "x = locks.RLock(); x.acquire(); x.acquire(); x.release(); x._release_save()",
    "RLock waited for": "x = locks.RLock(); x.acquire(); waits(x.acquire); x.release(); run()",
    "RLock held": "waits(lambda x: (x.acquire(), schedule_remove()), locks.RLock())",
    "LockStatistics": "locks.Lock().statistics(), locks.RLock().made_at",
    "Condition": "x = locks.Condition(); x.acquire(); x.wait(0.0001); x.notify_all(); x.release()",
    "Semaphore": "x = locks.Semaphore(0); waits(x.acquire); x.release(); run()",
    "BoundedSemaphore": "refused(ValueError, locks.BoundedSemaphore().release)",
    "Event": "x = locks.Event(); waits(x.wait); x.set(); run(); x.wait(0.0001)",
    "Barrier": "x = locks.Barrier(2); waits(x.wait); x.wait(); run()",
    "BrokenBarrierError": "refused(locks.BrokenBarrierError, locks.Barrier(2).wait, 0.0001)",
    "Queue": "x = locks.Queue(1); x.put([1]); refused(locks.Full, x.put, 1, True, 0.0001); x.get()",
    "ShutDown": "x = locks.Queue(1); x.shutdown(); refused(locks.ShutDown, x.get)",
    "LifoQueue": "x = locks.LifoQueue(); waits(x.get); x.put([1]); run()",
    "PriorityQueue": "x = locks.PriorityQueue(); waits(x.get); x.put([1]); run()",
    "SimpleQueue": "x = locks.SimpleQueue(); waits(x.get); x.put([1]); run()",
    "Empty": "refused(locks.Empty, locks.SimpleQueue().get, timeout=0.0001)",
    "local": "x = locks.local(); x.y = [x]; waits(setattr, x, 'y', 1); run(); x.__dict__; del x.y",
    "patch, patched": "locks.patch(); locks.patched(); locks.unpatch()",
}

PROGRAM = """
import json, gc
from cpythonplus.tasklets import locks, run, schedule_remove, tasklet

CALLS = {calls}


def waits(call, *args):
    made = tasklet(call)(*args)
    made.run()
    return made


def refused(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error:
        return
    raise AssertionError(call)


result = {{}}
for name, line in CALLS.items():
    try:
        leak = leaks(line, {{**globals()}}, 100)
    except BaseException as error:
        leak = repr(error)
    if leak:
        result[name] = leak
print(json.dumps(result))
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak() -> None:
    child = run_child(MEASURE + PROGRAM.format(calls=CALLS), timeout=60)
    assert child.status == 0, child
    assert json.loads(child.out) == {}, "calls, blocks, bytes of each"


def test_each_public_name_is_in_the_list() -> None:
    lines = [f"{name} {line}" for name, line in CALLS.items()]
    assert {n for n in locks.__all__ if not any(n in line for line in lines)} == set()
