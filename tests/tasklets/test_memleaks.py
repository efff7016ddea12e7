"""Nothing stays behind, whatever is called how often: the module, tasklets and channels."""

import inspect
import json

import pytest

from cpythonplus import tasklets
from tests.leaks import MEASURE
from tests.support import SANITIZED, run_child

# Lines of a program for each public callable; `it` is a new channel.
CALLS = {
    "tasklet": {
        "bound": "tasklet(list)",
        "run to its end": "tasklet(list)([1]); run()",
        "with arguments": "tasklet(dict, ([],), {'colour': [1]})",
        "refused": "refused(TypeError, tasklet, 5); refused(TypeError, tasklet, list, 5)",
        "wrong arguments": "tasklet(ascii)(1, 2); refused(TypeError, run)",
        "subclass": "own = Own(list); own.me = own; own([1]); run(); del own",
        "weak reference": "weakref.ref(tasklet(list)); weakref.ref(parked())",
        "forgotten while it is parked": "parked()",
        "forgotten while it is deep": "deep(50)",
        "bind": "t = tasklet().bind(list, ([1],)); t.bind(dict); refused(TypeError, t.bind, 5)",
        "bind refused": "t = parked(); refused(RuntimeError, t.bind, list)",
        "setup": "tasklet(list).setup([1]); run(); refused(RuntimeError, tasklet().setup)",
        "insert": "tasklet(list, ([1],)).insert(); run(); refused(RuntimeError, tasklet().insert)",
        "remove": "tasklet(list)([1]).remove(); refused(RuntimeError, getcurrent().remove)",
        "run": "tasklet(list, ([1],)).run(); refused(RuntimeError, tasklet().run)",
        "run refused": "t = blocked(it); refused(RuntimeError, t.run); t.kill()",
        "switch": "tasklet(list, ([1],)).switch(); refused(RuntimeError, tasklet().switch)",
        "kill": "parked().kill(); t = parked(); t.kill(pending=True); run()",
        "kill before it runs": (
            "tasklet(list)([1]).kill(); t = tasklet(list)([1]); t.kill(pending=True); run()"
        ),
        "kill of a blocked one": "blocked(it).kill()",
        "throw": "refused(KeyError, parked().throw, KeyError, [1])",
        "throw later": "parked().throw(KeyError([1]), pending=True); refused(KeyError, run)",
        "throw before it runs": "refused(KeyError, tasklet(list)([1]).throw, KeyError)",
        "throw refused": (
            "t = parked(); refused(TypeError, t.throw, 5)\n"
            "refused(TypeError, t.throw, KeyError(), 5)\n"
            "refused(TypeError, t.throw, KeyError, 5, 5)"
        ),
        "throw into a dead one": "refused(RuntimeError, tasklet().throw, KeyError([1]))",
        "raise_exception": (
            "refused(KeyError, parked().raise_exception, KeyError, [1])\n"
            "refused(TypeError, parked().raise_exception, 5)"
        ),
        "set_atomic": "tasklet().set_atomic(True); refused(TypeError, tasklet().set_atomic, 'x')",
        "set_ignore_nesting": "tasklet().set_ignore_nesting(True)",
        "bind_thread": "tasklet(list).bind_thread()",
        "attributes": (
            "t = parked(); t.alive, t.paused, t.blocked, t.scheduled, t.restorable, t.is_main\n"
            "t.is_current, t.thread_id, t.next, t.prev, t.tempval, t.block_trap\n"
            "t.recursion_depth\n"
            "t.block_trap = True; t.tempval = [1]; repr(t)"
        ),
        "attributes of a blocked one": "t = blocked(it); t._channel, t.next, it.queue; t.kill()",
        "exception to main": "tasklet(raises)(KeyError([1])); refused(KeyError, run)",
        "exception state": "tasklet(handles)(KeyError([1])); tasklet(handles)(KeyError(2)); run()",
        "generator inside": "t = tasklet(list)(values()); run(); del t",
        "context": "variable.set([1]); tasklet(lambda: (variable.set([2]), schedule()))(); run()",
        "set_context": (
            "context = contextvars.Context(); tasklet(list).set_context(context)([1]); run()\n"
            "t = parked().set_context(context); t.set_context(contextvars.Context())\n"
            "t.context_id\n"
            "refused(TypeError, t.set_context, 5)"
        ),
        "context_run": (
            "t = tasklet(); t.context_run(variable.set, [1]); parked().context_run(dict, a=[1])\n"
            "refused(TypeError, t.context_run, 5)"
        ),
        "trace_function": (
            "t = tasklet(list)([1]); t.trace_function = Own(); t.trace_function = print; run()\n"
            "t = parked(); t.trace_function = t.profile_function = Own(); t.trace_function\n"
            "t = tasklet(list, ()); t.profile_function = Own()\n"
            "refused(RuntimeError, setattr, tasklet(), 'trace_function', 5)"
        ),
        "tracing begins and ends while one is parked": (
            "t = parked(); sys.settrace(print); sys.settrace(None); t.run(); del t"
        ),
        "trace functions inherited": (
            "tasklets.set_trace_inheritance(True); sys.setprofile(lambda *a: None)\n"
            "tasklet(list)([1]); run(); tasklet(list, ()); sys.setprofile(None)\n"
            "tasklets.set_trace_inheritance(False)"
        ),
        "many at once": "for i in range(20): tasklet(schedule)([i])\nrun()",
        "__reduce__": "refused(pickle.PicklingError, parked().__reduce__)",
        "pickle": (
            "t = tasklet(work)([1]); run(); data = pickle.dumps(t); pickle.loads(data)\n"
            "u = pickle.loads(data); u.insert(); run(); t.insert(); run()"
        ),
        "pickle by value": (
            "t = tasklet(work)([1]); run()\n"
            "with tasklets.pickling(code='value'): pickle.loads(tasklets.dumps(t)).kill()\n"
            "tasklets.Pickler(io.BytesIO()).dump(t); t.kill()"
        ),
        "copy": "t = tasklet(work)([1]); run(); copy.copy(t); copy.copy(t).kill(); t.kill()",
        "a pickle that does not fit": (
            "t = tasklet(work)([1]); run(); f, a, s = t.__reduce__()\n"
            "refused(pickle.UnpicklingError, f(*a).__setstate__, (*s[:4], s[4][1:], *s[5:]))\n"
            "t.kill()"
        ),
    },
    "channel": {
        "made": "channel(); refused(TypeError, channel, 1, 2)",
        "send": "tasklet(it.receive)(); run(); it.send([1])",
        "send blocks": "tasklet(it.send)([1]); run(); it.receive(); run()",
        "receive": "tasklet(it.send)([1]); run(); it.receive(); run()",
        "receive refused": "refused(RuntimeError, it.receive)",
        "deadlock of main": "tasklet(list)(); refused(RuntimeError, it.send, [1])",
        "forgotten with one that waits": "tasklet(channel().receive)(); run()",
        "forgotten with a value": "tasklet(channel().send)([1]); run()",
        "send_exception": (
            "tasklet(it.send_exception)(KeyError, [1]); schedule(); refused(KeyError, it.receive)\n"
            "run(); refused(TypeError, it.send_exception, 5); refused(TypeError, it.send_exception)"
        ),
        "send_throw": (
            "tasklet(it.send_throw)(KeyError([1])); schedule(); refused(KeyError, it.receive)\n"
            "run(); refused(TypeError, it.send_throw, 5); refused(TypeError, it.send_throw)"
        ),
        "send_sequence": (
            "tasklet(it.send_sequence)([[1], [2]]); it.receive(); it.receive(); run()\n"
            "refused(TypeError, it.send_sequence, 5)"
        ),
        "iteration": "tasklet(it.send)([1]); run(); it.close(); list(it); run()",
        "close": "it.close(); refused(ValueError, it.send, [1]); refused(ValueError, it.receive)",
        "open": "it.close(); it.open()",
        "block_trap": (
            "getcurrent().block_trap = True; refused(RuntimeError, it.send, [1])\n"
            "getcurrent().block_trap = False"
        ),
        "attributes": (
            "it.preference = 1; it.schedule_all = True\n"
            "it.balance, it.closing, it.closed, it.queue\n"
            "refused(TypeError, setattr, it, 'preference', 'x'); repr(it)"
        ),
        "weak reference": "weakref.ref(it); weakref.ref(channel())",
        "__reduce__": "pickle.loads(pickle.dumps(it))",
    },
    "module": {
        "schedule": "schedule(); schedule([1]); refused(TypeError, schedule, 1, 2)",
        "schedule_remove": "tasklet(list)(); schedule_remove([1])",
        "run": "tasklet(schedule)([1]); run(); refused(TypeError, run, 'x')",
        "run nested": "tasklet(lambda: (tasklet(list)(), run()))(); run()",
        "run with a time-out": (
            "t = tasklet(spin)(); run(50); t.insert(); run(7, totaltimeout=True); t.kill()"
        ),
        "run with a soft time-out": "t = tasklet(schedules)(); run(50, soft=True); t.kill()",
        "victim forgotten": "tasklet(spin)(); run(50)",
        "victim forgotten in a function": "tasklet(calls)(); run(50)",
        "throw into a victim": "t = tasklet(spin)(); run(50); refused(KeyError, t.throw, KeyError)",
        "run_for": (
            "t = tasklet(spin)(); tasklets.run_for(0); t.kill()\n"
            "tasklet(list)(); tasklets.run_for(9)"
        ),
        "run_for until it is over": "t = tasklet(spin)(); tasklets.run_for(0.00001); t.kill()",
        "run_for refused": "refused(ValueError, tasklets.run_for, -1)",
        "getcurrent": "getcurrent(); tasklets.current; tasklets.runcount; tasklets.threads",
        "getcurrentid": "tasklets.getcurrentid()",
        "getthreads": "tasklets.getthreads()",
        "getmain": "getmain(); tasklets.main",
        "getruncount": "getruncount()",
        "get_thread_info": (
            "tasklets.get_thread_info(); refused(RuntimeError, tasklets.get_thread_info, 1)"
        ),
        "atomic": "with atomic(): pass",
        "bomb": "t = parked(); t.tempval = bomb(KeyError, KeyError([1])); refused(KeyError, t.run)",
        "set_channel_callback": (
            "tasklets.set_channel_callback(list); refused(RuntimeError, it.receive)\n"
            "tasklets.set_channel_callback(lambda *a: [a]); refused(RuntimeError, it.receive)\n"
            "tasklets.set_channel_callback(None)"
        ),
        "get_channel_callback": "tasklets.get_channel_callback()",
        "set_schedule_callback": (
            "tasklets.set_schedule_callback(lambda *a: [a]); tasklet(list)(); run()\n"
            "tasklets.set_schedule_callback(None)"
        ),
        "get_schedule_callback": "tasklets.get_schedule_callback()",
        "set_error_handler": (
            "tasklets.set_error_handler(lambda *a: [a]); tasklet(raises)(KeyError([1])); run()\n"
            "tasklets.set_error_handler(None)"
        ),
        "set_foreign_wakers": ("tasklets.set_foreign_wakers(tasklets.set_foreign_wakers(False))"),
        "switch_trap": (
            "tasklets.switch_trap(1); refused(RuntimeError, tasklet(list, ()).run)\n"
            "refused(RuntimeError, it.receive); tasklets.switch_trap(-1)"
        ),
        "stack_size": "tasklets.stack_size()",
        "trim_stacks": "tasklets.trim_stacks()",
        "report": "t = parked(); tasklets.report(); tasklets.report(all_threads=False)",
        "dump": "t = blocked(it); tasklets.dump(io.StringIO()); t.kill()",
        "dump_on": "tasklets.dump_on(10, io.StringIO()); tasklets.dump_off(10)",
        "dump_on refused": "refused(ValueError, tasklets.dump_on, 9)",
        "report of a runnable one": "tasklet(list)([1]); tasklets.report(); run()",
        "report of a blocked one": "t = blocked(it); tasklets.report(); t.kill()",
        "ThreadReport": "tasklets.ThreadReport(1, 1, None, False, (), ())",
        "TaskletReport": "tasklets.TaskletReport(1, '', 0, 0, 'paused', '', None, None, 1, ())",
        "ChannelReport": "tasklets.ChannelReport(1, Place('file', 1, 'function'))",
        "TaskletExit": "tasklets.TaskletExit([1])",
        "thread": "start(lambda: (tasklet(schedule)([1]), run()))",
        "thread with a live one": "start(lambda: (blocked(channel()), parked(), None)[2])",
        "transfer between threads": (
            "t = threading.Thread(target=it.send, args=([1],)); t.start(); it.receive(); t.join()"
        ),
    },
    "waiting": {
        "sleep": "tasklet(sleep)(0); tasklet(sleep)(0.00001); run()",
        "sleep refused": "refused(ValueError, sleep, -1); refused(TypeError, sleep, 'x')",
        "sleep and kill": "t = tasklet(sleep)(1000); t.run(); t.kill()",
        "call_later": "call_later(0, list, [1]); call_later(0.00001, list, [1]); run()",
        "call_later cancelled": "t = call_later(1000, list, [1]); t.active; t.cancel(); t.cancel()",
        "call_later refused": (
            "refused(TypeError, call_later, 1, 5); refused(ValueError, call_later, nan, list)"
        ),
        "timeout": "with timeout(1000) as t: t.expired(); t.reschedule(None); t.reschedule(5)",
        "timeout expired": (
            "refused(TimeoutError, limited, 0); refused(TimeoutError, limited, 1e-5)"
        ),
        "timeout refused": (
            "refused(ValueError, timeout, nan); refused(RuntimeError, timeout(1).reschedule, 1)"
        ),
        "wait_readable": "wait_readable(ready); wait_readable(ready, 1)",
        "wait_writable": "wait_writable(ready); wait_writable(ready, 1)",
        "wait_readable in vain": "refused(TimeoutError, wait_readable, silent, 0)",
        "wait_readable refused": (
            "refused(ValueError, wait_readable, -1); refused(OSError, wait_readable, 999)"
        ),
        "wait_readable and kill": "t = tasklet(wait_readable)(silent); t.run(); t.kill()",
        "a descriptor that goes": (
            "a, b = socket.socketpair(); b.close(); wait_readable(a); a.close()"
        ),
        "aio.run": "aio.run(asyncio.sleep(0)); aio.run(Own2())",
        "aio.run fails": "refused(KeyError, aio.run, fails()); refused(TypeError, aio.run, 5)",
        "aio.run exits": "refused(SystemExit, aio.run, exits())",
        "aio.run and kill": (
            "t = tasklet(aio.run)(asyncio.sleep(1000)); schedule(); t.kill(); run()"
        ),
        "aio.spawn": "aio.run(spawns(list)); refused(ZeroDivisionError, aio.run, spawns(divide))",
        "aio.spawn cancelled": "aio.run(cancels())",
        "aio.spawn refused": "refused(RuntimeError, aio.spawn, list)",
        "asyncio.run": "asyncio.run(spawns(list))",
        "thread": "start(lambda: (tasklet(wait_readable)(silent), sleep(0), None)[2])",
        "thread with asyncio": "start(lambda: (tasklet(aio.run)(asyncio.sleep(9)), sleep(0))[1])",
    },
}

PROGRAM = """
import asyncio, contextvars, copy, io, json, pickle, socket, threading, weakref
from math import nan
from cpythonplus import Place, tasklets
from cpythonplus.tasklets import aio
from cpythonplus.tasklets.io import call_later, sleep, timeout, wait_readable, wait_writable
from cpythonplus.tasklets import (
    TaskletExit, atomic, bomb, channel, getcurrent, getmain, getruncount, run, schedule,
    schedule_remove, tasklet,
)

CALLS = {calls}
sys.unraisablehook = lambda info: None
variable = contextvars.ContextVar("variable")


ready, other = socket.socketpair()
silent, another = socket.socketpair()
other.send(b"x")


class Own(tasklet):
    pass


def counted(n):
    try:
        for i in range(n):
            yield schedule_remove(i)
    except KeyError as error:
        yield error


def work(value):
    total = 0

    def add(n):
        nonlocal total
        total += n

    try:
        raise KeyError(value)
    except KeyError:
        for i in counted(1):
            add(i)


class Own2:
    def __await__(self):
        yield


def limited(seconds):
    with timeout(seconds):
        channel().receive()


def divide():
    return 1 / 0


async def fails():
    raise KeyError([1])


async def exits():
    sys.exit([1])


async def spawns(call):
    return await aio.spawn(call)


async def cancels():
    future = aio.spawn(channel().receive)
    await asyncio.sleep(0)
    future.cancel()
    await asyncio.sleep(0)


def refused(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    raise AssertionError(f"{{kind}} was not raised")


def raises(error):
    raise error


def handles(error):
    try:
        raise error
    except KeyError:
        schedule()


def values():
    yield 1
    schedule_remove(None)
    yield 2


def parked():
    it = tasklet(schedule_remove)(None)
    it.run()
    return it


def blocked(where):
    it = tasklet(where.receive)()
    it.run()
    return it


def spin():
    while True:
        pass


def schedules():
    while True:
        schedule()


def calls():
    while True:
        values()


def down(levels):
    if levels:
        down(levels - 1)
    else:
        schedule_remove(None)


def deep(levels):
    tasklet(down)(levels).run()


def start(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


result = {{}}
for kind, lines in CALLS.items():
    for name, line in lines.items():
        code = "it = channel()\\n" + line
        slow = "thread" in name
        try:
            leak = leaks(code, {{**globals()}}, 30 if slow else 100)
        except BaseException as error:
            leak = repr(error)
        if leak:
            result[f"{{kind}} {{name}}"] = leak
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def leaked() -> dict[str, object]:
    child = run_child(MEASURE + PROGRAM.format(calls=CALLS), timeout=60)
    result: dict[str, object] = json.loads(child.out)
    return result


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="the sanitizer's allocator does not count like this")
def test_no_leak(leaked: dict[str, object]) -> None:
    """One test for all: of several, each worker of a parallel run would measure anew."""
    assert leaked == {}, "calls, blocks, bytes of each"


@pytest.mark.parametrize("kind", ["tasklet", "channel"])
def test_each_public_method_is_in_the_list(kind: str) -> None:
    public = {
        name
        for name, _ in inspect.getmembers(getattr(tasklets, kind), inspect.isroutine)
        if not name.startswith("_")
    }
    assert {
        name for name in public if not any(name in line for line in CALLS[kind].values())
    } == set()


def test_each_public_name_of_the_module_is_in_the_list() -> None:
    lines = [line for calls in CALLS.values() for line in calls.values()]
    assert {name for name in tasklets.__all__ if not any(name in line for line in lines)} == set()
