"""Programs are measured, and none stays behind."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from cpythonplus._compare import processes, signals
from cpythonplus._compare.errors import ComparisonError
from cpythonplus._compare.processes import PeakMemory, started


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie: of an orphan, somebody else takes the status."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def assert_ends(pid: int) -> None:
    """Assert that a process ends that was sent a signal."""
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for(file: Path) -> str:
    while not file.exists() or not file.read_text().endswith("\n"):
        time.sleep(0.01)
    return file.read_text()


def test_status_and_times() -> None:
    code = """
import subprocess, sys, time
if len(sys.argv) == 1:
    subprocess.run([sys.executable, *sys.orig_argv[1:], "child"])
while time.process_time() < 0.2:
    pass
sys.exit(3)
"""
    with started(python(code)) as program:
        ended = program.wait()
        assert program.wait() is ended
        assert program.has_ended()
    assert ended.status == 3
    assert ended.cpu_s >= 0.4
    assert ended.wall_s >= 0.4


def test_a_signal_is_a_status() -> None:
    with started(python("import os; os.kill(os.getpid(), 9)")) as program:
        assert program.wait().status == -9


def test_what_is_kept_of_the_output() -> None:
    code = "import sys; print('out'); sys.stderr.write('a\\nb\\n\\n c \\nd\\ne\\nf')"
    with started(python(code)) as program:
        program.wait()
        assert program.output() == b"a\nb\n\n c \nd\ne\nf"
        assert program.last_words() == "b / c / d / e / f"
    with started(python("print('out')"), stdout=True) as program:
        program.wait()
        assert program.last_words() == "out"
    with started(python("")) as program:
        program.wait()
        assert program.last_words() == "it printed nothing"


def test_only_the_end_of_a_terabyte_is_read() -> None:
    code = "import os; os.ftruncate(2, 1 << 40); os.lseek(2, 0, 2); os.write(2, b'\\nlast')"
    with started(python(code)) as program:
        program.wait()
        assert program.last_words().endswith(" / last")


def test_standard_input_is_empty() -> None:
    with started(python("import sys; sys.exit(len(sys.stdin.read()))")) as program:
        assert program.wait().status == 0


def test_the_variable_of_an_outer_run_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPYTHONPLUS_RUN", "x")
    code = "import os, sys; sys.exit('CPYTHONPLUS_RUN' in os.environ)"
    with started(python(code)) as program:
        assert program.wait().status == 0


def test_what_cannot_be_started() -> None:
    command = ["/no/such/program"]
    with (
        pytest.raises(ComparisonError, match="cannot start '/no/such/program': No such file"),
        started(command),
    ):
        pass


LEAVES_ONE = """
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(f"{child.pid}\\n")
"""
STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()}\\n")
time.sleep(600)
"""


def test_what_a_program_leaves_is_ended(tmp_path: Path) -> None:
    with started(python(LEAVES_ONE, str(tmp_path / "pid"))) as program:
        program.wait()
    assert_ends(int(wait_for(tmp_path / "pid")))


def test_the_end_of_the_block_ends_it(tmp_path: Path) -> None:
    code = LEAVES_ONE + "import time; time.sleep(600)"
    with started(python(code, str(tmp_path / "pid"))) as program:
        child = int(wait_for(tmp_path / "pid"))
    assert not is_alive(program.pid)
    assert_ends(child)


def test_an_exception_ends_it() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        started(python("import time; time.sleep(600)")) as program,
    ):
        raise ZeroDivisionError
    assert not is_alive(program.pid)


def test_one_that_ignores_the_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    with started(python(STUBBORN, str(tmp_path / "pid"))) as program:
        wait_for(tmp_path / "pid")
    assert program.wait().status == -signal.SIGKILL


def test_stop(tmp_path: Path) -> None:
    with started(python(STUBBORN, str(tmp_path / "pid"))) as program:
        wait_for(tmp_path / "pid")
        assert program.stop(0.1) is None
        assert program.wait().status == -signal.SIGKILL
    with started(python("import time; time.sleep(600)")) as program:
        took_s = program.stop(60)
        assert took_s is not None
        assert program.wait().status == -signal.SIGTERM


def test_peak_memory(tmp_path: Path) -> None:
    """What is given back before the end counts, and so does what a child has."""
    code = """
import pathlib, subprocess, sys, time
if len(sys.argv) == 2:
    subprocess.run([sys.executable, *sys.orig_argv[1:], "child"])
data = bytearray(b"x") * (50 << 20)
go = pathlib.Path(sys.argv[1])
while len(sys.argv) == 3 and not go.exists():
    time.sleep(0.01)
"""
    go = tmp_path / "go"
    with started(python(code, str(go))) as program, PeakMemory(program.pid) as memory:
        while memory.peak_bytes < 50 << 20:
            time.sleep(0.01)
        go.touch()
        program.wait()
    assert memory.peak_bytes < 500 << 20


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_held_comes_later(number: signal.Signals) -> None:
    steps = []

    def body() -> None:
        with signals.held(), signals.held():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            steps.append("held")
        steps.append("not reached")

    before = signal.getsignal(number)
    signal.signal(number, signal.default_int_handler)  # pytest may run with it ignored
    try:
        with signals.caught(), pytest.raises(KeyboardInterrupt) as caught:
            body()
        assert caught.value.args == (number,)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert steps == ["held"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals.caught():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
