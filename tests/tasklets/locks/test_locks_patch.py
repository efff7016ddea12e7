"""`locks.patch`: who gets these types, and how it goes with the patch of the threads."""

from pathlib import Path
from textwrap import dedent

import pytest

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
        import sys, tempfile, time
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
        for _ in range(3):
            tasklet(imports)(2)
        io.patch()  # the import system's locks are the tasklets' in any case
        run()
        assert found == [1] * 10, found
        """
    )


CHANGES = {
    "patch": "locks.patch()",
    "unpatch": "locks.unpatch()",
    "both": "locks.patch(); io.patch()",
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_patch_may_change_in_the_middle_of_an_import(change: str) -> None:
    """A tasklet that imports keeps the locks of its modules, and others wait for it."""
    run_child(
        f"""
        import sys, tempfile
        from pathlib import Path
        from cpythonplus.tasklets import io, locks, run, tasklet

        sys.path.insert(0, folder := tempfile.mkdtemp())
        text = "from cpythonplus.tasklets import io, locks, schedule\\nschedule()\\n"
        Path(folder, "outer.py").write_text("import inner")
        Path(folder, "inner.py").write_text(text + "{CHANGES[change]}\\nschedule()\\nX = 1")
        if {change == "unpatch"}:
            locks.patch()
        found = []

        def imports():
            import inner, outer
            found.append(outer.inner.X)

        def imports_outer():
            import outer
            found.append(outer.inner.X)

        for each in (imports_outer, imports, imports_outer):
            tasklet(each)()
        run()
        assert found == [1, 1, 1], found
        """
    )


PATCHERS = {
    "gevent/__init__.py": "",
    "gevent/monkey.py": """
        def is_module_patched(name): return False
        def patch_all(): return "patched"
        def patch_thread(): return "patched"
    """,
    "eventlet/__init__.py": """
        from eventlet import patcher
        monkey_patch = patcher.monkey_patch
    """,
    "eventlet/patcher.py": """
        def is_monkey_patched(name): return False
        def monkey_patch(**on): return "patched"
    """,
}


@pytest.mark.parametrize("first", [True, False], ids=["imported before", "imported after"])
def test_another_patcher_is_imported_and_refuses(tmp_path: Path, first: bool) -> None:
    for name, text in PATCHERS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))
    run_child(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        if {first}:
            import eventlet, gevent.monkey
        from cpythonplus import UnsupportedPlatform
        from cpythonplus.tasklets import locks, run, tasklet

        locks.patch()
        import eventlet, gevent.monkey
        assert locks.patched() and not eventlet.patcher.is_monkey_patched("thread")
        patchers = [
            eventlet.monkey_patch,
            eventlet.patcher.monkey_patch,
            gevent.monkey.patch_all,
            gevent.monkey.patch_thread,
        ]
        for patcher in patchers:
            try:
                patcher()
            except UnsupportedPlatform as error:
                assert "cpythonplus.tasklets.locks.patch()" in str(error), error
            else:
                raise AssertionError(patcher)
        locks.unpatch()
        assert [each() for each in patchers] == ["patched"] * 4
        """
    )


def test_a_green_copy_of_threading_keeps_its_locks(tmp_path: Path) -> None:
    """As eventlet makes one: the module's code over a `_thread` of its own."""
    text = """
        from _thread import *
        from _thread import _local, allocate_lock as stock
        def allocate_lock():
            return stock()
    """
    (tmp_path / "green_thread.py").write_text(dedent(text))
    run_child(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import _thread, threading
        import green_thread
        from cpythonplus.tasklets import locks

        for name, value in vars(_thread).items():
            vars(green_thread).setdefault(name, value)
        locks.patch()
        own = sys.modules.pop("threading")
        sys.modules["_thread"] = green_thread
        copy = __import__("threading")
        sys.modules.update(_thread=_thread, threading=own)
        assert copy is not own and copy._allocate_lock is green_thread.allocate_lock
        assert not issubclass(copy.Condition, locks.Condition)
        assert threading.Condition is locks.Condition
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
