"""Signals, Ctrl-C, faulthandler and an outside observer, while threads compute."""

import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.gil.load import PRELUDE, STATES, run
from tests.support import SANITIZED, finish_child, start_child

pytestmark = pytest.mark.needs_gil


@pytest.mark.parametrize("waits", ["while True: pass", "threading.Event().wait()"])
def test_ctrl_c_arrives_beside_cpu_threads(waits: str) -> None:
    child = run(
        f"""
        import signal

        with Load(cpu=3, io=1):
            timer = threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                {waits}
            except KeyboardInterrupt:
                print("interrupted")
            timer.join()
        assert gil.active()
        """
    )
    assert child.out == "interrupted\n"


def test_an_uncaught_ctrl_c_ends_the_process_by_the_signal() -> None:
    child = run(
        """
        import signal

        Load(cpu=3, io=1, daemon=True).__enter__()
        threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            pass
        """,
        status=-signal.SIGINT,
    )
    assert "KeyboardInterrupt" in child.err


def test_a_default_sigterm_ends_the_process() -> None:
    run(
        """
        import signal

        Load(cpu=3, io=1, daemon=True).__enter__()
        os.kill(os.getpid(), signal.SIGTERM)
        while True:
            pass
        """,
        status=-signal.SIGTERM,
    )


@pytest.mark.parametrize("state", STATES)
def test_handlers_run_beside_cpu_threads(state: str) -> None:
    run(
        """
        import signal

        seen = []
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM):
            signal.signal(number, lambda number, frame: seen.append(number))
        with Load(cpu=2, io=1):
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
            until(lambda: seen.count(signal.SIGALRM) >= 30)
            signal.setitimer(signal.ITIMER_REAL, 0)
            for i in range(20):
                os.kill(os.getpid(), signal.SIGUSR1)
                until(lambda: seen.count(signal.SIGUSR1) > i)
            os.kill(os.getpid(), signal.SIGTERM)
            until(lambda: signal.SIGTERM in seen)
        """,
        before=STATES[state],
    )


def test_handlers_run_inside_an_atomic_section() -> None:
    run(
        """
        import signal

        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(atomic.inside()))
        with Load(cpu=1, io=1):
            with atomic():
                signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
                while len(seen) < 10:
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
        assert all(seen)
        """
    )


def test_faulthandler_dumps_while_everything_runs() -> None:
    run(
        """
        import faulthandler, tempfile

        with tempfile.TemporaryFile() as file, Load(cpu=2, io=2):
            faulthandler.dump_traceback_later(0.01, repeat=True, file=file)
            def dumps():
                return os.pread(file.fileno(), 1 << 20, 0).count(b"Timeout")
            until(lambda: dumps() >= 10)
            faulthandler.cancel_dump_traceback_later()
            for _ in range(20):
                faulthandler.dump_traceback(file=file, all_threads=True)
        """
    )


@pytest.mark.skipif(SANITIZED, reason="the sanitizer handles the signal itself")
def test_faulthandler_tells_of_a_crash() -> None:
    child = run(
        """
        import faulthandler, signal

        faulthandler.enable()
        with Load(cpu=2, io=2):
            os.kill(os.getpid(), signal.SIGSEGV)
            while True:
                pass
        """,
        status=-signal.SIGSEGV,
    )
    assert "Fatal Python error: Segmentation fault" in child.err
    assert "program.py" in child.err


def _py_spy() -> str:
    beside = Path(sysconfig.get_path("scripts"), "py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        pytest.skip("py-spy is not installed")
    return found


def _dump(program: str) -> subprocess.CompletedProcess[str]:
    """Start `program`, which prints a line when it is ready, and dump its stacks some times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(program)
        child = start_child(path)
        assert child.stdout is not None
        child.stdout.readline()
        command = [_py_spy(), "dump", "--pid", str(child.pid)]
        for _ in range(3):
            subprocess.run(command, capture_output=True, check=False, timeout=250)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
        child.send_signal(signal.SIGTERM)
        ended = finish_child(child, timeout=30)
        assert ended.status == 0, ended
    return done


@pytest.mark.slow
def test_py_spy_attaches_and_the_process_goes_on() -> None:
    program = """
import signal
told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(True))
with Load(cpu=2, io=2) as load:
    print("ready", flush=True)
    until(lambda: told)
    load.progress()
"""
    stock = _dump(PRELUDE + program)
    if stock.returncode != 0 or "MainThread" not in stock.stdout:
        version = ".".join(map(str, sys.version_info[:2]))
        pytest.skip(f"py-spy does not support {version} itself: {stock.stderr.strip()[:200]}")
    plus = _dump(PRELUDE + "gil.install()\n" + program)
    assert plus.returncode == 0, plus.stderr
    assert "cpu-0" in plus.stdout or "cpu (" in plus.stdout, plus.stdout
