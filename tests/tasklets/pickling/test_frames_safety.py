"""Frames are captured, left and made to go on while something else happens.

Nothing crashes, and each `finally` runs.

Each program runs in a process of its own and says "end" on its last line.
"""

import sys

import pytest

from tests.support import run_child

IMPORTS = """
import ctypes, functools, gc, operator, pickle, signal, sys, threading
from cpythonplus.tasklets import dumps, run, schedule_remove, tasklet, trim_stacks

ran = [0]  # counted so: no call, no memory

def work(n):
    if n:
        return work(n - 1)
    try:
        schedule_remove()
    finally:
        ran[0] += 1

def parked(n=0):
    task = tasklet(work)(n)
    run()
    return task

def loaded(n=0):
    task = parked(n)
    data = dumps(task)
    task.kill()
    ran[0] = 0
    return pickle.loads(data)
"""


def lines(program: str) -> list[str]:
    """Return what the program prints; it must print nothing on standard error.

    Memory that was freed is overwritten, so that whoever looks at it crashes.
    """
    child = run_child(IMPORTS + program, env={"PYTHONMALLOC": "debug"})
    assert child.err == ""
    return child.out.splitlines()


class TestGoingOn:
    def test_a_signal_at_that_moment(self) -> None:
        assert lines("""
task = parked(400)
trim_stacks()

def handler(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGUSR1, handler)
strike = functools.partial(getattr(ctypes.PyDLL(None), "raise"), signal.SIGUSR1)
try:  # the signal and the switch, with no Python code in between
    any(map(operator.call, [strike, task.run]))
except KeyboardInterrupt:
    pass
if task.alive:
    task.insert()
    run()
print(ran)
print("end")
""") == ["[1]", "end"]

    def test_without_memory(self) -> None:
        pytest.importorskip("_testcapi")
        assert lines("""
import _testcapi
for depth in (0, 400):
    for n in range(30):
        task = parked(depth)
        trim_stacks()
        go_on = task.run
        _testcapi.set_nomemory(n, 0)
        try:
            go_on()
        except MemoryError:
            pass
        finally:
            _testcapi.remove_mem_hooks()
        task.kill()
        assert ran == [1], (depth, n, ran)
        ran[0] = 0
print("end")
""") == ["end"]

    @pytest.mark.skipif(sys.version_info >= (3, 12), reason="3.13.5 itself crashes without memory")
    def test_a_copy_without_memory(self) -> None:
        """A generator's end, of a copy that is given up, must not hide the MemoryError."""
        pytest.importorskip("_testcapi")
        assert lines("""
import copy, _testcapi

def counted():
    yield schedule_remove()

def counts():
    for _ in counted():
        pass

task = tasklet(counts)()
run()
copy.copy(task).kill()
failed = set()
for n in range(1000):
    copied = None
    _testcapi.set_nomemory(n, n + 1)
    try:
        copied = copy.copy(task)
    except BaseException as error:
        failed.add(type(error))
    finally:
        _testcapi.remove_mem_hooks()
    if copied:
        copied.kill()
task.kill()
print(failed)
print("end")
""") == ["{<class 'MemoryError'>}", "end"]

    def test_beyond_the_recursion_limit(self) -> None:
        assert lines("""
task = loaded(400)
sys.setrecursionlimit(300)
task.insert()
run()
print(ran)
print("end")
""") == ["[1]", "end"]

    def test_a_profile_function_that_raises(self) -> None:
        assert lines("""
def profile(frame, event, arg):
    if event == "c_call":
        raise ValueError(getattr(arg, "__name__", arg))

task = loaded()
task.profile_function = profile
try:
    task.run()
except ValueError as error:
    print(error)
print(ran, task.alive)
print("end")
""")[-2:] == ["[1] False", "end"]

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="such a one cannot be pickled there")
    def test_one_that_was_interrupted(self) -> None:
        """It has a loop for itself; then nothing is left of it in the thread's chain of frames."""
        assert lines("""
from cpythonplus.tasklets import run_for

def down(n):
    if n:
        return 1 + down(n - 1)
    while not ran[0]:
        pass
    return 1

task = tasklet(down)(100)
while task.recursion_depth < 100:
    run_for(0.01)
data = dumps(task)
ran[0] = 1
task.kill()
task = pickle.loads(data)
task.profile_function = lambda frame, *_: frame.f_locals
task.insert()
run()
print("end")
""") == ["end"]


PROFILED = {
    "cProfile": ("import cProfile; p = cProfile.Profile(); p.enable()", "p.disable()"),
    "setprofile": ("sys.setprofile(lambda *_: None)", "sys.setprofile(None)"),
    "in another thread": (
        """
on, off = threading.Event(), threading.Event()
def other():
    sys.setprofile(lambda *_: None)
    on.set()
    off.wait()
    sys.setprofile(None)
thread = threading.Thread(target=other)
thread.start()
on.wait()
""",
        "off.set(); thread.join()",
    ),
    "monitoring": (
        """
m = sys.monitoring
m.use_tool_id(3, "x")
m.register_callback(3, m.events.CALL, lambda *_: None)
m.set_events(3, m.events.CALL)
""",
        "m.set_events(3, 0); m.free_tool_id(3)",
    ),
}
if sys.version_info < (3, 12):
    del PROFILED["monitoring"]


class TestProfiled:
    @pytest.mark.parametrize("how", PROFILED)
    def test_while_it_parked(self, how: str) -> None:
        on, off = PROFILED[how]
        assert lines(f"""
{on}
first = parked()
{off}
second = parked()
trim_stacks()
first.insert()
second.insert()
run()
print(ran)
print("end")
""") == ["[2]", "end"]

    @pytest.mark.parametrize("how", PROFILED)
    def test_while_it_leaves(self, how: str) -> None:
        on, off = PROFILED[how]
        assert lines(f"""
task = parked()
{on}
trim_stacks()
{off}
task.insert()
run()
print(ran)
print("end")
""") == ["[1]", "end"]

    @pytest.mark.parametrize("how", PROFILED)
    def test_while_a_loaded_one_is_killed(self, how: str) -> None:
        on, off = PROFILED[how]
        assert lines(f"""
task = loaded()
{on}
task.kill()
{off}
print(ran)
print("end")
""") == ["[1]", "end"]


class TestCaptured:
    """What runs while a tasklet is pickled ends this very tasklet."""

    def test_a_collection(self) -> None:
        assert lines("""
source = "def wide(n):\\n"
source += "".join(f"    v{i} = [{i}]\\n" for i in range(30))  # no free list has such tuples
source += "    if n:\\n        return wide(n - 1) or 1\\n    schedule_remove()\\n"
exec(source)

class Owner:
    def __del__(self):
        task.kill()
        tasklet(work)(60)
        run()

for began in (True, False):
    for i in range(120):
        task = tasklet(wide)(i % 10)
        if began:
            run()
        else:
            task.remove()
        gc.collect()
        gc.disable()
        owner = Owner()
        owner.me = owner
        del owner
        gc.enable()
        gc.set_threshold(1 + i // 10)
        try:
            pickle.dumps(task)
        except pickle.PicklingError:
            pass
        gc.set_threshold(700)
        task.kill()
print("end")
""") == ["end"]

    def test_a_partial_that_leads_to_itself(self) -> None:
        assert (
            lines("""
def circular():
    it.__setstate__((it, (), {}, {}))
    schedule_remove()

it = functools.partial(circular)

def calls():
    return it()

task = tasklet(calls)()
run()
try:
    dumps(task)
except pickle.PicklingError as error:
    print(error)
task.kill()
print("end")
""")[-1]
            == "end"
        )

    def test_a_key_that_is_compared(self) -> None:
        assert lines("""
class Key(str):
    def __hash__(self):
        return hash(str(self))
    def __eq__(self, other):
        if armed:
            task.kill()
            tasklet(work)(60)
            run()
        return False

armed = False
names = {Key("later"): 0, "made": lambda: functools.partial(schedule_in, 1)}

def schedule_in(n):
    schedule_remove(n)

exec("def outer():\\n    return made()() and later\\n", names)
task = tasklet(names.pop("outer"))()
run()
armed = True
try:
    dumps(task)
except pickle.PicklingError:
    pass
print("end")
""") == ["end"]

    def test_a_name_that_is_asked_for(self) -> None:
        assert lines("""
class Meta(type):
    def __getattribute__(cls, name):
        if name == "__qualname__":
            task.kill()
            tasklet(work)(60)
            run()
        return type.__getattribute__(cls, name)

class Class(metaclass=Meta):
    def __new__(cls):
        schedule_remove()

def calls():
    return Class()

task = tasklet(calls)()
del calls
run()
try:
    pickle.dumps(task)
except pickle.PicklingError as error:
    print(error)
print("end")
""") == ["Class() (a class) is in the middle of calls() line 40", "end"]


class TestRestored:
    def test_two_variables_that_were_stored_at_once(self) -> None:
        """Others have no value yet: what one instruction of 3.13 stores is not what they hold."""
        assert lines("""
def stores(make):
    first, second = make(), make()
    schedule_remove()
    third = fourth = make()
    ran.extend([first, second, third, fourth])

task = tasklet(stores)(list)
run()
data = dumps(task)
task.kill()
pickle.loads(data).insert()
run()
print(ran)
print("end")
""") == ["[0, [], [], [], []]", "end"]

    def test_an_offset_where_no_function_is_interrupted(self) -> None:
        """Instructions that make a function take for granted what the one before has left."""
        assert lines("""
from cpythonplus import _native

def makes(n):
    def inner(a: int = (n, 1), *, b: int = schedule_remove()):
        return a, b
    return inner()

task = tasklet(makes)(3)
run()
data = dumps(task)
real = _native.tasklets_restore

def is_loaded(offset):
    def restore(task, frames, *rest):
        real(task, tuple((owner, offset, *more) for owner, _, *more in frames), *rest)
    _native.tasklets_restore = restore
    try:
        pickle.loads(data)
    except pickle.UnpicklingError:
        return False
    return True

print([offset for offset in range(-200, 0) if is_loaded(offset)])
print("end")
""") == ["[]", "end"]

    """What a generator or an iterator lets go as its state is set asks it for a value."""

    def test_a_generator(self) -> None:
        assert lines("""
from cpythonplus import _native

def numbers(n):
    yield n
    yield n

class Asks:
    def __del__(self):
        try:
            next(made)
        except ValueError as error:
            print(error)

begun = numbers(1)
next(begun)
state = _native.generator_capture(begun, ValueError)
made = numbers(Asks())
_native.generator_restore(made, state)
print(*made)
print("end")
""") == ["generator already executing", "1", "end"]

    @pytest.mark.skipif(sys.version_info < (3, 14), reason="it has its own __reduce__ there")
    def test_an_iterator(self) -> None:
        assert lines("""
import itertools
from cpythonplus import _native

class Asks:
    def __iter__(self):
        return self
    def __next__(self):
        return 0
    def __del__(self):
        print(next(made))

state = _native.itertools_capture(itertools.islice(iter([1, 2, 3]), 1, None))
made = itertools.islice(Asks(), 5)
_native.itertools_restore(made, state)
print("end")
""") == ["2", "end"]
