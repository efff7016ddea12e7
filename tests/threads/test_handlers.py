"""A signal handler and the wait that it interrupts want the same thing: as in the standard library.

In each test another thread does something at the very moment at which the handler runs.  The
programs of LIKE_STOCK are run by the plain interpreter as well, which is the yardstick.
"""

import subprocess
import sys
from textwrap import dedent

import pytest

from tests.support import run_child
from tests.threads.programs import TIMED, WAITS, definitions, run

# What was taken is given back.
GIVE_BACK = {
    **{f"{name}.acquire": "it.release()" for name in ("Lock", "RLock", "Condition")},
    **{f"with {name}": "it.release()" for name in ("Lock", "RLock", "Condition", "Semaphore")},
    "Semaphore.acquire": "it.release()",
    "BoundedSemaphore.acquire": "it.release()",
    **{f"{name}.get": "it.put(1)" for name in ("Queue", "LifoQueue", "PriorityQueue")},
    **{f"{name}.put": "it.get()" for name in ("Queue", "LifoQueue", "PriorityQueue")},
    "SimpleQueue.get": "it.put(1)",
    "get of a subclass": "it.put(1)",
    "put of a subclass": "it.get()",
}
# The handler lets another thread give up what the main thread waits for.
GIVEN_UP = """
def send():
    until(lambda: waits(it) > before)
    os.kill(os.getpid(), signal.SIGALRM)
    asked.wait()
    end()
    given.set()

def let_it_be_given_up():
    asked.set()
    assert given.wait(30)

def give_back():
    {}

asked, given, inner = threading.Event(), threading.Event(), []
"""


def given_up(name: str) -> str:
    """The definitions of a wait, and those above."""
    return GIVEN_UP.format(GIVE_BACK[name]) + definitions(WAITS[name])


@pytest.mark.parametrize("timed", ["", "60"])
@pytest.mark.parametrize("name", GIVE_BACK)
def test_a_handler_takes_it_as_it_is_given_up(name: str, timed: str) -> None:
    run(
        f"""
        def alarm(*_):
            let_it_be_given_up()
            inner.append(block(60))
            give_back()

        signal.signal(signal.SIGALRM, alarm)
        begin()
        before = waits(it)
        helper = start(send)
        assert block({timed}) is not False
        helper.join()
        assert len(inner) == 1 and inner[0] is not False
        if isinstance(it, (Lock, RLock, Condition)):
            assert elsewhere(it.acquire, False) is False, "two owners"
        give_back()
        use(it)
        """,
        before=given_up(name),
    )


@pytest.mark.parametrize("name", GIVE_BACK)
def test_a_handler_raises_as_it_is_given_up(name: str) -> None:
    # Nobody has it then: it is there for the next, or the call had it in time.
    run(
        """
        class Interrupt(Exception):
            pass

        def alarm(*_):
            let_it_be_given_up()
            raise Interrupt

        signal.signal(signal.SIGALRM, alarm)
        begin()
        before = waits(it)
        helper = start(send)
        refused(Interrupt, block)
        helper.join()
        assert block(60) is not False
        give_back()
        use(it)
        """,
        before=given_up(name),
    )


@pytest.mark.parametrize("name", GIVE_BACK)
def test_a_handler_takes_it_and_raises(name: str) -> None:
    run(
        """
        class Interrupt(Exception):
            pass

        def alarm(*_):
            let_it_be_given_up()
            block(60)
            raise Interrupt

        signal.signal(signal.SIGALRM, alarm)
        begin()
        before = waits(it)
        helper = start(send)
        refused(Interrupt, block)
        helper.join()
        give_back()
        use(it)
        """,
        before=given_up(name),
    )


@pytest.mark.parametrize("name", [n for n in GIVE_BACK if not n.startswith("RLock")])
def test_a_handler_forks_as_it_is_given_up(name: str) -> None:
    # It is free in the child as well, where the wait goes on.
    run(
        """
        def alarm(*_):
            let_it_be_given_up()
            pids.append(os.fork())
            if pids == [0]:
                faulthandler.dump_traceback_later(200, exit=True)

        pids = []
        signal.signal(signal.SIGALRM, alarm)
        begin()
        before = waits(it)
        helper = start(send)
        assert block() is not False
        give_back()
        if pids == [0]:
            os._exit(0)
        helper.join()
        assert os.waitpid(pids[0], 0)[1] == 0, "the child failed"
        use(it)
        """,
        before=given_up(name),
    )


# Barriers break when the time is up, and conditions refuse, for the lock is let go.
PATIENT = [name for name in TIMED if not name.startswith(("Barrier", "Condition.wait"))]


@pytest.mark.parametrize("name", PATIENT)
def test_a_handler_waits_for_it_with_a_time_out(name: str) -> None:
    run(
        """
        def alarm(*_):
            try:
                nested.append(block(0.002))
            except (Empty, Full):
                nested.append(False)

        def send():
            until(lambda: waits(it) > before)
            for i in range(3):
                os.kill(os.getpid(), signal.SIGALRM)
                until(lambda: len(nested) > i)
            end()

        signal.signal(signal.SIGALRM, alarm)
        nested = []
        begin()
        before = waits(it)
        helper = start(send)
        assert block() is not False
        helper.join()
        assert nested == [False] * 3, nested
        """,
        before=definitions(WAITS[name]),
    )


def test_a_waiter_keeps_its_place_behind_those_before_it() -> None:
    run(
        """
        def get(number):
            order.append((number, it.get()))

        it, order, others = SimpleQueue(), [], []
        signal.signal(signal.SIGALRM, lambda *_: handled.set())
        handled = threading.Event()

        def send():
            until(lambda: it.statistics().waits == 2)
            os.kill(os.getpid(), signal.SIGALRM)
            handled.wait()
            others.append(start(get, "third"))
            until(lambda: it.statistics().waits == 3)
            for item in range(3):
                it.put(item)

        others.append(start(get, "first"))
        until(lambda: it.statistics().waits == 1)
        helper = start(send)
        get("main")
        helper.join()
        for other in others:
            other.join()
        assert dict(order) == {"first": 0, "main": 1, "third": 2}, order
        """
    )


def test_an_event_of_the_past_wakes_nobody_else() -> None:
    # Set for all who waited then, and cleared; the wait that was told so raises.
    run(
        """
        class Interrupt(Exception):
            pass

        def alarm(*_):
            elsewhere(event.set)
            event.clear()
            late.append(start(lambda: answers.append(event.wait(0.3))))
            until(lambda: event.statistics().waits == 2)
            raise Interrupt

        def send():
            until(lambda: event.statistics().waits == 1)
            os.kill(os.getpid(), signal.SIGALRM)

        event, late, answers = Event(), [], []
        signal.signal(signal.SIGALRM, alarm)
        start(send)
        refused(Interrupt, event.wait)
        late[0].join()
        assert answers == [False], answers
        use(event)
        """
    )


# ---- who holds the lock waits for the handler ---------------------------------------------------

# A notification, and then the lock is kept until the handler has run.  (The standard RLock runs no
# handlers when a condition has it back.)
WITH_THE_LOCK = {
    "Condition.wait": ("it", "it.notify()"),
    "Condition.wait over Lock": ("it", "it.notify()"),
    "Condition.wait_for": ("it", "ready.append(1); it.notify()"),
    "Semaphore.acquire": ("it._cond", "it._value += 1; it._cond.notify()"),
    "Queue.get": ("it.mutex", "it.queue.append(1); it.not_empty.notify()"),
    "Queue.put": ("it.mutex", "it.queue.clear(); it.not_full.notify()"),
    "Queue.join": ("it.mutex", "it.unfinished_tasks = 0; it.all_tasks_done.notify()"),
}


@pytest.mark.parametrize("name", WITH_THE_LOCK)
@pytest.mark.parametrize("raises", [False, True])
def test_the_holder_of_the_lock_waits_for_the_handler(name: str, raises: bool) -> None:
    lock, notify = WITH_THE_LOCK[name]
    run(
        f"""
        class Interrupt(Exception):
            pass

        def alarm(*_):
            handled.set()
            if {raises}:
                raise Interrupt

        def send():
            until(lambda: waits(it) > before)
            with {lock}:
                {notify}
                os.kill(os.getpid(), signal.SIGALRM)
                assert handled.wait(20), "the handler did not run"
            over.set()

        signal.signal(signal.SIGALRM, alarm)
        handled, over = threading.Event(), threading.Event()
        begin()
        before = waits(it)
        helper = start(send)
        try:
            result = block()
            over.wait()
        except Interrupt:
            assert {raises}
        else:
            assert not {raises} and result is not False
        helper.join()
        if isinstance(it, Condition):
            assert it._is_owned(), "the lock is not held after wait()"
        """,
        before=definitions(WAITS[name]),
    )


@pytest.mark.parametrize("name", ["Queue.get", "Queue.put"])
def test_what_was_handed_over_comes_without_the_lock(name: str) -> None:
    run(
        """
        def body():
            block()
            back.set()

        back = threading.Event()
        begin()
        before = waits(it)
        start(body)
        until(lambda: waits(it) > before)
        end()
        with it.mutex:
            assert back.wait(20)
        """,
        before=definitions(WAITS[name]),
    )


# ---- the same as the plain interpreter ----------------------------------------------------------

LIKE_STOCK = {
    "logging in a handler": """
        import logging

        class Slow(logging.Handler):
            def emit(self, record):
                written.append(record.msg)
                time.sleep(0.0005)

        def work():
            while handled < 200:
                log.warning("worker")

        def alarm(*_):
            global handled
            handled += 1
            # Not by the logger, which drops a record if its thread logs at that moment (3.13.4).
            slow.handle(logging.makeLogRecord({"msg": "handler"}))
            signal.setitimer(signal.ITIMER_REAL, 0.001)  # none comes inside this one

        log, slow, written, handled = logging.getLogger(), Slow(), [], 0
        log.addHandler(slow)
        signal.signal(signal.SIGALRM, alarm)
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while handled < 200:
            log.warning("main")
        signal.setitimer(signal.ITIMER_REAL, 0)
        for worker in workers:
            worker.join()
        print(sorted(set(written)), written.count("handler") == handled)
        """,
    "a queue that is joined": """
        def work():
            while (item := tasks.get()) is not None:
                tasks.task_done()

        def alarm(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            tasks.put("handler")
            handled.append(1)

        tasks, handled = queue.Queue(), []
        signal.signal(signal.SIGALRM, alarm)
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        def end():
            while not tasks.all_tasks_done._waiters:
                time.sleep(0.001)
            with tasks.mutex:  # join() has given it up: the handler wants it
                pass
            signal.setitimer(signal.ITIMER_REAL, 1e-6, again)
            while not handled:
                time.sleep(0.001)
            tasks.task_done()

        tasks.unfinished_tasks += 1
        threading.Thread(target=end).start()
        tasks.join()
        for worker in workers:
            tasks.put(None)
        print(len(handled), tasks.unfinished_tasks)
        """,
    "the end of a thread": """
        def alarm(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            with lock:
                seen.append(thread.is_alive())
            thread.join(0.001)

        def end():
            while not seen:
                time.sleep(0.001)
            time.sleep(0.05)
            go.set()

        lock, seen = threading.Lock(), []
        go = threading.Event()
        thread = threading.Thread(target=go.wait)
        signal.signal(signal.SIGALRM, alarm)
        thread.start()
        threading.Thread(target=end).start()
        signal.setitimer(signal.ITIMER_REAL, 0.1, again)
        thread.join()
        print(seen, thread.is_alive())
        """,
    "an event that the handler sets": """
        signal.signal(signal.SIGALRM, lambda *_: event.set())
        event = threading.Event()
        signal.setitimer(signal.ITIMER_REAL, 0.05, again)
        print(event.wait())
        """,
    "a condition that the handler notifies": """
        def alarm(*_):  # it may come before the wait
            signal.setitimer(signal.ITIMER_REAL, 0 if condition._waiters else 0.05, again)
            with condition:
                condition.notify()

        condition = threading.Condition()
        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, 0.05, again)
        with condition:
            print(condition.wait(20))
        """,
    "a barrier that the handler completes": """
        def alarm(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            indices.append(barrier.wait())

        def send():
            while not barrier.n_waiting:
                time.sleep(0.001)
            with barrier._cond:  # the wait has given it up: the handler wants it
                pass
            signal.setitimer(signal.ITIMER_REAL, 1e-6, again)

        barrier = threading.Barrier(2)
        indices = []
        signal.signal(signal.SIGALRM, alarm)
        threading.Thread(target=send).start()
        indices.append(barrier.wait())
        print(sorted(indices), barrier.broken, barrier.n_waiting)
        """,
    "an executor whose results a handler asks for": """
        from concurrent.futures import ThreadPoolExecutor, wait

        def alarm(*_):
            nested.append(pool.submit(pow, 2, 3).result(20))

        nested = []
        signal.signal(signal.SIGALRM, alarm)
        with ThreadPoolExecutor(2) as pool:
            slow = pool.submit(time.sleep, 0.2)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            wait([slow])
        print(nested, slow.done())
        """,
    "an RLock counts on": """
        def alarm(*_):
            signal.setitimer(signal.ITIMER_REAL, 0)
            let_go.set()
            until_free()
            with lock:
                with lock:
                    counts.append(lock._is_owned())

        def until_free():
            other.join()

        def hold():
            with lock:
                held.set()
                let_go.wait()

        lock, held, let_go, counts = threading.RLock(), threading.Event(), threading.Event(), []
        signal.signal(signal.SIGALRM, alarm)
        other = threading.Thread(target=hold)
        other.start()
        held.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.05, again)
        with lock:
            counts.append(lock._is_owned())
            third = threading.Thread(target=lambda: counts.append(lock.acquire(False)))
            third.start()
            third.join()
        print(counts, lock._is_owned())
        """,
}


@pytest.mark.parametrize("name", LIKE_STOCK)
def test_it_is_as_in_the_plain_interpreter(name: str) -> None:
    # The standard library's waits sleep on if the signal comes just before they fall asleep: there
    # a second one wakes them. Each handler but those that may run twice ends its timer.
    imports, program = "import os, queue, signal, threading, time\n", dedent(LIKE_STOCK[name])
    stock = subprocess.run(
        [sys.executable, "-c", f"{imports}again = 5\n{program}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    patched = f"from cpythonplus import threads\nthreads.patch()\n{imports}again = 0\n{program}"
    assert run_child(patched, timeout=60).out == stock.stdout
    assert stock.stdout.strip()
