"""The end of the interpreter, when no other thread can end a wait any more."""

import sys

import pytest

from tests.threads.programs import run


@pytest.mark.skipif(sys.version_info < (3, 13), reason="hangs, as stock does")
def test_a_wait_without_an_end_raises() -> None:
    child = run(
        """
        def hold():
            with lock:
                started.set()
                while True:
                    time.sleep(1)

        class Cycle:
            # Collected after the daemon thread was stopped where it was.
            def __init__(self):
                self.itself = self
                start(hold)
                started.wait()

            def __del__(self):
                free.acquire()
                for wait in (lock.acquire, Queue().get, SimpleQueue().get, Event().wait):
                    try:
                        wait()
                    except PythonFinalizationError:
                        print("refused")
                print(lock.acquire(timeout=0.001))

        lock, free, started = Lock(), Lock(), Event()
        Cycle()
        """
    )
    assert (child.out, child.err) == ("refused\n" * 4 + "False\n", "")
