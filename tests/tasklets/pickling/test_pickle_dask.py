"""Tasklets that go on in the workers of a dask.distributed cluster, as it is."""

import pytest

from tests.docs import pages
from tests.support import run_child
from tests.tasklets.io.libraries import TIMEOUT_S, needs

# Two processes that run tasks, and nothing that listens beyond this machine.
PRELUDE = """
import os, pickle
from dask.distributed import Client, LocalCluster
from cpythonplus import tasklets
from cpythonplus.tasklets import run, schedule_remove, tasklet


def numbers(n, log):
    try:
        for i in range(n):
            yield i
    finally:
        log.append("no more numbers")


def work(n, log):
    total = 0

    def add(number):
        nonlocal total
        total += number
        return total

    for number in numbers(n, log):
        log.append((os.getpid(), add(schedule_remove(number)), os.getpid()))
    DONE.append((total, log))


DONE = []


def cluster():
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )


def go_on(task):
    # To the next stop: what it is then.
    task.insert()
    run()
    again = pickle.dumps(task)
    task.kill()
    return again


def finish(task):
    while task.alive:
        task.insert()
        run()


def judge(workers):
    ((total, log),) = DONE
    assert total == 15, total
    *steps, last = log
    assert last == "no more numbers"
    before, totals, after = (list(each) for each in zip(*steps))
    assert totals == [0, 1, 3, 6, 10, 15]
    here = os.getpid()
    assert len({*workers, here}) == 3, workers
    assert before == [here, *workers, *workers, here], (before, workers)
    assert after == [*workers, *workers, here, here], (after, workers)
    print("fine")
"""


def run_with_dask(code: str) -> None:
    needs("distributed")
    child = run_child(PRELUDE + code, timeout=TIMEOUT_S)
    assert child.out == "fine\n", child


def test_the_example_of_the_page() -> None:
    needs("distributed")
    page = pages.ROOT / "docs" / "how-to" / "move-a-tasklet.md"
    (block,) = (it for it in pages.blocks(page, page.read_text("utf-8")) if "dask" in it.text)
    child = run_child(block.text, timeout=TIMEOUT_S)
    assert child.out == block.output, child


@pytest.mark.slow  # a cluster of its own
def test_pickles_go_to_and_fro() -> None:
    run_with_dask(
        """
def one_step(data):
    return os.getpid(), go_on(pickle.loads(data))


if __name__ == "__main__":
    with cluster() as there, Client(there) as client:
        task = tasklet(work)(6, [])
        run()
        with tasklets.pickling(code="value"):
            data = pickle.dumps(task)
        task.kill()
        workers = []
        for worker in 2 * list(client.scheduler_info()["workers"]):
            pid, data = client.submit(one_step, data, workers=worker, pure=False).result()
            workers.append(pid)
    finish(pickle.loads(data))
    judge(workers[:2])
"""
    )


@pytest.mark.slow  # a cluster of its own
def test_a_tasklet_is_an_argument() -> None:
    """Other threads load it, the scheduler's and the loop's, than the one where it goes on."""
    run_with_dask(
        """
def one_step(task):
    task.bind_thread()
    return os.getpid(), go_on(task)


if __name__ == "__main__":
    with cluster() as there, Client(there) as client:
        task = tasklet(work)(6, [])
        run()
        workers = []
        for worker in 2 * list(client.scheduler_info()["workers"]):
            pid, data = client.submit(one_step, task, workers=worker, pure=False).result()
            workers.append(pid)
            task.kill()
            task = pickle.loads(data)
        finish(task)
    judge(workers[:2])
"""
    )


@pytest.mark.slow  # a cluster of its own
def test_a_tasklet_is_a_result() -> None:
    """One that has not gone on yet, which has no stack in the worker's thread."""
    run_with_dask(
        """
def second_half(data):
    task = pickle.loads(data)
    task.insert()
    run()
    again = pickle.loads(pickle.dumps(task))
    task.kill()
    return again


def where():
    return os.getpid()


if __name__ == "__main__":
    with cluster() as there, Client(there) as client:
        task = tasklet(work)(6, [])
        run()
        data = pickle.dumps(task)
        task.kill()
        workers = []
        for worker in 2 * list(client.scheduler_info()["workers"]):
            workers.append(client.submit(where, workers=worker, pure=False).result())
            task = client.submit(second_half, data, workers=worker, pure=False).result()
            data = pickle.dumps(task)
        task.bind_thread()  # dask has loaded it in the thread of its loop
        finish(task)
    judge(workers[:2])
"""
    )
