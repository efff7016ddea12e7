"""Looking up names, and calls in threads, while only the tasklet waits."""

import socket as stock
from typing import Any

import pytest

from tests.support import run_child

names: Any = pytest.importorskip("cpythonplus.tasklets.io.names", exc_type=ImportError)
threadpool: Any = pytest.importorskip("cpythonplus.tasklets.io._threadpool", exc_type=ImportError)

PRELUDE = """
import contextvars, gc, os, socket as stock, threading, time, weakref
from cpythonplus import tasklets
from cpythonplus.tasklets import TaskletExit, run, schedule, tasklet
from cpythonplus.tasklets.io import in_thread, names, set_thread_limit, _threadpool as threadpool

def raised(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return error

def until(condition):
    while not condition():
        schedule()
"""


def child(code: str) -> None:
    run_child(PRELUDE + code, timeout=40)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("getaddrinfo", ("127.0.0.1", 80)),
        ("getaddrinfo", ("::1", "80", 0, stock.SOCK_STREAM)),
        ("getaddrinfo", (None, 0, 0, 0, 0, stock.AI_PASSIVE)),
        ("getaddrinfo", ("localhost", 80, stock.AF_INET, stock.SOCK_STREAM)),
        ("getaddrinfo", ("127.0.0.1", "no such service")),
        ("getaddrinfo", ("x" * 64 + ".example", 1)),
        ("getaddrinfo", (5, 1)),
        ("gethostbyname", ("127.0.0.1",)),
        ("gethostbyname", ("localhost",)),
        ("gethostbyname", ("",)),
        ("gethostbyname", (5,)),
        ("gethostbyname_ex", ("127.0.0.1",)),
        ("gethostbyaddr", ("127.0.0.1",)),
        ("gethostbyaddr", (5,)),
        ("getnameinfo", (("127.0.0.1", 80), stock.NI_NUMERICHOST | stock.NI_NUMERICSERV)),
        ("getnameinfo", (("127.0.0.1", 80), stock.NI_NUMERICSERV)),
        ("getnameinfo", ("127.0.0.1", 80)),
        ("getfqdn", ("127.0.0.1",)),
    ],
)
def test_answers_are_those_of_the_standard_functions(
    function: str, arguments: tuple[Any, ...]
) -> None:
    answers = []
    for module in (stock, names):
        try:
            answers.append(getattr(module, function)(*arguments))
        except Exception as error:  # noqa: BLE001  # whatever it is
            answers.append((type(error), str(error)))
    assert answers[1] == answers[0]


def test_numbers_need_no_thread() -> None:
    child("""
names.in_thread = None
assert names.gethostbyname("127.0.0.1") == "127.0.0.1"
names.getaddrinfo("::1", 80)
names.getnameinfo(("127.0.0.1", 80), stock.NI_NUMERICHOST | stock.NI_NUMERICSERV)
assert names.with_number(("", 80), stock.AF_INET) == ("", 80)
""")


def test_others_run_during_a_look_up_and_its_failure_arrives() -> None:
    child("""
release = threading.Event()
def slow(*arguments):
    release.wait()
    raise stock.gaierror(stock.EAI_NONAME, "Name or service not known")
names._getaddrinfo = lambda host, *rest: slow() if not rest[-1] else real(host, *rest)
real = stock.getaddrinfo
log = []
task = tasklet(lambda: log.append(raised(names.getaddrinfo, "a.name.invalid", 80)))()
until(lambda: task.blocked)
log.append("others run")
release.set()
run()
assert log[0] == "others run"
assert type(log[1]) is stock.gaierror and log[1].errno == stock.EAI_NONAME, log
""")


def test_in_thread() -> None:
    child("""
variable = contextvars.ContextVar("variable")
variable.set(5)
def work(*args, **kwargs):
    seen = variable.get(); variable.set(6)
    return args, kwargs, seen, threading.get_ident()
args, kwargs, seen, thread = in_thread(work, 1, func=2)
assert (args, kwargs, seen, variable.get()) == ((1,), {"func": 2}, 5, 5)
assert thread != threading.get_ident()
error = raised(in_thread, lambda: 1 / 0)
assert type(error) is ZeroDivisionError
def interrupt():
    raise KeyboardInterrupt
assert type(raised(in_thread, interrupt)) is KeyboardInterrupt
for wrong in (0, -1):
    assert type(raised(set_thread_limit, wrong)) is ValueError
for wrong in (1.5, float("nan"), "2", None):
    assert type(raised(set_thread_limit, wrong)) is TypeError
""")


def test_no_more_threads_than_the_limit_and_none_for_ever() -> None:
    child("""
set_thread_limit(3)
under_way, most, done = set(), [], []
lock = threading.Lock()
def work(i):
    with lock:
        under_way.add(i); most.append(len(under_way))
    for _ in range(100): pass
    with lock:
        under_way.discard(i)
    return i
for i in range(100):
    tasklet(lambda i=i: done.append(in_thread(work, i)))()
run()
assert sorted(done) == list(range(100))
assert max(most) <= 3
""")


def test_a_killed_caller_leaves_nothing() -> None:
    child("""
release = threading.Event()
class Result:
    pass
made = []
def work():
    release.wait()
    result = Result()
    made.append(weakref.ref(result))
    return result
log = []
task = tasklet(lambda: log.append(raised(in_thread, work)))()
until(lambda: task.blocked)
task.kill()
assert type(log.pop()) is TaskletExit
release.set()
in_thread(int)
until(lambda: made and not threadpool._pool.unfinished)
del task
gc.collect()
assert made[0]() is None
run()
""")


def test_a_signal_handler_that_raises_leaves_no_place_taken() -> None:
    child("""
import sys
class Raised(Exception):
    pass
def interrupted(nth):
    left = [nth]
    def trace(frame, event, arg):
        if frame.f_code.co_filename != threadpool.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= 1
            if left[0] == 0:
                raise Raised
        return trace
    sys._getframe().f_trace_opcodes = True  # for 3.12
    sys.settrace(trace)
    try:
        return in_thread(int, "5")
    except Raised:
        return None
    finally:
        sys.settrace(None)
set_thread_limit(1)
nth = 1
while interrupted(nth) is None:
    nth += 1
assert nth > 50, nth
until(lambda: not threadpool._pool.threads)
assert not threadpool._pool.unfinished
""")


def test_a_thread_under_way_is_not_in_the_child_of_a_fork() -> None:
    child("""
release = threading.Event()
log = []
task = tasklet(lambda: log.append(raised(in_thread, release.wait)))()
until(lambda: task.blocked)
time.sleep(0.1)  # the sanitizer's allocator, where the thread begins, is not made fit for a fork
pid = os.fork()
if pid == 0:
    until(lambda: log)
    good = type(log[0]) is RuntimeError and in_thread(int, "5") == 5
    run()
    os._exit(0 if good else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
release.set()
run()
assert log == [True], log
""")


def test_run_waits_for_the_thread() -> None:
    child("""
log = []
tasklet(lambda: log.append(in_thread(sum, range(1_000_000))))()
run()
assert log == [499999500000]
""")


def test_in_thread_wants_a_callable() -> None:
    with pytest.raises(TypeError):
        threadpool.in_thread(5)
