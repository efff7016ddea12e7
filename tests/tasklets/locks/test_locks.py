"""Locks, conditions and queues of tasklets and threads: order, time-outs, and ends of waits."""

import copy
import gc
import io
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress

import pytest

from cpythonplus.tasklets import TaskletExit, getcurrent, locks, run, schedule, tasklet
from cpythonplus.tasklets._dump.reporting import dump, report
from cpythonplus.tasklets.io import sleep
from tests.support import run_child

LOCKS: tuple[Callable[[], locks.Lock | locks.RLock], ...] = (locks.Lock, locks.RLock)

either = pytest.mark.parametrize("kind", LOCKS, ids=["Lock", "RLock"])

PATIENCE_S = 200.0
"""A limit of what takes a moment, and on a busy machine some."""


def dump_text() -> str:
    file = io.StringIO()
    dump(file=file)
    return file.getvalue()


def waiter(lock: locks.Lock | locks.RLock, log: list[object], name: object) -> tasklet:
    """A tasklet that waits for a lock now, and tells when it had it."""

    def main() -> None:
        with lock:
            log.append(name)

    made = tasklet(main)()
    made.run()
    return made


class TestLock:
    @either
    def test_who_waits_is_served_in_order(self, kind: Callable[[], locks.Lock]) -> None:
        lock, log = kind(), []  # type: ignore[var-annotated]
        with lock:
            for name in range(5):
                waiter(lock, log, name)
            assert log == []
        # Handed over: nobody can take it before them.
        assert not lock.acquire(blocking=False)
        run()
        assert log == [0, 1, 2, 3, 4]
        assert not lock.locked()
        assert lock.statistics().hand_overs == 5

    @either
    def test_a_time_out(self, kind: Callable[[], locks.Lock]) -> None:
        lock, log = kind(), []

        def main() -> None:
            log.append(lock.acquire(timeout=0.001))

        with lock:
            tasklet(main)()
            run()
            assert log == [False]
        assert lock.statistics().as_json() == {
            "waits": 1,
            "timeouts": 1,
            "hand_overs": 0,
            "in_vain": 0,
            "waiting": 0,
        }
        assert lock.acquire(timeout=0)
        lock.release()

    @either
    def test_killed_while_it_waits(self, kind: Callable[[], locks.Lock]) -> None:
        lock, log = kind(), []  # type: ignore[var-annotated]
        with lock:
            first = waiter(lock, log, 1)
            waiter(lock, log, 2)
            first.kill()
            assert lock.statistics().waiting == 1
        run()
        assert log == [2]
        assert not lock.locked()

    @either
    def test_killed_when_it_has_been_given_the_lock(self, kind: Callable[[], locks.Lock]) -> None:
        lock, log = kind(), []  # type: ignore[var-annotated]
        with lock:
            first = waiter(lock, log, 1)
            waiter(lock, log, 2)
        first.kill()
        run()
        assert log == [2]
        assert not lock.locked()

    @either
    def test_errors(self, kind: Callable[[], locks.Lock]) -> None:
        lock = kind()
        for arguments, error in (
            ({"timeout": -2}, ValueError),
            ({"timeout": float("nan")}, ValueError),
            ({"blocking": False, "timeout": 1}, ValueError),
            ({"timeout": 1e100}, OverflowError),
            ({"time": 1}, TypeError),
        ):
            with pytest.raises(error):
                lock.acquire(**arguments)
        with pytest.raises(RuntimeError, match="release un"):
            lock.release()
        for copied in (copy.copy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot pickle"):
                copied(lock)
        assert not lock.locked()

    def test_made_at_and_what_a_report_says(self) -> None:
        lock = locks.Lock()
        event = locks.Event()
        for made in (lock, event._cond._lock):
            made_at = made.made_at
            assert made_at is not None
            assert made_at[0] == __file__
        with lock:
            task = waiter(lock, [], 1)
            (thread,) = (each for each in report() if each.ident == threading.get_ident())
            (found,) = (each for each in thread.tasklets if each.address == id(task))
            assert str(found.state) == "acquiring"
            assert found.channel is not None
            assert found.channel.made_at is not None
            assert found.channel.made_at.file == __file__
            assert "acquiring for" in (told := dump_text()), told
            assert f"on <lock at 0x{id(lock):x}> made at" in told
            task.kill()

    def test_an_rlock_is_its_tasklets(self) -> None:
        lock, log = locks.RLock(), []

        def main() -> None:
            log.append((lock._is_owned(), lock._recursion_count(), lock.acquire(blocking=False)))
            with pytest.raises(RuntimeError, match="un-acquired"):
                lock.release()

        with lock, lock:
            assert lock._recursion_count() == 2
            tasklet(main)()
            run()
        assert log == [(False, 0, False)]
        assert not lock.locked()

    @either
    def test_abandoned_with_who_waits_for_it(self, kind: Callable[[], locks.Lock]) -> None:
        log: list[object] = []

        def main(lock: locks.Lock) -> None:
            try:
                lock.acquire()
            finally:
                log.append(sys.exc_info()[0])

        lock = kind()
        lock.acquire()
        tasklet(main)(lock).run()
        gone = weakref.ref(lock)
        del lock
        gc.collect()
        assert log == [TaskletExit]
        gc.collect()
        assert gone() is None


class TestThreads:
    def test_between_threads(self) -> None:
        """Counts with each primitive; tasklets of two threads and plain threads."""
        for make in (locks.Lock, locks.RLock, locks.Semaphore, locks.Condition):
            guard, count = make(), [0]

            def add(guard: locks.Lock = guard, count: list[int] = count) -> None:  # type: ignore[assignment]
                for _ in range(50):
                    with guard:
                        old = count[0]
                        schedule()
                        count[0] = old + 1

            def tasklets(add: Callable[[], None] = add) -> None:
                mine = [tasklet(add)() for _ in range(4)]
                while any(each.alive for each in mine):
                    run(threadblock=True)  # which returns when one has ended and the others wait

            others = [threading.Thread(target=target) for target in (tasklets, tasklets, add)]
            for other in others:
                other.start()
            for other in others:
                other.join(PATIENCE_S)
            assert count == [450], make

    def test_queue_accounts_for_every_item(self) -> None:
        for queue in (locks.Queue[int](3), locks.SimpleQueue[int](), locks.LifoQueue[int]()):
            got: list[int] = []

            def both(queue: locks.Queue[int] = queue, got: list[int] = got) -> None:  # type: ignore[assignment]
                done = locks.Semaphore(0)

                def put() -> None:
                    for item in range(30):
                        queue.put(item)
                    done.release()

                def get() -> None:
                    got.extend(queue.get(timeout=PATIENCE_S) for _ in range(30))
                    done.release()

                for _ in range(5):
                    tasklet(put)()
                    tasklet(get)()
                for _ in range(10):
                    done.acquire()

            others = [threading.Thread(target=both) for _ in range(3)]
            for other in others:
                other.start()
            for other in others:
                other.join(PATIENCE_S)
            assert sorted(got) == sorted(list(range(30)) * 15)

    def test_a_thread_that_ends_while_its_tasklet_waits(self) -> None:
        lock = locks.Lock()
        with lock:
            other = threading.Thread(target=lambda: waiter(lock, [], 1))
            other.start()
            other.join(PATIENCE_S)
            assert lock.statistics().waiting == 0
        assert not lock.locked()


class TestCondition:
    def test_a_notification_for_one_that_is_killed_goes_to_the_next(self) -> None:
        condition, log = locks.Condition(), []

        def main(name: int) -> None:
            with condition:
                condition.wait()
                log.append(name)

        tasks = [tasklet(main)(name) for name in range(2)]
        run()
        with condition:
            condition.notify()
        tasks[0].kill()
        run()
        assert log == [1]
        assert not condition._waiters

    def test_killed_it_still_has_the_lock(self) -> None:
        condition, log = locks.Condition(), []

        def main() -> None:
            with condition:
                try:
                    condition.wait()
                finally:
                    log.append(condition._is_owned())

        task = tasklet(main)()
        run()
        with condition:
            task.kill(pending=True)
            run()
            assert log == []
        run()
        assert log == [True]

    def test_wait_for_with_a_time_out(self) -> None:
        condition = locks.Condition()
        with condition:
            assert not condition.wait_for(lambda: False, timeout=0.001)
            assert not condition.wait(0)
            assert condition.wait_for(lambda: True)
        with pytest.raises(RuntimeError):
            condition.wait()

    def test_over_a_lock_of_the_standard_library(self) -> None:
        condition = locks.Condition(threading.Lock())
        with condition:
            assert not condition.wait(0.001)

    def test_semaphores(self) -> None:
        bounded = locks.BoundedSemaphore(1)
        assert isinstance(bounded, locks.Semaphore)
        assert isinstance(bounded, threading.Semaphore)
        with bounded:
            assert not bounded.acquire(timeout=0.001)
        with pytest.raises(ValueError, match="too many"):
            bounded.release()

    def test_a_barrier_of_tasklets(self) -> None:
        barrier, log = locks.Barrier(3), []
        for _ in range(3):
            tasklet(lambda: log.append(barrier.wait()))()
        run()
        assert sorted(log) == [0, 1, 2]


class TestQueue:
    @pytest.mark.parametrize("kind", [locks.Queue, locks.LifoQueue, locks.PriorityQueue])
    def test_shutdown(self, kind: type[locks.Queue[int]]) -> None:
        queue, log = kind(1), []

        def get() -> None:
            with suppress(locks.ShutDown):
                while True:
                    log.append(queue.get())
            log.append(-1)

        tasklet(get)()
        queue.put(1)
        run()
        queue.put(2)
        queue.shutdown()
        with pytest.raises(locks.ShutDown):
            queue.put(3)
        run()
        assert log == [1, 2, -1]
        queue.task_done()
        queue.task_done()
        queue.join()

    def test_a_getter_that_is_killed_leaves_the_item(self) -> None:
        queue: locks.SimpleQueue[int] = locks.SimpleQueue()
        log: list[int] = []
        tasks = [tasklet(lambda: log.append(queue.get()))() for _ in range(2)]
        run()
        queue.put(1)
        tasks[0].kill()
        run()
        assert log == [1]
        with pytest.raises(locks.Empty):
            queue.get(timeout=0.001)
        with pytest.raises(ValueError, match="non-negative"):
            queue.get(timeout=-1)


class TestLocal:
    def test_each_tasklet_has_its_own(self) -> None:
        class Own(locks.local):
            def __init__(self, start: int) -> None:
                self.value = start

        own = Own(5)
        seen: list[object] = []
        own.value = 6

        def main() -> None:
            seen.append(own.value)
            own.value += 1
            schedule()
            seen.append(vars(own))
            del own.value
            assert not hasattr(own, "value")

        tasklet(main)()
        tasklet(main)()
        run()
        assert seen[:2] == [5, 5]
        assert own.value == 6
        with pytest.raises(TypeError, match="arguments"):
            locks.local(1)

    def test_values_go_with_their_tasklet(self) -> None:
        class Value:
            pass

        own = locks.local()

        def main(*, cycle: bool) -> weakref.ref[Value]:
            own.value = Value()
            own.me = getcurrent() if cycle else None
            seen.append(weakref.ref(own.value))
            return seen[-1]

        seen: list[weakref.ref[Value]] = []
        tasklet(main)(cycle=False)
        run()
        gc.collect()
        assert seen[0]() is None
        # One that refers to its tasklet goes at the latest when so many others have come.
        for _ in range(200):
            tasklet(main)(cycle=True)
            run()
        gc.collect()
        assert sum(each() is not None for each in seen) < 150

    def test_an_init_that_raises_is_called_again(self) -> None:
        class Own(locks.local):
            def __init__(self) -> None:
                calls.append(1)
                if len(calls) == 2:
                    raise KeyError

        calls: list[int] = []
        own, log = Own(), []

        def main() -> None:
            with pytest.raises(KeyError):
                own.x = 1
            own.x = 2
            log.append(own.x)

        tasklet(main)()
        run()
        assert (log, len(calls)) == ([2], 3)


class TestProcesses:
    def test_a_signal_handler_that_raises_leaves_nobody_in_line(self) -> None:
        child = run_child(
            """
            import sys
            from cpythonplus.tasklets import locks

            class Raised(Exception):
                pass

            def trace(frame, event, arg):
                if frame.f_code.co_name != "stand_in":
                    return None
                if event == "return":
                    raise Raised
                return trace

            condition, queue = locks.Condition(), locks.SimpleQueue()
            condition.acquire()
            for call, line in (condition.wait, condition._waiters), (queue.get, queue._waiters):
                sys.settrace(trace)
                try:
                    call(timeout=0.001)
                except Raised:
                    print(len(line), condition._is_owned())
            """
        )
        assert child.out == "0 True\n0 True\n"

    def test_signals(self) -> None:
        child = run_child(
            """
            import os, signal, threading
            from cpythonplus.tasklets import locks

            event = locks.Event()
            signal.signal(signal.SIGALRM, lambda *_: event.set())
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            assert event.wait()
            lock = locks.Lock()
            lock.acquire()
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                lock.acquire()
            except KeyboardInterrupt:
                assert lock.statistics().waiting == 0
                print("interrupted")
            # A handler may wait for what another thread has.
            held, go, ready = locks.Lock(), threading.Event(), threading.Event()

            def other():
                with held:
                    ready.set()
                    go.wait()

            thread = threading.Thread(target=other)
            thread.start()
            ready.wait()

            def handler(*_):
                go.set()
                with held:
                    event.set()

            event.clear()
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            event.wait()
            thread.join()
            print("done")
            """,
            timeout=20,
        )
        assert child.out.split() == ["interrupted", "done"], child

    @pytest.mark.parametrize("kind", ["Lock", "RLock"])
    @pytest.mark.parametrize("who", ["handler", "callback"])
    def test_what_was_handed_to_a_tasklet_that_cannot_run_yet(self, kind: str, who: str) -> None:
        # A signal's handler or a schedule callback in its thread takes the lock first.
        child = run_child(
            f"""
            import os, signal, threading, time
            from cpythonplus.tasklets import locks, set_schedule_callback, tasklet

            def other():
                with lock:
                    ready.set()
                    while "{who}" == "handler" and not lock.statistics().waiting:
                        time.sleep(0.001)
                    if "{who}" == "handler":
                        os.kill(os.getpid(), signal.SIGALRM)
                    go.wait()
                given.set()

            def let_it_be_handed_over():
                until = time.monotonic() + 0.005  # to one that has waited for long
                while time.monotonic() < until:
                    pass
                go.set()
                given.wait()
                assert lock.statistics().hand_overs == 1

            def take(*_):
                with lock:
                    log.append("first")

            def handler(*_):
                let_it_be_handed_over()
                take()

            def callback(before, after):
                if given.is_set() and not log:
                    take()

            lock, log = locks.{kind}(), []
            ready, go, given = threading.Event(), threading.Event(), threading.Event()
            signal.signal(signal.SIGALRM, handler)
            thread = threading.Thread(target=other)
            thread.start()
            ready.wait()
            if "{who}" == "callback":
                set_schedule_callback(callback)
                tasklet(let_it_be_handed_over)()
            with lock:
                log.append("main")
            set_schedule_callback(None)
            thread.join()
            assert not lock.locked() and lock.acquire(False)
            print(*log)
            """,
            timeout=20,
        )
        assert child.out.split() == ["first", "main"], child

    def test_fork(self) -> None:
        child = run_child(
            """
            import os, threading, warnings
            from cpythonplus.tasklets import locks, run, tasklet

            warnings.simplefilter("ignore")
            lock, rlock, mine = locks.Lock(), locks.RLock(), locks.Lock()
            ready, go = threading.Event(), threading.Event()

            def other():
                with lock, rlock:
                    ready.set()
                    go.wait()

            thread = threading.Thread(target=other)
            thread.start()
            ready.wait()
            log = []

            def wait():
                with lock:
                    log.append(1)

            tasklet(wait)().run()
            mine.acquire()
            pid = os.fork()
            if pid == 0:
                run()
                assert log == [1], log
                assert not lock.locked() and rlock.acquire(timeout=1)
                assert mine.locked() and not mine.acquire(timeout=0.01)
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            assert lock.locked()
            go.set()
            thread.join()
            run(threadblock=True)
            assert log == [1] and not lock.locked()
            """,
            timeout=20,
        )
        assert child.status == 0, child

    def test_at_the_interpreters_end(self) -> None:
        child = run_child(
            """
            import threading
            from cpythonplus.tasklets import locks, tasklet

            lock = locks.Lock()
            lock.acquire()
            tasklet(lock.acquire)().run()
            threading.Thread(target=lock.acquire, daemon=True).start()

            class Late:
                def __del__(self, locks=locks):
                    own = locks.RLock()
                    with own:
                        print("late")

            late = Late()
            """,
            timeout=20,
        )
        assert (child.status, child.out) == (0, "late\n"), child


class TestFairness:
    """Who was there first is served first, also when somebody else is faster for a while."""

    ITEMS = 4_000

    def shares(self, queue: object, *, burst: int) -> list[int]:
        """Return how many items four getters that compute have got, from bursts of items."""
        got = [0] * 4

        def getter(number: int) -> None:
            while queue.get() is not None:  # type: ignore[attr-defined]
                got[number] += 1
                sum(range(20))

        def putter() -> None:
            for number in range(self.ITEMS):
                queue.put(number)  # type: ignore[attr-defined]
                if number % burst == burst - 1:
                    schedule()
            while not queue.empty():  # type: ignore[attr-defined]
                schedule()
            for _ in got:
                queue.put(None)  # type: ignore[attr-defined]

        for number in range(4):
            tasklet(getter)(number)
        tasklet(putter)()
        run()
        return got

    @pytest.mark.parametrize("burst", [1, 3, 10, 25])
    def test_getters(self, burst: int) -> None:
        kinds = (locks.Queue[object], locks.SimpleQueue[object], locks.LifoQueue[object])
        for queue in (kind() for kind in kinds):
            self.check(self.shares(queue, burst=burst))

    @pytest.mark.parametrize("room", [1, 3, 10])
    def test_getters_of_a_queue_that_fills(self, room: int) -> None:
        for kind in (locks.Queue[object], locks.LifoQueue[object]):
            self.check(self.shares(kind(room), burst=self.ITEMS))

    def check(self, got: list[int]) -> None:
        assert sum(got) == self.ITEMS
        assert max(got) <= 1.1 * min(got), got

    def test_putters(self) -> None:
        queue, put = locks.Queue[int](2), [0] * 4

        def putter(number: int) -> None:
            while sum(put) < self.ITEMS:
                queue.put(number)
                put[number] += 1
            if not any(each.alive for each in putters if each is not getcurrent()):
                queue.shutdown()

        def getter() -> None:
            with suppress(locks.ShutDown):
                while True:
                    for _ in range(5):
                        queue.get(timeout=PATIENCE_S)
                    schedule()

        putters = [tasklet(putter)(number) for number in range(4)]
        ending = tasklet(getter)()
        run()
        assert not ending.alive
        assert sum(put) >= self.ITEMS
        assert max(put) <= 1.1 * min(put), put

    def test_semaphore(self) -> None:
        semaphore, had = locks.Semaphore(0), [0] * 4
        over: list[bool] = []

        def taker(number: int) -> None:
            while semaphore.acquire(timeout=PATIENCE_S) and not over:
                had[number] += 1

        takers = [tasklet(taker)(number) for number in range(4)]
        run_these = 400
        for _ in range(run_these):
            semaphore.release(10)
            schedule()
        while sum(had) < 10 * run_these:
            schedule()
        over.append(True)
        semaphore.release(4)
        run()
        assert not any(each.alive for each in takers)
        assert sum(had) == 10 * run_these
        assert max(had) <= 1.1 * min(had), had

    def test_nobody_s_time_is_over_while_others_are_served(self) -> None:
        """Each of them gets an item in each tenth of a second: no wait lasts a second.

        Unless the whole process stands still so long: then nobody is served meanwhile.
        """
        queue: locks.Queue[object] = locks.Queue(10)
        empty: list[int] = []
        done: list[bool] = []
        served = [0]

        def getter(number: int) -> None:
            with suppress(locks.ShutDown):
                while True:
                    before = served[0]
                    try:
                        queue.get(timeout=1)
                        served[0] += 1
                    except locks.Empty:
                        if served[0] - before > 200:  # more than a burst
                            empty.append(number)

        def putter() -> None:
            for _ in range(30):
                for _ in range(200):
                    queue.put(None)
                sleep(0.05)
            done.append(True)
            queue.shutdown()

        for number in range(4):
            tasklet(getter)(number)
        tasklet(putter)()
        run()
        assert (done, empty) == ([True], [])
        assert served == [30 * 200]

    def test_who_comes_back_waits_at_its_old_place(self) -> None:
        condition, log = locks.Condition(), []
        there: list[int] = []

        def waits(name: str) -> None:
            with condition:
                while not there:
                    condition.wait()
                    if not there:
                        log.append(f"{name} in vain")
                log.append(f"{name} {there.pop()}")

        for name in "abc":
            tasklet(waits)(name)
        run()
        with condition:
            condition.notify_all()
        run()
        for number in range(3):
            with condition:
                there.append(number)
                condition.notify()
            run()
        assert log == ["a in vain", "b in vain", "c in vain", "a 0", "b 1", "c 2"]

    def test_a_new_visit_is_a_new_place(self) -> None:
        """Also where the lock is taken without `with`, and for who waits twice in one visit."""
        condition, log = locks.Condition(), []

        def by_with(name: str) -> None:
            for _ in range(3):
                with condition:
                    condition.wait()
                    log.append(name)

        def by_hand(name: str) -> None:
            for _ in range(3):
                condition.acquire()
                condition.wait()
                log.append(name)
                condition.release()

        for name in "ab":
            tasklet(by_with)(name)
            tasklet(by_hand)(name.upper())
        run()
        for _ in range(12):
            with condition:
                condition.notify()
            run()
        assert log == ["a", "A", "b", "B"] * 3
