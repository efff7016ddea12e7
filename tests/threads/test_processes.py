"""Processes that wait for each other: each such deadlock is told, and none that may go on."""

import json
import re

import pytest

from cpythonplus.threads._waits_text import deadlock_lines
from tests.support import run_child

pytestmark = pytest.mark.needs_gil

# `look` runs in a thread that `threading` does not know, as the doctor's does.
HEAD = """\
from cpythonplus import threads
threads.patch()
import _thread, json, multiprocessing, os, subprocess, sys, threading, time
from cpythonplus._base.proc import descendants
from cpythonplus.threads._waits_text import deadlock_lines

FORK, MIB = multiprocessing.get_context("fork"), 1 << 20

def python(source, *words, **how):
    return subprocess.Popen([sys.executable, "-c", source, *words], **how)

def ends():
    for pid in [*descendants(os.getpid())]:
        os.kill(pid, 9)
    os._exit(0)

threads.waits()  # it is imported now, not beside the program's imports
"""
FIND = """
def look():
    before = None
    while True:
        found = threads.waits().as_json()
        if found["deadlocks"] and found["deadlocks"] == before:
            print(json.dumps(found), flush=True)
            ends()
        before = found["deadlocks"]
        time.sleep(0.1)
_thread.start_new_thread(look, ())
"""
NONE = """
def look():
    while True:
        found = threads.waits().as_json()
        if found["deadlocks"]:
            print(deadlock_lines(found), flush=True)
            os._exit(1)
        time.sleep(0.002)
_thread.start_new_thread(look, ())
"""

STUCK = {
    "the end of a child whose output is full": (
        """
child = python("print('x' * 2**20)", stdout=subprocess.PIPE)
child.wait()
""",
        ["for the end of process PID", "while process PID waits to write to a pipe"],
    ),
    "a child that reads and writes in another order": (
        """
child = python(
    "import sys; print('x' * 2**20); print(sys.stdin.read())",
    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
)
child.stdin.write(bytes(MIB))
""",
        ["for room in a pipe", "while process PID waits to write to a pipe"],
    ),
    "a worker that has put more than its queue holds": (
        """
queue = FORK.Queue()
worker = FORK.Process(target=lambda: queue.put(bytes(MIB)))
worker.start()
worker.join()
""",
        ["for the end of process PID", "while process PID waits to write to a pipe"],
    ),
    "both sides of a pipe wait for the other one's word": (
        """
ours, theirs = FORK.Pipe()
worker = FORK.Process(target=lambda: theirs.recv())
worker.start()
theirs.close()
ours.recv()
""",
        ["for data from a socket", "while process PID waits to read from a socket"],
    ),
    "a lock is held while the worker that needs it is joined": (
        """
lock = FORK.Lock()
def work():
    with lock:
        pass
worker = FORK.Process(target=work)
with lock:
    worker.start()
    worker.join()
""",
        [
            "for the end of process PID",
            "while process PID waits for a semaphore of multiprocessing",
        ],
    ),
    "three processes in a ring": (
        """
reader, writer = os.pipe()
LAST = f"import os; os.write({writer}, bytes(2**20))"
child = python(
    f"import subprocess, sys; subprocess.call([sys.executable, '-c', {LAST!r}], close_fds=False)",
    pass_fds=[writer],
)
os.close(writer)
child.wait()
""",
        ["for the end of process PID", "while process PID waits for the end of process PID"],
    ),
    "a thread waits for a lock that the waiting thread has": (
        """
child, lock = python("print('x' * 2**20)", stdout=subprocess.PIPE), threading.Lock()
def read():
    with lock:
        child.stdout.read()
with lock:
    threading.Thread(target=read, daemon=True).start()
    child.wait()
""",
        ["for the end of process PID", "while process PID waits to write to a pipe"],
    ),
}
SLOW = {
    "a child that computes": """
python("import time; time.sleep(0.5)").wait()
""",
    "another thread reads what the child writes": """
child = python("print('x' * 2**20)", stdout=subprocess.PIPE)
def read():
    while child.stdout.read(10_000):
        time.sleep(0.01)
thread = threading.Thread(target=read)
thread.start()
child.wait()
thread.join()
""",
    "another thread of the child goes on": """
child = python(
    "import os, threading, time; threading.Timer(0.5, os._exit, [0]).start(); print('x' * 2**20)",
    stdout=subprocess.PIPE,
)
child.wait()
""",
    "a third process reads": """
child = python("import os; os.write(1, bytes(2**20))", stdout=subprocess.PIPE)
other = python(
    "import sys, time; time.sleep(0.5); sys.stdin.buffer.read()", stdin=child.stdout
)
child.wait()
other.wait()
""",
    "a third process gives the lock back": """
lock = FORK.Lock()
def gives_back():
    time.sleep(0.5)
    lock.release()
def work():
    with lock:
        pass
lock.acquire()
workers = [FORK.Process(target=each) for each in (gives_back, work)]
for each in workers:
    each.start()
for each in reversed(workers):
    each.join()
""",
    "words that go to and fro": """
ours, theirs = FORK.Pipe()
def answers():
    for _ in range(3000):
        theirs.send(theirs.recv())
worker = FORK.Process(target=answers)
worker.start()
for number in range(3000):
    ours.send(number)
    assert ours.recv() == number
worker.join()
""",
}


@pytest.mark.parametrize("name", STUCK)
def test_a_deadlock_of_processes_is_told(name: str) -> None:
    source, expected = STUCK[name]
    child = run_child(HEAD + FIND + source)
    found = json.loads(child.out)
    (deadlock,) = found["deadlocks"]
    assert deadlock["kind"] == "processes"
    main = next(each for each in found["waits"] if each["name"] == "MainThread")
    assert main["ident"] in deadlock["threads"]
    heading, *lines = deadlock_lines(found)
    assert heading == "Deadlock: this process waits for others, which wait for this process:"
    words = [
        re.sub(r"\d+", "PID", line.strip())
        for line in lines
        if "process" in line or " for " in line
    ]
    at = words.index(expected[0])
    assert words[at : at + 2] == expected


@pytest.mark.parametrize("name", SLOW)
def test_processes_that_may_go_on_are_not_called_deadlocked(name: str) -> None:
    run_child(HEAD + NONE + SLOW[name])
