"""`patch` and `unpatch`: who gets the native types, who keeps the stock ones, what goes on working.

Each case is a process of its own: what is patched is the process.
"""

import sys
from pathlib import Path

import pytest

from tests.threads.patched import run

# ---- what is replaced ---------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "import threading", "import queue"])
def test_every_name_is_replaced_and_put_back(before: str) -> None:
    run(
        """
        stock = public() if LOADED else {}
        assert not threads.patched()
        threads.patch()
        assert threads.patched()
        assert all_native(), public()
        import threading
        assert all(is_native(x) for x in (threading._allocate_lock, threading._CRLock))
        threads.unpatch()
        assert not threads.patched()
        assert none_native(), public()
        assert not stock or public() == stock
        """,
        before=before,
    )


def test_threading_is_not_imported_for_it() -> None:
    """A program without threads does not pay for them; one that has them gets the native types."""
    run(
        """
        if LOADED:
            sys.exit()  # a .pth file of this installation imports it
        before = set(sys.modules)
        threads.patch()
        threads.unpatch()
        threads.patch()
        new = {name for name in set(sys.modules) - before if not name.startswith("cpythonplus")}
        assert not new & {"threading", "queue", "functools", "importlib.util", "dataclasses"}, new
        import logging
        assert type(logging._lock) is threads.RLock
        """
    )


def test_what_was_imported_from_them() -> None:
    run(
        """
        import queue as q
        import types
        from queue import PriorityQueue, Queue as Q
        from threading import Condition, Lock, RLock as R, Thread

        other = types.ModuleType("other")
        exec("from threading import *\\nfrom queue import SimpleQueue\\nx = [Event]", vars(other))
        sys.modules["other"] = other
        kept = [Lock]
        threads.patch()
        assert is_native(R) and other.SimpleQueue is threads.SimpleQueue and is_native(Lock)
        assert all(is_native(each) for each in (PriorityQueue, Q, Condition, other.Barrier))
        # Classes are reached wherever they are, what is replaced by name only where it is a global.
        assert is_native(other.x[0]) and q.Queue is Q
        assert not is_native(kept[0]) and not is_native(Thread)
        threads.unpatch()
        assert not [n for n, v in {**globals(), **vars(other)}.items() if is_native(v)]
        assert Lock is kept[0] and other.Event is other.x[0]
        """
    )


def test_the_types_of_stock_locks() -> None:
    """`isinstance(x, LOCK_TYPE)` of a module that took the type before holds for new locks."""
    run(
        """
        import threading
        LOCK_TYPE, RLOCK_TYPE = type(threading.Lock()), type(threading.RLock())
        threads.patch()
        assert isinstance(threading.Lock(), LOCK_TYPE)
        assert isinstance(threading.RLock(), RLOCK_TYPE)
        assert isinstance(threading.Lock(), type(threading.Lock()))
        assert isinstance(threading.RLock(), type(threading.RLock()))
        """
    )


def test_what_is_left_alone() -> None:
    run(
        """
        import _frozen_importlib, multiprocessing.synchronize as shared, queue, threading
        import cpythonplus.threads._primitives as own

        modules = [_frozen_importlib, shared, own]
        own.also = threading.Condition
        before = [{name: id(value) for name, value in vars(m).items()} for m in modules]
        threads.patch()
        for module, ids in zip(modules, before):
            for name, value in vars(module).items():
                assert not is_native(value) or ids[name] == id(value), (module, name)
        assert not issubclass(shared.Barrier, threads.Barrier)
        """
    )


@pytest.mark.parametrize("first", ["", "import queue"])
def test_shutdown_of_a_queue_can_be_caught(first: str) -> None:
    run(
        """
        threads.patch()
        import queue
        waiting = queue.Queue()
        waiting.shutdown()
        try:
            waiting.get()
        except queue.ShutDown:
            pass
        assert queue.ShutDown is threads.ShutDown and "ShutDown" in queue.__all__
        assert len(set(queue.__all__)) == len(queue.__all__)
        threads.unpatch()
        new = sys.version_info >= (3, 13)
        assert hasattr(queue, "ShutDown") is ("ShutDown" in queue.__all__) is new
        """,
        before=first,
    )


# ---- what is not ours ---------------------------------------------------------------------------


def test_a_value_that_somebody_else_has_put_there_stays() -> None:
    run(
        """
        import queue, threading

        class Traced(threading.Thread):
            pass

        threading.Event = Traced
        threads.patch()
        assert threading.Event is Traced and is_native(threading.Lock)
        assert is_native(threading.Condition) and is_native(queue.LifoQueue)
        threading.Lock = print
        del queue.Queue
        threads.unpatch()
        assert threading.Event is Traced and threading.Lock is print
        assert not hasattr(queue, "Queue")
        assert not is_native(threading.Condition) and not is_native(queue.LifoQueue)
        """
    )


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_module_of_the_program_of_the_same_name(tmp_path: Path, when: str) -> None:
    """Scripts do have a `queue.py` beside them."""
    (tmp_path / "queue.py").write_text("class Queue: pass\n__all__ = []\n")
    run(
        f"""
        sys.path.insert(0, {str(tmp_path)!r})
        if {when == "before"}:
            import queue
        threads.patch()
        import queue, threading
        assert queue.Queue.__module__ == "queue" and not hasattr(queue, "ShutDown")
        assert is_native(threading.Lock)
        """
    )


def test_entries_that_are_no_modules_and_modules_that_are_lazy(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("from threading import Lock\n")
    run(
        f"""
        import importlib.util
        sys.path.insert(0, {str(tmp_path)!r})

        class Odd:
            def __getattribute__(self, name):
                raise RuntimeError(name)

        sys.modules["odd"] = Odd()
        sys.modules["none"] = None
        spec = importlib.util.find_spec("late")
        loader = spec.loader = importlib.util.LazyLoader(spec.loader)
        late = sys.modules["late"] = importlib.util.module_from_spec(spec)
        loader.exec_module(late)
        threads.patch()
        assert "Lock" not in object.__getattribute__(late, "__dict__")
        assert is_native(late.Lock)
        threads.unpatch()
        """
    )


def test_the_modules_look_as_if_nobody_had_been_there() -> None:
    run(
        """
        if LOADED:
            sys.exit()
        import importlib.util, inspect
        threads.patch()
        assert importlib.util.find_spec("queue").origin.endswith("queue.py")
        import queue, threading
        kind = type(importlib.util.find_spec("this").loader)
        for module in (queue, threading):
            assert type(module.__loader__) is type(module.__spec__.loader) is kind
            assert inspect.getsource(module).startswith(('"', "'"))
            assert importlib.util.find_spec(module.__name__) is module.__spec__
        """
    )


def test_run_as_a_module() -> None:
    """`python -m queue` asks the finder and the loader for the code, and loads nothing."""
    run(
        """
        import runpy
        threads.patch()
        sys.modules.pop("queue", None)
        assert "Queue" in runpy.run_module("queue")
        """
    )


def test_further_copies_of_queue() -> None:
    """Each names the exceptions that its queues raise."""
    run(
        """
        import importlib.util
        threads.patch()

        def raised(call):
            try:
                call()
            except Exception as error:
                return type(error)

        copies = []
        for without_c in (False, True):
            found = sys.modules.pop("queue", None)
            if without_c:
                sys.modules["_queue"] = None
            import queue
            copies.append(queue)
            sys.modules.pop("_queue", None)
            if found is not None:
                sys.modules["queue"] = found
        sys.modules.pop("queue", None)
        spec = importlib.util.find_spec("queue")
        copies.append(importlib.util.module_from_spec(spec))
        spec.loader.exec_module(copies[-1])
        assert len(set(map(id, copies))) == 3
        for copy in copies:
            full = copy.Queue(1)
            full.put(1)
            assert raised(full.put_nowait) is TypeError
            # The classes of the first copy stand for the native types, each has native locks.
            assert is_native(type(full.mutex))
            full.maxsize = 0
            full.put((2, 3))
            assert full.get() == 1 and full.get() == (2, 3)
            full.maxsize = 1
            full.put(1)
            assert raised(lambda: full.put(2, False)) is copy.Full
            assert raised(copy.Queue().get_nowait) is copy.Empty
            assert raised(copy.SimpleQueue().get_nowait) is copy.Empty
            if sys.version_info >= (3, 13):
                full.shutdown()
                assert raised(lambda: full.put(2)) is copy.ShutDown
        """
    )


def test_reloading() -> None:
    run(
        """
        import importlib, queue, threading
        threads.patch()
        importlib.reload(queue)
        assert is_native(queue.LifoQueue)
        threads.unpatch()
        assert not is_native(queue.LifoQueue) and not is_native(queue.Queue)
        importlib.reload(queue)
        assert not is_native(queue.LifoQueue)
        """
    )


# ---- again, by many, in children ----------------------------------------------------------------


def test_again_and_again() -> None:
    run(
        """
        threads.unpatch()
        threads.patch()
        import threading, queue
        first = public()
        threads.patch()
        threads.patch()
        assert public() == first and all_native()
        assert [type(finder).__name__ for finder in sys.meta_path].count("_Watcher") == 1
        threads.unpatch()
        threads.unpatch()
        assert none_native()
        assert "_Watcher" not in [type(finder).__name__ for finder in sys.meta_path]
        threads.patch()
        assert all_native()
        """
    )


def test_by_many_threads() -> None:
    run(
        """
        import queue, threading
        Thread, Stock = threading.Thread, threading.Lock
        failures = []

        def body(i):
            try:
                for _ in range(20):
                    threads.patch() if i % 2 else threads.unpatch()
                    with threading.Lock(), threading.Condition():
                        queue.Queue().put(1)
            except BaseException as error:
                failures.append(error)
                raise

        workers = [Thread(target=body, args=(i,)) for i in range(6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not failures
        threads.patch()
        assert all_native()
        threads.unpatch()
        assert none_native()
        """
    )


def test_while_another_thread_imports_queue() -> None:
    """A module that is half loaded is waited for."""
    run(
        """
        import importlib.machinery, time, threading
        begun, go_on = threading.Event(), threading.Event()

        class Slow(importlib.machinery.SourceFileLoader):
            def exec_module(self, module):
                begun.set()
                go_on.wait()
                super().exec_module(module)

        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name != "queue":
                    return None
                spec = importlib.machinery.PathFinder.find_spec(name, path, target)
                spec.loader = Slow(name, spec.origin)
                return spec

        sys.modules.pop("queue", None)
        sys.meta_path.insert(0, Finder())
        importer = threading.Thread(target=__import__, args=("queue",))
        importer.start()
        begun.wait()
        patcher = threading.Thread(target=threads.patch)
        patcher.start()
        while not threads.patched():
            time.sleep(0.001)
        go_on.set()
        patcher.join()
        importer.join()
        assert all_native()
        """
    )


def test_fork() -> None:
    run(
        """
        import os
        threads.patch()
        import queue, threading

        def in_thread(body):
            thread = threading.Thread(target=body)
            thread.start()
            thread.join()

        for forker in (lambda body: body(), in_thread):
            def body():
                if os.fork():
                    ended = os.wait()
                    assert ended[1] == 0, ended
                    return
                status = 1
                try:
                    assert threads.patched() and all_native()
                    waiting = queue.Queue()
                    thread = threading.Thread(target=waiting.put, args=(7,))
                    thread.start()
                    assert waiting.get(timeout=30) == 7 and threads.join(thread, 30)
                    threads.patch()
                    threads.unpatch()
                    assert not is_native(threading.Lock) and not threads.patched()
                    status = 0
                finally:
                    os._exit(status)
            forker(body)
        assert threads.patched() and all_native()
        """
    )


def test_fork_while_another_thread_patches() -> None:
    """The guard of the changes is free in the child."""
    run(
        """
        import os, threading
        go, end = threading.Event(), threading.Event()

        def hold():
            with patching._lock:
                go.set()
                end.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        go.wait()
        if os.fork() == 0:
            threads.patch()
            os._exit(0 if is_native(threading.Lock) else 1)
        assert os.wait()[1] == 0
        end.set()
        holder.join()
        """
    )


# ---- old and new together -----------------------------------------------------------------------


def test_what_was_made_before_goes_on_working() -> None:
    run(
        """
        import queue, threading

        class Old(threading.Condition):
            pass

        class OldQueue(queue.Queue):
            def _put(self, item):
                super()._put((item, item))

        old = {
            "lock": threading.Lock(), "rlock": threading.RLock(), "event": threading.Event(),
            "condition": threading.Condition(), "semaphore": threading.Semaphore(0),
            "queue": queue.Queue(), "simple": queue.SimpleQueue(), "own": OldQueue(),
            "barrier": threading.Barrier(2),
        }
        class StockCondition(threading.Condition):
            pass

        threads.patch()
        import threading

        def exchange(condition):
            told = []

            def body():
                with condition:
                    told.append(1)
                    condition.notify()

            with condition:
                thread = threading.Thread(target=body)
                thread.start()
                assert condition.wait_for(lambda: told, timeout=30)
                assert not condition.wait(0.001)
            thread.join()
            try:
                condition.notify()
            except RuntimeError:
                pass
            else:
                raise AssertionError("notify without the lock")

        # Native conditions over stock locks, stock conditions over native locks, a subclass too.
        for lock in (old["lock"], old["rlock"]):
            exchange(threading.Condition(lock))
        for lock in (threading.Lock(), threading.RLock()):
            exchange(StockCondition(lock))
            exchange(Old(lock))
        exchange(old["condition"])
        exchange(Old())
        assert type(Old()) is Old and type(OldQueue()) is OldQueue

        def use():
            old["event"].wait(30)
            old["semaphore"].release()
            old["barrier"].wait(30)
            old["queue"].put(old["simple"].get(timeout=30))
            old["own"].put(3)

        thread = threading.Thread(target=use)
        thread.start()
        old["event"].set()
        assert old["semaphore"].acquire(timeout=30)
        old["barrier"].wait(30)
        old["simple"].put("x")
        assert old["queue"].get(timeout=30) == "x"
        assert old["own"].get(timeout=30) == (3, 3)
        assert threads.join(thread, 30)
        threads.unpatch()
        """
    )


def test_native_objects_go_on_working_after_unpatch() -> None:
    run(
        """
        import queue, threading
        threads.patch()
        lock, condition, waiting = threading.Lock(), threading.Condition(), queue.Queue()

        class Own(queue.Queue):
            pass

        threads.unpatch()
        thread = threading.Thread(target=lambda: waiting.put(1))
        thread.start()
        assert waiting.get(timeout=30) == 1
        with condition, threading.Condition(lock) as held:
            assert held
        own = Own()
        own.put(2)
        assert own.get() == 2 and Own.__base__ is queue.Queue
        thread.join()
        """
    )


# ---- refusals -----------------------------------------------------------------------------------


def test_another_package_has_replaced_the_locks() -> None:
    run(
        """
        before = public()
        stock = _thread.allocate_lock

        def green():
            return stock()

        green.__module__ = "some.green.threads"
        _thread.allocate_lock = green
        try:
            threads.patch()
        except RuntimeError as error:
            assert type(error).__name__ == "UnsupportedPlatform"
            assert "some.green.threads" in str(error) and "\\n" not in str(error)
        else:
            raise AssertionError("not refused")
        assert public() == before and not threads.patched()
        """
    )


def test_without_the_extension_module() -> None:
    run(
        """
        from cpythonplus import UnsupportedPlatform
        import queue, threading
        before = public()
        for use in (threads.patch, lambda: threads.Lock, lambda: threads.SimpleQueue):
            try:
                use()
            except UnsupportedPlatform as error:
                assert "extension module" in str(error) and "\\n" not in str(error)
            else:
                raise AssertionError("not refused")
        assert public() == before and not threads.patched()
        threads.unpatch()
        assert threads.Empty is queue.Empty
        assert threads.BrokenBarrierError is threading.BrokenBarrierError
        assert threads.WaitStatistics().as_json()["waits"] == 0
        """,
        before="import sys; sys.modules['cpythonplus._native'] = None",
    )


@pytest.mark.parametrize("patcher", ["gevent.monkey", "eventlet.patcher"])
def test_green_threads_get_the_stock_types(tmp_path: Path, patcher: str) -> None:
    """Their patcher finds what it knows, and none of our types waits inside its loop."""
    package, _, module = patcher.partition(".")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / package / f"{module}.py").write_text("import threading\nLock = threading.Lock\n")
    run(
        f"""
        sys.path.insert(0, {str(tmp_path)!r})
        threads.patch()
        import queue, threading
        from {package} import {module}
        assert not is_native({module}.Lock) and not threads.patched()
        assert none_native()
        """
    )


# ---- the tests' own process ---------------------------------------------------------------------


def test_this_process_is_not_patched() -> None:
    """The cases above are processes of their own: the tests' own locks are stock ones."""
    from cpythonplus import threads

    assert not threads.patched()
    watchers = [finder for finder in sys.meta_path if type(finder).__name__ == "_Watcher"]
    assert not any(watcher._replacer.active for watcher in watchers)  # type: ignore[attr-defined]
