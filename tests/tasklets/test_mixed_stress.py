"""Threads, tasklets and asyncio over one lock and one channel: every item is accounted for."""

import json

import pytest

from tests.support import run_child

PROGRAM = """
import asyncio, json, random, sys, threading
from cpythonplus.tasklets import TaskletExit, aio, channel, getcurrent, run, schedule, tasklet
from cpythonplus.tasklets.io import sleep, timeout
from cpythonplus.tasklets.locks import Lock

PRODUCERS, ITEMS, THREADS = {producers}, {items}, {threads}
lock = Lock()
items = channel()
items.preference = 1
counted = 0
sent, received, given_up, counts = [], [], [], []
END = object()


def count():
    '''Under the lock: a read and a write with a switch in between.'''
    global counted
    with lock:
        before = counted
        schedule()
        counted = before + 1
    counts.append(1)


def produce(who):
    chance = random.Random(who)
    for number in range(ITEMS):
        item = (who, number)
        try:
            with timeout(chance.choice((0, 0.0005, 100))):
                count()
                items.send(item)
        except TimeoutError:
            with lock:
                given_up.append(item)
        else:
            sent.append(item)
        if chance.random() < 0.1:
            sleep(0)


async def produce_in_asyncio(who):
    for number in range(ITEMS):
        item = (who, number)
        await aio.spawn(count)
        await aio.spawn(items.send, item)
        sent.append(item)
        await asyncio.sleep(0)


def consume():
    while (item := items.receive()) is not END:
        received.append(item)


def produce_here(first):
    tasks = [tasklet(produce)(first + number) for number in range(PRODUCERS)]
    tasks.append(tasklet(aio.run)(produce_in_asyncio(first + PRODUCERS)))
    while any(task.alive for task in tasks):
        run()
        sleep(0)


def produce_under_a_loop_of_the_program(first):
    async def main():
        spawned = [aio.spawn(produce, first + number) for number in range(PRODUCERS)]
        await asyncio.gather(produce_in_asyncio(first + PRODUCERS), *spawned)
    asyncio.run(main())


def consume_with_limits():
    '''A limit may end at any moment; what has come by then is received.'''
    item = None
    while item is not END:
        try:
            with timeout(0.0005):
                item = items.receive()
        except TimeoutError:
            continue
        if item is not END:
            received.append(item)


producers = [
    threading.Thread(target=call, args=(1000 * number,))
    for number, call in enumerate(
        [produce_here, produce_under_a_loop_of_the_program] * THREADS
    )
]
consumers = [threading.Thread(target=consume) for _ in range(THREADS)]
consumers.append(threading.Thread(target=consume_with_limits))
for thread in producers + consumers:
    thread.start()
for thread in producers:
    thread.join()
for _ in consumers:
    tasklet(items.send)(END)
while items.balance > 0:
    sleep(0.001)
run()
for thread in consumers:
    thread.join()
json.dump(
    {{
        "sent twice": len(sent) - len(set(sent)),
        "received twice": len(received) - len(set(received)),
        "lost": sorted(set(sent) - set(received)),
        "never sent": sorted(set(received) - set(sent)),
        "all": len(sent) + len(given_up) == 2 * THREADS * (PRODUCERS + 1) * ITEMS,
        "some given up": bool(given_up),
        "counted": counted == len(counts) >= len(sent),
        "left": [items.balance, lock.locked()],
    }},
    sys.stdout,
)
"""


@pytest.mark.parametrize(
    ("producers", "items", "threads"),
    [(5, 20, 1), pytest.param(20, 100, 2, marks=pytest.mark.slow)],
)
def test_every_item(producers: int, items: int, threads: int) -> None:
    child = run_child(PROGRAM.format(producers=producers, items=items, threads=threads), timeout=60)
    assert child.err == ""
    assert json.loads(child.out) == {
        "sent twice": 0,
        "received twice": 0,
        "lost": [],
        "never sent": [],
        "all": True,
        "some given up": True,
        "counted": True,
        "left": [0, False],
    }
