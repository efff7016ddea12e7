"""Many threads at once: exclusion, conservation, everybody's turn, and objects that vanish.

The outcome of each is certain, whatever the scheduler does; only how long it takes is not.
"""

import json
from collections.abc import Callable

import pytest

from tests.support import SANITIZED
from tests.threads.programs import TIMED, WAITS, definitions, run

RecordProperty = Callable[[str, object], None]

TOGETHER = """
def together(*bodies):
    \"\"\"Run the bodies in threads that begin together; raises what one of them raised.\"\"\"
    barrier = threading.Barrier(len(bodies))
    errors = []

    def guarded(body):
        try:
            barrier.wait()
            body()
        except BaseException as error:
            traceback.print_exc()
            errors.append(error)

    running = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def moment():
    \"\"\"A time-out short enough to run out at times.\"\"\"
    return random.choice((0, 0.00001, 0.00005, 0.0002, 0.001))


sys.setswitchinterval(0.0002)
random.seed(11)
"""


@pytest.mark.parametrize("lock", ["Lock()", "RLock()", "Condition()", "Semaphore(1)"])
def test_one_at_a_time(lock: str) -> None:
    run(
        f"""
        def body():
            for i in range(400):
                if i % 3:
                    lock.acquire()
                elif not lock.acquire(timeout=moment()):
                    continue
                assert not inside, inside
                inside.append(i)
                value = counter[0]
                if i % 16 == 0:
                    time.sleep(0)
                counter[0] = value + 1
                done.append(1)
                inside.pop()
                lock.release()

        lock, inside, counter, done = {lock}, [], [0], []
        together(*[body] * 8)
        assert counter[0] == len(done), (counter, len(done))
        assert lock.acquire(False)
        lock.release()
        """,
        before=TOGETHER,
    )


def test_64_threads_get_their_turns_at_one_lock(record_property: RecordProperty) -> None:
    # Each lets go of the GIL while it has the lock, so that all others come to wait for it. Each
    # millisecond one of those who have waited longer is served: only starvation makes this hang.
    child = run(
        """
        import json, statistics

        def body(me):
            while min(turns) < 10:
                with lock:
                    turns[me] += 1
                    time.sleep(0)

        lock, turns = Lock(), [0] * 64
        together(*[(lambda me=me: body(me)) for me in range(64)])
        told = lock.statistics()
        print(json.dumps({
            "least": min(turns), "median": statistics.median(turns), "most": max(turns),
            "waits": told.waits, "hand_overs": told.hand_overs,
            "longest_wait_ms": told.longest_wait_ns / 1e6,
        }))
        """,
        before=TOGETHER,
        timeout=60,
    )
    spread = json.loads(child.out)
    for name, value in spread.items():
        record_property(name, value)
    print("turns of 64 threads:", spread)
    assert spread["least"] >= 10
    assert spread["waits"] > 0


def test_waiters_for_different_things_at_one_lock_all_get_on() -> None:
    # Plain, timed and re-entrant acquisitions, and conditions over the same lock.
    run(
        """
        def plain():
            for _ in range(300):
                with lock:
                    turns.append("plain")

        def timed():
            got = 0
            while got < 300:
                if lock.acquire(timeout=moment()):
                    got += 1
                    turns.append("timed")
                    lock.release()

        def conditioned():
            for _ in range(300):
                with condition:
                    turns.append("condition")
                    condition.wait(moment())
                    condition.notify()

        lock = RLock()
        condition, turns = Condition(lock), []
        together(plain, plain, timed, timed, conditioned, conditioned)
        assert [turns.count(kind) for kind in ("plain", "timed", "condition")] == [600] * 3
        assert not lock.locked() and not condition._waiters
        """,
        before=TOGETHER,
    )


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue", "Child", "SimpleQueue"])
def test_items_are_conserved(kind: str) -> None:
    # Getters and putters that give up at random moments, and some that drain.
    run(
        f"""
        EACH = 700

        def produce(first):
            for item in range(first, first + EACH):
                while True:
                    try:
                        if bounded:
                            q.put(item, timeout=moment())
                        else:
                            q.put(item)
                        break
                    except Full:
                        pass

        def consume(got):
            while len(all_done) < EACH * 3:
                try:
                    items = [q.get(timeout=moment())] if random.random() < 0.8 else q.drain(3)
                except Empty:
                    items = []
                for item in items:
                    got.append(item)
                    all_done.append(item)
                    if bounded:
                        q.task_done()

        bounded = "{kind}" != "SimpleQueue"
        q = {kind}(2) if bounded else SimpleQueue()
        parts, all_done = [[] for _ in range(3)], []
        together(
            *[(lambda i=i: produce(i * EACH)) for i in range(3)],
            *[(lambda part=part: consume(part)) for part in parts],
            *([q.join] if bounded else []),
        )
        assert sorted(all_done) == list(range(EACH * 3)), "lost or doubled"
        assert q.empty() and (not bounded or q.unfinished_tasks == 0)
        if "{kind}" in ("Queue", "SimpleQueue"):
            # Each getter sees each putter's items in their order.
            for part in parts:
                for i in range(3):
                    own = [item for item in part if item // EACH == i]
                    assert own == sorted(own), "out of order"
        """,
        before=TOGETHER,
    )


@pytest.mark.parametrize("kind", ["Semaphore", "BoundedSemaphore"])
def test_permits_are_conserved(kind: str) -> None:
    run(
        f"""
        def body():
            for i in range(400):
                if i % 5 == 0:
                    semaphore.acquire()
                elif not semaphore.acquire(timeout=moment()):
                    continue
                inside.append(1)
                assert len(inside) <= 3, len(inside)
                if i % 8 == 0:
                    time.sleep(0)
                inside.pop()
                semaphore.release()

        semaphore, inside = {kind}(3), []
        together(*[body] * 10)
        assert semaphore._value == 3 and not inside
        """,
        before=TOGETHER,
    )


def test_notifications_are_conserved() -> None:
    # Every notification ends one wait, as long as somebody waits who has no time-out.
    run(
        """
        def waiter():
            while not stop:
                patient = random.random() < 0.5
                with condition:
                    waiting[0] += patient
                    if condition.wait(None if patient else moment()):
                        told.append(1)
                    waiting[0] -= patient
            ended.append(1)

        def notify():
            sent = 0
            while sent < 800:
                with condition:
                    if waiting[0] > sent - len(told):  # who is told but not back still counts
                        condition.notify()
                        sent += 1
                time.sleep(0)
            until(lambda: len(told) >= sent)
            assert len(told) == sent, (len(told), sent)
            stop.append(1)
            while len(ended) < 6:
                with condition:
                    condition.notify_all()

        condition, told, stop, ended, waiting = Condition(), [], [], [], [0]
        together(notify, *[waiter] * 6)
        """,
        before=TOGETHER,
    )


def test_barrier_rounds_and_those_who_leave() -> None:
    run(
        """
        PARTIES, ROUNDS = 4, 60

        def body():
            for round_ in range(ROUNDS):
                while True:
                    try:
                        indices[round_].append(barrier.wait(moment(), breaks=False))
                        break
                    except TimeoutError:
                        pass

        barrier = Barrier(PARTIES)
        indices = [[] for _ in range(ROUNDS)]
        together(*[body] * PARTIES)
        assert all(sorted(each) == list(range(PARTIES)) for each in indices), indices
        assert barrier.n_waiting == 0 and not barrier.broken
        """,
        before=TOGETHER,
    )


def test_events_set_and_cleared_all_the_time() -> None:
    run(
        """
        def wait():
            for _ in range(200):
                event.wait()

        def pulse():
            while len(ended) < 4:
                event.set()
                event.clear()

        def waiter():
            wait()
            ended.append(1)

        event, ended = Event(), []
        together(pulse, *[waiter] * 4)
        """,
        before=TOGETHER,
    )


def test_a_pipeline_through_everything() -> None:
    # With the scheduled GIL as well, as `cpythonplus run` has it.
    run(
        """
        from cpythonplus import UnsupportedPlatform, gil

        try:
            gil.install()
        except UnsupportedPlatform:
            pass

        def first():
            for i in range(600):
                with permits:
                    a.put(i)
            a.put(None)

        def second():
            while (item := a.get()) is not None:
                b.put(item)
                a.task_done()
            a.task_done()
            b.put(None)

        def third():
            while (item := b.get()) is not None:
                with condition:
                    cell.append(item)
                    condition.notify()
            with condition:
                cell.append(None)
                condition.notify()

        def fourth():
            while True:
                with condition:
                    condition.wait_for(lambda: cell)
                    items = cell[:]
                    del cell[:]
                result.extend(items)
                if items[-1] is None:
                    return

        permits, a, b, condition = Semaphore(2), Queue(3), SimpleQueue(), Condition()
        cell, result = [], []
        together(first, second, third, fourth)
        a.join()
        assert result == [*range(600), None]
        """,
        before=TOGETHER,
    )


# ---- objects that vanish ------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAITS)
def test_the_last_reference_goes_while_a_thread_waits(name: str) -> None:
    # The wait itself keeps what it needs, until the interpreter ends around it.
    run(
        """
        def body():
            begin()
            things.append(it)
            block(0.05)

        def guarded():
            try:
                body()
            except (Empty, Full, BrokenBarrierError, TimeoutError):
                pass
            finally:
                ended.append(1)

        things, ended = [], []
        start(guarded)
        until(lambda: things and waits(things[0]))
        reference = weakref.ref(things[0])
        del it, things[0]
        let_go = ready = None
        gc.collect()
        if timed and not held:
            until(lambda: ended)
            until(lambda: reference() is None)
        """,
        before=f"timed, held = {name in TIMED}, {'held_elsewhere' in WAITS[name].begin}\n"
        + definitions(WAITS[name]),
    )


def test_parts_that_go_while_a_thread_waits_in_them() -> None:
    run(
        """
        for make in (lambda: Semaphore(0), Event, lambda: Barrier(2)):
            whole = make()
            condition = whole._cond
            def wait(condition):
                with condition:
                    assert condition.wait(0.02) is False
            waiter = start(wait, condition)
            until(lambda: len(condition._waiters) or not waiter.is_alive())
            del whole, condition
            gc.collect()
            waiter.join()
        for name in ("not_empty", "not_full", "all_tasks_done"):
            q = Queue()
            condition = getattr(q, name)
            waiter = start(wait, condition)
            until(lambda: len(condition._waiters) or not waiter.is_alive())
            del q, condition
            gc.collect()
            waiter.join()
        """
    )


@pytest.mark.parametrize("name", WAITS)
def test_making_it_anew_while_a_thread_waits(name: str) -> None:
    # __init__ a second time, as some programs do after a fork: no crash, and usable afterwards.
    run(
        """
        def body():
            begin()
            things.append(it)
            block(0.05)

        def guarded():
            try:
                body()
            except (Empty, Full, BrokenBarrierError, TimeoutError, RuntimeError):
                pass

        arguments = {"Semaphore": (1,), "BoundedSemaphore": (1,), "Barrier": (2,)}
        things = []
        thread = start(guarded)
        until(lambda: things and waits(things[0]))
        it = things[0]
        it.__init__(*arguments.get(type(it).__name__, ()))
        gc.collect()
        junk = [Lock() for _ in range(100)] + [Condition(Lock()) for _ in range(100)]
        if timed:
            thread.join()
        """,
        before=f"timed = {name in TIMED}\n" + definitions(WAITS[name]),
    )


# ---- the end ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_thousands_of_threads() -> None:
    run(
        """
        threading.stack_size(128 * 1024)
        COUNT = 2000
        event, semaphore, lock, q = Event(), Semaphore(0), Lock(), SimpleQueue()
        passed = []

        def body():
            event.wait()
            semaphore.acquire()
            with lock:
                passed.append(q.get())

        running = [start(body) for _ in range(COUNT)]
        until(lambda: len(event._cond._waiters) == COUNT)
        event.set()
        until(lambda: len(semaphore._cond._waiters) == COUNT)
        semaphore.release(COUNT)
        for i in range(COUNT):
            q.put(i)
        for thread in running:
            thread.join()
        assert sorted(passed) == list(range(COUNT))
        """
    )


@pytest.mark.parametrize("name", WAITS)
def test_daemon_threads_that_wait_at_the_end(name: str) -> None:
    run(
        """
        def body():
            begin()
            things.append(it)
            block()

        things = []
        for i in range(3):
            start(body)
            until(lambda: len(things) > i and waits(things[i]))
        """,
        before=definitions(WAITS[name]),
    )


def test_daemon_threads_that_wait_and_wake_at_the_end() -> None:
    # Their waits end, by time-outs and by each other, while the interpreter goes away around them.
    run(
        """
        import atexit

        lock, rlock, condition, event = Lock(), RLock(), Condition(), Event()
        semaphore, q, simple, full = Semaphore(1), Queue(1), SimpleQueue(), Queue(1)
        full.put(1)

        def use_all():
            with lock, rlock, semaphore:
                time.sleep(0)
            with condition:
                condition.wait(0.0002)
                condition.notify_all()
            event.wait(0.0002)
            event.set()
            event.clear()
            for each in (q.get, simple.get, lambda timeout: full.put(1, timeout=timeout)):
                try:
                    each(timeout=0.0002)
                except (Empty, Full):
                    pass
            simple.put(1)

        def body():
            while True:
                use_all()
                rounds.append(1)

        rounds = []
        for _ in range(6):
            start(body)
        until(lambda: len(rounds) > 50)
        for _ in range(forks):
            pid = os.fork()
            if pid == 0:
                signal.alarm(200)
                for _ in range(4):
                    start(body)
                sys.exit()
            assert os.waitpid(pid, 0)[1] == 0
        atexit.register(use_all)
        """,
        before=f"forks = {0 if SANITIZED else 5}\n",  # its allocator has locks that stay held
    )


def test_threads_that_wait_are_joined_at_the_end() -> None:
    child = run(
        """
        def body():
            with condition:
                condition.wait_for(lambda: ready)
            print("done", q.get(), event.wait(), flush=True)

        def finish():
            with condition:
                ready.append(1)
                condition.notify_all()
            q.put("item")
            event.set()

        condition, ready, q, event = Condition(), [], SimpleQueue(), Event()
        threading.Thread(target=body).start()
        until(lambda: condition._waiters)
        threading._register_atexit(finish)
        """
    )
    assert child.out == "done item True\n"
