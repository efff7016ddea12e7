"""Holds of the GIL that are too long are recorded with their line and length, and no others."""

import json
import re

import pytest

from tests.support import FREE_THREADED, run_child

pytestmark = pytest.mark.skipif(FREE_THREADED, reason="there is no GIL to schedule")

# Each makes ready, and then keeps the GIL in the line that is marked. `nap` keeps it for so many
# seconds, for certain.
PLANTED = {
    "a C function that keeps the GIL": "nap(0.3)  #!",
    "in a function that returns at once": """
def inner():
    return nap(0.3)  #!
inner()
""",
    "a regular expression that backtracks": 'until(re.match, "(a*)*b", "a" * 24)  #!',
    "JSON is read": """
text = json.dumps([{"a": [i, "b", None]} for i in range(600_000)])
json.loads(text)  #!
""",
    "JSON is written": """
data = [{"a": [i, "b", None]} for i in range(400_000)]
json.dumps(data)  #!
""",
    "a list is sorted": """
data = [(i * 7919 % 1_000_003, str(i)) for i in range(700_000)]
data.sort()  #!
""",
    "a sum": "sum(range(25_000_000))  #!",
    "a power, which is no call": """
def compute():
    result = 7 ** 700_000  #!
    time.sleep(0)
    return result
compute()
""",
    "a text is joined": '"".join(map(str, range(3_000_000)))  #!',
    "a collection": """
gc.disable()
data = [[i] for i in range(3_000_000)]
gc.collect()  #!
""",
    "a large list is freed": """
def drop():
    data = [[[i]] for i in range(2_500_000)]
    time.sleep(0)
    del data  #!
    time.sleep(0)
gc.disable()
drop()
""",
    "a pickle is written": """
data = [{"a": (i, i)} for i in range(900_000)]
pickle.dumps(data)  #!
""",
    "a deep copy in C": """
data = [[i, i] for i in range(1_500_000)]
list(map(tuple, data))  #!
""",
    "a string is searched": """
text = "a" * 400_000 + "b"
text.count("a" * 2_000 + "b" + "a")  #!
nap(0.2)  #!
""",
    "a set is made": "set(range(6_000_000))  #!",
    "an iterator is used up": """
def use_up():
    collections.deque(range(30_000_000), maxlen=0)  #!
    time.sleep(0)
use_up()
""",
    "a membership test, which is no call": """
def look():
    found = -0.5 in range(4_000_000)  #!
    time.sleep(0)
    return found
look()
""",
    "a module that is imported": """
import importlib.abc, importlib.machinery
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "slow":
            return importlib.machinery.ModuleSpec(name, self)
    def exec_module(self, module):
        nap(0.3)  #!
sys.meta_path.insert(0, Finder())
import slow
""",
    "a callback of asyncio": """
import asyncio
def callback():
    nap(0.3)  #!
async def main():
    asyncio.get_running_loop().call_soon(callback)
    await asyncio.sleep(0.05)
asyncio.run(main())
""",
    "another thread": """
def worker():
    nap(0.3)  #!
thread = threading.Thread(target=worker, name="worker")
thread.start()
thread.join()
""",
    "an atomic section": """
def section():
    with gil.atomic():  #!
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
section()
""",
    "a lock held over C code": """
lock = threading.Lock()
with lock:
    nap(0.3)  #!
""",
}
PROGRAM = """\
from cpythonplus import gil, threads
import collections, ctypes, gc, json, pickle, re, sys, threading, time
from cpythonplus import _native
gil.install()
threads.patch()
usleep = ctypes.PyDLL(None).usleep

def nap(seconds):
    usleep(int(seconds * 1e6))

def until(function, *arguments):
    return function(*arguments)

def other():
    while not over:
        time.sleep(0.0005)

over = []
threading.Thread(target=other, name="other").start()
began = time.monotonic()  # the GIL that the stall keeps may be taken by this sleep
time.sleep(0.01)
assert _native.gil_watch_stalls({limit_us}, 60_000)
try:
    exec(compile({source!r}, "program", "exec"))
finally:
    time.sleep(0.002)
    took_s = time.monotonic() - began
    over.append(1)
print(json.dumps([took_s, [each.as_json() for each in gil.stalls()]]))
"""
LIMIT_US = 60_000


def marked(source: str) -> set[int]:
    return {n for n, line in enumerate(source.splitlines(), 1) if line.endswith("#!")}


@pytest.mark.parametrize("name", PLANTED)
def test_the_line_and_the_length_of_a_stall(name: str) -> None:
    source = PLANTED[name]
    child = run_child(PROGRAM.format(limit_us=LIMIT_US, source=source))
    took_s, found = json.loads(child.out)
    lines = [
        next((each["line"] for each in reversed(stall["stack"]) if each["file"] == "program"), 0)
        for stall in found
    ]
    of_this = [stall for stall, line in zip(found, lines, strict=True) if line in marked(source)]
    assert of_this, (lines, found)
    longest = max(of_this, key=lambda each: each["hold_ns"])
    assert LIMIT_US * 1000 <= longest["hold_ns"] <= took_s * 1e9
    if "nap(0.3)" in source:
        assert longest["hold_ns"] >= 300e6
    assert 0 < longest["waited_ns"] <= longest["hold_ns"] * longest["waiters"]
    assert longest["kind"] == ("atomic" if name == "an atomic section" else "C")


def test_no_stall_where_nobody_waits() -> None:
    child = run_child("""
        import ctypes
        from cpythonplus import _native, gil
        gil.install()
        assert _native.gil_watch_stalls(20_000, 60_000)
        ctypes.PyDLL(None).usleep(200_000)
        print(gil.stalls())
    """)
    assert child.out == "[]\n"


def test_no_stall_where_the_gil_is_given_up_when_it_is_wanted() -> None:
    """The hold before is as long as the limit; the wait is not."""
    child = run_child("""
        import threading, time
        from cpythonplus import _native, gil
        gil.install()
        assert _native.gil_watch_stalls(500_000, 60_000_000)
        over = []
        def other():
            for _ in range(2):
                time.sleep(1.2)
            over.append(1)
        threading.Thread(target=other).start()
        while not over:
            sum(range(1000))
        print(gil.stalls())
    """)
    assert child.out == "[]\n"


# On a machine with other load the other thread may come too late to wait for long.
PROGRAM_WITH_OTHER = """
    import ctypes, os, sys, threading, time
    from cpythonplus import gil
    from cpythonplus.gil._stall_watch import watch_stalls
    gil.install()
    def other():
        while True:
            time.sleep(0.0005)
    def of_worker():
        return sum(":15 in worker" in str(each) for each in gil.stalls())
    def worker():
        usleep = ctypes.PyDLL(None).usleep
        while of_worker() < 3:
            time.sleep(0.01)
            usleep(150_000)
    def begin():
        threading.Thread(target=other, daemon=True).start()
        time.sleep(0.01)
        thread = threading.Thread(target=worker, name="worker")
        thread.start()
        thread.join()
"""


def test_the_same_place_is_told_once_and_counted() -> None:
    child = run_child(
        PROGRAM_WITH_OTHER
        + """
    watch_stalls(100)
    begin()
    """
    )
    lines = [line for line in child.err.splitlines() if "program.py:15 in worker" in line]
    assert 1 <= len(lines) <= 2, child.err
    told = sum(int(found[1]) if (found := re.search(r"\((\d) times", x)) else 1 for x in lines)
    assert told == 3, child.err


def test_a_child_tells_its_own_stalls_only() -> None:
    child = run_child(
        PROGRAM_WITH_OTHER
        + """
    watch_stalls(100)
    begin()
    pid = os.fork()
    if pid == 0:
        assert gil.stalls() == [], gil.stalls()
        begin()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert of_worker() == 3
    """
    )
    # A thread that has ended meanwhile has no name any more.
    assert re.search(r"(worker|thread \d+): C code kept the GIL for", child.err), child.err


def test_a_hold_that_lasts_is_told_while_it_lasts() -> None:
    child = run_child("""
        import ctypes, os, sys, threading, time
        from cpythonplus import _native, gil
        gil.install()
        read, write = os.pipe()
        saved = os.dup(2)
        os.dup2(write, 2)
        def other():
            while True:
                time.sleep(0.01)
        threading.Thread(target=other, daemon=True).start()
        assert _native.gil_watch_stalls(100_000, 200)
        libc = ctypes.PyDLL(None)
        # It goes on until the line comes: read(2) keeps the GIL.
        buffer = ctypes.create_string_buffer(4096)
        def endless():
            length = libc.read(read, buffer, 4096)
            return buffer.raw[:length].decode()
        text = ""
        while "endless" not in text:
            text += endless()
        print(text)
    """)
    kept = r"thread \d+ has kept the GIL for \d+\.\d s, and others wait: "
    assert re.search(kept + r"\S+program\.py:17 \(endless\) < ", child.out)


# Each takes a lock that was made in line 1, and holds it until the thread `other` has waited for it
# for long. The line that is marked is the one that the owner executes meanwhile.
LOCKS = {
    "held over input and output": """lock = threading.Lock()
def hold():
    with lock:
        keep(lock.acquire, lock.release)  #!
hold()
""",
    "a re-entrant lock": """lock = threading.RLock()
def inner():
    with lock:
        keep(lock.acquire, lock.release)  #!
def hold():
    with lock:
        inner()
hold()
""",
    "of a condition": """lock = threading.Condition(threading.Lock())
def hold():
    with lock:
        keep(lock.acquire, lock.release)  #!
hold()
""",
    "given up in a wait": """lock = threading.Condition(threading.RLock())
def hold():
    with lock:
        keep(lock.acquire, lock.release)  #!
        lock.wait(0.001)
hold()
""",
    "released by a call": """lock = threading.Lock()
def hold():
    lock.acquire()
    try:
        keep(lock.acquire, lock.release)  #!
    finally:
        lock.release()
hold()
""",
    "given up by the thread that waited": """lock = threading.Lock()
def hold():
    with lock:
        give_up(lock.acquire)  #!
hold()
""",
    "of a condition, given up": """lock = threading.Condition(threading.Lock())
def hold():
    with lock:
        give_up(lock.acquire)  #!
hold()
""",
}
NO_STALLS = {
    "a lock that is a signal": """lock = threading.Lock()
lock.acquire()
def signal():
    keep(lock.acquire, lambda: None)
    lock.release()
thread = threading.Thread(target=signal)
thread.start()
thread.join()
""",
    "a lock that nobody wants": """lock = threading.Lock()
with lock:
    time.sleep(0.2)
""",
    "a lock that is tried": """lock = threading.Lock()
def tries():
    while not over:
        assert not lock.acquire(blocking=False)
        time.sleep(0.001)
over = []
thread = threading.Thread(target=tries)
with lock:
    thread.start()
    time.sleep(0.2)
    over.append(1)
    thread.join()
""",
    "a lock that is a signal, and is not waited for to the end": """lock = threading.Lock()
lock.acquire()
give_up(lock.acquire)
thread = threading.Thread(target=lock.release)
thread.start()
thread.join()
""",
    "a wait for a notification": """condition = threading.Condition()
def waits():
    with condition:
        ready.set()
        condition.wait()
ready = threading.Event()
thread = threading.Thread(target=waits)
thread.start()
ready.wait()
time.sleep(0.2)
with condition:
    condition.notify()
thread.join()
""",
}
PROGRAM_WITH_LOCKS = """\
from cpythonplus import threads
import json, threading, time
threads.patch()
from cpythonplus import _native, gil

def keep(acquire, release):
    def wants():
        acquire()
        release()
    other = threading.Thread(target=wants, name="other")
    other.start()
    while not any(each[3] >= 200e6 for each in _native.threads_present_waits()):
        time.sleep(0.01)

def give_up(acquire, timeout=0.2):
    def wants():
        assert not acquire(timeout=timeout)
    other = threading.Thread(target=wants, name="other")
    other.start()
    other.join()

assert _native.gil_watch_stalls({limit_us}, 60_000)
began = time.monotonic()
exec(compile({source!r}, "program", "exec"))
took_s = time.monotonic() - began
print(json.dumps([took_s, [each.as_json() for each in gil.stalls()]]))
"""


@pytest.mark.parametrize("name", LOCKS)
def test_the_lines_and_the_length_of_a_hold_of_a_lock(name: str) -> None:
    source = LOCKS[name]
    child = run_child(PROGRAM_WITH_LOCKS.format(limit_us=100_000, source=source))
    took_s, found = json.loads(child.out)
    [stall] = [each for each in found if each["thread"] == "MainThread"]
    assert stall["kind"] == "lock"
    assert stall["made_at"] == {"file": "program", "line": 1, "function": "<module>"}
    own = [each for each in stall["stack"] if each["file"] == "program"]
    assert own[-1]["line"] in marked(source)
    assert own[-1]["function"] in {"hold", "inner"}
    # It has waited for 200 ms by a coarse clock.
    assert 150e6 <= stall["waited_ns"] <= stall["hold_ns"] <= took_s * 1e9
    assert stall["waiters"] == 1


@pytest.mark.parametrize("name", NO_STALLS)
def test_waits_that_are_no_stalls_of_a_lock(name: str) -> None:
    child = run_child(PROGRAM_WITH_LOCKS.format(limit_us=100_000, source=NO_STALLS[name]))
    assert json.loads(child.out)[1] == []


def test_a_wait_that_is_given_up_before_the_limit_is_no_stall() -> None:
    # On a busy machine it lasts longer than its time-out.
    source = "lock = threading.Lock()\nwith lock:\n    give_up(lock.acquire, 0.07)\n"
    child = run_child(PROGRAM_WITH_LOCKS.format(limit_us=2_000_000, source=source))
    assert json.loads(child.out)[1] == []


def test_a_queue_of_short_holds_of_a_lock() -> None:
    """Nobody has the lock for long, and the last thread waits for long."""
    child = run_child(
        PROGRAM_WITH_LOCKS.format(
            limit_us=100_000,
            source="""lock = threading.Lock()
def hold():
    with lock:
        time.sleep(0.02)
crowd = [threading.Thread(target=hold) for _ in range(12)]
with lock:
    for each in crowd:
        each.start()
    while len(_native.threads_present_waits()) < 12:
        time.sleep(0.001)
for each in crowd:
    each.join()
""",
        )
    )
    found = json.loads(child.out)[1]
    assert found
    last = found[-1]
    assert last["hold_ns"] < last["waited_ns"]
    assert last["stack"][-1]["line"] == 3


def test_a_stall_of_a_lock_is_told_with_both_lines() -> None:
    child = run_child("""
        import threading, time
        from cpythonplus import _native, threads
        threads.patch()
        from cpythonplus.gil._stall_watch import watch_stalls
        watch_stalls(100)
        lock = threading.Lock()
        def wants():
            with lock:
                pass
        def has():
            with lock:
                other.start()
                while not has_waited(): time.sleep(0.01)
        def has_waited():
            return any(each[3] >= 200e6 for each in _native.threads_present_waits())
        other = threading.Thread(target=wants)
        has()
        other.join()
    """)
    found = re.search(
        r"MainThread: had a lock made at \S+program\.py:7 for ([\d.]+) (m?s);"
        r" 1 waited for ([\d.]+) (m?s) together; at .*\S+program\.py:14 in has",
        child.err,
    )
    assert found, child.err
    held, waited = (float(found[each]) * (1 if found[each + 1] == "s" else 1e-3) for each in (1, 3))
    assert 0.15 <= waited <= held, child.err  # by a coarse clock
