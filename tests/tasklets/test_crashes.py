"""What may crash: overflow, kills and errors in the midst of a switch, finalisers, signals, ends.

Each program runs in a process of its own and says "end" on its last line.
"""

import sys

from tests.support import run_child

IMPORTS = """
import gc, os, signal, sys, threading, warnings, weakref
from cpythonplus import tasklets
from cpythonplus.tasklets import (
    TaskletExit, channel, getcurrent, getmain, getruncount, run, schedule, schedule_remove, tasklet,
)

def down(levels, call):
    return down(levels - 1, call) if levels else call()

"""


def lines(program: str, *, status: int = 0) -> list[str]:
    """Return what the program prints; it must print nothing on standard error."""
    child = run_child(IMPORTS + program, status=status)
    assert child.err == ""
    return child.out.splitlines()


class TestOverflow:
    def test_of_python_calls_beside_parked_ones(self) -> None:
        assert lines(
            """
def endless():
    return endless() + 1

def body(levels):
    def inner():
        schedule()
        try:
            endless()
        except RecursionError:
            print("too deep")
        schedule()
        return 1
    assert down(levels, inner) == 1

for levels in (1, 200, 400):
    tasklet(body)(levels)
down(300, schedule)
try:
    endless()
except RecursionError:
    print("main too deep")
schedule()
run()
print("end")
"""
        ) == ["main too deep"] + ["too deep"] * 3 + ["end"]

    def test_of_c_calls_beside_parked_ones(self) -> None:
        assert lines(
            """
def nested(levels):
    it = []
    for _ in range(levels):
        it = [it]
    return it

class Deep:
    def __init__(self, levels):
        self.levels = levels
    def __repr__(self):
        return repr(Deep(self.levels - 1)) if self.levels else "bottom"
    def __lt__(self, other):
        return max([Deep(0), Deep(0)], key=lambda it: self < other) is None

def body(call, argument):
    schedule()
    try:
        call(argument)
    except RecursionError:
        print("too deep")
    schedule()

for call, argument in ((repr, nested(100_000)), (repr, Deep(10**6)), (sorted, [Deep(1), Deep(2)])):
    tasklet(body)(call, argument)
parked = tasklet(down)(100, schedule_remove)
run()
parked.kill()
print("end")
"""
        ) == ["too deep"] * 3 + ["end"]


class TestCallbacks:
    def test_a_schedule_callback_that_kills(self) -> None:
        """It may not switch; what it kills later is killed."""
        assert lines(
            """
refused = []

def callback(previous, following):
    for task in (previous, following):
        if task is not None and not task.is_main:
            try:
                task.kill()
            except (RuntimeError, TaskletExit) as error:
                refused.append(error)

def body():
    for _ in range(5):
        schedule()

for _ in range(3):
    tasklet(body)()
tasklets.set_schedule_callback(callback)
run()
tasklets.set_schedule_callback(None)
run()
print(sorted({str(error) for error in refused}))

def later(previous, following):
    if following is not None and not following.is_main and following.alive:
        following.kill(pending=True)

ended = []

def other():
    try:
        for _ in range(5):
            schedule()
    finally:
        ended.append(1)

for _ in range(3):
    tasklet(other)()
schedule()
tasklets.set_schedule_callback(later)
run()
tasklets.set_schedule_callback(None)
print(ended)
print("end")
"""
        ) == ["['', 'Recursive scheduler call due to callbacks!']", "[1, 1, 1]", "end"]

    def test_a_schedule_callback_that_removes_who_comes_next(self) -> None:
        """It comes nevertheless."""
        assert lines(
            """
def remove(before, after):
    if not after.is_main:
        after.remove()

def body(name):
    log.append(name)
    schedule()
    log.append(name)

log = []
for name in "abc":
    tasklet(body)(name)
tasklets.set_schedule_callback(remove)
run()
tasklets.set_schedule_callback(None)
print(*log, tasklets.getruncount())
"""
        ) == ["a b c a b c 1"]

    def test_a_schedule_callback_cannot_take_away_what_runs_next(self) -> None:
        """Nor have a tasklet begin again that is at its end."""
        assert lines(
            """
refused = set()

def tries(*calls):
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            refused.add(str(error))

def callback(before, after):
    if before is not None and not before.is_main:
        before.tempval = print
        tries(before.insert, before.setup, lambda: before("again"))
    if after is not None and not after.is_main:
        after.remove()
        tries(lambda: after.bind(None), after.bind_thread, lambda: after.bind(print, (), {}))

log = []

def body(name):
    log.append(name)
    schedule()
    log.append(name)

for name in "abc":
    tasklet(body)(name)
tasklets.set_schedule_callback(callback)
run()
tasklets.set_schedule_callback(None)
print(*log, getruncount())
print(*sorted(refused), sep="\\n")
"""
        ) == [
            "a b c a b c 1",
            "You cannot run an unbound(dead) tasklet",
            "tasklet is alive",
            "tasklet is scheduled",
            "the current tasklet cannot begin again",
        ]

    def test_nobody_inserts_a_tasklet_that_has_ended(self) -> None:
        """A signal's handler may come while it waits for who runs next."""
        assert lines(
            """
it = channel()
refused = []

def at_signal(*_):
    if it.balance:
        try:
            task.insert()
            refused.append("inserted")
        except RuntimeError as error:
            refused.append(str(error))

signal.signal(signal.SIGUSR1, at_signal)
main = threading.main_thread().ident

def send():
    while not refused:
        signal.pthread_kill(main, signal.SIGUSR1)
    it.send(1)

# Of C: no handler runs before its end, when it may be inserted still.
task = tasklet([].append)(1)
thread = threading.Thread(target=send)
thread.start()
it.receive()
thread.join()
print(set(refused), task.alive)
"""
        ) == ["{'You cannot run an unbound(dead) tasklet'} False"]

    def test_a_schedule_callback_cannot_give_away_the_stack_it_runs_on(self) -> None:
        assert lines(
            """
idents, go = [], threading.Event()
began = threading.Event()

def other():
    idents.append(tasklets.getcurrent().thread_id)
    began.set()
    go.wait()

thread = threading.Thread(target=other)
thread.start()
began.wait()
refused = set()

def callback(before, after):
    if before is not None and not before.is_main and not before.alive:
        try:
            before.bind_thread(idents[0])
        except RuntimeError as error:
            refused.add(str(error))

for _ in range(50):
    tasklet(down)(50, schedule)
tasklets.set_schedule_callback(callback)
run()
tasklets.set_schedule_callback(None)
go.set()
thread.join()
print(refused)
"""
        ) == ['{"can\'t (re)bind a runnable tasklet"}']

    def test_exceptions_in_all_callbacks(self) -> None:
        """Those of the scheduler and of channels are reported, that of the handler is raised."""
        assert lines(
            """
unraisable, log = [], []
sys.unraisablehook = lambda info: unraisable.append(info.exc_type)

def fails(*arguments):
    raise KeyError(len(arguments))

it = channel()
tasklets.set_schedule_callback(fails)
tasklet(schedule)()
run()
print(len(unraisable), set(unraisable))
tasklets.set_schedule_callback(None)
unraisable.clear()
tasklets.set_channel_callback(fails)
tasklet(lambda: log.append(it.receive()))()
run()
it.send(1)
run()
tasklets.set_channel_callback(None)
print(len(unraisable), log)
tasklets.set_error_handler(fails)
tasklet(fails)()
try:
    run()
except KeyError as error:
    print("raised", error)
print(it.balance, getruncount())
print("end")
"""
        ) == ["2 {<class 'KeyError'>}", "2 [1]", "raised 3", "0 1", "end"]

    def test_collections_inside_of_callbacks(self) -> None:
        assert lines(
            """
class Node:
    pass

def garbage():
    one = Node()
    one.task = tasklet(schedule_remove)()
    one.task.run()
    one.task.tempval = one
    one.me = one

def collect(*arguments):
    gc.collect()

def body():
    for _ in range(3):
        garbage()
        schedule()

tasklets.set_schedule_callback(collect)
tasklets.set_channel_callback(collect)
for _ in range(5):
    tasklet(body)()
it = channel()
tasklet(it.send)(1)
it.receive()
run()
tasklets.set_schedule_callback(None)
tasklets.set_channel_callback(None)
gc.collect()
print(getruncount())
print("end")
"""
        ) == ["1", "end"]


class TestFinalisers:
    def test_deep_chains_across_switches(self) -> None:
        """The interpreter puts off what is nested too deeply; that must not go to another stack."""
        assert lines(
            """
count = 0

class Link:
    def __init__(self, before):
        self.before = before
    def __del__(self):
        global count
        count += 1
        if count % 50 == 0:
            schedule()

class Plain:
    pass

def chain(levels):
    it = None
    for _ in range(levels):
        it = Link(([it], {"before": it}))
    return it

def body():
    it = chain(1000)
    del it
    nested = None
    for number in range(20_000):
        nested = [nested, None] if number % 1000 else [nested, Link(None)]
    del nested

for _ in range(4):
    tasklet(body)()
body()
run()
print(count)
print("end")
"""
        ) == [str(5 * 1020), "end"]

    def test_weakref_callbacks_and_del_that_switch(self) -> None:
        assert lines(
            """
log = []

class Thing:
    def __del__(self):
        schedule()
        log.append("del")

def callback(reference):
    schedule()
    log.append("weakref")

def body():
    for _ in range(3):
        it = Thing()
        reference = weakref.ref(it, callback)
        del it
        cycle = Thing()
        cycle.me = cycle
        reference = weakref.ref(cycle, callback)
        del cycle
        gc.collect()

for _ in range(5):
    tasklet(body)()
run()
print(log.count("del"), log.count("weakref") > 14)
print("end")
"""
        ) == ["30 True", "end"]

    def test_a_finaliser_that_kills_its_own_and_others(self) -> None:
        assert lines(
            """
log = []

class Killer:
    def __init__(self, task):
        self.task = task
    def __del__(self):
        try:
            self.task.kill()
        except TaskletExit:
            log.append("own")

def body():
    it = Killer(getcurrent())
    del it
    schedule_remove()

victims = [tasklet(schedule_remove)() for _ in range(5)]
for _ in range(5):
    tasklet(body)()
schedule()
for victim in victims:
    it = Killer(victim)
    del it
run()
print([victim.alive for victim in victims], log)
print("end")
"""
        ) == ["[False, False, False, False, False] ['own', 'own', 'own', 'own', 'own']", "end"]


class TestSuspended:
    def test_generators_of_all_kinds_go_from_one_to_another(self) -> None:
        assert lines(
            """
log = []

class Wait:
    def __await__(self):
        value = yield "waiting"
        schedule()
        return value

def generator():
    try:
        value = yield 1
        schedule()
        yield value
    finally:
        schedule()
        log.append("generator")

async def coroutine():
    try:
        return await Wait()
    finally:
        log.append("coroutine")

async def numbers():
    try:
        yield 1
        await Wait()
        yield 2
    finally:
        log.append("async generator")

def begin():
    made = generator(), coroutine(), numbers()
    next(made[0])
    made[1].send(None)
    try:
        made[2].asend(None).send(None)
    except StopIteration as stop:
        assert stop.value == 1
    it.send(made)

def finish():
    one, two, three = it.receive()
    assert one.send(5) == 5
    one.close()
    try:
        two.send(6)
    except StopIteration as stop:
        assert stop.value == 6
    step = three.asend(None)
    assert step.send(None) == "waiting"
    try:
        step.send(None)
    except StopIteration as stop:
        assert stop.value == 2
    try:
        three.aclose().send(None)
    except StopIteration:
        pass

it = channel()
for _ in range(3):
    tasklet(begin)()
    tasklet(finish)()
run()
print(sorted(log) == ["async generator"] * 3 + ["coroutine"] * 3 + ["generator"] * 3)

# Collected where another tasklet runs, and while they run inside of a parked one.
log.clear()

def leave():
    made = generator(), coroutine(), numbers()
    next(made[0])
    made[1].send(None)
    me = [getcurrent(), made]
    me.append(me)
    for value in generator():
        schedule_remove()

for _ in range(3):
    tasklet(leave)()
schedule()
gc.collect()
run()
gc.collect()
print(log.count("generator"), log.count("coroutine"))
print("end")
"""
        ) == ["True", "6 3", "end"]

    def test_one_that_runs_elsewhere_cannot_be_resumed(self) -> None:
        assert lines(
            """
def values():
    yield 1
    schedule()
    yield 2

it = values()
tasklet(list)(it)
schedule()
for call in (it.__next__, it.close, lambda: it.throw(KeyError)):
    try:
        call()
    except ValueError as error:
        print(error)
run()
print("end")
"""
        ) == ["generator already executing"] * 3 + ["end"]


class TestSignals:
    def test_handlers_that_switch_and_kill(self) -> None:
        assert lines(
            """
log, handled = [], 0

def handler(number, frame):
    global handled
    handled += 1
    if handled % 3 == 0:
        victim.kill()
    schedule()

def body():
    for number in range(300):
        if number % 30 == 0:
            os.kill(os.getpid(), signal.SIGUSR1)
        schedule()
    log.append(1)

def resists():
    while len(log) < 3:
        try:
            schedule()
        except TaskletExit:
            pass

signal.signal(signal.SIGUSR1, handler)
victim = tasklet(resists)()
for _ in range(3):
    tasklet(body)()
run()
print(handled > 9, log)
print("end")
"""
        ) == ["True [1, 1, 1]", "end"]

    def test_a_handler_that_raises_in_any_tasklet(self) -> None:
        assert lines(
            """
class Told(Exception):
    pass

def handler(number, frame):
    raise Told

def body():
    try:
        while True:
            schedule()
    except Told:
        ended.append(1)

ended = []
signal.signal(signal.SIGUSR1, handler)
for _ in range(10):
    tasklet(body)()
while len(ended) < 10:
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        schedule()
    except Told:
        schedule()
    if getruncount() > 1:
        tasklets.getcurrent().next.raise_exception(Told)
run()
print(len(ended))
print("end")
"""
        ) == ["10", "end"]

    def test_keyboard_interrupt_of_a_blocked_main(self) -> None:
        """Whichever tasklet has blocked last is not touched."""
        assert lines(
            """
log = []

def waits(it):
    try:
        it.receive()
    except BaseException as error:
        log.append(type(error).__name__)
        raise

it = channel()
other = threading.Event()
main = threading.main_thread().ident
blocked = tasklet(waits)(channel())

def interrupt():
    while not tasklets.get_thread_info(main)[0].blocked:
        other.wait(0.001)
    os.kill(os.getpid(), signal.SIGINT)

thread = threading.Thread(target=interrupt)
thread.start()
try:
    it.receive()
except KeyboardInterrupt:
    print("interrupted", it.balance)
thread.join()
run()
tasklet(it.send)(5)
print(it.receive())
blocked.kill()
print(log)
print("end")
"""
        ) == ["interrupted 0", "5", "['TaskletExit']", "end"]


class TestEnds:
    def test_of_the_interpreter_with_daemon_threads_that_switch(self) -> None:
        assert lines(
            """
started = threading.Semaphore(0)

def switches():
    while True:
        schedule()

def thread():
    tasklet(switches)()
    tasklet(channel().receive)()
    schedule()
    started.release()
    run()

for _ in range(3):
    threading.Thread(target=thread, daemon=True).start()
for _ in range(3):
    started.acquire()
for _ in range(20):
    tasklet(schedule_remove)()
schedule()
print("end")
"""
        ) == ["end"]

    def test_of_the_interpreter_with_functions_to_be_called_at_exit(self) -> None:
        assert lines(
            """
import atexit

def waits():
    try:
        schedule_remove()
    finally:
        print("ended")

def at_exit():
    it = channel()
    tasklet(it.send)("value")
    print(it.receive())
    run()
    tasklet(waits)()
    run()

@atexit.register
def leaves():
    at_exit()
    tasklet(sys.exit)(3)
    try:
        run()
    except SystemExit:
        print("exit in a tasklet at exit")

class Late:
    def __del__(self, run=run, tasklet=tasklet, write=os.write):
        try:
            tasklet(write)(1, b"not reached\\n")
            run()
        except RuntimeError as error:
            write(1, f"{error}\\n".encode())

late = Late()
parked = tasklet(waits)()
run()
print("end", flush=True)
"""
        ) == [
            "end",
            "value",
            "exit in a tasklet at exit",
            "ended",
            "ended",
            "cannot switch tasklets at interpreter finalization",
        ]

    def test_no_parked_frame_goes_on_while_the_interpreter_is_taken_apart(self) -> None:
        """Its globals, its thread's data and its context may be gone by then."""
        assert lines(
            """
def resists():
    while True:
        try:
            schedule_remove()
        except TaskletExit:
            pass

class Late:
    def __init__(self):
        self.task = tasklet(resists)()
        self.task.run()

    def __del__(self, write=os.write):  # sys.stdout may have been flushed for the last time
        for call in self.task.run, self.task.kill, self.task.insert:
            try:
                call()
                write(1, b"went\\n")
            except RuntimeError as error:
                write(1, f"{error}\\n".encode())
        write(1, f"{self.task.alive}\\n".encode())

import types
sys.modules["late"] = types.ModuleType("late")
sys.modules["late"].it = Late()  # the frame keeps this program's own variables
print("end", flush=True)
"""
        ) == [
            "end",
            "You cannot run an unbound(dead) tasklet",
            "went",
            "You cannot run an unbound(dead) tasklet",
            "True",
        ]

    def test_who_waits_alone_waits_while_the_interpreter_is_taken_apart(self) -> None:
        """As on stock: a client that closes in a finaliser may pause, or wait for a lock."""
        assert lines(
            """
from cpythonplus.tasklets import io, locks
import time
io.patch()

class Late:
    def __init__(self):
        self.lock = locks.Lock()
        self.lock.acquire()

    def __del__(self, sleep=time.sleep, write=os.write):
        sleep(0)
        sleep(0.001)
        write(1, f"{self.lock.acquire(timeout=0.001)}\\n".encode())
        schedule()

late = Late()
print("end", flush=True)
"""
        ) == ["end", "False"]

    def test_of_the_process_from_within(self) -> None:
        parked = "tasklet(schedule_remove)(); tasklet(channel().receive)(); schedule()\n"
        assert lines(parked + "tasklet(lambda: os._exit(4))(); run()", status=4) == []
        assert (
            lines(parked + "tasklet(lambda: down(100, lambda: sys.exit(5)))(); run()", status=5)
            == []
        )

    def test_sys_exit_in_a_thread_s_tasklet(self) -> None:
        assert lines(
            """
def thread():
    tasklet(schedule_remove)()
    tasklet(sys.exit)(3)
    run()
    print("not reached")

it = threading.Thread(target=thread)
it.start()
it.join()
print("end")
"""
        ) == ["end"]

    def test_of_threads_whose_tasklets_resist(self) -> None:
        assert lines(
            """
kept = []

def resists():
    while True:
        try:
            schedule_remove()
        except TaskletExit:
            pass

def thread():
    kept.append(tasklet(resists)())
    tasklet(lambda: down(50, channel().receive))()
    run()

for _ in range(5):
    it = threading.Thread(target=thread)
    it.start()
    it.join()
print([task.thread_id for task in kept], [task.restorable for task in kept])
kept.clear()
gc.collect()
print("end")
"""
        ) == ["[-1, -1, -1, -1, -1] [False, False, False, False, False]", "end"]


class TestThreads:
    def test_one_that_is_met_while_it_cannot_switch_loses_nothing(self) -> None:
        """The thread that meets it makes somebody else runnable first, to whom it may not go."""
        assert lines(
            """
from cpythonplus import gil

it = channel()
log = []
other = tasklet().bind(log.append, ("ran",), {})

def send():
    while not it.balance:
        pass
    with gil.atomic():
        other.insert()
        it.send("value")

thread = threading.Thread(target=send)
thread.start()
tasklets.switch_trap(1)
print(it.receive())
tasklets.switch_trap(-1)
thread.join()
try:
    schedule()
except RuntimeError as error:
    print(error)
run()
print(*log)
"""
        ) == ["value", "switch_trap", "ran"]


class TestForks:
    def test_children_use_kill_and_end_them(self) -> None:
        assert lines(
            """
def waits():
    try:
        log.append(it.receive())
    finally:
        log.append("ended")

def in_child(call):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        call()
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7

def uses():
    it.send(1)
    run()
    assert log == [1, "ended"]
    tasklet(log.append)(2)
    run()

def kills():
    for task in waiting:
        task.kill()
    assert log == ["ended"] * 5

def forgets():
    global it
    waiting.clear()
    it = None
    gc.collect()
    assert log == ["ended"] * 5, log

log, it = [], channel()
waiting = [tasklet(waits)() for _ in range(5)]
schedule()
for call in (uses, kills, forgets, int):
    in_child(call)
    tasklet(in_child)(call)
    run()
    tasklet(down)(100, lambda: in_child(call))
    run()
assert log == []
kills()
print("end")
"""
        ) == ["end"]

    def test_processes_of_multiprocessing(self) -> None:
        start = 'warnings.simplefilter("ignore")\n' if sys.version_info >= (3, 12) else ""
        assert lines(
            start
            + """
import multiprocessing

def child(queue):
    it = channel()
    tasklet(it.send)("from a child")
    queue.put((it.receive(), getcurrent().is_main))
    other.kill()

def body():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get()[0])
    process.join()
    assert process.exitcode == 0

other = tasklet(schedule_remove)()
tasklet(body)()
run()
body()
thread = threading.Thread(target=lambda: (tasklet(body)(), run()))
thread.start()
thread.join()
print("end")
"""
        ) == ["from a child"] * 3 + ["end"]


def test_garbage_that_would_not_end_never_runs_again() -> None:
    """A class with a __del__ of its own, and one that catches what ends it, in cycles."""
    assert (
        lines(
            """
class Derived(tasklets.tasklet):
    def __del__(self):
        log.append("not ended")

def body(value):
    value.me = value
    while True:
        try:
            schedule_remove()
        except TaskletExit:
            log.append("caught")

class Node:
    pass

log = []
for kind in (Derived, tasklets.tasklet):
    task = kind(body)(Node())
    task.run()
    task.tempval = [task]
    del task
    gc.collect()
    gc.collect()
print(*log)
print("end")
"""
        )[-1]
        == "end"
    )


def test_a_finaliser_cannot_switch_what_is_on_its_way_out() -> None:
    """What main holds is let go for the error of one that ends, and for one sent to nobody."""
    assert lines(
        """
from cpythonplus.tasklets import bomb

class Runs:
    def __del__(self):
        new = tasklet(print)("new")
        for switch in (run, schedule, schedule_remove, channel().receive, new.run):
            try:
                switch()
            except RuntimeError as error:
                print(error)

def fails():
    raise KeyError("told")

def sends():
    channel().send(bomb(KeyError, KeyError("told")))

for body in (fails, sends):
    getmain().tempval = Runs()
    tasklet(body)()
    try:
        run()
    except KeyError as error:
        print(error)
run()
print("end")
"""
    ) == [
        *["a finaliser cannot switch while its tasklet is being switched away"] * 5,
        "'told'",
        "new",
        *["a finaliser cannot switch while its tasklet is being switched away"] * 5,
        "'told'",
        "new",
        "end",
    ]
