"""locks.patch(threads=True): threads that are started are tasklets."""

import pytest

from tests.support import run_child

pytest.importorskip("cpythonplus.tasklets.locks.patching", exc_type=ImportError)

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
def body():
    me = threading.current_thread()
    log.append((me.name, me.ident == threading.get_ident(), hasattr(values, "mine")))
    values.mine = me.name
    time.sleep(0.01)
    log.append(values.mine)
threads = [threading.Thread(target=body, name=name) for name in "ab"]
for thread in threads:
    thread.start()
assert set(threads) <= set(threading.enumerate())
assert len({threading.get_ident(), *(thread.ident for thread in threads)}) == 3
assert threading.current_thread() is threading.main_thread()
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
def body(name, seconds):
    time.sleep(seconds)
    print(name, flush=True)
threading.Thread(target=body, args=("waited for", 0.05)).start()
threading.Thread(target=body, args=("daemon", 50), daemon=True).start()
print("main ends", flush=True)
""")
    assert out.splitlines() == ["main ends", "waited for"]
