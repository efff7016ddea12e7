"""locks.patch(threads=True): threads that are started are tasklets."""

import pytest

from tests.support import run_child

pytest.importorskip("cpythonplus.tasklets.locks._patching", exc_type=ImportError)

PRELUDE = """
import os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from cpythonplus.tasklets import getcurrent, getmain, io, locks, run, schedule, tasklet
before = threading.Thread(target=lambda: log.append(os.getpid() != threading.get_native_id()))
stock_ident = threading.get_ident
io.patch()
locks.patch(threads=True)
log = []
"""


def child(code: str) -> str:
    return run_child(PRELUDE + code, timeout=60).out


def test_they_take_turns_where_they_wait() -> None:
    child("""
def body(name):
    assert getcurrent() is not getmain() and os.getpid() == threading.get_native_id()
    for number in range(3):
        log.append(f"{name}{number}")
        time.sleep(0.001)
threads = [threading.Thread(target=body, args=(name,), name=name) for name in "ab"]
for thread in threads:
    thread.start()
    assert thread.is_alive()
for thread in threads:
    thread.join()
    assert not thread.is_alive()
assert sorted(log) == ["a0", "a1", "a2", "b0", "b1", "b2"] and log[:2] == ["a0", "b0"], log
threads[0].join()
try:
    threads[0].start()
except RuntimeError:
    log.append("twice")
assert log[-1] == "twice"
""")


def test_each_has_a_number_a_name_and_values_of_its_own() -> None:
    child("""
values = threading.local()
values.mine = "main"
go = threading.Event()
def body():
    me = threading.current_thread()
    log.append((me.name, me.ident == threading.get_ident(), hasattr(values, "mine")))
    values.mine = me.name
    go.wait()
    log.append(values.mine)
threads = [threading.Thread(target=body, name=name) for name in "ab"]
for thread in threads:
    thread.start()
assert set(threads) <= set(threading.enumerate())
assert len({threading.get_ident(), *(thread.ident for thread in threads)}) == 3
assert threading.current_thread() is threading.main_thread()
go.set()
for thread in threads:
    thread.join()
assert log == [("a", True, False), ("b", True, False), "a", "b"], log
assert threading.active_count() == 1 and threading.get_ident() == stock_ident()
""")


def test_join_with_a_time_out_and_an_exception() -> None:
    child("""
go = threading.Event()
def body():
    go.wait()
    raise KeyError("why")
threading.excepthook = lambda told: log.append(told.exc_type)
thread = threading.Thread(target=body)
thread.start()
thread.join(0.01)
assert thread.is_alive()
go.set()
thread.join(10)
assert not thread.is_alive() and log == [KeyError], log
""")


def test_executors_timers_and_what_was_made_before() -> None:
    child("""
with ThreadPoolExecutor(3) as pool:
    def slow(value):
        time.sleep(0.01)
        return value, os.getpid() == threading.get_native_id()
    assert list(pool.map(slow, range(6))) == [(number, True) for number in range(6)]
timer = threading.Timer(0.01, log.append, ["timer"])
timer.start()
timer.join()
assert log == ["timer"]
before.start()
before.join()
assert log == ["timer", True]
locks.unpatch()
later = threading.Thread(target=lambda: log.append(os.getpid() != threading.get_native_id()))
later.start()
later.join()
assert log == ["timer", True, True] and threading.get_ident is stock_ident
""")


def test_the_end_waits_for_those_that_are_no_daemons() -> None:
    out = child("""
ends = threading.Event()
def body(name, seconds):
    ends.wait()
    time.sleep(seconds)
    print(name, flush=True)
threading.Thread(target=body, args=("waited for", 0.05)).start()
threading.Thread(target=body, args=("daemon", 50), daemon=True).start()
print("main ends", flush=True)
ends.set()
""")
    assert out.splitlines() == ["main ends", "waited for"]


def test_the_end_waits_for_threads_of_threads_and_of_executors() -> None:
    assert child("""
ends = threading.Event()
executor = ThreadPoolExecutor(2)
executor.submit(time.sleep, 0.01)
def second():
    time.sleep(0.05)
    print("second")
def first():
    ends.wait()
    time.sleep(0.02)
    threading.Thread(target=second).start()
threading.Thread(target=first).start()
print("main", flush=True)
ends.set()
""").splitlines() == ["main", "second"]


def test_a_daemon_ends_without_a_word() -> None:
    ended = run_child(
        PRELUDE
        + """
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
time.sleep(0.01)
""",
        timeout=60,
    )
    assert (ended.out, ended.err) == ("", "")


def test_a_fork_leaves_the_other_threads_behind() -> None:
    assert child("""
import socket
parent = os.getpid()
reading, writing = socket.socketpair()
def waits(how):
    try:
        how()
    finally:
        if os.getpid() != parent:
            print("goes on in the child")
for how in (lambda: time.sleep(0.02), lambda: reading.recv(1), threading.Event().wait):
    threading.Thread(target=waits, args=(how,), daemon=True).start()
time.sleep(0.001)
pid = os.fork()
if pid == 0:
    assert threading.enumerate() == [threading.current_thread()]
    time.sleep(0.05)
    thread = threading.Thread(target=log.append, args=(1,))
    thread.start()
    thread.join()
    assert log == [1]
    writing.send(b"x")
    time.sleep(0.01)
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("parent", flush=True)
os._exit(0)
""").splitlines() == ["parent"]


def test_a_thread_that_forks_is_all_that_its_child_has() -> None:
    assert child("""
from multiprocessing import get_context
def forks():
    pid = os.fork()
    if pid == 0:
        time.sleep(0.01)
        return
    log.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    process = get_context("fork").Process(target=time.sleep, args=(0.01,))
    process.start()
    process.join()
    log.append(process.exitcode)
thread = threading.Thread(target=forks)
thread.start()
thread.join()
print("main", log)
""").splitlines() == ["main [0, 0]"]


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not() -> None:
    """Neither at its end nor in join(), whoever forks."""
    assert child("""
import warnings
warnings.simplefilter("ignore")
from concurrent.futures import ThreadPoolExecutor
from cpythonplus.tasklets import tasklet
pool = ThreadPoolExecutor(2)
pool.submit(int).result()
event = threading.Event()
thread = threading.Thread(target=event.wait)
thread.start()

def forks():
    pid = os.fork()
    if pid == 0:
        assert not thread.is_alive()
        thread.join()
        sys.exit(5)
    log.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

forks()
other = threading.Thread(target=forks)
other.start()
other.join()
event.set()
thread.join()
pool.shutdown()
print(log)
""").splitlines() == ["[5, 0]"]  # a thread that ends by sys.exit() is no error


def test_one_that_runs_at_the_unpatch_ends_as_itself() -> None:
    child("""
thread = threading.Thread(target=time.sleep, args=(0.01,))
thread.start()
locks.unpatch()
thread.join()
assert threading.enumerate() == [threading.main_thread()] == [threading.current_thread()]
""")


HANDLES = """
import signal
def handler(number, frame):
    log.append(getcurrent() is getmain())
    sys.exit(3)
assert signal.signal(signal.SIGTERM, handler) is signal.SIG_DFL
assert signal.getsignal(signal.SIGTERM) is handler
def body():
    started.set()
    {wait}
    os._exit(4)  # the thread has gone on, and main has not ended
started = threading.Event()
thread = threading.Thread(target=body, daemon=True)
try:
    thread.start()
    started.wait()
    thread.join()
except SystemExit as error:
    assert error.code == 3 and threading.current_thread() is threading.main_thread()
    assert thread.is_alive()
    print(log)
    raise
"""


@pytest.mark.parametrize(
    ("wait", "is_main"),
    [
        ("schedule(); os.kill(os.getpid(), 15); schedule(); time.sleep(60)", False),
        ("schedule(); os.kill(os.getpid(), 15)\n    while True: pass", False),
        ("signal.signal(14, handler); signal.setitimer(0, 0.1); time.sleep(60)", None),
        ("signal.signal(14, handler); signal.setitimer(0, 0.1); threading.Event().wait()", None),
    ],
    ids=["waits", "computes", "sleeps", "waits for ever"],
)
def test_what_a_signals_handler_raises_comes_to_main(wait: str, is_main: bool | None) -> None:
    told = run_child(PRELUDE + HANDLES.format(wait=wait), timeout=60, status=3).out.strip()
    assert told in ([f"[{is_main}]"] if is_main is not None else ["[True]", "[False]"])


def test_an_interrupt_comes_to_main_too() -> None:
    child("""
import signal
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
assert signal.signal.__code__.co_filename != signal.__file__
def body():
    schedule()
    signal.raise_signal(signal.SIGINT)
    log.append("goes on")
thread = threading.Thread(target=body)
try:
    thread.start()
    thread.join()
except KeyboardInterrupt:
    log.append("interrupted")
thread.join()
assert log == ["interrupted", "goes on"], log
locks.unpatch()
for each in (signal.signal, signal.getsignal):
    assert each.__code__.co_filename == signal.__file__
""")


def test_a_handler_in_a_child_whose_only_thread_has_forked() -> None:
    child("""
import signal
def handler(number, frame):
    raise TimeoutError
signal.signal(signal.SIGALRM, handler)
def body():
    if pid := os.fork():
        log.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return
    try:
        signal.raise_signal(signal.SIGALRM)
    except TimeoutError:
        os._exit(5)
thread = threading.Thread(target=body)
thread.start()
thread.join()
assert log == [5], log
""")
