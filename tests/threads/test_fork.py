"""A fork: waiters stay behind, what another thread held stays taken, _at_fork_reinit() frees it."""

from textwrap import dedent

import pytest

from tests.support import SANITIZED
from tests.threads.programs import WAITS, definitions, run

pytestmark = pytest.mark.skipif(
    SANITIZED, reason="the sanitizer's allocator has locks that stay held in the child of a fork"
)

FORKING = """
def in_child(check, *args):
    \"\"\"Fork, and run check() there; fails if that fails or does not end.\"\"\"
    faulthandler.cancel_dump_traceback_later()  # else its thread would be missed below
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            faulthandler.dump_traceback_later(200, exit=True)
            check(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"


def freed(it):
    # In a child: with the locks that threads of the parent held made anew.
    for part in (it, getattr(it, "_cond", None), getattr(it, "mutex", None)):
        if hasattr(part, "_at_fork_reinit"):
            part._at_fork_reinit()
    return it


def join_all(started):
    for thread in started:
        thread.join()
"""

# Each makes `it`, held by another thread and waited for by others, and says how that ends in the
# parent.
CONTENDED = {
    "Lock": """
        it = Lock()
        end = held_elsewhere(it)
        waiters = [start(take, it) for _ in range(3)]
        until(lambda: waits(it) >= 3)
    """,
    "RLock": """
        it = RLock()
        end = held_elsewhere(it)
        waiters = [start(take, it) for _ in range(3)]
        until(lambda: waits(it) >= 3)
    """,
    "Condition": """
        it = Condition()
        waiters = [start(take, it, 50) for _ in range(3)]
        until(lambda: len(it._waiters) == 3)
        let_go = held_elsewhere(it)
        waiters += [start(take, it) for _ in range(2)]
        until(lambda: it._lock.statistics().waits >= 2)
        def end():
            let_go()
            with it:
                it.notify_all()
    """,
    "Condition over Lock": """
        it = Condition(Lock())
        waiters = [start(take, it, 50) for _ in range(3)]
        until(lambda: len(it._waiters) == 3)
        let_go = held_elsewhere(it)
        waiters += [start(take, it) for _ in range(2)]
        until(lambda: it._lock.statistics().waits >= 2)
        def end():
            let_go()
            with it:
                it.notify_all()
    """,
    "Semaphore": """
        it = Semaphore(2)
        it.acquire()
        let_go = held_elsewhere(it)
        inside = held_elsewhere(it._cond)
        waiters = [start(it.acquire) for _ in range(2)]
        until(lambda: it._cond._lock.statistics().waits >= 2)
        inside()
        until(lambda: it.statistics().waits >= 2)
        inside = held_elsewhere(it._cond)
        waiters += [start(it.acquire) for _ in range(2)]
        until(lambda: it._cond._lock.statistics().waits >= 4)
        def end():
            inside()
            let_go()
            it.release(3)
    """,
    "BoundedSemaphore": """
        it = BoundedSemaphore(1)
        it.acquire()
        waiters = [start(it.acquire) for _ in range(3)]
        until(lambda: it.statistics().waits >= 3)
        inside = held_elsewhere(it._cond)
        def end():
            inside()
            for i in range(3):
                it.release()
                until(lambda: it._value == 0)
    """,
    "Event": """
        it = Event()
        waiters = [start(it.wait) for _ in range(3)]
        until(lambda: it.statistics().waits >= 3)
        inside = held_elsewhere(it._cond)
        def end():
            inside()
            it.set()
    """,
    "Barrier": """
        it = Barrier(3)
        waiters = [start(it.wait) for _ in range(2)]
        until(lambda: it.n_waiting == 2)
        inside = held_elsewhere(it._cond)
        def end():
            inside()
            it.wait()
    """,
    "SimpleQueue": """
        it = SimpleQueue()
        waiters = [start(it.get) for _ in range(3)]
        until(lambda: it.statistics().waits >= 3)
        def end():
            for _ in range(3):
                it.put(1)
    """,
}
for kind in ("Queue", "LifoQueue", "PriorityQueue", "Child"):
    CONTENDED[f"{kind}, empty"] = f"""
        it = {kind}(1)
        it.put(1)
        it.get()
        waiters = [start(it.get) for _ in range(3)] + [start(it.join)]
        until(lambda: it.statistics().waits >= 4)
        let_go = held_elsewhere(it.mutex)
        waiters += [start(it.qsize)]
        until(lambda: it.mutex.statistics().waits >= 1)
        def end():
            let_go()
            for _ in range(3):
                it.put(1)
            for _ in range(4):
                it.task_done()
    """
    CONTENDED[f"{kind}, full"] = f"""
        it = {kind}(1)
        it.put(1)
        waiters = [start(it.put, 2) for _ in range(3)] + [start(it.join, 50)]
        until(lambda: it.statistics().waits >= 4)
        let_go = held_elsewhere(it.mutex)
        def end():
            let_go()
            for _ in range(4):
                it.get()
                it.task_done()
    """

# A few have what use() does not undo.
BEFORE_USE = {"Barrier": "assert it.n_waiting == 0", "Condition": "assert len(it._waiters) == 0"}


@pytest.mark.parametrize("name", CONTENDED)
def test_a_child_can_use_it_at_once(name: str) -> None:
    run(
        f"""
        def check():
            freed(it)
            {BEFORE_USE.get(name, "pass")}
            use(it)
            in_child(use, it)  # and the child's child

        for _ in range(3):
            in_child(check)
        elsewhere(in_child, check)
        end()
        join_all(waiters)
        """,
        before=FORKING + dedent(CONTENDED[name]),
    )


@pytest.mark.parametrize("name", ["Lock", "RLock", "Condition", "Condition over Lock"])
def test_what_others_held_stays_taken_in_the_child(name: str) -> None:
    # `if once.acquire(False): initialise()` must not run twice.
    run(
        """
        lock = getattr(it, "_lock", it)

        def check():
            assert "<locked" in repr(lock), repr(lock)
            assert lock.locked() is True
            assert not it.acquire(False) and not it.acquire(timeout=0.001)
            if isinstance(lock, RLock):
                assert not lock._is_owned() and lock._recursion_count() == 0
                refused(RuntimeError, lock.release)
            lock._at_fork_reinit()
            assert "<unlocked" in repr(lock), repr(lock)
            assert lock.locked() is False
            assert it.acquire(False)
            if not isinstance(lock, RLock):
                assert not it.acquire(False)
            assert "<locked" in repr(lock), repr(lock)
            it.release()
            refused(RuntimeError, it.release)
            refused(RuntimeError, it.release)

        in_child(check)
        end()
        join_all(waiters)
        """,
        before=FORKING + dedent(CONTENDED[name]),
    )


@pytest.mark.parametrize("forks", ["main", "another thread"])
def test_what_the_forking_thread_holds_stays_held_in_the_child(forks: str) -> None:
    run(
        f"""
        def check():
            assert lock.locked() and not lock.acquire(False)
            assert rlock._is_owned() and rlock._recursion_count() == 2
            assert elsewhere(rlock.acquire, False) is False
            assert condition._is_owned()
            assert mutexed.mutex.locked()
            waiters = [start(take, thing) for thing in (lock, rlock, condition)]
            waiters += [start(mutexed.put, 1)]
            until(lambda: all(waits(thing) for thing in (lock, rlock, condition, mutexed)))
            lock.release()
            rlock.release()
            assert rlock._is_owned()
            rlock.release()
            refused(RuntimeError, rlock.release)
            condition.wait(0.001)
            condition.release()
            mutexed.mutex.release()
            join_all(waiters)
            assert mutexed.get() == 1
            for thing in (lock, rlock, condition, mutexed):
                use(thing)

        def fork():
            with lock, rlock, rlock, condition, mutexed.mutex:
                in_child(check)
                assert rlock._recursion_count() == 2
            for thing in (lock, rlock, condition, mutexed):
                use(thing)

        lock, rlock, condition, mutexed = Lock(), RLock(), Condition(), Queue()
        errors = []
        def guarded():
            try:
                fork()
            except BaseException as error:
                errors.append(error)

        if {forks == "main"}:
            guarded()
        else:
            start(guarded).join()
        assert not errors, errors
        """,
        before=FORKING,
    )


def test_what_a_vanished_thread_took_stays_taken() -> None:
    # A permit has no owner, an item is gone, a flag is a flag.
    run(
        """
        semaphore, event, q = Semaphore(3), Event(), Queue()
        let_go = held_elsewhere(semaphore)
        event.set()
        for i in range(4):
            q.put(i)
        elsewhere(q.get)

        def check():
            assert semaphore._value == 2
            assert event.is_set() and event.wait()
            assert q.drain() == [1, 2, 3] and q.unfinished_tasks == 4
            assert q.join(0.001) is False

        in_child(check)
        let_go()
        """,
        before=FORKING,
    )


@pytest.mark.parametrize("name", ["Lock", "RLock", "Condition", "Condition over Lock", "Event"])
def test_at_fork_reinit(name: str) -> None:
    # As threading and logging use it, in the child, of whatever state.
    run(
        """
        def check():
            it._at_fork_reinit()
            use(it)
            if isinstance(it, Event):
                return
            it.acquire()
            it._at_fork_reinit()
            use(it)

        in_child(check)
        end()
        join_all(waiters)
        """,
        before=FORKING + dedent(CONTENDED[name]),
    )


def test_locks_that_are_taken_around_a_fork() -> None:
    # concurrent.futures and logging do it so.
    run(
        """
        lock, rlock = Lock(), RLock()
        os.register_at_fork(
            before=lock.acquire, after_in_child=lock._at_fork_reinit, after_in_parent=lock.release
        )
        os.register_at_fork(
            before=rlock.acquire, after_in_child=rlock.release, after_in_parent=rlock.release
        )

        def check():
            use(lock)
            use(rlock)

        def busy(thing):
            while not stop:
                with thing:
                    time.sleep(0)

        stop = []
        threads = [start(busy, thing) for thing in (lock, rlock) for _ in range(2)]
        for _ in range(10):
            in_child(check)
        stop.append(1)
        join_all(threads)
        """,
        before=FORKING,
    )


INTERRUPTED = (
    "Lock.acquire",
    "RLock.acquire",
    "Condition.wait",
    "Condition.wait over Lock",
    "Semaphore.acquire",
    "Event.wait",
    "Barrier.wait",
    "Queue.get",
    "Queue.put",
    "Queue.join",
    "PriorityQueue.put",
    "get of a subclass",
    "SimpleQueue.get",
)
# The forking handler: in the child it does what {} says.
FORKING_HANDLER = """
def alarm(*_):
    pids.append(os.fork())
    if pids == [0]:
        faulthandler.dump_traceback_later(200, exit=True)
        {}


def send(count):
    until(lambda: waits(it) >= count)
    os.kill(os.getpid(), signal.SIGALRM)
    until(lambda: pids)
    assert os.waitpid(pids[0], 0)[1] == 0, "the child failed"
    end()


pids = []
signal.signal(signal.SIGALRM, alarm)
"""


@pytest.mark.parametrize("name", [name for name in INTERRUPTED if name != "RLock.acquire"])
@pytest.mark.parametrize("when", ["in the handler", "from a thread"])
def test_a_handler_forks_in_the_middle_of_a_wait(name: str, when: str) -> None:
    # It goes on in both processes, and what happens in the child before the handler returns counts.
    in_child = "end()" if when == "in the handler" else "start(end)"
    if name == "Barrier.wait" and when == "in the handler":
        pytest.skip("it would wait for the one that it interrupted, whom the fork forgot")
    run(
        """
        begin()
        helper = start(send, 1)
        result = block()
        if pids == [0]:
            os._exit(1 if result is False else 0)
        assert result is not False
        helper.join()
        """,
        before=FORKING_HANDLER.format(in_child) + definitions(WAITS[name]),
    )


def test_a_wait_for_what_a_vanished_thread_held_goes_on_in_the_child() -> None:
    name = "RLock.acquire"
    run(
        """
        begin()
        helper = start(send, 1)
        acquired = False
        while not acquired:
            acquired = block(0.2)
            if pids == [0]:
                os._exit(acquired)
        helper.join()
        """,
        before=FORKING_HANDLER.format("pass") + definitions(WAITS[name]),
    )


def test_a_handler_that_forks_leaves_other_waiters_to_the_parent() -> None:
    run(
        """
        def end():
            mine = 1 if pids == [0] else 4
            until(lambda: len(it._cond._waiters) == mine)
            it.release(mine)

        it = Semaphore(0)
        others = [start(it.acquire) for _ in range(3)]
        helper = start(send, 4)
        assert it.acquire()
        if pids == [0]:
            os._exit(it._value)
        for thread in (helper, *others):
            thread.join()
        assert it._value == 0
        """,
        before=FORKING_HANDLER.format("start(end)"),
    )


@pytest.mark.parametrize("ends", ["by a time-out", "by an exception"])
@pytest.mark.parametrize(
    "name", ["Lock.acquire", "Semaphore.acquire", "Event.wait", "Queue.get", "SimpleQueue.get"]
)
def test_a_wait_that_a_fork_interrupted_ends_in_the_child(name: str, ends: str) -> None:
    run(
        """
        class Interrupt(Exception):
            pass

        def interrupt():
            raise Interrupt

        begin()
        other = start(block)
        helper = start(send, 2)
        result = False
        try:
            while not pids:  # on a busy machine the time may be over before the signal comes
                try:
                    result = block(0.2)
                except Empty:
                    result = False
        except Interrupt:
            result = False
        if pids == [0]:
            assert not result
            free()
            use(it)
            os._exit(0)
        helper.join()
        """,
        before=FORKING_HANDLER.format("interrupt()" if "exception" in ends else "pass")
        + definitions(WAITS[name]),
    )


@pytest.mark.needs_gil
def test_forks_while_others_are_busy_with_everything() -> None:
    run(
        """
        lock, rlock, condition, event, barrier = Lock(), RLock(), Condition(), Event(), Barrier(2)
        semaphore, q, lifo, priority, simple = (
            Semaphore(2), Queue(2), LifoQueue(2), PriorityQueue(2), SimpleQueue())
        things = (lock, rlock, condition, event, semaphore, q, lifo, priority, simple)

        def locks():
            with lock, rlock, rlock, condition, semaphore:
                condition.notify()

        def waiter():
            with condition:
                condition.wait(0.0002)
            event.wait(0.0002)
            event.set()
            event.clear()

        def queues():
            for each in (q, lifo, priority):
                try:
                    each.put(1, timeout=0.0002)
                    each.get(timeout=0.0002)
                except (Empty, Full):
                    pass
            simple.put(1)
            simple.get()

        def meet():
            try:
                barrier.wait(0.0005, breaks=False)
            except TimeoutError:
                pass

        def again(body):
            while not stop:
                body()

        def check():
            stop.append(1)
            event.clear()
            for thing in (*things, barrier):
                use(freed(thing))

        stop = []
        busy = [start(again, body) for body in (locks, waiter, queues, meet) for _ in range(2)]
        for _ in range(25):
            in_child(check)
            time.sleep(0.001)
        stop.append(1)
        join_all(busy)
        """,
        before=FORKING,
    )


def test_multiprocessing_with_fork() -> None:
    run(
        """
        import multiprocessing

        def check():
            for thing in things:
                if hasattr(thing, "_at_fork_reinit"):
                    thing._at_fork_reinit()
                use(thing)

        things = Lock(), RLock(), Condition(), Semaphore(0), Event(), Queue(), SimpleQueue()
        ends = [held_elsewhere(thing) for thing in things[:3]]
        blocked = [start(thing.acquire) for thing in (things[0], things[1], things[3])]
        blocked += [start(things[4].wait), start(things[5].get), start(things[6].get)]
        until(lambda: all(waits(thing) for thing in things if not isinstance(thing, Condition)))
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=check) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0, process.exitcode
        with context.Pool(2) as pool:
            assert pool.map(abs, range(-20, 0)) == list(range(20, 0, -1))
        """
    )


def test_statistics_in_the_child() -> None:
    run(
        """
        lock = Lock()
        end = held_elsewhere(lock)
        waiter = start(take, lock)
        until(lambda: waits(lock) == 1)

        def check():
            use(freed(lock))
            told = lock.statistics()
            assert told.timeouts == 0 and told.longest_wait_ns <= told.total_wait_ns < 60e9, told

        in_child(check)
        end()
        waiter.join()
        """,
        before=FORKING,
    )
