"""A deadlock is named by `run --deadlock-after`, `--dump-on` and `doctor deadlock PID`."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.support import MODULE, RUNNER, assert_refused, environment, execute, run
from tests.support import FREE_THREADED

pytestmark = pytest.mark.skipif(FREE_THREADED, reason="waits are noted under the GIL")

PROGRAM = """\
import threading
a = threading.Lock()
b = threading.Lock()
both = threading.Barrier(2)
def take(one, other):
    with one:
        both.wait()
        with other:
            pass
for name, locks in ("first", (a, b)), ("second", (b, a)):
    threading.Thread(target=take, args=locks, name=name).start()
"""
CYCLE = [
    r"Deadlock: 2 threads, each waits for the next, the last for the first:",
    r"  (first|second) waits at \S+stuck\.py:8 in take, for \S+ \S+",
    r"    for the Lock made at \S+stuck\.py:[23] in <module>",
    r"    held by (first|second) at \S+stuck\.py:6 in take, for at least \S+ \S+",
]


@contextmanager
def stuck(folder: Path, *options: str, program: str = PROGRAM) -> Iterator["subprocess.Popen[str]"]:
    path = folder / "stuck.py"
    path.write_text(program)
    command = [*RUNNER, *options, str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def read_cycle(process: "subprocess.Popen[str]") -> list[str]:
    """Read up to the first deadlock, and return its first lines."""
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    first = next(line for line in lines if line.startswith("Deadlock"))
    return [first, *(next(lines) for _ in CYCLE[1:])]


def assert_names_the_cycle(lines: list[str]) -> None:
    for line, pattern in zip(lines, CYCLE, strict=True):
        assert re.fullmatch(pattern, line.rstrip("\n")), lines


def test_it_tells_by_itself_and_once(tmp_path: Path) -> None:
    with stuck(tmp_path, "--deadlock-after", "0.2", "--dump-on", "USR1") as process:
        assert_names_the_cycle(read_cycle(process))
        # What comes next is the dump, with the deadlock below the stacks.
        process.send_signal(signal.SIGUSR1)
        assert process.stderr is not None
        rest = iter(process.stderr.readline, "")
        assert "does not go on" not in "".join(
            line for line in iter(lambda: next(rest), "\n") if line.startswith("cpythonplus: ")
        )
        assert_names_the_cycle(read_cycle(process))


def test_the_doctor_is_asked(tmp_path: Path) -> None:
    with stuck(tmp_path, "--deadlock-after", "0.2") as process:
        read_cycle(process)
        asked = [*MODULE, "doctor", "deadlock", str(process.pid)]
        text = execute(asked)
        assert (text.status, text.err) == (0, "")
        lines = text.out.splitlines()
        assert lines[0] == "Deadlock: 2 threads, each waits for the next, the last for the first:"
        assert "threads that wait for one of these:" in lines  # the main thread, at the end
        found = json.loads(execute([*asked, "--format", "json"]).out)
        (deadlock,) = found["deadlocks"]
        assert deadlock["kind"] == "cycle"
        assert {found["names"][str(each)] for each in deadlock["threads"]} == {"first", "second"}


PROCESSES = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('x' * 2**20)"], stdout=subprocess.PIPE)
try:
    child.wait()
finally:
    child.kill()
"""


def test_a_deadlock_with_a_child_is_told_from_when_it_was_seen(tmp_path: Path) -> None:
    with stuck(tmp_path, "--deadlock-after", "0.3", program=PROCESSES) as process:
        assert process.stderr is not None
        assert "does not go on" in process.stderr.readline()
        assert "waits for others, which wait for this process" in process.stderr.readline()
        process.send_signal(signal.SIGINT)  # the child goes, too


TASKLETS = """\
import sys, time
from cpythonplus.tasklets import channel, run, tasklet
orders = channel()
def kitchen():
    orders.receive()
tasklet(kitchen)()
run()
print("ready", file=sys.stderr, flush=True)
time.sleep(60)
"""


def test_tasklets_that_wait_are_listed(tmp_path: Path) -> None:
    with stuck(tmp_path, program=TASKLETS) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        text = execute([*MODULE, "doctor", "deadlock", str(process.pid)])
    assert text.out.startswith("no deadlock\n"), text
    assert re.search(
        r"tasklets that wait: kitchen in MainThread: receiving for \S+ \S+ at \S+stuck\.py:5"
        r" in kitchen, on what was made at \S+stuck\.py:3 in <module>",
        " ".join(text.out.split()),  # long lines are wrapped
    ), text


def test_a_program_that_ends_is_not_held_up() -> None:
    result = run("--deadlock-after", "5", "--stalls=50", "-c", "print('done')")
    assert (result.status, result.out, result.err) == (0, "done\n", "")


@pytest.mark.parametrize("word", ["0", "-1", "x", "1e9"])
def test_wrong_times(word: str) -> None:
    assert_refused(run("--deadlock-after", word, "-c", ""), "--deadlock-after")
    assert_refused(run(f"--stalls={word}", "-c", ""), "--stalls")
