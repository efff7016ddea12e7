"""Waiting for processes and threads blocks only the tasklet, and finds what the standard calls do.

Where others could not run meanwhile, the child would hang: it is the other tasklet that lets the
process or the thread get on.
"""

import pytest

from tests.support import run_child

pytest.importorskip("cpythonplus.tasklets.io._patching", exc_type=ImportError)

PRELUDE = """
import os, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor, wait
from cpythonplus.tasklets import io, locks, run, schedule, tasklet
stock_waitpid, stock_join = os.waitpid, threading.Thread.join
io.patch()
locks.patch()
log = []

def together(*functions):
    for function in functions:
        tasklet(function)()
    run()

def until_told(command="read line"):
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
"""


def child(code: str) -> None:
    run_child(PRELUDE + code, timeout=60)


def test_wait() -> None:
    child("""
process = until_told("read line; exit 3")
def waits():
    log.append(process.wait())
def tells():
    io.sleep(0.05)
    log.append("told")
    process.stdin.close()
together(waits, waits, tells)
assert log == ["told", 3, 3], log
process.stdout.close()
assert subprocess.run(["false"]).returncode == 1
try:
    subprocess.run(["sleep", "10"], timeout=0.05)
except subprocess.TimeoutExpired:
    log.append("late")
assert log[-1] == "late"
try:
    subprocess.run(["/no/such/program"])
except FileNotFoundError:
    log.append("none")
assert log[-1] == "none"
""")


def test_one_reads_what_answers_to_what_another_writes() -> None:
    child("""
process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def reads():
    log.append(process.stdout.readline())
    log.append(process.stdout.read())
def writes():
    io.sleep(0.02)
    process.stdin.write("first\\n")
    process.stdin.flush()
    schedule()
    process.stdin.write("second")
    process.stdin.close()
together(reads, writes)
assert log == ["first\\n", "second"], log
assert process.wait() == 0
process.stdout.close()
""")


@pytest.mark.parametrize("size", [1, 4096, 1_000_000])
def test_more_than_a_pipe_holds(size: int) -> None:
    child(f"""
data = os.urandom({size})
done = subprocess.run(["cat"], input=data, stdout=subprocess.PIPE, check=True)
assert done.stdout == data
assert subprocess.check_output(["cat"], input=data) == data
turns = [0]
def others():
    while not log:
        turns[0] += 1
        schedule()
def unbuffered():
    with subprocess.Popen(["cat"], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
        def reads():
            found = b""
            while part := cat.stdout.read(70_000):
                found += part
            log.append(found == data)
        tasklet(reads)()
        assert cat.stdin.write(data) == len(data)
        cat.stdin.close()
        while not log:
            schedule()
together(unbuffered, others)
assert log == [True] and turns[0] > 1
both = subprocess.run(["sh", "-c", "cat; echo no >&2"], input=data, capture_output=True)
assert (both.stdout, both.stderr) == (data, b"no\\n")
""")


def test_what_pipes_look_like() -> None:
    child("""
import io as standard
process = until_told()
pipes = {standard.BufferedWriter: process.stdin, standard.BufferedReader: process.stdout}
for kind, pipe in pipes.items():
    assert type(pipe) is kind and isinstance(pipe.raw, standard.FileIO)
    assert isinstance(pipe.name, int) and not pipe.isatty()
process.stdin.close()
try:
    process.stdin.write(b"x")
except ValueError as error:
    assert "closed" in str(error)
assert process.stdout.read() == b"" and process.wait() == 1
process = until_told("exit 0")
process.wait()
try:
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
except BrokenPipeError:
    log.append("broken")
assert log == ["broken"]
process.stdout.close()
assert subprocess.io.BytesIO is standard.BytesIO and sys.modules["io"] is standard
""")


def test_calls_of_os() -> None:
    child("""
gate, opens = os.pipe()

def forked(status):
    # It lives until a byte comes, however slow its parent is.
    pid = os.fork()
    if pid == 0:
        os.read(gate, 1)
        os._exit(status)
    return pid

def lets_go():
    log.append("other")
    os.write(opens, b"x")

def waits(call, at):
    pid = forked(5)
    def body():
        log.append((call(pid)[0] == pid, os.waitstatus_to_exitcode(call_status[0])))
    call_status = [None]
    def noting(pid):
        found = at(pid)
        call_status[0] = found[1]
        return found
    call = noting
    tasklet(body)()
    tasklet(lets_go)()
    run()

for at in (lambda pid: os.waitpid(pid, 0), lambda pid: os.wait(), lambda pid: os.waitpid(-1, 0),
           lambda pid: os.wait4(pid, 0), lambda pid: os.wait3(0)):
    log.clear()
    waits(None, at)
    assert log == ["other", (True, 5)], log
pid = forked(1)
assert os.waitpid(pid, os.WNOHANG) == (0, 0)
lets_go()
os.wait()
for refused in 2 ** 22 + 1, os.getpid(), -1:
    try:
        os.waitpid(refused, 0)
    except ChildProcessError:
        log.append("none")
assert log.count("none") == 3, log
io.unpatch()
assert os.waitpid is stock_waitpid
""")


def test_join() -> None:
    child("""
go, before = threading.Event(), []
def body():
    go.wait()
thread = threading.Thread(target=body)
thread.start()
late = []
def joins():
    thread.join(0.001)
    assert thread.is_alive()
    late.append(1)
    thread.join()
    log.append("joined")
def lets_go():
    while len(late) < 2:
        io.sleep(0.001)
    log.append("go")
    go.set()
together(joins, joins, lets_go)
assert log == ["go", "joined", "joined"], log
assert not thread.is_alive()
for wrong in (threading.current_thread(), threading.Thread()):
    try:
        wrong.join()
    except RuntimeError:
        log.append("wrong")
assert log.count("wrong") == 2
locks.unpatch()
assert threading.Thread.join is stock_join
""")


def test_a_thread_that_began_before() -> None:
    child("""
locks.unpatch()
gate = []
def body():
    while not gate:
        pass
thread = threading.Thread(target=body)
thread.start()
locks.patch()
together(lambda: (thread.join(), log.append("joined")), lambda: (log.append("go"), gate.append(1)))
assert log == ["go", "joined"], log
""")


def test_a_thread_that_has_said_its_end_is_not_looked_at_later() -> None:
    child("""
from cpythonplus.tasklets.locks import _joining as joining
joining._LOOK_EVERY_S = 3600
ending = []
class Slow:
    def __del__(self):
        ending.append(1)
        while len(ending) < 2:
            pass
mine = threading.local()
def body():
    mine.slow = Slow()
def joins():
    while not ending:
        io.sleep(0.001)
    assert thread.is_alive()
    threading.Timer(0.01, ending.append, [2]).start()
    thread.join()
    log.append("joined")
thread = threading.Thread(target=body)
thread.start()
together(joins)
while not log:  # run() does not wait for what threads have
    io.sleep(0.001)
""")


def test_results_of_futures() -> None:
    child("""
with ThreadPoolExecutor(2) as pool:
    go = threading.Event()
    def slow(value):
        go.wait()
        return value
    def asks():
        log.append(pool.submit(slow, 7).result())
    def waits():
        log.append(len(wait([pool.submit(slow, 1), pool.submit(slow, 2)]).done))
    together(asks, waits, lambda: (log.append("go"), go.set()))
    while len(log) < 3:  # run() does not wait for what threads have
        io.sleep(0.001)
    assert log[0] == "go" and sorted(log[1:]) == [2, 7], log
    assert list(pool.map(slow, range(5))) == list(range(5))
""")


def test_a_tasklet_that_is_killed_leaves_its_process() -> None:
    child("""
process = until_told("read line; exit 4")
victim = tasklet(process.wait)()
run_soon = [schedule() for _ in range(3)]
victim.kill()
process.stdin.close()
assert process.wait() == 4
process.stdout.close()
assert len(os.listdir("/proc/self/fd")) < 20
""")


def test_a_pipe_that_is_closed_wakes_who_reads_it() -> None:
    child("""
process = until_told()
def reads():
    try:
        process.stdout.raw.read(1)
    except OSError as error:
        log.append(error.errno)
def closes():
    process.stdout.raw.close()
together(reads, closes)
assert log == [9], log
process.stdin.close()
process.wait()
""")


def test_a_pipe_that_the_program_has_made_non_blocking() -> None:
    child("""
from subprocess import PIPE, Popen
with Popen(["cat"], stdin=PIPE, stdout=PIPE, bufsize=0) as process:
    for pipe in (process.stdin, process.stdout):
        os.set_blocking(pipe.fileno(), False)
    assert process.stdout.read() is None and process.stdout.read(1) is None
    sent = 0
    while some := process.stdin.write(b"x" * 200_000):
        sent += some
    assert 0 < sent < 1_000_000
    process.stdin.close()
    os.set_blocking(process.stdout.fileno(), True)
    assert len(process.stdout.read()) == sent
""")


def test_without_a_free_descriptor() -> None:
    child("""
import resource, select
process = subprocess.Popen(["sleep", "0.05"])
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
assert process.wait() == 0
assert select.select([], [], [], 0.01) == ([], [], [])
""")
