"""Nothing stays behind, whatever is called how often: each type and each of its methods."""

import inspect
import json

import pytest

from cpythonplus import threads
from tests.leaks import MEASURE
from tests.support import FREE_THREADED, SANITIZED
from tests.threads.programs import run
from tests.threads.sides import NAMES, NATIVE

# Of each type: how it is made, and each of its methods as lines of a program that work on `it`.
COMMON = {
    "statistics": "it.statistics().as_json()",
    "repr": "repr(it)",
    "weak reference": "weakref.ref(it)(); gone = weakref.ref(type(it)(*arguments))",
    "made anew": "it.__init__(*arguments)",
    "refused": "refused(TypeError, type(it), 1, 2, 3, 4, 5); refused(TypeError, pickle.dumps, it)",
}
ATTRIBUTES = {
    "attribute": "it.colour = [1]; it.colour = [2]; del it.colour",
    "cycle": "own = type(it)(*arguments); own.me = own; del own",
}
SUBCLASS = "own = bare(type(it))(*arguments); own.me = own; del own"
LOCK = {
    "acquire": "it.acquire(); it.release()",
    "acquire in vain": "it.acquire(); elsewhere(it.acquire, False); it.release()",
    "acquire timed out": "it.acquire(); elsewhere(it.acquire, timeout=0.0001); it.release()",
    "acquire refused": "refused(ValueError, it.acquire, timeout=float('nan'))",
    "acquire contended": "it.acquire(); t = start(take, it); t.join(0); it.release(); t.join()",
    "release": "refused(RuntimeError, it.release)",
    "acquire_timeout": "with it.acquire_timeout(1): pass",
    "acquire_timeout in vain": "it.acquire_timeout(1)",
    "locked": "it.locked()",
    "with": "with it: pass",
    "_at_fork_reinit": "it._at_fork_reinit()",
}
SEMAPHORE = {
    "acquire": "it.acquire(); it.release()",
    "acquire in vain": "it.acquire(); it.acquire(False); it.acquire(timeout=0.0001); it.release()",
    "acquire refused": "refused(ValueError, it.acquire, False, 1)",
    "acquire contended": (
        "it.acquire(); t = start(it.acquire); t.join(0); it.release(); t.join(); it.release()"
    ),
    "release": "it.acquire(); it.release(n=1)",
    "release refused": "refused(ValueError, it.release, 0); refused(TypeError, it.release, 'x')",
    "acquire_timeout": "with it.acquire_timeout(1): pass",
    "with": "with it: pass",
    "_cond": "it._cond; it._value; it._value = 1",
}
QUEUE = {
    "put": "it.put([1]); it.get()",
    "put in vain": "it.put(1); refused(Full, it.put, [2], timeout=0.0001); it.get()",
    "put refused": "it.put(1); refused(ValueError, it.put, [2], timeout=-1); it.get()",
    "put_nowait": "it.put_nowait([1]); refused(Full, it.put_nowait, [2]); it.get_nowait()",
    "put contended": "it.put(1); t = start(it.put, [2]); t.join(0); it.get(); t.join(); it.get()",
    "get": "it.put([1]); it.get(timeout=1)",
    "get in vain": "refused(Empty, it.get, timeout=0.0001)",
    "get refused": "refused(TypeError, it.get, timeout='x')",
    "get_nowait": "refused(Empty, it.get_nowait)",
    "get contended": "t = start(it.get); t.join(0); it.put([1]); t.join()",
    "drain": "it.put([1]); it.drain(); it.drain(5); refused(ValueError, it.drain, -1)",
    "empty": "it.empty()",
    "qsize": "it.qsize()",
    "items left": "own = type(it)(); own.put([1]); own.put([2]); del own",
    "cycle": "own = type(it)(); own.put(own); del own",
    "generic": "type(it)[int]",
}
BOUNDED_QUEUE = QUEUE | {
    "full": "it.full()",
    "join": "it.put([1]); it.get(); it.join(0.0001); it.unfinished_tasks = 0; it.join()",
    "join contended": (
        "it.unfinished_tasks = 0; it.put(1); t = start(it.join); t.join(0); it.get()\n"
        "it.task_done(); t.join()"
    ),
    "task_done": "it.unfinished_tasks = 0; refused(ValueError, it.task_done)",
    "shutdown": "own = type(it)(); own.put([1]); own.shutdown(); own.get()",
    "shutdown refuses": "own = type(it)(); own.shutdown(); refused(ShutDown, own.put, [1])",
    "shutdown at once": "own = type(it)(); own.put([1]); own.shutdown(immediate=True)",
    "hooks": "it._init(1); it._put([1]); it._qsize(); it._get()",
    "hooked": "own = Child(1); own.put([1]); own.get(); own.put(2); refused(Full, own.put, 3, 0)",
    "container": "it.queue = type(it.queue)([[1]]); it.queue.clear()",
    "maxsize": "it.maxsize = 1.5; it.maxsize = 1",
    "conditions": "with it.mutex: it.not_empty.notify(); it.not_full.notify(); it.all_tasks_done",
}
CALLS = {
    "Lock": ("Lock()", COMMON | LOCK),
    "RLock": (
        "RLock()",
        COMMON
        | LOCK
        | {
            "nested": "with it, it: it._recursion_count(); it._is_owned()",
            "_release_save": "with it: it._acquire_restore(it._release_save())",
            "_acquire_restore": "refused(TypeError, it._acquire_restore, None)",
            "subclass": SUBCLASS,
        },
    ),
    "Condition": (
        "Condition()",
        COMMON
        | ATTRIBUTES
        | LOCK
        | {
            "wait": "with it: it.wait(0.0001)",
            "wait refused": "refused(RuntimeError, it.wait)",
            "wait too long": "with it: refused(OverflowError, it.wait, 1e99)",
            "wait_for": "with it: it.wait_for([1].copy); it.wait_for(list, 0.0001)",
            "wait_for raises": (
                "with it: refused(ZeroDivisionError, it.wait_for, functools.partial(divmod, 1, 0))"
            ),
            "notify": "with it: it.notify(); it.notify(3)",
            "notify refused": "refused(RuntimeError, it.notify)",
            "notify contended": (
                "t = start(take, it, 30); until(functools.partial(getattr, it, '_waiters'))\n"
                "with it: it.notify()\n"
                "t.join()"
            ),
            "notify_all": "with it: it.notify_all()",
            "notifyAll": "with it: it.notifyAll()",
            "over others": "own = Condition(stock())\nwith own: own.wait(0.0001); own.notify()",
            "over nothing": "refused(AttributeError, Condition, 5)",
            "_release_save": "with it: it._acquire_restore(it._release_save())",
            "_waiters": "it._waiters; it._lock; it._is_owned()",
        },
    ),
    "Semaphore": ("Semaphore(1)", COMMON | ATTRIBUTES | SEMAPHORE),
    "BoundedSemaphore": (
        "BoundedSemaphore(1)",
        COMMON | ATTRIBUTES | SEMAPHORE | {"too many": "refused(ValueError, it.release)"},
    ),
    "Event": (
        "Event()",
        COMMON
        | ATTRIBUTES
        | {
            "set": "it.set(); it.clear()",
            "clear": "it.clear()",
            "is_set": "it.is_set()",
            "isSet": "it.isSet()",
            "wait": "it.wait(0.0001); it.set(); it.wait(); it.clear()",
            "wait refused": "refused(OverflowError, it.wait, 1e99)",
            "wait contended": "t = start(it.wait); t.join(0); it.set(); t.join(); it.clear()",
            "_at_fork_reinit": "it._at_fork_reinit(); it._cond; it._flag",
        },
    ),
    "Barrier": (
        "Barrier(1)",
        COMMON
        | ATTRIBUTES
        | {
            "wait": "it.wait()",
            "wait breaks": "own = Barrier(2); refused(BrokenBarrierError, own.wait, 0.0001)",
            "wait leaves": "own = Barrier(2); refused(TimeoutError, own.wait, 0, breaks=False)",
            "wait contended": "own = Barrier(2, list); t = start(own.wait); own.wait(); t.join()",
            "action raises": "own = Barrier(1, bytes(0).index); refused(TypeError, own.wait)",
            "abort": "it.abort(); it.reset()",
            "reset": "it.reset()",
            "properties": "it.parties; it.n_waiting; it.broken",
        },
    ),
    "Queue": ("Queue(1)", COMMON | ATTRIBUTES | BOUNDED_QUEUE),
    "LifoQueue": ("LifoQueue(1)", COMMON | ATTRIBUTES | BOUNDED_QUEUE),
    "PriorityQueue": (
        "PriorityQueue(1)",
        COMMON
        | ATTRIBUTES
        | BOUNDED_QUEUE
        | {"no order": "own = PriorityQueue(); own.put(1); refused(TypeError, own.put, 'x')"},
    ),
    "SimpleQueue": ("SimpleQueue()", COMMON | {"subclass": SUBCLASS} | QUEUE),
    "module": (
        "Thread()",
        {
            "join": "t = start(int); threads.join(t); threads.join(t, 0)",
            "join refused": "refused(RuntimeError, threads.join, it)",
            "patch": "threads.patch(); threads.unpatch()",
            "patched": "threads.patched()",
            "unpatch": "threads.unpatch()",
            "WaitStatistics": "threads.WaitStatistics().as_json()",
            "waits": "threads.waits().as_json()",
            "Wait": (
                "lock = threads.Lock(); lock.acquire(); t = start(lock.acquire); t.join(0);"
                " threads.waits(); lock.release(); t.join()"
            ),
            "Waits": "threads.Waits((), (), {}).as_json()",
            "Deadlock": "threads.Deadlock('all', ())",
            "exceptions": "ShutDown(), Empty(), Full(), BrokenBarrierError()",
        },
    ),
}
# With arguments it is deprecated, and refused from 3.15 on.
CALLS["RLock"][1]["refused"] = "refused(TypeError, pickle.dumps, it)"
# What some types do not have, or not so.
if FREE_THREADED:  # a class of C that is in a cycle leaves a block there: functools.partial does
    for _, kept in CALLS.values():
        kept.pop("cycle", None)
        kept.pop("subclass", None)
    # 3.13 makes each function immortal: a generator's, too.
    CALLS["module"][1].update(dict.fromkeys(("waits", "Wait"), "pass"))
for absent in ("attribute", "cycle"):
    CALLS["Lock"][1].pop(absent, None)
del (
    CALLS["Lock"][1]["made anew"],
    CALLS["RLock"][1]["made anew"],
    CALLS["SimpleQueue"][1]["made anew"],
)
for absent in ("put in vain", "put refused", "put_nowait", "put contended"):
    del CALLS["SimpleQueue"][1][absent]
CALLS["SimpleQueue"][1]["put_nowait"] = "it.put_nowait([1]); it.get_nowait()"

PROGRAM = """
import functools, json, pickle, warnings
from threading import Thread

warnings.simplefilter("ignore")
CALLS = {calls}
stock = threading.RLock


# Classes are made once: CPython's caches of them grow for a while.
@functools.cache
def bare(base):
    return type("Own", (base,), {{}})



result = {{}}
for kind, (make, lines) in CALLS.items():
    for name, line in lines.items():
        it = eval(make)
        arguments = eval(make.partition("(")[2].rpartition(")")[0] + "," if "1" in make else "()")
        names = {{**globals(), "it": it, "arguments": arguments}}
        slow = any(word in line for word in ("start", "elsewhere", "patch("))
        times = 40 if slow else 100
        leak = leaks(line, names, times)
        if leak:
            result[f"{{kind}} {{name}}"] = leak
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def leaked() -> dict[str, list[int]]:
    child = run(MEASURE + PROGRAM.format(calls=CALLS), timeout=60)
    result: dict[str, list[int]] = json.loads(child.out)
    return result


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak(leaked: dict[str, list[int]]) -> None:
    """One test for all: of several, each worker of a parallel run would measure anew."""
    assert leaked == {}, "calls, blocks, bytes of each"


@pytest.mark.parametrize("kind", NAMES)
def test_each_public_method_is_in_the_list(kind: str) -> None:
    aliases = {"acquire_lock", "release_lock", "locked_lock"}
    public = {
        name
        for name, _ in inspect.getmembers(getattr(NATIVE, kind), inspect.isroutine)
        if not name.startswith("_")
    }
    assert public - aliases - CALLS[kind][1].keys() == set()


def test_each_public_name_is_in_the_list() -> None:
    exceptions = {name for name in threads.__all__ if _is_exception(getattr(threads, name))}
    public = set(threads.__all__) - exceptions - CALLS.keys()
    assert public - CALLS["module"][1].keys() == set()


def _is_exception(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)
