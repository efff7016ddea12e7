"""The event loop that sleeps for a thread's tasklets: signals, forks, ends, threads, watchdogs."""

import pytest

from tests.support import run_child

BEGIN = """
import asyncio, os, signal, socket, sys, threading
from cpythonplus import tasklets
from cpythonplus.tasklets import *
from cpythonplus.tasklets import aio
from cpythonplus.tasklets.io import *
from cpythonplus.tasklets.io._hub import loop_of_thread

left, right = socket.socketpair()
main_thread = threading.get_ident()
gate = threading.Event()


def signalled(number):
    '''Send it when the main thread sleeps in the kernel, whose sleep it ends.

    On a busy machine that may be the sleep for the GIL, before the wait: a handler that raises
    may do so here already.
    '''
    def send():
        gate.wait()
        while open(f"/proc/self/task/{os.getpid()}/stat").read().split()[2] != "S":
            pass
        signal.pthread_kill(main_thread, number)
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    gate.set()


def waits():
    wait_readable(left)
    log.append(left.recv(1))


log = []
"""


def lines(code: str, status: int = 0) -> list[str]:
    child = run_child(BEGIN + code, status=status, timeout=20)
    assert child.err == ""
    return child.out.splitlines()


WAITS = {
    "a descriptor": "wait_readable(left)",
    "run, with one that waits for a descriptor": "run()",
    "run, with one that sleeps": "tasklet(sleep)(1000); run()",
    "a sleep": "sleep(1000)",
    "a channel": "channel().receive()",
    "a coroutine": "aio.run(asyncio.sleep(1000))",
}


class TestSignals:
    @pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
    def test_keyboard_interrupt_reaches_main_and_nobody_else(self, wait: str) -> None:
        assert lines(
            f"""
task = tasklet(waits)()
sleeper = tasklet(sleep)(1000)
schedule()
try:
    signalled(signal.SIGINT)
    {wait}
except KeyboardInterrupt:
    print("interrupted")
print(task.blocked, sleeper.blocked)
right.send(b"x")
sleeper.kill()
while not log:
    sleep(0)
print(log)
"""
        ) == ["interrupted", "True True", "[b'x']"]

    def test_a_handler_that_sets_an_event(self) -> None:
        assert lines(
            """
over = channel()
over.preference = 1

def handler(number, frame):
    tasklet(over.send)(number)

signal.signal(signal.SIGTERM, handler)
tasklet(waits)()
schedule()
signalled(signal.SIGTERM)
print(over.receive() == signal.SIGTERM)
right.send(b"x")
run()
"""
        ) == ["True"]

    def test_a_handler_that_raises(self) -> None:
        assert lines(
            """
class Stop(Exception):
    pass

def handler(number, frame):
    raise Stop

signal.signal(signal.SIGTERM, handler)
task = tasklet(waits)()
schedule()
try:
    signalled(signal.SIGTERM)
    run()
except Stop:
    print("stopped", task.blocked)
right.send(b"x")
run()
print(log)
"""
        ) == ["stopped True", "[b'x']"]

    def test_a_handler_that_exits(self) -> None:
        assert lines(
            """
def body():
    try:
        wait_readable(left)
    finally:
        print("finally")

signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
tasklet(body)()
schedule()
signalled(signal.SIGTERM)
run()
""",
            status=7,
        ) == ["finally"]

    @pytest.mark.parametrize("wait", ["sleep(0.6)", "lock.acquire(timeout=0.6)"])
    def test_a_handler_that_starts_a_timer_while_all_wait(self, wait: str) -> None:
        """It comes before the end of the wait, which was the next thing to happen."""
        assert lines(
            f"""
from cpythonplus.tasklets.locks import Lock
lock = Lock()
lock.acquire()
signal.signal(signal.SIGUSR1, lambda *_: call_later(0, print, "timer"))
signalled(signal.SIGUSR1)
{wait}
print("end")
"""
        ) == ["timer", "end"]


class TestLoop:
    def test_a_callback_that_raises(self) -> None:
        assert lines(
            """
async def body():
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: print(repr(context["exception"])))
    loop.call_soon(lambda: 1 / 0)
    await asyncio.sleep(0)
    loop.stop()
    await asyncio.sleep(0.001)
    return 5

print(aio.run(body()))
"""
        ) == ["ZeroDivisionError('division by zero')", "5"]

    def test_a_signal_handler_that_raises_in_a_turn_leaves_the_loop(self) -> None:
        assert lines(
            """
import linecache

def raises_at(nth):
    left = [nth]
    def trace(frame, event, arg):
        if frame.f_code.co_name != "turn":
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and "io_turn" not in text:
            left[0] -= 1
            if left[0] == 0:
                raise KeyError
        return trace
    return trace

async def body():
    loop, seen = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda *_: seen.append(asyncio._get_running_loop() is loop))
    for nth in range(1, 20):
        turn = aio.spawn(sleep, 0)
        sys.settrace(raises_at(nth))
        await turn
        sys.settrace(None)
    return seen

seen = asyncio.run(body())
print(len(seen) >= 5, all(seen))
"""
        ) == ["True True"]

    def test_a_callback_that_starts_a_timer_while_all_wait(self) -> None:
        assert lines(
            """
it = channel()
loop_of_thread().call_later(0.001, lambda: call_later(0.001, it.send, 1))
tasklet(wait_readable)(left, 1000)
print(it.receive())
"""
        ) == ["1"]

    def test_a_deadlock_while_it_rests(self) -> None:
        assert lines(
            """
right.send(b"x")
waits()
set_foreign_wakers(False)
try:
    channel().receive()
except RuntimeError as error:
    print(error)
right.send(b"x")
waits()
tasklet(channel().receive)()
run()
print(getruncount())
"""
        ) == ["Deadlock: the last runnable tasklet cannot be blocked.", "1"]

    def test_others_run_while_it_runs(self) -> None:
        """It is no tasklet of the program's: neither counted nor waited for."""
        assert lines(
            """
tasklet(waits)()
schedule()
print(getruncount())
right.send(b"x")
run()
print(getruncount(), log)
"""
        ) == ["1", "1 [b'x']"]

    def test_uvloop(self) -> None:
        pytest.importorskip("uvloop", reason="it has no wheel for this interpreter")
        assert lines(
            """
import uvloop
set_loop_factory(uvloop.new_event_loop)

async def name():
    await asyncio.sleep(0.001)
    return type(asyncio.get_running_loop()).__module__

def body():
    try:
        aio.run(asyncio.sleep(1000))
    finally:
        print("finally")

task = tasklet(waits)()
call_later(0.001, right.send, b"x")
run()
print(log, aio.run(name()))
tasklet(wait_readable)(left)
try:
    signalled(signal.SIGINT)
    run()
except KeyboardInterrupt:
    print("interrupted")
print(aio.run(name()))
tasklet(body)()
sleep(0.001)
"""
        ) == ["[b'x'] uvloop", "interrupted", "uvloop", "finally"]

    def test_a_factory_that_cannot_be_called(self) -> None:
        assert lines(
            """
try:
    set_loop_factory(5)
except TypeError as error:
    print(error)
set_loop_factory(None)
"""
        ) == ["the factory must be a callable or None"]

    def test_a_factory_that_fails(self) -> None:
        assert lines(
            """
def fails():
    raise LookupError

set_loop_factory(fails)
try:
    wait_readable(left)
except LookupError:
    print("failed")
set_loop_factory(None)
right.send(b"x")
wait_readable(left)
print(getruncount())
"""
        ) == ["failed", "1"]

    def test_a_patched_loop_that_has_waited_before_its_first_tasklet(self) -> None:
        assert lines(
            """
patch()

async def program():
    await asyncio.sleep(0.001)
    print(await aio.spawn(lambda: 5))
    await asyncio.sleep(0.001)
    print(await aio.spawn(sleep, 0.001))

for _ in range(2):
    asyncio.run(program())
"""
        ) == ["5", "None", "5", "None"]

    def test_a_turn_that_is_owed_while_the_whole_thread_waits(self) -> None:
        """What is to wake the loop comes together with what wakes the thread."""
        assert lines(
            """
import time
from cpythonplus.tasklets import io
from cpythonplus.tasklets.io import _hub
reading, writing = os.pipe()
gate = tasklets.channel()

async def asks():
    await asyncio.Future()

tasklet(aio.run)(asks())
tasklets.schedule()
_hub.loop_of_thread().call_later(0.01, gate.receive)
while gate.balance == 0:
    io.sleep(0.02)
start = _hub.start
def slow_start():
    if gate.balance == 0:
        return start()
    if calls:  # the thread is about to sleep; the timer for the loop goes off meanwhile
        time.sleep(0.01)
        os.write(writing, b"x")
    calls.append(1)
calls = []
_hub.start = slow_start
io.wait_readable(reading)
assert len(calls) == 2
gate.send(None)
io.sleep(0.001)
print("end")
"""
        ) == ["end"]

    def test_a_descriptor_that_is_closed_while_the_loop_is_made(self) -> None:
        assert lines(
            """
from cpythonplus.tasklets.io import socket
one, other = socket.socketpair()
number = one.fileno()
begun, closed = threading.Event(), threading.Event()

def factory():
    begun.set()
    closed.wait()
    return asyncio.SelectorEventLoop()

def reads():
    try:
        one.recv(1)
    except OSError as error:
        print(error.errno)

set_loop_factory(factory)
thread = threading.Thread(target=reads)
thread.start()
begun.wait()
one.close()
again = os.open("/dev/null", os.O_RDONLY)
assert again == number
closed.set()
thread.join()
"""
        ) == ["9"]

    def test_watchdogs(self) -> None:
        assert lines(
            """
def spin():
    while True:
        pass

task = tasklet(waits)()
spinning = tasklet(spin)()
print(run_for(0.01) is spinning, task.blocked)
spinning.kill()
print(run_for(0.001), task.blocked)
print(run_for(0), task.blocked)
right.send(b"x")
print(run(10 ** 6), task.alive)
sleeper = tasklet(sleep)(0.001)
print(run_for(1000), sleeper.alive)
"""
        ) == ["True True", "None True", "None True", "None False", "None False"]

    def test_threadblock(self) -> None:
        assert lines(
            """
task = tasklet(waits)()
thread = threading.Thread(target=right.send, args=(b"x",))
tasklet(thread.start)()
while task.alive:
    run(threadblock=True)
print(log)
"""
        ) == ["[b'x']"]

    def test_dumps_say_what_is_waited_for(self) -> None:
        assert lines(
            """
tasklet(waits)()
tasklet(sleep)(1000)
tasklet(wait_writable)(right)
task = tasklet(aio.run)(asyncio.sleep(1000))
schedule()
states = [each.state for each in tasklets.report()[0].tasklets]
print(f"waiting to read from descriptor {left.fileno()}" in states)
print("sleeping" in states, "waiting for a coroutine" in states)
print([each.channel for each in tasklets.report()[0].tasklets if each.channel])
"""
        ) == ["True", "True True", "[]"]

    def test_cold_stacks(self) -> None:
        assert lines(
            """
tasks = [tasklet(wait_readable)(left) for _ in range(50)]
tasks += [tasklet(sleep)(0.05) for _ in range(50)]
schedule()
trim_stacks()
trim_stacks()
right.send(b"x")
run()
print(any(task.alive for task in tasks))
"""
        ) == ["False"]


class TestEnds:
    def test_the_interpreters(self) -> None:
        ended = lines(
            """
async def coroutine():
    try:
        log.append("begun")
        await asyncio.sleep(1000)
    finally:
        print("coroutine")

def body(name, wait, *args):
    try:
        wait(*args)
    finally:
        print(name)

tasklet(body)("descriptor", wait_readable, left)
tasklet(body)("sleep", sleep, 1000)
tasklet(body)("asyncio", lambda: aio.run(coroutine()))
while not log:
    sleep(0.001)
call_later(1000, print)
print("main")
"""
        )
        assert ended[0] == "main"
        assert sorted(ended[1:]) == ["asyncio", "coroutine", "descriptor", "sleep"]

    def test_a_thread_that_ends_takes_its_descriptors_along(self) -> None:
        assert lines(
            """
def body():
    for _ in range(3):
        tasklet(wait_readable)(left)
    tasklet(aio.run)(asyncio.sleep(1000))
    sleep(0)
    sleep(0)
    call_later(1000, print)

def batch(count):
    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(os.listdir("/proc/self/fd"))

before = batch(5)
print(batch(200) - before)
"""
        ) == ["0"]

    def test_a_thread_whose_loop_has_not_begun(self) -> None:
        assert lines(
            """
async def coroutine():
    try:
        await asyncio.sleep(1000)
    finally:
        print("finally")

def body():
    tasklet(aio.run)(coroutine())
    schedule()

thread = threading.Thread(target=body)
thread.start()
thread.join()
"""
        ) in ([], ["finally"])

    def test_a_daemon_thread_that_waits_at_the_end(self) -> None:
        assert lines(
            """
def body():
    tasklet(sleep)(1000)
    gate.set()
    wait_readable(left)

threading.Thread(target=body, daemon=True).start()
gate.wait()
tasklet(waits)()
schedule()
print("main")
"""
        ) == ["main"]


class TestFork:
    def test_parent_child_and_grandchild(self) -> None:
        assert lines(
            """
def works():
    a, b = socket.socketpair()
    with a, b:
        call_later(0.001, b.send, b"x")
        wait_readable(a)
    return aio.run(asyncio.sleep(0.001, 5))

def wait(pid):
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

task = tasklet(waits)()
sleep(0.001)
child = os.fork()
if child == 0:
    print("child", works(), task.blocked, flush=True)
    grandchild = os.fork()
    if grandchild == 0:
        print("grandchild", works(), task.blocked, flush=True)
        os._exit(0)
    wait(grandchild)
    print("child", works(), flush=True)
    os._exit(0)
wait(child)
print("parent", works(), task.blocked)
right.send(b"x")
run()
print(log)
"""
        ) == [
            "child 5 True",
            "grandchild 5 True",
            "0",
            "child 5",
            "0",
            "parent 5 True",
            "[b'x']",
        ]

    def test_one_that_waits_goes_on_in_the_child(self) -> None:
        assert lines(
            """
task = tasklet(waits)()
sleeper = tasklet(sleep)(0.001)
schedule()
child = os.fork()
if child == 0:
    right.send(b"x")
    run()
    print(log, task.alive, sleeper.alive, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
task.kill()
"""
        ) == ["[b'x'] False False", "0"]

    def test_in_a_tasklet(self) -> None:
        assert lines(
            """
def forks():
    wait_readable(left)
    child = os.fork()
    if child == 0:
        print("child", left.recv(1), aio.run(asyncio.sleep(0, 3)), flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

tasklet(forks)()
schedule()
right.send(b"x")
run()
print("parent", aio.run(asyncio.sleep(0, 4)))
"""
        ) == ["child b'x' 3", "0", "parent 4"]

    def test_what_the_child_closes_first_of_all_stays_the_parents(self) -> None:
        """With the states of its threads, before anybody can tell the child that it is one."""
        assert lines(
            """
import warnings
from cpythonplus.tasklets.io import socket
warnings.simplefilter("ignore")  # a fork beside threads
one, other = socket.socketpair()
waiting, kept = threading.Event(), threading.Event()

class Closes:
    def __del__(self):
        one.close()

def reads():
    log.append(one.recv(1))
    waiting.set()
    log.append(one.recv(1))

def keeps(local=threading.local()):
    local.it = Closes()
    kept.set()
    threading.Event().wait()

def sleeps(thread):
    with open(f"/proc/self/task/{thread.native_id}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"  # names may have spaces

threading.Thread(target=keeps, daemon=True).start()
kept.wait()
reader = threading.Thread(target=reads)
reader.start()
other.send(b"a")
waiting.wait()
while not sleeps(reader):
    pass
child = os.fork()
if child == 0:
    os._exit(one.fileno() != -1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
other.send(b"b")
reader.join()
print(log, flush=True)
os._exit(0)
"""
        ) == ["0", "[b'a', b'b']"]

    def test_who_waits_for_a_coroutine_of_the_parents_can_be_killed(self) -> None:
        assert lines(
            """
task = tasklet(aio.run)(asyncio.sleep(1000))
sleep(0.001)
child = os.fork()
if child == 0:
    task.kill()
    task.kill()  # the second one ends the wait for the coroutine's end
    run()
    print(task.alive, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
task.kill()
"""
        ) == ["False", "0"]

    def test_a_loop_that_has_not_begun_is_left_alone(self) -> None:
        """The child's poller in it would wake the parent."""
        assert lines(
            """
def watched():
    with open(f"/proc/self/fdinfo/{loop._selector.fileno()}") as info:
        return [line for line in info if line.startswith("tfd")]

def forks():
    global loop
    loop = loop_of_thread()
    before = watched()
    child = os.fork()
    if child == 0:
        right.send(b"x")
        while task.alive: schedule()
        print(log, watched() == before, flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    right.send(b"y")

task = tasklet(waits)()
tasklet(forks)()
run()
"""
        ) == ["[b'x'] True", "0"]
