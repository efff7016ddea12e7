"""A dump on a signal, in processes of their own. What is written ends the waiting: no sleeps."""

import io
import signal

import pytest

from cpythonplus import tasklets
from tests.support import Child, run_child

PROGRAM = """
import os, re, signal, sys, threading, time, warnings
from cpythonplus import tasklets
from cpythonplus.tasklets import channel, dump_off, dump_on, run, tasklet

warnings.simplefilter("error")
lock = threading.Lock()
lock.acquire()


class File:
    texts = []

    def write(self, text):
        self.texts.append(text)
        lock.release()


def signalled(signum=signal.SIGUSR1):
    os.kill(os.getpid(), signum)
    lock.acquire()
    return File.texts[-1]
"""


def program(code: str) -> Child:
    return run_child(PROGRAM + "\n" + code)


def test_a_main_thread_that_waits_for_a_lock() -> None:
    child = program(
        """
def worker(where):
    where.receive()

where = channel()
tasklet(worker)(where)
run()
dump_on(signal.SIGUSR1, File())
text = signalled()
assert text.startswith(f"cpythonplus: signal 10 in process {os.getpid()}\\nThread"), text
assert "in signalled\\n      lock.acquire()\\n" in text, text
assert re.search(r"> of worker: receiving for \\d+\\.\\d", text), text
assert "made at" in text
assert text.count("\\nThread ") == 1, text
assert signalled().count("\\nThread ") == 1
"""
    )
    assert child.err == ""


def test_a_system_call_goes_on() -> None:
    child = program(
        """
ours, theirs = os.pipe()

class Pipe:
    def write(self, text):
        os.write(theirs, text.encode())

dump_on(signal.SIGUSR1, Pipe())
os.kill(os.getpid(), signal.SIGUSR1)
text = os.read(ours, 100_000).decode()
assert "os.read(ours" in text, text
"""
    )
    assert child.err == ""


def test_standard_error() -> None:
    child = program(
        """
dump_on(10)
class Tee:
    def __init__(self, stream):
        self.stream = stream
    def write(self, text):
        self.stream.write(text)
        lock.release()
sys.stderr = Tee(sys.stderr)
os.kill(os.getpid(), 10)
lock.acquire()
sys.stderr = sys.stderr.stream
"""
    )
    assert child.err.startswith("cpythonplus: signal 10 in process ")


@pytest.mark.parametrize("end", ["", "sys.exit(0)"])
def test_a_program_that_ends_right_behind_the_signal(end: str) -> None:
    child = run_child(
        f"""
        import os, signal, sys
        from cpythonplus import tasklets

        def kitchen():
            tasklets.channel().receive()

        tasklets.dump_on(signal.SIGUSR1)
        tasklets.tasklet(kitchen)()
        tasklets.run()
        os.kill(os.getpid(), signal.SIGUSR1)
        {end}
        """
    )
    assert "kitchen" in child.err


def test_the_previous_handler_comes_back() -> None:
    program(
        """
told = []
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
dump_on(signal.SIGUSR1, File())
dump_on(signal.SIGUSR1, File())
signalled()
assert told == []
assert dump_off(signal.SIGUSR1) is True
assert dump_off(signal.SIGUSR1) is False
os.kill(os.getpid(), signal.SIGUSR1)
assert told == [1]
assert len(File.texts) == 1
assert threading.active_count() == 1
"""
    )


def test_off_without_a_previous_handler() -> None:
    child = run_child(
        PROGRAM + "dump_on(10, File()); signalled(); dump_off(10); os.kill(os.getpid(), 10)",
        status=-signal.SIGUSR1,
    )
    assert child.err == ""


def test_a_handler_that_was_set_since_stays() -> None:
    program(
        """
told = []
dump_on(signal.SIGUSR1, File())
signal.signal(signal.SIGUSR1, lambda *_: told.append(1))
assert dump_off(signal.SIGUSR1) is True
os.kill(os.getpid(), signal.SIGUSR1)
assert (told, File.texts) == ([1], [])
"""
    )


def test_two_signals() -> None:
    program(
        """
dump_on(signal.SIGUSR1, File())
dump_on(signal.SIGUSR2, File())
assert "signal 12 " in signalled(signal.SIGUSR2)
assert dump_off(signal.SIGUSR2)
assert "signal 10 " in signalled()
assert dump_off(signal.SIGUSR1)
dump_on(signal.SIGRTMAX, File())
assert f"signal {signal.SIGRTMAX:d} " in signalled(signal.SIGRTMAX)
"""
    )


def test_on_while_the_last_one_is_switched_off() -> None:
    """`dump_off` gives the GIL up while a dump ends, and the thread of both with it."""
    program(
        """
begun, go_on = threading.Event(), threading.Event()

class Slow:
    def write(self, text):
        begun.set()
        go_on.wait()

def is_caught(signum):
    with open("/proc/self/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> (signum - 1) & 1

dump_on(signal.SIGUSR1, Slow())
os.kill(os.getpid(), signal.SIGUSR1)
begun.wait()
switcher = threading.Thread(target=dump_off, args=(signal.SIGUSR1,))
switcher.start()
while is_caught(signal.SIGUSR1):
    time.sleep(0)
dump_on(signal.SIGUSR2, File())
go_on.set()
switcher.join()
assert signalled(signal.SIGUSR2).startswith("cpythonplus: signal 12")
"""
    )


def test_a_deadlock_is_one() -> None:
    """The thread that writes dumps is none that could wake a tasklet, nor is it seen."""
    program(
        """
dump_on(signal.SIGUSR1, File())
signalled()
try:
    channel().receive()
except RuntimeError as error:
    assert "Deadlock" in str(error)
else:
    raise AssertionError
assert threading.active_count() == 1
assert tasklets.threads == [threading.get_ident()]
"""
    )


def test_fork() -> None:
    """Parent and child both have it, and no fork is told of as dangerous."""
    program(
        """
dump_on(signal.SIGUSR1, File())
pid = os.fork()
if pid == 0:
    assert f"process {os.getpid()}" in signalled()
    assert "in signalled" in signalled()
    if os.fork() == 0:
        assert f"process {os.getpid()}" in signalled()
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
    os._exit(3)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
assert File.texts == []
assert f"process {os.getpid()}" in signalled()
"""
    )


def test_a_child_that_c_code_forks_ignores_it() -> None:
    program(
        """
import ctypes
dump_on(signal.SIGUSR1, File())
pid = ctypes.PyDLL(None).fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGUSR1)
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
assert File.texts == []
signalled()
"""
    )


def test_a_program_that_is_executed_has_the_default_action() -> None:
    program(
        """
import subprocess
dump_on(signal.SIGUSR1, File())
code = "import os; os.kill(os.getpid(), 10)"
assert subprocess.run([sys.executable, "-c", code]).returncode == -10
assert File.texts == []
"""
    )


def test_closing_all_descriptors_does_no_harm() -> None:
    program(
        """
dump_on(signal.SIGUSR1, File())
os.closerange(3, 256)
signalled()
first = os.open("/dev/null", os.O_RDONLY)
assert first == 3, first
"""
    )


@pytest.mark.parametrize(
    "raised", ["OSError('full')", "ValueError('closed')", "KeyError('a defect')"]
)
def test_a_file_that_fails(raised: str) -> None:
    child = program(
        f"""
class Fails:
    def write(self, text):
        lock.release()
        raise {raised}

told = []
sys.unraisablehook = lambda info: told.append(info.exc_value)
dump_on(signal.SIGUSR2, Fails())
os.kill(os.getpid(), signal.SIGUSR2)
lock.acquire()
dump_on(signal.SIGUSR1, File())
signalled()
assert [type(each).__name__ for each in told] == {["KeyError"] if "Key" in raised else []}
"""
    )
    assert child.err == ""


def test_the_program_ends_during_a_dump() -> None:
    """The dump is finished; what comes after the end of the program is ignored."""
    child = program(
        """
import atexit

class Slow:
    def write(self, text):
        lock.release()
        sys.stdout.write("complete" if "Thread " in text else text)
        sys.stdout.flush()

dump_on(signal.SIGUSR1, Slow())
class AtTheEnd:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        kill(pid, 10)
sys.at_the_end = AtTheEnd()
os.kill(os.getpid(), signal.SIGUSR1)
lock.acquire()
"""
    )
    assert (child.out, child.err) == ("complete", "")


@pytest.mark.parametrize("signum", [0, -1, 9, 11, 19, 1000, "USR1"])
def test_signals_that_cannot_be_used(signum: int) -> None:
    with pytest.raises(ValueError, match=f"stacks cannot be printed on signal {signum!r}"):
        tasklets.dump_on(signum, io.StringIO())
    if isinstance(signum, int):
        assert tasklets.dump_off(signum) is False


def test_off_of_what_was_never_on() -> None:
    assert tasklets.dump_off(signal.SIGUSR2) is False
    with pytest.raises(TypeError):
        tasklets.dump_off("USR1")  # type: ignore[arg-type]
