"""`pytest --lock-order`: orders of locks that can deadlock fail the test, and no others do."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import child_environment, run_child

TESTS = """\
import threading, queue, concurrent.futures

def in_a_thread(function):
    thread = threading.Thread(target=function, name="worker")
    thread.start()
    thread.join()

def both(first, second):
    with first:
        with second:
            pass

def test_two_threads():
    one = threading.Lock()
    two = threading.Lock()
    def forwards():
        with one:
            two.acquire()
            two.release()
    def backwards():
        with two:
            with one:
                pass
    in_a_thread(forwards)
    backwards()

def test_three_locks():
    one, two, three = threading.Lock(), threading.RLock(), threading.Lock()
    both(one, two)
    both(two, three)
    both(three, one)

kept_one, kept_two = threading.Lock(), threading.Lock()
def test_one_half():
    both(kept_one, kept_two)
def test_the_other_half():
    both(kept_two, kept_one)
def test_known_already():
    both(kept_two, kept_one)

def test_condition():
    lock, condition = threading.Lock(), threading.Condition()
    both(lock, condition)
    with condition:
        condition.wait(0.001)
        both(lock, threading.Lock())

def test_wait_with_another_lock():
    lock, condition = threading.Lock(), threading.Condition()
    with condition:
        with lock:
            condition.wait(0.001)

def test_instances_of_one_line():
    class Account:
        def __init__(self):
            self.lock = threading.Lock()
    a, b = Account(), Account()
    both(a.lock, b.lock)
    both(b.lock, a.lock)

def test_fine_instances_of_one_line():
    locks = [threading.Lock() for _ in range(4)]
    for first, second in zip(locks, locks[1:]):
        both(first, second)
    both(locks[0], locks[3])

def test_fine_reentry():
    outer, inner = threading.RLock(), threading.Lock()
    with outer:
        with inner:
            with outer:
                pass
        with outer:
            with inner:
                pass

def test_fine_tries():
    one, two = threading.Lock(), threading.RLock()
    both(one, two)
    with two:
        assert one.acquire(blocking=False)
        one.release()
        assert one.acquire(timeout=10)
        one.release()

def test_fine_gate():
    gate, one, two = threading.Lock(), threading.Lock(), threading.Lock()
    with gate:
        both(one, two)
    with gate:
        both(two, one)

def test_gate_that_is_left_out_once():
    gate, one, two = threading.Lock(), threading.Lock(), threading.Lock()
    with gate:
        both(one, two)
    with gate:
        both(two, one)
    both(one, two)
    both(two, one)

def test_fine_signal():
    lock, signal = threading.Lock(), threading.Lock()
    both(lock, signal)
    signal.acquire()
    with lock:
        pass
    in_a_thread(signal.release)

def test_fine_one_after_the_other():
    one, two = threading.Lock(), threading.Lock()
    both(one, two)
    with two:
        pass
    with one:
        pass

def test_fine_library():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(abs, range(-9, 0)))
    items = queue.Queue()
    in_a_thread(lambda: items.put(1))
    assert items.get() == 1
    event = threading.Event()
    in_a_thread(event.set)
    assert event.wait(10)
    barrier = threading.Barrier(2)
    in_a_thread(lambda: threading.Thread(target=barrier.wait).start())
    barrier.wait()

def test_fine_release_of_others():
    lock = threading.RLock()
    with lock:
        caught = []
        def release():
            try:
                lock.release()
            except RuntimeError:
                caught.append(1)
        in_a_thread(release)
        assert caught
"""
PLUGIN = "cpythonplus.threads._pytest_plugin"
ROOT = Path(__file__).resolve().parents[2]
BAD = {
    "test_two_threads",
    "test_three_locks",
    "test_the_other_half",
    "test_condition",
    "test_wait_with_another_lock",
    "test_instances_of_one_line",
    "test_gate_that_is_left_out_once",
}


def run_pytest(folder: Path, *options: str) -> str:
    file = folder / "test_it.py"
    file.write_text(TESTS, "utf-8")
    plugins = ["-p", PLUGIN, "-p", "no:cacheprovider"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-q", *plugins, *options, file],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=child_environment({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
    )
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run_pytest(tmp_path_factory.mktemp("order"), "--lock-order")


def names(outcome: str, told: str) -> set[str]:
    return {*re.findall(rf"^{outcome} test_it\.py::(\w+)", told, re.MULTILINE)}


def test_what_can_deadlock_fails_and_nothing_else(told: str) -> None:
    assert names("FAILED", told) == BAD, told
    everything = {*re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)}
    assert names("PASSED", told) == everything - BAD


def test_both_lines_are_named(told: str) -> None:
    text = told.partition("test_two_threads ___")[2].partition("test_three_locks ___")[0]
    lines = [re.sub(r"\S+test_it\.py", "test_it.py", line) for line in text.splitlines()]
    at = lines.index(
        "lock order: threads that do this at the same time wait for each other for ever"
    )
    assert lines[at + 1 :][:6] == [
        "  MainThread takes the Lock made at test_it.py:14",
        "    at test_it.py:22 in test_two_threads.<locals>.backwards",
        "    while it has the Lock made at test_it.py:15, taken at test_it.py:21",
        "  worker takes the Lock made at test_it.py:15",
        "    at test_it.py:18 in test_two_threads.<locals>.forwards",
        "    while it has the Lock made at test_it.py:14, taken at test_it.py:17",
    ]


def test_the_entry_point_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"]["cpythonplus-threads"] == PLUGIN


def test_nothing_without_the_option(tmp_path: Path) -> None:
    assert names("FAILED", run_pytest(tmp_path)) == set()


def test_the_locks_are_threading_s() -> None:
    """They do what those do that they stand for."""
    child = run_child("""
        import threading
        from cpythonplus.threads._lock_order import LockOrder
        order = LockOrder()
        order.install()
        for kind in threading.Lock, threading.RLock:
            lock = kind()
            assert isinstance(lock, kind)
            assert lock.acquire(True, 1)
            assert not hasattr(threading.Lock(), "_release_save")
            lock.release()
            try:
                lock.release()
            except RuntimeError:
                pass
            else:
                raise AssertionError(kind)
        order.uninstall()
        assert not isinstance(lock, type(threading.Lock()))
        with lock:
            pass
        print(order.taken())
    """)
    assert child.out == "[]\n"


def test_locks_that_are_gone_are_forgotten() -> None:
    child = run_child("""
        import threading
        from cpythonplus.threads._lock_order import LockOrder
        order = LockOrder()
        order.install()
        kept = threading.Lock()
        for _ in range(1000):
            with kept, threading.Lock():
                pass
        order.taken()
        print(sum(map(len, order._edges.values())))
    """)
    assert child.out == "0\n"
