"""Worker: two threads that hand a turn to and fro. Parameters: kind, peer, seconds, warmup_s."""

import queue
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.common import worker
from benchmarks.giltest.pairs.worker import Producer, Turn, consume

Signal = tuple[Turn, Turn]
"""Give a turn, take it: waits until it is given."""

Pair = tuple[Turn, Turn, Turn, Turn]
"""Give ping, take ping, give pong, take pong."""


# ---- one way ------------------------------------------------------------------------------------


def lock() -> Signal:
    """Return a turn given by releasing a lock and taken by acquiring it."""
    held = threading.Lock()
    held.acquire()
    return held.release, held.acquire


def semaphore() -> Signal:
    """Return a turn that is a semaphore's count."""
    count = threading.Semaphore(0)
    return count.release, count.acquire


def event() -> Signal:
    """Return a turn that is an event's flag."""
    return over_event(threading.Event())


def over_event(flag: Any) -> Signal:  # noqa: ANN401 - an Event of one package or another
    """Return a turn over `flag`, which the taker clears."""

    def take() -> None:
        flag.wait()
        flag.clear()

    return flag.set, take


def simplequeue() -> Signal:
    """Return a turn that is an item in a simple queue."""
    return over_queue(queue.SimpleQueue())


def standard_queue() -> Signal:
    """Return a turn that is an item in a queue."""
    return over_queue(queue.Queue())


def over_queue(items: Any) -> Signal:  # noqa: ANN401 - a queue of one package or another
    """Return a turn that is an item in `items`."""
    return lambda: items.put(None), items.get


def both_ways(signal: Callable[[], Signal]) -> Pair:
    """Return a pair over two signals of a kind."""
    return *signal(), *signal()


# ---- both ways over one object ------------------------------------------------------------------


def condition() -> Pair:
    """Return a pair over one condition variable and a flag that says whose turn it is."""
    return over_condition(threading.Condition())


def over_condition(changed: Any) -> Pair:  # noqa: ANN401 - a Condition of one package or another
    """Return a pair over the condition variable `changed`."""
    consumers_turn = False

    def turn(*, consumers: bool) -> Signal:
        def give() -> None:
            nonlocal consumers_turn
            with changed:
                consumers_turn = consumers
                changed.notify()

        def take() -> None:
            with changed:
                while consumers_turn is not consumers:
                    changed.wait()

        return give, take

    return *turn(consumers=True), *turn(consumers=False)


STANDARD: dict[str, Callable[[], Pair]] = {
    "lock": lambda: both_ways(lock),
    "condition": condition,
    "event": lambda: both_ways(event),
    "semaphore": lambda: both_ways(semaphore),
    "simplequeue": lambda: both_ways(simplequeue),
    "queue": lambda: both_ways(standard_queue),
}


# ---- the same over a peer's classes -------------------------------------------------------------


def peers_semaphore(name: str) -> Signal:
    """Return a turn over one of aiologic's semaphores, which can be released by anybody.

    In place of Lock, too: aiologic's own can be released by its owner only.
    """
    count = getattr(import_module("aiologic"), name)(0)
    return count.green_release, count.green_acquire


def peers_simplequeue() -> Signal:
    """Return a turn that is an item in aiologic's simple queue."""
    items = import_module("aiologic").SimpleQueue()
    return lambda: items.put(None), items.green_get


PEERS: dict[str, Callable[[], Pair]] = {
    "lock": lambda: both_ways(lambda: peers_semaphore("BinarySemaphore")),
    "condition": lambda: over_condition(import_module("aiologic").Condition()),
    "event": lambda: both_ways(lambda: over_event(import_module("aiologic").REvent())),
    "semaphore": lambda: both_ways(lambda: peers_semaphore("Semaphore")),
    "simplequeue": lambda: both_ways(peers_simplequeue),
    "queue": lambda: both_ways(lambda: over_queue(import_module("culsans").Queue().sync_q)),
}


def main() -> None:
    """Let the pair play for the given time and report rate and latencies of the round trips."""
    parameters = worker.begin()
    pairs = PEERS if parameters["peer"] else STANDARD
    give_ping, take_ping, give_pong, take_pong = pairs[parameters["kind"]]()
    producer = Producer(give_ping, take_pong)
    consumer = threading.Thread(
        target=consume, args=(take_ping, give_pong), name="consumer", daemon=True
    )
    consumer.start()
    producer.thread.start()
    time.sleep(parameters["warmup_s"])
    start, first = time.perf_counter_ns(), len(producer.latencies_ns)
    time.sleep(parameters["seconds"])
    end, last = time.perf_counter_ns(), len(producer.latencies_ns)
    producer.stopping = True
    producer.thread.join()
    worker.finish(
        parameters,
        {
            "rate": (last - first) * 1e9 / (end - start),
            # One more than were complete: it began inside the window, and somebody waited for it.
            "latencies_ns": producer.latencies_ns[first : last + 1].tolist(),
        },
    )


if __name__ == "__main__":
    main()
