"""Whoever has a lock that a lighter thread waits for is served as that one."""

import pytest

from tests.gil.load import run

# The owner's turn ends while it has the lock: then it gives the GIL up for a moment, and each of
# the others has its turn before it can let go.
BESIDE_TURNS = """
from cpythonplus import threads

gil.install(gil.Policy(slice_us=40_000, batch_share=0.0))
threads.patch()
lock = threading.{lock}()
stop = False
rounds = []

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def job():
    compute(0.4)
    while not stop:
        with lock:
            compute(0.05)
            for _ in range(5):
                os.stat("/")
        rounds.append(None)
        compute(0.002)

def computed():
    sums = {{"cpu": 0, "job": 0}}
    for each in gil.statistics().threads:
        name = each.name.partition("-")[0]
        if name in sums:
            sums[name] += each.cpu_ns
    return sums

with Load(cpu=2) as load:
    owner = threading.Thread(target=job, name="job")
    owner.start()
    until(lambda: len(rounds) > 2)
    others_ns = owner_ns = 0
    while owner_ns < 500_000_000:  # ten times all that it computes with the lock
        time.sleep(0.02)
        before = computed()
        with lock:
            pass
        after = computed()
        others_ns += after["cpu"] - before["cpu"]
        owner_ns += after["job"] - before["job"]
    stop = True
    owner.join()
# While this thread waits, the owner computes. Without inheritance it shares turns with both others,
# which then compute twice as much as it does. That is processor time, the same on a busy machine.
assert others_ns < owner_ns, (others_ns, owner_ns)
"""


@pytest.mark.slow
@pytest.mark.needs_gil
@pytest.mark.parametrize("lock", ["Lock", "RLock", "Condition"])
def test_the_owner_of_a_lock(lock: str) -> None:
    run(BESIDE_TURNS.format(lock=lock), before="")


def test_a_chain_of_owners_and_a_circle() -> None:
    """The thread that waits lends through the one that waits itself; a circle is followed once."""
    run(
        """
        import random

        from cpythonplus import threads

        gil.install()
        threads.patch()
        locks = [threading.Lock() for _ in range(3)]
        stop = False
        rounds = [0] * 6

        def body(i):
            rnd = random.Random(i)
            while not stop:
                first, second = rnd.sample(locks, 2)
                with first:
                    os.stat("/")
                    # In any order, so there are circles: they end by the time-out.
                    if second.acquire(timeout=0.001):
                        os.stat("/")
                        second.release()
                rounds[i] += 1
                if i % 2:
                    time.sleep(0.0005)

        with Load(cpu=1):
            members = [threading.Thread(target=body, args=(i,)) for i in range(6)]
            for thread in members:
                thread.start()
            until(lambda: min(rounds) > 50)
            stop = True
            for thread in members:
                thread.join()
        """,
        before="",
    )


# Two threads that compute alike, the first of which had a lock until just now.
NOTHING_STAYS_LENT = """
import signal

from cpythonplus import threads

gil.install()
threads.patch()
mine, other = threading.Lock(), threading.Lock()
held, waits, released = threading.Event(), threading.Event(), threading.Event()
stop = False
spent = [0.0, 0.0]  # of CPU time: how much work that is, a JIT changes meanwhile

def compute(i):
    end = time.thread_time() + 0.4
    if i == 0:
        mine.acquire()
        held.set()
    while time.thread_time() < end:
        pass
    released.wait()
    if i == 0:
        mine.release()
    while not stop:
        spent[i] = time.thread_time()

{wait}

members = [threading.Thread(target=compute, args=(i,)) for i in range(2)]
for thread in members:
    thread.start()
held.wait()
wait()
released.set()

until(lambda: min(spent) > 0.8)  # until both are known as jobs, and have caught up
for _ in range(10):  # the kernel may favour one of them for a while, what is lent would go on
    before = list(spent)
    until(lambda: sum(spent) - sum(before) > 1)
    a, b = (now - was for now, was in zip(spent, before))
    if a < 2 * b and b < 2 * a:
        break
stop = True
for thread in members:
    thread.join()
assert a < 2 * b and b < 2 * a, (a, b)
"""

CHAIN = """
over = False

def between():
    with other:
        waits.set()
        while not over:  # it has `other` for longer than the next one waits for it
            assert not mine.acquire(timeout=0.6)

def wait():
    global over
    thread = threading.Thread(target=between)
    thread.start()
    waits.wait()
    time.sleep(0.1)
    assert not other.acquire(timeout=0.2)
    over = True
    thread.join()
"""

INSIDE_A_WAIT = """
def keep():
    while not stop:
        with other:
            time.sleep(0.02)

def handler(*_):
    with other:
        pass

def wait():
    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    assert not mine.acquire(timeout=0.6)
"""


@pytest.mark.slow
@pytest.mark.needs_gil
@pytest.mark.parametrize("wait", [CHAIN, INSIDE_A_WAIT], ids=["chain", "handler"])
def test_nothing_stays_lent_when_waits_time_out(wait: str) -> None:
    run(NOTHING_STAYS_LENT.format(wait=wait), before="")
