"""Channels between threads: who goes on, who finds what, and that nothing is lost or stuck."""

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cpythonplus import tasklets
from cpythonplus.tasklets import channel, io, run, tasklet
from tests.support import run_child

Log = list[Any]

IMPORTS = """
import os, signal, threading, time, warnings
from cpythonplus import tasklets
from cpythonplus.tasklets import TaskletExit, channel, run, schedule, tasklet

warnings.simplefilter("ignore")

def until(condition):
    while not condition():
        time.sleep(0)
"""


CLOSED = "ValueError('Send/receive operation on a closed channel')"


def until(condition: Callable[[], bool]) -> None:
    """Let other threads run until it is so."""
    while not condition():
        time.sleep(0)


def lines(code: str) -> list[str]:
    """Run the code in a process of its own."""
    return run_child(IMPORTS + code).out.splitlines()


class Idle:
    """A thread with one blocked tasklet, which it lets run when it is told, at the end."""

    def __init__(self, body: Callable[[], object]) -> None:
        self.blocked, self.go = threading.Event(), threading.Event()
        self.task: tasklet | None = None
        self.thread = threading.Thread(target=self._work, args=(body,))
        self.thread.start()
        self.blocked.wait()

    def _work(self, body: Callable[[], object]) -> None:
        self.task = tasklet(body)()
        run()
        self.blocked.set()
        self.go.wait()
        run()

    def end(self) -> None:
        """Return when its tasklets have run."""
        self.go.set()
        self.thread.join()


class TestWhoGoesOnThreads:
    @pytest.mark.parametrize("preference", [-1, 0, 1])
    @pytest.mark.parametrize("schedule_all", [False, True])
    def test_a_sender_does(self, preference: int, schedule_all: bool) -> None:
        """Nor does it wait for a thread that is busy with something else."""
        it = channel()
        it.preference, it.schedule_all = preference, schedule_all
        there: Log = []
        here: Log = []
        thread = Idle(lambda: there.append(it.receive()))
        tasklet(here.append)("the next one")
        it.send(1)
        assert (here, there, it.balance) == ([], [], 0)
        thread.end()
        assert there == [1]
        run()

    @pytest.mark.parametrize("preference", [-1, 0, 1])
    @pytest.mark.parametrize("schedule_all", [False, True])
    def test_a_receiver_does(self, preference: int, schedule_all: bool) -> None:
        it = channel()
        it.preference, it.schedule_all = preference, schedule_all
        there: Log = []
        here: Log = []

        def body() -> None:
            it.send(1)
            there.append("sent")

        thread = Idle(body)
        tasklet(here.append)("the next one")
        assert it.receive() == 1
        assert (here, there, it.balance) == ([], [], 0)
        thread.end()
        assert there == ["sent"]
        run()

    def test_the_other_one_is_runnable_in_its_thread(self) -> None:
        it = channel()
        thread = Idle(it.receive)
        task = thread.task
        assert task is not None
        assert task.blocked
        it.send(1)
        assert (task.blocked, task.scheduled, task.thread_id) == (False, True, thread.thread.ident)
        thread.end()
        assert not task.alive

    def test_what_is_run_in_a_thread_that_rests_is_the_next_one(self) -> None:
        """It has been woken, but does not have the GIL yet."""
        log: Log = []
        made: list[list[tasklet]] = []
        gate = channel()

        def body() -> None:
            made.append([tasklet(log.append, (name,)) for name in range(3)])
            gate.receive()

        thread = threading.Thread(target=body)
        thread.start()
        until(lambda: gate.balance < 0)
        with tasklets.atomic():
            for name in (1, 2):
                made[0][name].insert()
            made[0][0].run()
            assert log == []
        until(lambda: len(log) == 3)
        gate.send(None)
        thread.join()
        assert log == [0, 1, 2]

    def test_those_that_wait_are_served_in_turn(self) -> None:
        """Wherever they wait."""
        it = channel()
        log: Log = []

        def receive(name: int) -> None:
            log.append((name, it.receive()))

        threads = []
        for name in range(6):
            if name % 2 == 0:
                tasklet(receive)(name)
                run()
            else:
                threads.append(Idle(partial(receive, name)))
        for value in range(6):
            it.send(value)
        run()
        for thread in threads:
            thread.end()
        assert sorted(log) == [(value, value) for value in range(6)]


class TestStateThreads:
    def test_balance_and_queue(self) -> None:
        it = channel()
        thread = Idle(it.receive)
        assert (it.balance, it.queue) == (-1, thread.task)
        it.send(1)
        assert (it.balance, it.queue) == (0, None)
        thread.end()

    def test_close(self) -> None:
        """Who waits is served; nobody begins to wait, here or there."""
        it = channel()
        log: Log = []

        def body() -> None:
            log.append(it.receive())
            with pytest.raises(ValueError, match="closed channel"):
                it.receive()
            it.open()

        thread = Idle(body)
        it.close()
        states = [it.closed]
        it.send(1)
        states.append(it.closed)
        assert states == [False, True]
        with pytest.raises(ValueError, match="closed channel"):
            it.send(2)
        thread.end()
        assert (log, it.closing) == ([1], False)

    def test_iteration(self) -> None:
        it = channel()
        log: Log = []
        thread = threading.Thread(target=lambda: log.extend(it))
        thread.start()
        assert it.send_sequence(range(100)) == 100
        it.send_exception(StopIteration)
        thread.join()
        assert log == list(range(100))

    def test_iteration_until_it_is_closed(self) -> None:
        it = channel()
        senders = [Idle(partial(it.send, value)) for value in range(3)]
        it.close()
        assert list(it) == [0, 1, 2]
        for sender in senders:
            sender.end()


class TestExceptionsThreads:
    @pytest.mark.parametrize("how", ["send_exception", "send_throw"])
    def test_sent(self, how: str) -> None:
        it = channel()
        log: Log = []

        def body() -> None:
            try:
                it.receive()
            except KeyError as error:
                log.append(error.args)

        thread = Idle(body)
        if how == "send_exception":
            it.send_exception(KeyError, 1, 2)
        else:
            it.send_throw(KeyError, (1, 2))
        thread.end()
        assert log == [(1, 2)]

    @pytest.mark.parametrize("direction", ["send", "receive"])
    def test_thrown_into_a_blocked_one(self, direction: str) -> None:
        it = channel()
        log: Log = []

        def body() -> None:
            try:
                it.send("lost") if direction == "send" else it.receive()
            except KeyError as error:
                log.append(error.args)

        thread = Idle(body)
        assert thread.task is not None
        thread.task.throw(KeyError, 1)
        assert (it.balance, it.queue) == (0, None)
        thread.end()
        assert log == [(1,)]

    def test_a_killed_one_takes_nothing(self) -> None:
        it = channel()
        log: Log = []
        thread = Idle(lambda: log.append(it.receive()))
        task = thread.task
        assert task is not None
        task.kill()
        assert (it.balance, it.queue, task.blocked) == (0, None, False)
        second = Idle(lambda: log.append(it.receive()))
        it.send("value")
        second.end()
        thread.end()
        assert (log, task.alive) == (["value"], False)

    def test_thrown_into_a_thread_that_waits(self) -> None:
        """It wakes: the exception is raised in its blocked main tasklet."""
        it = channel()
        log: Log = []

        def work() -> None:
            try:
                it.receive()
            except KeyError as error:
                log.append(error.args)

        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: it.balance == -1)
        assert it.queue is not None
        assert it.queue.is_main
        it.queue.throw(KeyError, 1)
        thread.join()
        assert (log, it.balance) == ([(1,)], 0)

    @pytest.mark.parametrize("action", ["send", "receive", "schedule", "schedule_remove", "sleep"])
    def test_thrown_into_one_that_runs(self, action: str) -> None:
        """It gets the exception with its next action, which is not done."""
        it = channel()
        log: Log = []
        running, thrown = threading.Event(), threading.Event()
        tasks: list[tasklet] = []
        actions: dict[str, Callable[[], object]] = {
            "send": lambda: it.send(1),
            "receive": it.receive,
            "schedule": tasklets.schedule,
            "schedule_remove": tasklets.schedule_remove,
            "sleep": lambda: io.sleep(1000),
        }
        act = actions[action]

        def body() -> None:
            running.set()
            thrown.wait()
            try:
                act()
            except KeyError:
                log.append(it.balance)

        def work() -> None:
            tasks.append(tasklet(body)())
            run()

        thread = threading.Thread(target=work)
        thread.start()
        running.wait()
        tasks[0].throw(KeyError)
        thrown.set()
        thread.join()
        assert log == [0]


class TestThreadblockThreads:
    def test_it_wakes_and_returns_when_its_tasklet_has_ended(self) -> None:
        it = channel()
        log: Log = []

        def body() -> None:
            log.extend(it.receive() for _ in range(3))

        def work() -> None:
            tasklet(body)()
            run(threadblock=True)
            log.append("returned")

        thread = threading.Thread(target=work)
        thread.start()
        for value in range(3):
            it.send(value)
        thread.join()
        assert log == [0, 1, 2, "returned"]

    def test_a_killed_one_wakes_it(self) -> None:
        it = channel()
        log: Log = []

        def work() -> None:
            tasklet(it.receive)()
            run(threadblock=True)
            log.append("returned")

        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: it.balance == -1)
        assert it.queue is not None
        it.queue.kill()
        thread.join()
        assert (log, it.balance) == (["returned"], 0)

    def test_an_exception_is_raised_in_it(self) -> None:
        it = channel()
        log: Log = []

        def work() -> None:
            tasklet(it.receive)()
            try:
                run(threadblock=True)
            except KeyError as error:
                log.append(error.args)

        thread = threading.Thread(target=work)
        thread.start()
        it.send_exception(KeyError, 1)
        thread.join()
        assert log == [(1,)]


class TestDeadlock:
    def test_it_says_who_waits_in_which_thread(self) -> None:
        code = """
tasklets.set_foreign_wakers(False)
first, second = channel(), channel()
schedule()  # has tasklets, so that it counts

def work():
    first.receive()

thread = threading.Thread(target=work, name="the other")
thread.start()
until(lambda: first.balance == -1)
try:
    second.receive()
except RuntimeError as error:
    print(error)
    (note,) = error.__notes__
    print("Thread MainThread" in note, "Thread the other" in note, note.count("receiving"))
print(second.balance)
first.send(None)
thread.join()
"""
        assert lines(code) == [
            "Deadlock: the last runnable tasklet cannot be blocked.",
            "True True 2",
            "0",
        ]

    def test_a_thread_that_can_still_send_is_none(self) -> None:
        code = """
tasklets.set_foreign_wakers(False)
it, back = channel(), channel()

def work():
    schedule()  # has tasklets, so that it counts
    until(lambda: it.balance == -1)
    it.send(5)

thread = threading.Thread(target=work)
thread.start()
until(lambda: len(tasklets.threads) == 2)
print(it.receive())
thread.join()
"""
        assert lines(code) == ["5"]

    def test_nor_is_one_that_handles_a_signal(self) -> None:
        """The handler makes a tasklet runnable that the other thread waits for."""
        code = """
tasklets.set_foreign_wakers(False)
gate, it = channel(), channel()
handling = threading.Event()
prepared = tasklet(it.send, (5,))
log = []

def handle(signum, frame):
    handling.set()
    until(lambda: it.balance == -1 or log)
    prepared.insert()

def work():
    schedule()
    until(lambda: gate.balance == -1)
    os.kill(os.getpid(), signal.SIGUSR1)
    handling.wait()
    try:
        log.append(it.receive())
    except RuntimeError as error:
        log.append(error)
    gate.send(None)

signal.signal(signal.SIGUSR1, handle)
thread = threading.Thread(target=work)
thread.start()
until(lambda: len(tasklets.threads) == 2)
gate.receive()
thread.join()
print(log)
"""
        assert lines(code) == ["[5]"]


class TestSignals:
    def test_a_handler_that_raises_while_the_value_comes(self) -> None:
        """Served, and interrupted: whoever sent has gone on, and the channel is as it should be."""
        code = """
it = channel()
log = []

def handle(signum, frame):
    sender.start()
    sender.join()
    raise KeyError(1)

def interrupt():
    until(lambda: it.balance == -1)
    os.kill(os.getpid(), signal.SIGUSR1)

sender = threading.Thread(target=it.send, args=("value",))
signal.signal(signal.SIGUSR1, handle)
thread = threading.Thread(target=interrupt)
thread.start()
try:
    for value in it:
        log.append(value)
        schedule()
        break
    for _ in range(1000):
        pass
except KeyError as error:
    log.append(error.args)
thread.join()
print(log, it.balance, tasklets.getruncount())
threading.Thread(target=it.send, args=(2,)).start()
print(it.receive())
"""
        assert lines(code) == ["['value', (1,)] 0 1", "2"]

    @pytest.mark.parametrize(
        ("main", "handler", "other", "expected"),
        [
            ("it.receive()", "it.send(1)", "", ["None", "1"]),
            ("it.send(1)", "it.receive()", "", ["1", "None"]),
            ("it.receive()", "it.receive()", "it.send(1); it.send(2)", ["2", "1"]),
            ("it.send(1)", "it.send(2)", "it.receive(); it.receive()", ["None", "None"]),
            ("other.receive()", "it.receive()", "it.send(1); other.send(2)", ["1", "2"]),
            ("it.receive()", "it.send_exception(KeyError, 1)", "", ["None", "KeyError(1)"]),
            ("it.send_exception(KeyError, 1)", "it.receive()", "", ["KeyError(1)", "None"]),
            ("it.receive()", "other.receive()", "other.close(); it.send(1)", [CLOSED, "1"]),
        ],
    )
    def test_a_handler_that_uses_a_channel(
        self, main: str, handler: str, other: str, expected: list[str]
    ) -> None:
        """What the thread waits for, or another one; `other` is done by another thread then."""
        code = f"""
it, other = channel(), channel()
waiting = {main.partition(".")[0]}

def told(call):
    try:
        return str(call())
    except Exception as error:
        return repr(error)

def handle(signum, frame):
    handling.set()
    log.append(told(lambda: {handler}))

def work():
    until(lambda: waiting.balance)
    os.kill(os.getpid(), signal.SIGUSR1)
    handling.wait()
    {other}

signal.signal(signal.SIGUSR1, handle)
for _ in range(10):
    log, handling = [], threading.Event()
    other.open()
    thread = threading.Thread(target=work)
    thread.start()
    log.append(told(lambda: {main}))
    thread.join()
    assert it.balance == other.balance == 0 and tasklets.getruncount() == 1
    print(*log, sep=", ")
"""
        assert lines(code) == [", ".join(expected)] * 10

    def test_a_handler_does_not_wait_where_nobody_can_come(self) -> None:
        code = """
it, other = channel(), channel()

def handle(signum, frame):
    try:
        other.receive()
    except RuntimeError as error:
        print(error)
    it.send(1)

tasklets.set_foreign_wakers(False)
signal.signal(signal.SIGUSR1, handle)

def work():
    schedule()
    until(lambda: it.balance)
    os.kill(os.getpid(), signal.SIGUSR1)

threading.Thread(target=work, daemon=True).start()
until(lambda: len(tasklets.threads) == 2)
print(it.receive())
"""
        assert lines(code) == [
            "a signal handler cannot switch tasklets while its whole thread waits",
            "1",
        ]

    def test_a_handler_that_raises_before(self) -> None:
        code = """
it = channel()

def handle(signum, frame):
    raise KeyError(1)

def interrupt():
    until(lambda: it.balance == -1)
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, handle)
for _ in range(20):
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        it.receive()
    except KeyError:
        assert it.balance == 0
    thread.join()
threading.Thread(target=it.send, args=(2,)).start()
print(it.receive())
"""
        assert lines(code) == ["2"]


class TestEnds:
    def test_a_thread_s_tasklets_leave_their_channels_before_the_first_one_ends(self) -> None:
        """What others send to them meanwhile would be lost."""
        code = """
it = channel()
log = []

def body():
    try:
        it.receive()
    finally:
        log.append(it.balance)

def work():
    for _ in range(5):
        tasklet(body)()
    run()
    log.append(it.balance)

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(log)
"""
        assert lines(code) == ["[-5, 0, 0, 0, 0, 0]"]

    def test_threads_that_come_and_go_while_others_send(self) -> None:
        code = """
it, done = channel(), channel()
received = []

def once():
    received.append(it.receive())

def some(first):
    for value in range(first, first + 60):
        it.send(value)

senders = [threading.Thread(target=some, args=(60 * i,)) for i in range(3)]
for each in senders:
    each.start()
while len(received) < 180:
    threads = [threading.Thread(target=once) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
for each in senders:
    each.join()
print(sorted(received) == list(range(180)), it.balance, len(tasklets.threads))
"""
        assert lines(code) == ["True 0 1"]

    def test_a_fork_leaves_those_of_other_threads_behind(self) -> None:
        """In the child they take no value, and give none; the parent's go on."""
        code = """
gets, gives, end = channel(), channel(), channel()
ready = threading.Semaphore(0)

def work(first, argument):
    tasklet(first)(*argument)
    run()
    ready.release()
    run(threadblock=True)

def main_waits():
    gets.receive()

threads = [
    threading.Thread(target=work, args=(gets.receive, ())),
    threading.Thread(target=work, args=(gives.send, ("stale",))),
    threading.Thread(target=main_waits),
]
for thread in threads:
    thread.start()
for _ in range(2):
    ready.acquire()
until(lambda: gets.balance == -2)
pid = os.fork()
if pid == 0:
    assert (gets.balance, gives.balance) == (0, 0)
    try:
        gets.send("lost")
        os._exit(1)
    except RuntimeError:
        pass
    # Threads of its own find everything clean.
    def echo():
        for value in gets:
            gives.send(value + 1)
    thread = threading.Thread(target=echo)
    thread.start()
    for value in range(1000):
        gets.send(value)
        assert gives.receive() == value + 1
    gets.send_exception(StopIteration)
    thread.join()
    os._exit(7)
gets.send(1)
gets.send(2)
print(gives.receive())
for thread in threads:
    thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
        assert lines(code) == ["stale", "7"]

    def test_a_fork_in_a_signal_handler_of_a_thread_that_waits(self) -> None:
        """The wait goes on, in the parent and in the child."""
        code = """
it = channel()
pids = []
prepared = tasklet(it.send, ("child",))

def handle(signum, frame):
    pids.append(os.fork())
    if pids[0] == 0:
        prepared.insert()

def interrupt():
    until(lambda: it.balance == -1)
    os.kill(os.getpid(), signal.SIGUSR1)
    until(lambda: pids)
    it.send("parent")

signal.signal(signal.SIGUSR1, handle)
thread = threading.Thread(target=interrupt)
thread.start()
value = it.receive()
if pids == [0]:
    os._exit(7 if value == "child" else 1)
thread.join()
print(value, os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]))
"""
        assert lines(code) == ["parent 7"]


class TestEveryItem:
    @pytest.mark.parametrize("per_thread", [0, 3])
    def test_of_many_producers_and_consumers(self, per_thread: int) -> None:
        """0: main tasklets of plain threads; else so many tasklets in each."""
        code = """
PER_THREAD = int(os.environ["PER_THREAD"])
ITEMS = 100
it = channel()
received = []

def consume():
    for value in it:
        received.append(value)

def produce(first):
    for value in range(first, first + ITEMS):
        it.send(value)

counts = {}

def counted(function):
    def body(*args):
        try:
            function(*args)
        finally:
            counts[threading.get_ident()] -= 1
    return body

def start(function, arguments):
    def body():
        counts[threading.get_ident()] = len(arguments)
        if PER_THREAD == 0:
            function(*arguments[0])
            return
        for each in arguments:
            tasklet(counted(function))(*each)
        while counts[threading.get_ident()] > 0:
            run(threadblock=True)
    thread = threading.Thread(target=body)
    thread.start()
    return thread

many = max(PER_THREAD, 1)
producers = [
    start(produce, [(ITEMS * (many * i + k),) for k in range(many)]) for i in range(4)
]
consumers = [start(consume, [()] * many) for _ in range(3)]
for thread in producers:
    thread.join()
for _ in range(3 * many):
    it.send_exception(StopIteration)
for thread in consumers:
    thread.join()
print(sorted(received) == list(range(4 * many * ITEMS)), it.balance)
"""
        child = run_child(IMPORTS + code, env={"PER_THREAD": str(per_thread)})
        assert child.out == "True 0\n"

    @pytest.mark.slow
    def test_while_tasklets_are_killed(self) -> None:
        """A value is received, or its sender is still there to say that it was not."""
        code = """
import random
it = channel()
received, given, victims = [], [], []
stop = threading.Event()

def sends(value):
    it.send(value)
    given.append(value)

def producer(first):
    for value in range(first, first + 2000):
        task = tasklet(sends)(value)
        victims.append(task)
        run()
    while it.balance > 0 and not stop.is_set():
        run()
        time.sleep(0)
    run()

def killer():
    choose = random.Random(1)
    while not stop.is_set():
        if victims:
            choose.choice(victims).kill()
        time.sleep(0)

def consumer():
    for value in it:
        received.append(value)

producers = [threading.Thread(target=producer, args=(10000 * i,)) for i in range(3)]
consumers = [threading.Thread(target=consumer) for _ in range(2)]
kills = threading.Thread(target=killer)
for thread in [*consumers, kills, *producers]:
    thread.start()
for thread in producers:
    thread.join()
stop.set()
kills.join()
for _ in consumers:
    it.send_exception(StopIteration)
for thread in consumers:
    thread.join()
print(len(set(received)) == len(received), set(given) <= set(received), it.balance)
"""
        assert lines(code) == ["True True 0"]


class TestDescriptors:
    def test_threads_that_also_wait_for_descriptors_and_times(self) -> None:
        """Each sleeps in its event loop then, and is woken there."""
        code = """
from cpythonplus.tasklets import io

there, back = channel(), channel()

def waits(descriptor, log):
    io.wait_readable(descriptor)
    log.append(os.read(descriptor, 1))

def work():
    log = []
    reader, writer = os.pipe()
    tasklet(waits)(reader, log)
    sleeper = tasklet(io.sleep)(1000)
    for value in there:
        back.send(value + 1)
    os.write(writer, b"x")
    sleeper.kill()
    run()
    print(log)

log = []
reader, writer = os.pipe()
tasklet(waits)(reader, log)
thread = threading.Thread(target=work)
thread.start()
for value in range(200):
    there.send(value)
    assert back.receive() == value + 1
there.send_exception(StopIteration)
thread.join()
os.write(writer, b"y")
run()
print(log)
"""
        assert lines(code) == ["[b'x']", "[b'y']"]

    def test_a_killed_one_among_them(self) -> None:
        code = """
from cpythonplus.tasklets import io

it = channel()
log = []

def receives():
    try:
        log.append(it.receive())
    except TaskletExit:
        log.append("killed")

def work():
    tasks.append(tasklet(receives)())
    reader, writer = os.pipe()
    tasks.append(tasklet(lambda: (io.wait_readable(reader), log.append("readable")))())
    writers.append(writer)
    run()

tasks, writers = [], []
thread = threading.Thread(target=work)
thread.start()
until(lambda: it.balance == -1 and len(tasks) == 2 and tasks[1].blocked)
tasks[0].kill()
until(lambda: log)
os.write(writers[0], b"x")
thread.join()
print(log, it.balance)
"""
        assert lines(code) == ["['killed', 'readable'] 0"]
