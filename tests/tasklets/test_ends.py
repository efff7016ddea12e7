"""What ends with tasklets alive: processes, interpreters, forks; and what the collector finds."""

import gc
import operator
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from cpythonplus.tasklets import (
    TaskletExit,
    channel,
    getcurrent,
    run,
    schedule,
    schedule_remove,
    switch_trap,
    tasklet,
)
from tests.support import run_child

Log = list[Any]


class TestCollection:
    def test_a_blocked_one_goes_with_its_channel(self) -> None:
        log: Log = []

        def body(it: channel) -> None:
            try:
                it.receive()
            except TaskletExit:
                log.append("ended")
                raise

        it = channel()
        task = weakref.ref(tasklet(body)(it))
        run()
        del it
        gc.collect()
        assert (log, task()) == (["ended"], None)

    def test_what_a_parked_one_holds_is_not_collected(self) -> None:
        class Node:
            other: "Node"

        log: Log = []

        def body() -> None:
            node = Node()
            node.other = node
            alive = weakref.ref(node)
            schedule()
            log.append(alive() is node)

        tasklet(body)()
        schedule()
        gc.collect()
        run()
        assert log == [True]

    def test_a_cycle_through_a_parked_one(self) -> None:
        class Holder:
            task: tasklet

        log: Log = []

        def body(holder: Holder) -> None:
            try:
                schedule_remove(None)
            finally:
                log.append("ended")

        holder = Holder()
        holder.task = tasklet(body)(holder)
        gone = weakref.ref(holder)
        run()
        del holder
        gc.collect()
        assert (log, gone()) == (["ended"], None)

    def test_one_that_has_not_begun_is_simply_dropped(self) -> None:
        value = channel()
        gone = weakref.ref(value)
        it = tasklet(int, (value,))
        del value
        assert gone() is not None
        del it
        assert gone() is None

    def test_what_a_call_has_given_up_is_not_looked_at(self) -> None:
        """Its arguments go after it; the last one's end parks the tasklet by a channel's method."""
        gate, kept, given_up = channel(), Log(), ["given up"]

        class Thing:
            """What a weak reference can point to."""

        def make() -> Thing:
            thing = Thing()
            kept.append(weakref.ref(thing, gate.send))
            return thing

        def body() -> None:
            operator.is_(given_up, make())

        task = tasklet(body)()
        run()
        assert gate.balance == 1
        seen = any(op is given_up for op in gc.get_referents(task))
        assert seen is (sys.version_info >= (3, 14))  # where it lets go of the last one first
        gate.receive()
        run()

    def test_one_that_resists_lives_on(self) -> None:
        """It catches TaskletExit, and puts itself where it can be found."""
        kept: Log = []

        def body() -> None:
            from cpythonplus.tasklets import getcurrent

            try:
                schedule_remove(None)
            except TaskletExit:
                kept.append(getcurrent())
                schedule_remove(None)

        tasklet(body)()
        run()
        gc.collect()
        assert kept[0].alive
        kept.pop().kill()

    @pytest.mark.parametrize("kind", [tasklet, type("Own", (tasklet,), {})])
    def test_one_that_resists_several_times_ends(self, kind: type[tasklet]) -> None:
        log: Log = []

        def body() -> None:
            for turn in range(3):
                try:
                    schedule_remove(None)
                except TaskletExit:
                    log.append(turn)

        kind(body)()
        run()
        for _ in range(3):
            gc.collect()
        assert log == [0, 1, 2]

    def test_one_that_was_found_and_is_forgotten_again(self) -> None:
        """CPython calls its finalizer once only."""
        log: Log = []

        def body() -> None:
            try:
                schedule_remove(None)
            except TaskletExit:
                log.append(getcurrent())
            try:
                schedule_remove(None)
            finally:
                log.append("ended")

        tasklet(body)()
        run()
        assert log.pop(0).alive
        assert log == ["ended"]

    @pytest.mark.parametrize("wait", [lambda: channel().receive(), schedule, schedule_remove])
    def test_garbage_that_waits_in_its_finally_ends(self, wait: Callable[[], object]) -> None:
        log: Log = []

        def body(ring: Log, it: channel) -> None:
            ring.append(getcurrent())
            try:
                it.receive()
            finally:
                try:
                    wait()
                finally:
                    log.append("ended")

        tasklet(body)([], channel())
        run()
        for _ in range(3):
            gc.collect()
            run()
        assert log == ["ended"]

    def test_it_gets_one_exit_at_each_collection(self) -> None:
        """Its `finally` may get what it waits for; a later collection finds that it cannot."""
        log: Log = []

        def body(ring: Log, it: channel) -> None:
            ring.append((getcurrent(), it))
            while True:
                try:
                    it.receive()
                except TaskletExit:
                    log.append("exit")
                    if len(log) == 3:
                        return

        tasklet(body)([], channel())
        run()
        for exits in 1, 2, 3, 3:
            gc.collect()
            assert len(log) == exits

    def test_one_that_waits_inside_of_a_collection_and_is_forgotten(self) -> None:
        """Were it left there, no collection could begin any more."""
        log: Log = []

        class Waits:
            def __init__(self) -> None:
                self.ring = self

            def __del__(self) -> None:
                for _ in range(2):
                    try:
                        schedule_remove(None)
                    except TaskletExit:
                        log.append("exit")

        def body() -> None:
            Waits()
            gc.collect()

        tasklet(body)()
        run()
        assert log == ["exit", "exit"]
        ring = type("Ring", (), {})()
        ring.itself = ring
        gone = weakref.ref(ring)
        del ring
        gc.collect()
        assert gone() is None

    def test_one_that_cannot_be_switched_to_now_ends_later(self) -> None:
        log: Log = []

        def body() -> None:
            try:
                schedule_remove(None)
            finally:
                log.append("ended")

        task = tasklet(body)()
        run()
        switch_trap(1)
        del task
        gc.collect()
        switch_trap(-1)
        assert log == []
        run()
        assert log == ["ended"]

    def test_the_class_of_one_that_stays_for_ever(self) -> None:
        """Asked to end once, it went on; it is forgotten again, and so is its class."""
        child = run_child(
            IMPORTS
            + """
def leave():
    class Mine(tasklet):
        pass

    def body():
        for _ in range(3):
            try:
                schedule_remove()
            except TaskletExit:
                pass

    Mine(body)()
    run()

for _ in range(20):
    leave()
gc.collect()
others = [type("Other", (), {}) for _ in range(200)]
names = {task.type_name for thread in tasklets.report() for task in thread.tasklets}
print(names)
"""
        )
        assert "Mine" in child.out


IMPORTS = """
import gc, os, sys, threading
from cpythonplus import tasklets
from cpythonplus.tasklets import *
from cpythonplus.tasklets import TaskletExit, channel, run, schedule, schedule_remove, tasklet

"""


class TestProcesses:
    def test_exit_with_blocked_paused_and_runnable_ones(self) -> None:
        child = run_child(
            IMPORTS
            + """
waiting = channel()

def body(how):
    try:
        how()
    except TaskletExit:
        pass

for how in (waiting.receive, schedule_remove, schedule):
    for _ in range(20):
        tasklet(body)(how)
schedule()
print("end")
"""
        )
        assert child.out == "end\n"
        assert child.err == ""

    def test_exit_from_within_a_tasklet(self) -> None:
        child = run_child(
            IMPORTS + "tasklet(lambda: sys.exit(7))()\nrun()\nprint('not reached')\n", status=7
        )
        assert child.out == ""

    def test_an_exception_in_a_tasklet_ends_the_program(self) -> None:
        child = run_child(
            IMPORTS + "def body():\n    raise KeyError(1)\n\ntasklet(body)()\nrun()\n", status=1
        )
        assert "in body" in child.err
        assert child.err.endswith("KeyError: 1\n")

    def test_fork_with_parked_ones(self) -> None:
        child = run_child(
            IMPORTS
            + """
it, log = channel(), []
waiting = tasklet(lambda: log.append(it.receive()))()
run()
pid = os.fork()
it.send("child" if pid == 0 else "parent")
tasklet(log.append)("more")
run()
if pid == 0:
    os._exit(log != ["child", "more"])
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print(log)
"""
        )
        assert child.out == "['parent', 'more']\n"

    def test_fork_within_a_tasklet(self) -> None:
        child = run_child(
            IMPORTS
            + """
def body():
    pid = os.fork()
    schedule()
    if pid == 0:
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

tasklet(body)()
run()
"""
        )
        assert child.out == "5\n"

    def test_a_forked_process_that_waits_for_a_thread(self) -> None:
        """Meanwhile the main tasklet does not go on behind its run() in the child."""
        child = run_child(
            IMPORTS
            + """
import multiprocessing
from cpythonplus.tasklets import locks
locks.patch()
context = multiprocessing.get_context("fork")
queue = context.Queue()

def body():
    process = context.Process(target=queue.put, args=(5,))  # a thread sends it, and is joined
    process.start()
    process.join()
    print(process.exitcode, queue.get())

tasklet(body)()
run()
print("end", flush=True)
"""
        )
        assert child.out == "0 5\nend\n"

    def test_fork_while_another_thread_has_tasklets(self) -> None:
        child = run_child(
            IMPORTS
            + """
import warnings
warnings.simplefilter("ignore")
ready, end = threading.Event(), threading.Event()
kept = []

def other():
    kept.append(tasklet(schedule_remove)())
    run()
    ready.set()
    end.wait()

thread = threading.Thread(target=other)
thread.start()
ready.wait()
pid = os.fork()
if pid == 0:
    # Its thread is no more, and its stack cannot be run.
    assert kept[0].thread_id == -1, kept[0].thread_id
    kept.clear()
    gc.collect()
    log = []
    tasklet(log.append)(1)
    run()
    os._exit(log != [1])
end.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
        )
        assert child.out == "0\n"

    def test_a_thread_s_end_is_the_end_of_its_scheduler(self) -> None:
        """Destructors that run later, and tasklets that resist, make no other one."""
        child = run_child(
            IMPORTS
            + """
from contextlib import suppress

class Late:
    def __del__(self):
        with suppress(RuntimeError):
            tasklets.getcurrent()

def destructor():
    tasklets.getcurrent()
    local.late = Late()

def resistance():
    def stubborn():
        while True:
            try:
                schedule()
            except TaskletExit:
                pass

    tasklet(stubborn)()
    schedule()

local = threading.local()
for target in (destructor, resistance):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    print(len(tasklets.threads))
"""
        )
        assert child.out == "1\n1\n"

    def test_one_that_does_not_end_keeps_no_other_one_from_its_end(self) -> None:
        child = run_child(
            IMPORTS
            + """
def stubborn():
    while True:
        try:
            tasklets.schedule_remove()
        except TaskletExit:
            pass

def other(name):
    try:
        tasklets.schedule_remove()
    finally:
        print(name)

tasklet(stubborn)()
for name in "abc":
    tasklet(other)(name)
run()
"""
        )
        assert child.out == "a\nb\nc\n"

    def test_channels_forget_tasklets_whose_thread_is_gone(self) -> None:
        """What is sent to them would be lost."""
        child = run_child(
            IMPORTS
            + """
import warnings
warnings.simplefilter("ignore")
ready, end = threading.Event(), threading.Event()
gate = channel()

def stubborn():
    while True:
        try:
            gate.receive()
        except TaskletExit:
            pass

def other():
    tasklet(stubborn)()
    run()
    ready.set()
    end.wait()

thread = threading.Thread(target=other)
thread.start()
ready.wait()
assert gate.balance == -1
pid = os.fork()
if pid == 0:
    assert gate.balance == 0, gate
    os._exit(0)
end.set()
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), gate.balance)
"""
        )
        assert child.out == "0 0\n"

    def test_daemon_threads_with_tasklets_at_exit(self) -> None:
        child = run_child(
            IMPORTS
            + """
ready = threading.Event()

def other():
    it = channel()
    tasklet(it.receive)()
    run()
    ready.set()
    threading.Event().wait()

threading.Thread(target=other, daemon=True).start()
ready.wait()
print("end")
"""
        )
        assert child.out == "end\n"

    def test_what_has_not_begun_does_not_begin_at_exit(self) -> None:
        child = run_child(
            IMPORTS
            + """
kept = channel()
def body():
    try:
        kept.receive()
    finally:
        print("ended")

tasklet(body)()
run()
tasklet(print)("never")
print("end")
"""
        )
        assert child.out == "end\nended\n"

    def test_many_threads_that_end_with_live_tasklets(self) -> None:
        child = run_child(
            IMPORTS
            + """
log = []

def body(it):
    try:
        it.receive()
    finally:
        log.append(1)

def other():
    it = channel()
    for _ in range(10):
        tasklet(body)(it)
    run()

for _ in range(20):
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
print(len(log))
"""
        )
        assert child.out == "200\n"

    def test_generators_and_coroutines_left_inside(self) -> None:
        child = run_child(
            IMPORTS
            + """
log = []

def values():
    try:
        yield 1
        schedule_remove()
        yield 2
    finally:
        log.append("left")

class Awaitable:
    def __await__(self):
        schedule_remove()
        yield

async def coroutine():
    try:
        await Awaitable()
    finally:
        log.append("left too")

one = tasklet(lambda: list(values()))()
other = tasklet(lambda: coroutine().send(None))()
run()
assert log == []
one.kill()
other.kill()
print(log)
left = tasklet(lambda: list(values()))()
run()
"""
        )
        assert child.out == "['left', 'left too']\n"

    def test_endless_recursion_in_a_tasklet(self) -> None:
        child = run_child(
            IMPORTS
            + """
def body(levels=0):
    return body(levels + 1) + 1

class Deep:
    def __init__(self, inner):
        self.inner = inner
    def __repr__(self):
        return repr(self.inner)

def in_c():
    it = None
    for _ in range(100_000):
        it = [it]
    repr(it)

for function in (body, in_c):
    tasklet(function)()
    try:
        run()
    except RecursionError:
        print("too deep")
"""
        )
        assert child.out == "too deep\ntoo deep\n"

    def test_a_thousand_parked_ones_end(self) -> None:
        child = run_child(
            IMPORTS
            + """
it = channel()
total = 0

def body():
    global total
    value = it.receive()
    total += value

for _ in range(1000):
    tasklet(body)()
run()
assert it.balance == -1000
for _ in range(1000):
    it.send(1)
run()
print(total)
"""
        )
        assert child.out == "1000\n"
