"""fork, exec, multiprocessing and sub-interpreters under the scheduled GIL."""

import sys
from textwrap import dedent

import pytest

from tests.support import run_child

pytestmark = pytest.mark.needs_gil

# What the programs have in common.
PRELUDE = """
import importlib, os, sys, threading, time
from cpythonplus import gil
from cpythonplus.gil import atomic

def burn(stop, work=None):
    count = 0
    while not stop.is_set():
        for _ in range(500):
            count += 1
    if work is not None:
        work.append(count)

def burners(count, stop, daemon=False):
    threads = [threading.Thread(target=burn, args=(stop,), daemon=daemon) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads

def until(condition, limit=250.0):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("waited too long")
        time.sleep(0.001)

def sub_interpreters():
    # The newest name that this version has.
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    raise SystemExit("no module for sub-interpreters")
"""


def run(code: str) -> None:
    """Run a program after the prelude, in a file of its own, as multiprocessing needs it."""
    run_child(PRELUDE + dedent(code))


# A child process that must be able to schedule threads of its own.
IN_CHILD = """
def child_works():
    assert gil.active()
    stop = threading.Event()
    threads = burners(2, stop)
    for _ in range(50):
        os.stat("/")
    stop.set()
    for t in threads:
        t.join()
    with atomic():
        pass
    assert len(gil.statistics().threads) >= 1

def fork_and_check():
    pid = os.fork()
    if pid == 0:
        try:
            child_works()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, status
"""


def test_fork_from_the_main_thread_with_waiters() -> None:
    run(
        IN_CHILD
        + """
gil.install()
stop = threading.Event()
threads = burners(4, stop)
for _ in range(20):
    fork_and_check()
stop.set()
for t in threads:
    t.join()
"""
    )


def test_fork_from_another_thread() -> None:
    run(
        IN_CHILD
        + """
gil.install()
stop = threading.Event()
threads = burners(2, stop)
errors = []
def forker():
    try:
        for _ in range(8):
            fork_and_check()
    except BaseException as e:
        errors.append(e)
forkers = [threading.Thread(target=forker) for _ in range(3)]
for t in forkers:
    t.start()
for t in forkers:
    t.join()
stop.set()
for t in threads:
    t.join()
assert not errors, errors
"""
    )


def test_nested_forks_and_fork_inside_a_section() -> None:
    run(
        IN_CHILD
        + """
gil.install()
stop = threading.Event()
threads = burners(2, stop)
pid = os.fork()
if pid == 0:
    fork_and_check()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
with atomic():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if atomic.inside() else 3)
    status = os.waitpid(pid, 0)[1]
assert status == 0 and not atomic.inside()
stop.set()
for t in threads:
    t.join()
"""
    )


def test_counts_begin_anew_in_the_child() -> None:
    run(
        """
        gil.install()
        stop = threading.Event()
        threads = burners(2, stop)
        until(lambda: gil.statistics().requests > 5)
        pid = os.fork()
        if pid == 0:
            s = gil.statistics()
            os._exit(0 if s.requests == 0 and len(s.threads) == 1 else 4)
        assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        for t in threads:
            t.join()
        """
    )


@pytest.mark.parametrize(
    "method", ["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_multiprocessing(method: str) -> None:
    run(
        f"""
        import multiprocessing

        def square(x):
            gil.install()
            return x * x

        if __name__ == "__main__":
            gil.install()
            stop = threading.Event()
            threads = burners(2, stop)
            context = multiprocessing.get_context({method!r})
            with context.Pool(2) as pool:
                assert pool.map(square, range(20)) == [x * x for x in range(20)]
            queue = context.Queue()
            child = context.Process(target=queue.put, args=(7,))
            child.start()
            assert queue.get(timeout=250) == 7
            child.join()
            assert child.exitcode == 0
            stop.set()
            for t in threads:
                t.join()
        """
    )


def test_subprocess_beside_computing_threads() -> None:
    run(
        """
        import subprocess
        gil.install()
        stop = threading.Event()
        threads = burners(2, stop)
        for i in range(10):
            done = subprocess.run([sys.executable, "-S", "-c", "print(input())"], input=str(i),
                                  capture_output=True, text=True, check=True)
            assert done.stdout == f"{i}\\n"
            assert subprocess.run(["true"], preexec_fn=lambda: None).returncode == 0
        stop.set()
        for t in threads:
            t.join()
        """
    )


def test_sub_interpreters_with_the_shared_gil() -> None:
    run(
        """
        interpreters = sub_interpreters()
        gil.install()
        stop = threading.Event()
        threads = burners(2, stop)
        code = "import os\\nfor _ in range(2000): os.getpid()\\nx = sum(range(10000))"
        def legacy():
            if sys.version_info >= (3, 13):
                made = interpreters.create("legacy")
            elif sys.version_info >= (3, 12):
                made = interpreters.create(isolated=False)
            else:
                made = interpreters.create()
            interpreters.run_string(made, code)
            interpreters.destroy(made)
        for _ in range(5):
            legacy()
        workers = [threading.Thread(target=legacy) for _ in range(3)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
        stop.set()
        for t in threads:
            t.join()
        assert gil.active()
        """
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="own GILs came with 3.12")
def test_sub_interpreters_with_their_own_gil() -> None:
    """They are left to libc; the extension refuses to be imported there."""
    run(
        """
        interpreters = sub_interpreters()
        gil.install()
        stop = threading.Event()
        threads = burners(2, stop)
        code = '''
        import threading
        def work():
            x = 0
            for i in range(200000):
                x += i
        try:
            import cpythonplus._native
        except ImportError as error:
            assert "_native does not support loading in subinterpreters" in str(error), error
        else:
            raise SystemExit("imported")
        ts = [threading.Thread(target=work) for _ in range(3)]
        for t in ts: t.start()
        for t in ts: t.join()
        '''
        import textwrap
        def isolated():
            made = interpreters.create("isolated") if sys.version_info >= (3, 13) \\
                else interpreters.create(isolated=True)
            failed = interpreters.run_string(made, textwrap.dedent(code))
            assert failed is None, failed
            interpreters.destroy(made)
        workers = [threading.Thread(target=isolated) for _ in range(3)]
        for t in workers:
            t.start()
        for t in workers:
            t.join()
        stop.set()
        for t in threads:
            t.join()
        assert gil.active()
        """
    )


def test_each_sub_interpreter_has_its_own_atomic() -> None:
    """What is configured in one of them holds for its own sections only, and ends with it."""
    run(
        """
        interpreters = sub_interpreters()
        code = '''if True:
            import time
            from cpythonplus.gil import atomic
            told = []
            atomic.configure(limit_ms=0.001, report=told.append)
            with atomic():
                time.sleep(0.03)
            assert len(told) == 1
        '''
        told = []
        atomic.configure(limit_ms=1e8, report=told.append)
        if sys.version_info >= (3, 13):
            made = interpreters.create("legacy")
        elif sys.version_info >= (3, 12):
            made = interpreters.create(isolated=False)
        else:
            made = interpreters.create()
        failed = interpreters.run_string(made, code)
        assert failed is None, failed
        interpreters.destroy(made)
        with atomic():
            time.sleep(0.03)
        assert told == []
        atomic.configure(limit_ms=0.001)
        with atomic():
            time.sleep(0.03)
        assert len(told) == 1
        """
    )


@pytest.mark.skipif(sys.version_info < (3, 13), reason="configured by _interpreters")
def test_sub_interpreters_with_their_own_allocator() -> None:
    """No memory of the one is used, or freed, by the other, whichever made a section first."""
    run(
        """
        import _interpreters
        from cpythonplus.gil import atomic
        config = _interpreters.new_config(
            "legacy", use_main_obmalloc=False, check_multi_interp_extensions=True
        )
        code = '''if True:
            from cpythonplus.gil import atomic
            for _ in range(3):
                sections = [atomic() for _ in range(40)]
                for section in sections:
                    with section:
                        pass
                del section
                sections.clear()
        '''
        first = [atomic() for _ in range(40)]
        del first
        for i in range(10):
            made = _interpreters.create(config)
            failed = _interpreters.exec(made, code)
            assert failed is None, failed
            _interpreters.destroy(made)
            exec(code)
        """
    )
