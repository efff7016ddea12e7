"""Signals end waits, or let them go on with what is left of their time; nothing gets lost by it."""

import signal

import pytest

from tests.threads.programs import TIMED, WAITS, definitions, run


@pytest.mark.parametrize("name", WAITS)
def test_ctrl_c_ends_the_wait(name: str) -> None:
    run(
        """
        def interrupt():
            until(lambda: waits(it) > before)
            os.kill(os.getpid(), signal.SIGINT)

        for arguments in ((), (60,)):
            begin()
            before = waits(it)
            helper = start(interrupt)
            try:
                block(*arguments)
            except KeyboardInterrupt:
                pass
            else:
                raise AssertionError("not interrupted")
            helper.join()
            free()
            use(it)
        """,
        before=definitions(WAITS[name]),
    )


@pytest.mark.parametrize("name", ["Lock.acquire", "Queue.get", "SimpleQueue.get"])
def test_an_uncaught_ctrl_c_ends_the_process_by_the_signal(name: str) -> None:
    child = run(
        """
        def interrupt():
            until(lambda: waits(it))
            os.kill(os.getpid(), signal.SIGINT)

        begin()
        start(interrupt)
        block()
        """,
        before=definitions(WAITS[name]),
        status=-signal.SIGINT,
    )
    assert "KeyboardInterrupt" in child.err


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.slow
def test_the_wait_goes_on_with_the_remaining_time(name: str) -> None:
    # If it began anew with each signal it would never end.
    run(
        """
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        begin()
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        before = time.monotonic()
        try:
            result = block(0.08)
        except (Empty, Full, TimeoutError, BrokenBarrierError):
            result = False
        took = time.monotonic() - before
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert not result, result
        assert took >= 0.08, took
        assert seen
        """,
        before=definitions(WAITS[name]),
    )


@pytest.mark.parametrize("name", WAITS)
def test_handlers_run_while_it_waits(name: str) -> None:
    run(
        """
        def send():
            until(lambda: waits(it) > before)
            for i in range(4):
                os.kill(os.getpid(), signal.SIGALRM)
                until(lambda: len(seen) > i)
            end()

        signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread()))
        for arguments in ((), (60,)):
            seen = []
            begin()
            before = waits(it)
            helper = start(send)
            result = block(*arguments)
            assert result is not False, result
            helper.join()
            assert seen == [threading.main_thread()] * 4, seen
        """,
        before=definitions(WAITS[name]),
    )


@pytest.mark.parametrize("name", WAITS)
def test_a_handler_ends_the_wait_that_it_interrupted(name: str) -> None:
    run(
        """
        def send():
            until(lambda: waits(it) > before)
            os.kill(os.getpid(), signal.SIGALRM)

        signal.signal(signal.SIGALRM, lambda *_: end())
        begin()
        before = waits(it)
        helper = start(send)
        result = block()
        assert result is not False, result
        helper.join()
        """,
        before=definitions(WAITS[name]),
    )


@pytest.mark.parametrize("name", ["Queue.get", "SimpleQueue.get", "Semaphore.acquire"])
def test_a_handler_gets_what_came_first(name: str) -> None:
    # The wait inside is over before the one outside can go on: both get theirs.
    run(
        """
        def alarm(*_):
            inner.append(block(60))

        def send():
            until(lambda: waits(it) > before)
            os.kill(os.getpid(), signal.SIGALRM)
            until(lambda: waits(it) > before + 1)
            end()
            end()

        signal.signal(signal.SIGALRM, alarm)
        inner = []
        begin()
        before = waits(it)
        helper = start(send)
        assert block()
        helper.join()
        assert len(inner) == 1
        """,
        before=definitions(WAITS[name]),
    )


# ---- nothing is lost ----------------------------------------------------------------------------

# `collect` calls from C in one line, so that no handler can run between what the call returns and
# its being kept: what is missing in the end was lost inside.  Handlers raise in this line only.
COLLECTING = """
class Interrupt(Exception):
    pass

def alarm(number, frame):
    if frame.f_code is collect.__code__ and frame.f_lineno == LINE:
        interrupts.append(1)
        raise Interrupt

def collect(call, count):
    while len(got) < count:
        try:
            got.extend(itertools.islice(call, count - len(got)))
        except Interrupt:
            check()

def pause():
    \"\"\"Long enough for a waiter to sleep, or not.\"\"\"
    if random.random() < 0.7:
        time.sleep(random.choice((0, 0.00002, 0.00005)))

def check():
    pass

LINE = collect.__code__.co_firstlineno + 3
NEVER = object()
random.seed(7)
got, interrupts = deque(), []
signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
"""
COUNT = 3000


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "LifoQueue", "PriorityQueue", "Child"])
def test_no_item_is_lost_or_out_of_order(kind: str) -> None:
    run(
        f"""
        def produce():
            for i in range({COUNT}):
                q.put(i)
                pause()

        q = {kind}()
        producer = start(produce)
        collect(iter(q.get, NEVER), {COUNT})
        signal.setitimer(signal.ITIMER_REAL, 0)
        producer.join()
        assert sorted(got) == list(range({COUNT})), "lost or doubled"
        if "{kind}" != "LifoQueue":
            assert list(got) == list(range({COUNT})), "out of order"
        assert q.empty() and len(interrupts) > 5, len(interrupts)
        use(q)
        """,
        before=COLLECTING,
    )


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue", "Child"])
def test_what_is_put_is_in_it_once(kind: str) -> None:
    # A put that raises may have put its item, as in the standard library; no other one may.
    run(
        f"""
        def consume():
            while (item := q.get()) >= 0:
                taken.append(item)
                pause()

        q, taken = {kind}(1), []
        consumer = start(consume)
        collect(map(q.put, itertools.count(1)), {COUNT})
        signal.setitimer(signal.ITIMER_REAL, 0)
        until(q.empty)
        q.put(-1)
        consumer.join()
        assert len(taken) == len(set(taken)), (len(taken), len(set(taken)))
        assert {COUNT} <= len(taken) <= {COUNT} + len(interrupts), (len(taken), len(interrupts))
        assert q.unfinished_tasks == len(taken) + 1
        assert len(interrupts) > 5, len(interrupts)
        use(q)
        """,
        before=COLLECTING,
    )


@pytest.mark.parametrize("kind", ["Semaphore", "BoundedSemaphore"])
def test_no_permit_is_lost(kind: str) -> None:
    run(
        f"""
        def release():
            for i in range({COUNT}):
                until(lambda: i - len(got) < 50)  # a bounded one must not overflow
                semaphore.release()
                pause()

        semaphore = {kind}(100)
        for _ in range(100):
            semaphore.acquire()
        releaser = start(release)
        collect(iter(semaphore.acquire, NEVER), {COUNT})
        signal.setitimer(signal.ITIMER_REAL, 0)
        releaser.join()
        assert set(got) == {{True}} and semaphore._value == 0
        assert len(interrupts) > 5, len(interrupts)
        use(semaphore)
        """,
        before=COLLECTING,
    )


def test_no_lock_stays_behind() -> None:
    run(
        f"""
        def release():
            while len(got) < {COUNT}:
                if lock.locked():
                    released.append(lock.release())
                pause()

        lock, released = Lock(), []
        releaser = start(release)
        collect(iter(lock.acquire, NEVER), {COUNT})
        signal.setitimer(signal.ITIMER_REAL, 0)
        releaser.join()
        assert set(got) == {{True}}
        # One that was handed to the interrupted waiter may be released before it can give it back:
        # then nobody has got it, and yet it was released.
        more = len(released) + lock.locked() - {COUNT}
        assert 0 <= more <= lock.statistics().hand_overs, (len(released), lock.locked())
        assert len(interrupts) > 5, len(interrupts)
        if lock.locked():
            lock.release()
        use(lock)
        """,
        before=COLLECTING,
    )


@pytest.mark.parametrize(
    "lock",
    [
        "",
        pytest.param("Lock()", marks=pytest.mark.slow),
        pytest.param("threading.RLock()", marks=pytest.mark.slow),
    ],
)
def test_no_notification_is_lost(lock: str) -> None:
    # One that is granted to a wait which then raises goes to the other waiter.
    run(
        f"""
        def notify():
            for i in range(1000):
                while True:
                    with condition:
                        if len(condition._waiters) == 2:
                            condition.notify()
                            break
                    pause()
                until(lambda: len(got) + len(others) == i + 1)
            done.append(1)

        def other():
            with condition:
                while True:
                    assert condition.wait()
                    others.append(1)

        def check():
            assert condition._is_owned()
            if done:
                raise SystemExit

        condition, others, done = Condition({lock}), [], []
        start(notify)
        start(other)
        with condition:
            try:
                collect(iter(condition.wait, NEVER), sys.maxsize)
            except SystemExit:
                pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert len(got) + len(others) == 1000, (len(got), len(others))
        assert set(got) <= {{True}} and len(interrupts) > 5, len(interrupts)
        """,
        before=COLLECTING,
    )
