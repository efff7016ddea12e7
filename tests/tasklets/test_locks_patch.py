"""`locks.patch`: who gets these types, and how it goes with the patch of the threads."""

from tests.support import run_child
from tests.threads.patched import run

PRELUDE = "from cpythonplus.tasklets import locks\n"


def test_everything_is_replaced_and_put_back() -> None:
    run(
        """
        import queue, threading
        from threading import Lock
        names = [(m, n) for m in (threading, queue) for n in patching.NAMES[m.__name__]]
        names.append((threading, "local"))
        before = [getattr(*each) for each in names]
        locks.patch()
        assert locks.patched()
        assert [getattr(*each) for each in names] == [getattr(locks, n) for _, n in names]
        assert Lock is threading._allocate_lock is locks.Lock
        assert threading._CRLock is locks.RLock
        assert queue.ShutDown is locks.ShutDown
        assert type(threading.Thread()._started) is locks.Event
        locks.unpatch()
        assert [getattr(*each) for each in names] == before and Lock is before[0]
        locks.patch(local=False)
        assert threading.local is before[-1] and threading.Lock is locks.Lock
        """,
        before=PRELUDE,
    )


def test_over_the_patch_of_the_threads() -> None:
    run(
        """
        threads.patch()
        import queue, threading
        locks.patch()
        assert (threading.Lock, queue.Queue) == (locks.Lock, locks.Queue)
        threads.patch()
        assert (threading.Lock, queue.Queue) == (locks.Lock, locks.Queue)
        locks.unpatch()
        assert threads.patched() and isinstance(threading.Lock(), threads.Lock)
        # The first to come may be the first to go.
        locks.patch()
        threads.unpatch()
        assert threading.Lock is locks.Lock
        locks.unpatch()
        assert type(threading.Lock()) is type(_thread.allocate_lock())
        assert type(queue.Queue().mutex) is type(threading.Lock())
        assert queue.Queue.__module__ == "queue" and not is_native(queue.Queue)
        """,
        before=PRELUDE,
    )


def test_under_the_patch_of_the_threads() -> None:
    """They are made of the standard library's classes whatever stands in their place."""
    run(
        """
        threads.patch()
        from cpythonplus.tasklets import locks
        import threading, queue
        assert not issubclass(locks.Queue, threads.Queue)
        event = locks.Event()
        event.set()
        assert event.wait(1) and not is_native(type(event._cond))
        """
    )


def test_who_imports_what_another_tasklet_imports_waits_for_it() -> None:
    run_child(
        """
        import _thread, sys, tempfile, time
        from importlib import _bootstrap
        from pathlib import Path
        from cpythonplus.tasklets import io, locks, run, tasklet
        from threading import Thread

        sys.path.insert(0, folder := tempfile.mkdtemp())
        for number in range(3):
            Path(folder, f"slow{number}.py").write_text("import time; time.sleep(0.02); X = 1")
        locks.patch()
        io.patch()
        found = []

        def imports(number):
            found.append(__import__(f"slow{number}").X)

        for _ in range(3):
            tasklet(imports)(0)
        run()
        threads = [Thread(target=imports, args=(1,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        waits = tasklet(imports)(1)
        for thread in threads:
            thread.join()
        while waits.alive:
            run()
        assert found == [1] * 7, found
        io.unpatch()
        locks.unpatch()
        assert _bootstrap._thread is _thread
        """
    )


def test_a_thread_that_a_tasklet_starts_does_not_let_run_return() -> None:
    run_child(
        """
        import time
        from threading import Thread
        from cpythonplus.tasklets import io, locks, run, tasklet

        locks.patch()
        io.patch()
        log = []

        def starts():
            thread = Thread(target=time.sleep, args=(0.01,))
            thread.start()
            thread.join()
            log.append(thread.ident)

        tasklet(starts)()
        run()
        assert len(log) == 1
        """
    )
