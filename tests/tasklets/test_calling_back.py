"""Code that calls back while a tasklet is changed: destructors, collections, warnings, handlers.

What it finds is the tasklet as it was or as it will be, and what it does counts.
"""

import sys

import pytest

from tests.collecting import COLLECTING, RELEASING
from tests.support import SANITIZED, run_child
from tests.tasklets.test_crashes import lines


class TestDestructors:
    @pytest.mark.parametrize("part", ["func", "args", "kwargs", "context"])
    def test_bind_the_same_tasklet(self, part: str) -> None:
        assert lines(
            f"""
import contextvars
log = []

class Binds:
    def __call__(self, *args, **kwargs):
        log.append("old")
    def __del__(self):
        task.bind(log.append, ("new",))

task = tasklet()
if {part!r} == "func":
    task.bind(Binds(), ())
elif {part!r} == "args":
    task.bind(log.append, (Binds(),))
elif {part!r} == "kwargs":
    task.bind(log.append, (), {{"it": Binds()}})
else:
    variable = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, Binds())
    task.set_context(context)
    del context
task.bind(None) if {part!r} != "context" else task.bind(log.append, ("second",))
task.insert()
run()
print(*log)
"""
        ) == ["new"]

    def test_throw_away_what_a_tasklet_was_sent(self) -> None:
        assert lines(
            """
class Throws:
    def __del__(self):
        task.kill(pending=True)

task = tasklet(print)("never")
task.remove()
task.tempval = Throws()
task.tempval = None
print(task.scheduled)
run()
print(task.alive)
"""
        ) == ["True", "False"]

    def test_set_up_a_tasklet_that_is_being_freed(self) -> None:
        assert lines(
            """
class Sets:
    def __init__(self, task):
        self.task = task
    def __call__(self):
        pass
    def __del__(self):
        try:
            self.task.bind(print, ("anew",))
        except RuntimeError:
            pass
        tasks.append(self.task)

tasks = []
for _ in range(20):
    task = tasklet()
    task.bind(Sets(task), ())
    del task
    gc.collect()
for task in tasks:
    if task.alive:
        task.insert()
run()
print(len(tasks))
"""
        )[-1:] == ["20"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collections run between instructions")
class TestCollections:
    def test_none_while_a_tasklet_is_set_up(self) -> None:
        """The context is copied, which is an allocation; a finalizer could change it meanwhile."""
        assert lines(
            COLLECTING
            + """
import contextvars
contextvars.ContextVar("some").set(1)
def act():
    task.setup(99)
def prepare():
    global task
    task = tasklet(seen.append)
seen = []
while_collecting(lambda: task(1), prepare)
run()
print(99 in seen, getruncount(), *sorted(refused))
"""
        ) == ["False 1"]

    def test_while_a_time_is_over(self) -> None:
        """What another tasklet has given meanwhile is not lost: the exception comes later."""
        assert lines(
            COLLECTING
            + """
from cpythonplus import _native
from cpythonplus.tasklets import channel

class Over(BaseException):
    pass

def work():
    got = it.receive()
    given.append(got)
    try:
        it.receive()
    except Over:
        pass

def act():
    if it.balance < 0:
        it.send(1)
        acted.append(1)

def prepare():
    global task, it
    it = channel()
    it.preference = 1
    task = tasklet(work)()
    run()

def once():
    before = len(acted), len(given)
    _native.io_interrupt(task, Over())
    try:
        run()
    except Over:
        pass
    assert len(acted) - before[0] == len(given) - before[1], "lost"

acted, given = [], []
while_collecting(once, prepare)
print(bool(acted), len(acted) == len(given))
"""
        ) == ["True True"]

    def test_while_an_rlock_is_let_go(self) -> None:
        assert lines(
            COLLECTING
            + """
from cpythonplus.tasklets import locks
lock = locks.RLock()
"""
            + RELEASING
            + """
print(lock.locked(), *refused)
"""
        ) == ["False cannot release un-acquired lock"]

    def test_while_a_local_is_made(self) -> None:
        assert lines(
            COLLECTING
            + """
from cpythonplus.tasklets import locks
def act():
    for it in gc.get_objects():
        if type(it) is locks.local:
            getattr(it, "some", None)
def once():
    locks.local()
while_collecting(once)
print("end")
"""
        ) == ["end"]

    def test_while_a_tasklet_is_captured(self) -> None:
        assert lines(
            COLLECTING
            + """
import pickle
def work():
    schedule_remove(Value())
class Value:
    def __reduce__(self):
        return Value, ()
task = tasklet()
def act():
    task.tempval = None
def once():
    global task
    task = tasklet(work)()
    run()
    try:
        pickle.dumps(task)
    except pickle.PicklingError:
        pass
    task.kill()
while_collecting(once)
print("end")
"""
        ) == ["end"]


WARNS = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
warnings.simplefilter("always")
log = []
"""


@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs more addresses than that")
class TestWarnings:
    """There is little address space, so that the first C stack is made with a warning."""

    @pytest.mark.parametrize("what", ["remove", "kill", "bind", "bind_thread", "switch"])
    @pytest.mark.parametrize("way", ["run()", "tasks[0].run()", "tasks[0].switch()", "schedule()"])
    def test_the_handler_calls_back(self, what: str, way: str) -> None:
        printed = lines(
            WARNS
            + f"""
def show(message, *rest):
    global tasks
    task, held = tasks[0], tasks
    tasks = []
    try:
        if {what!r} == "remove":
            task.remove()
        elif {what!r} == "kill":
            task.kill(pending=True)
        elif {what!r} == "bind":
            task.remove()
            task.bind(log.append, ("anew",))
        elif {what!r} == "bind_thread":
            task.remove()
            task.bind_thread()
        else:
            schedule()
    except RuntimeError as error:
        log.append(str(error))
    held.clear()
    del task
    gc.collect()
    junk.extend(tasklet() for _ in range(100))

junk = []
warnings.showwarning = show
tasks = [tasklet(log.append)(i) for i in range(3)]
{way}
run()
print(*log, sep="; ")
"""
        )
        expected = {
            "remove": "0; 1; 2",
            "kill": "1; 2",
            "bind": "tasklet is scheduled; 0; 1; 2",
            "bind_thread": "0; 1; 2",
            "switch": "Recursive scheduler call due to callbacks!; 0; 1; 2",
        }
        assert printed == [expected[what]]

    def test_of_a_receiver_that_goes(self) -> None:
        assert lines(
            WARNS
            + """
def show(message, *rest):
    for task in tasks:
        task.remove()
    tasks.clear()
    gc.collect()

warnings.showwarning = show
it = channel()
tasks = [tasklet(log.append)(i) for i in range(2)]
it.schedule_all = True
def receives():
    log.append(it.receive())
first = tasklet(receives)()
first.run()
print(log)
"""
        ) in (["[]"], ["[0]"], ["[0, 1]"], ["[1]"])


class TestTimers:
    def test_what_begins_later_stays_in_its_thread(self) -> None:
        assert lines(
            """
from cpythonplus.tasklets import io
ready, done, threads = threading.Event(), threading.Event(), []

def other():
    getcurrent()
    threads.append(threading.get_ident())
    ready.set()
    done.wait()

thread = threading.Thread(target=other)
thread.start()
ready.wait()
sleeps = tasklet(io.sleep)(0.5)
io.call_later(0.3, print, "later")
schedule()
later = sleeps.next or sleeps.prev
try:
    later.bind_thread(threads[0])
except RuntimeError as error:
    print(error)
run()
done.set()
thread.join()
"""
        ) == ["can't (re)bind a tasklet that waits for a time", "later"]


class TestChannels:
    def test_one_is_pickled_while_another_thread_sends(self) -> None:
        assert lines(
            """
import pickle
sys.setswitchinterval(1e-5)
it, count, ended = channel(), 0, False

def receives():
    while True:
        it.receive()

def sends():
    while not ended:
        if it.balance < -5:
            it.send(1)

for _ in range(50):
    tasklet(receives)()
schedule()
thread = threading.Thread(target=sends)
thread.start()
for _ in range(3000):
    try:
        pickle.dumps(it)
    except (pickle.PicklingError, RuntimeError):
        pass
    schedule()
ended = True
while thread.is_alive():
    schedule()
print("end")
"""
        ) == ["end"]


class TestHubs:
    def test_one_that_is_made_while_another_one_is_made(self) -> None:
        """A signal handler, or a trace function, waits in the midst of it."""
        assert lines(
            """
import asyncio
from cpythonplus.tasklets import io
reading, writing = os.pipe()
os.write(writing, b"x")
loops = []

def factory():
    loops.append(asyncio.SelectorEventLoop())
    if len(loops) < 3:
        io.wait_readable(reading)
    return loops[len(made)]

made = []
io.set_loop_factory(lambda: (factory(), made.append(1), loops[-len(made)])[-1])
io.wait_readable(reading)
for _ in range(50):
    tasklet(io.wait_readable)(reading)
    io.sleep(0.0001)
run()
print(len(loops), sum(loop.is_closed() for loop in loops))
"""
        ) == ["3 2"]


class TestLocals:
    def test_one_used_by_a_tasklet_that_a_collection_ends(self) -> None:
        assert lines(
            """
from cpythonplus.tasklets import locks
local = locks.local()

def work(me):
    local.value = 1
    schedule_remove()
    local.value = 2
    try:
        schedule_remove()
    finally:
        others = [{} for _ in range(100)]  # one has the memory of a dict that was freed
        local.value = 3
        log.append(any(others))

log = []
for _ in range(20):
    me = []
    task = tasklet(work)(me)
    me.append(task)
    run()
    assert not hasattr(local, "value")  # of main
    task.run()
    del me, task
    gc.collect()
print(len(log), any(log), hasattr(local, "value"))
"""
        ) == ["20 False False"]

    def test_one_used_again_by_a_tasklet_that_had_ended(self) -> None:
        assert lines(
            """
from cpythonplus.tasklets import locks
local = locks.local()

class Runs:
    def __del__(self):
        last.bind(use, ())
        last.run()

def use(*_):
    others = [{} for _ in range(100)]  # one has the memory of a dict that was freed
    local.value = 1
    log.append(any(others))

log = []
last = tasklet(use)()
run()
keeps = tasklet(lambda: setattr(local, "it", Runs()))()
ended = [tasklet(use)(i) for i in range(61)]
run()
last.bind(use, ())
last.run()
tasklet(use)()
run()
print(len(log), any(log))
"""
        ) == ["65 False"]


def test_a_finalizer_sets_a_variable_while_the_context_is_copied() -> None:
    # 3.11 collects within the copy of the context, and has no reference to what it copies.
    run_child(
        """
        import contextvars, gc
        from cpythonplus.tasklets import run, tasklet

        var = contextvars.ContextVar("var")

        class Circular:
            def __init__(self):
                self.me = self
            def __del__(self):
                var.set("finalizer")

        seen = []
        gc.disable()
        gc.set_threshold(1)
        contexts = [contextvars.copy_context() for _ in range(300)]  # more than are used again
        for number in range(300):
            var.set(number)
            made = tasklet(lambda: seen.append(var.get()))
            Circular()
            gc.enable()
            made.setup()
            gc.disable()
        gc.set_threshold(700, 10, 10)
        run()
        assert len(seen) == 300
        assert all(each in (number, "finalizer") for number, each in enumerate(seen)), seen
        """
    )
