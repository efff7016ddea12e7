"""Threads that are all woken at once: they come one after the other, and all of them come."""

import pytest

from tests.gil.load import run

CROWD = """
import random
from cpythonplus import threads

{install}
threads.patch()
threading.stack_size(256 * 1024)

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

class Crowd:
    def __init__(self, size, wait):
        self.out = 0
        self.counting = threading.Lock()
        self.threads = [threading.Thread(target=self.one, args=(i, wait)) for i in range(size)]
        for thread in self.threads:
            thread.start()

    def one(self, i, wait):
        wait(i)
        with self.counting:
            self.out += 1

    def join(self):
        for thread in self.threads:
            thread.join()
        assert self.out == len(self.threads)

def wake_beside(size, wait, look, rounds, is_right):
    # On a busy machine the kernel may keep one of them away: not in each round.
    global event, crowd, seen
    for _ in range(rounds):
        event = threading.Event()
        crowd = Crowd(size, wait)
        until(lambda: len(event._cond._waiters) == size)
        seen = set()
        beside = threading.Thread(target=look)
        beside.start()
        event.set()
        crowd.join()
        beside.join()
        if is_right():
            break
"""

ALL_COME = (
    CROWD
    + """
event = threading.Event()
answers = []
crowd = Crowd(100, lambda i: answers.append(event.wait(0.2 if i % 7 == 0 else None)))
until(lambda: len(event._cond._waiters) >= 85)
event.set()
event.clear()
crowd.join()
assert sum(answers) >= 85, answers

# Some leave by themselves meanwhile: nobody else is left behind.
for i in range(30):
    event = threading.Event()
    crowd = Crowd(40, lambda i: event.wait(random.random() * 0.004 if i % 2 else None))
    time.sleep(random.random() * 0.004)
    event.set()
    crowd.join()

condition = threading.Condition()

def wait(i):
    with condition:
        condition.wait()

crowd = Crowd(60, wait)
for count, left in ((25, 35), (0, 35), (30, 5), (5, 0)):
    until(lambda: len(condition._waiters) == left + count)
    with condition:
        condition.notify(count)
    until(lambda: crowd.out == 60 - left)
crowd.join()

barrier = threading.Barrier(50)
crowd = Crowd(50, lambda i: [barrier.wait() for _ in range(5)])
crowd.join()

semaphore = threading.Semaphore(0)
crowd = Crowd(50, lambda i: semaphore.acquire())
semaphore.release(20)
until(lambda: crowd.out == 20)
semaphore.release(30)
crowd.join()
"""
)


@pytest.mark.parametrize("install", ["gil.install()", ""])
def test_all_come(install: str) -> None:
    run(ALL_COME.format(install=install), before="")


OTHERS = (
    CROWD
    + """
def wait(i):
    event.wait()
    compute(0.0004)

def look():
    while crowd.out < 400:
        time.sleep(0.0005)
        seen.add(crowd.out)

# Another one than the main thread: that has computed at its start and goes after lighter ones.
wake_beside(400, wait, look, 10, lambda: len(seen) > 20)
# Were they all in the queue for the GIL, the observer would come once or twice.
assert len(seen) > 20, sorted(seen)
"""
)


def test_others_have_their_turn_meanwhile() -> None:
    run(OTHERS.format(install="gil.install()"), before="")


UNSCHEDULED = (
    CROWD
    + """
def compute_on():
    while crowd.out < 60:
        seen.add(crowd.out)

wake_beside(60, lambda i: event.wait(), compute_on, 30, lambda: len(seen) < 15)
# The interpreter lets the job go on after each time that it is asked: were two of the crowd there
# at a time, that would be thirty times.
assert len(seen) < 15, sorted(seen)
"""
)


def test_a_job_does_not_go_before_each_where_nothing_is_scheduled() -> None:
    run(UNSCHEDULED.format(install=""), before="")


FORKS = (
    CROWD
    + """
# The child of a fork has one thread of the crowd, and no one of those that are on their way.
event = threading.Event()
statuses = []

def wait(i):
    event.wait()
    if i % 10 == 0:
        pid = os.fork()
        if pid == 0:
            event.clear()
            assert not event.wait(0.001)
            event.set()
            os._exit(0 if event.wait() else 1)
        statuses.append(os.waitpid(pid, 0)[1])

crowd = Crowd(40, wait)
event.set()
crowd.join()
assert statuses == [0] * 4, statuses
"""
)


@pytest.mark.needs_gil
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_in_the_middle() -> None:
    run(FORKS.format(install="gil.install()"), before="")
