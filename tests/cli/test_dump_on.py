"""`cpythonplus run --dump-on SIGNAL`: a program shows what it does when it gets the signal."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from cpythonplus._cli.features import signal_number
from tests.cli.support import PYTHON, RUNNER, assert_refused, environment, execute, run
from tests.cli.test_children import carried

# Asks for a dump and then waits for ever.
STUCK = """\
import os, signal
os.kill(os.getpid(), signal.SIG{name})
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
while True:
    signal.sigwait([signal.SIGTERM])
"""
WITH_TASKLETS = """\
from cpythonplus.tasklets import channel, run, tasklet
def worker(where):
    where.receive()
tasklet(worker)(channel())
run()
"""


# Each child prints the first words of its dump.
CHILDREN = """\
import multiprocessing, subprocess, sys
ASK = '''
import os, sys, threading
lock = threading.Lock()
lock.acquire()
class Stream:
    def write(self, text):
        print(*text.split()[:3], flush=True)
        lock.release()
sys.stderr = Stream()
os.kill(os.getpid(), 10)
lock.acquire()
os._exit(0)
'''
def work():
    exec(ASK, {})
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start(); child.join()
    subprocess.run([sys.executable, "-c", ASK])
"""


def dumped(*arguments: str) -> str:
    """Return the dump of a program that asks for one, and end it."""
    command = [*RUNNER, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        lines = []
        while (line := process.stderr.readline()) not in ("", "\n"):
            lines.append(line)
        process.kill()
    return "".join(lines)


@pytest.mark.parametrize(
    ("word", "signum"),
    [
        ("USR1", signal.SIGUSR1),
        ("SIGUSR1", signal.SIGUSR1),
        ("usr2", signal.SIGUSR2),
        ("10", 10),
        ("RTMAX", signal.SIGRTMAX),
        ("35", 35),
    ],
)
def test_names_of_signals(word: str, signum: int) -> None:
    assert signal_number(word) == str(int(signum))


@pytest.mark.parametrize("word", ["", "XYZ", "0", "99", "-1", "1.5", "SIGSIGUSR1", "32", "1\u0663"])
def test_no_names_of_signals(word: str) -> None:
    with pytest.raises(ValueError, match=f"number of a signal, got {re.escape(repr(word))}"):
        signal_number(word)


def test_a_program_without_tasklets() -> None:
    text = dumped("--dump-on", "USR1", "-c", STUCK.format(name="USR1"))
    heading, thread, *stack = text.splitlines()
    assert heading.startswith(f"cpythonplus: signal {signal.SIGUSR1:d} in process ")
    assert thread.startswith("Thread MainThread (0x")
    assert stack[0].startswith('  File "<string>", line ')


def test_a_program_with_tasklets() -> None:
    text = dumped(
        f"--dump-on={signal.SIGRTMAX:d}", "-c", WITH_TASKLETS + STUCK.format(name="RTMAX")
    )
    assert ", 2 tasklets:\n" in text
    assert "> of worker: receiving for " in text
    assert "main>: current\n" in text


def test_without_the_gil_s_scheduling() -> None:
    text = dumped("--no-gil", "--dump-on", "hup", "-c", WITH_TASKLETS + STUCK.format(name="HUP"))
    assert "> of worker: receiving for " in text


def test_children_have_it(tmp_path: Path) -> None:
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    result = run("--dump-on", "USR1", str(script))
    assert (result.out, result.err) == ("cpythonplus: signal 10\n" * 2, "")


def test_no_signal() -> None:
    result = run("--dump-on", "XYZ", "-c", "print(1)")
    assert_refused(
        result, "cpythonplus run: --dump-on: expected the name or number of a signal", "'XYZ'"
    )


def test_a_signal_that_cannot_be_used() -> None:
    result = run("--dump-on", "KILL", "-c", "print(1)")
    assert_refused(result, "cpythonplus run: dump: stacks cannot be printed on signal")


def test_where_tasklets_cannot_work() -> None:
    """The threads' stacks are told all the same."""
    code = """\
import os, signal
from cpythonplus import _native
_native.tasklets_refusal = lambda: "the moon is in the wrong phase"
from cpythonplus._cli import startup
startup.activate()
def stuck():
    os.kill(os.getpid(), signal.SIGUSR1)
stuck()
"""
    features = {"dump": {"signal": str(int(signal.SIGUSR1))}}
    env = {"CPYTHONPLUS_RUN": carried(features={}), "LATER": carried(features=features)}
    code = f"import os; os.environ['CPYTHONPLUS_RUN'] = os.environ.pop('LATER')\n{code}"
    result = execute([PYTHON, "-c", code], env={**env, "CPYTHONPLUS_RUN": None})
    assert result.status == 0
    assert "most recent call first" in result.err
    assert "in stuck\n" in result.err


def test_nothing_of_it_is_loaded_without_the_option() -> None:
    code = "import sys; print([n for n in sys.modules if n.startswith('cpythonplus.tasklets')])"
    assert run("-c", code).out == "[]\n"


def test_what_the_program_may_have_under_the_same_names(tmp_path: Path) -> None:
    """Its own modules are not taken for the standard library's when the dump is made."""
    for name in ("linecache", "tokenize", "traceback", "dataclasses"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not meant')\n")
    script = tmp_path / "program.py"
    script.write_text(STUCK.format(name="USR1"))
    assert "in <module>\n    " in dumped("--dump-on", "USR1", str(script))
