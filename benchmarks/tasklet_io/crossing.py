"""Worker: two threads that hand a value to and fro. Parameters: side, seconds, warmup_s."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import worker
from benchmarks.giltest.pairs.worker import Producer, Turn, consume

Way = tuple[Turn, Turn]
"""Give a value, take it: waits until there is one."""


def over_channel() -> Way:
    """Return one way over a channel."""
    from cpythonplus import tasklets

    channel = tasklets.channel()
    return lambda: channel.send(None), channel.receive


def over_queue(items: Any) -> Way:  # noqa: ANN401 - one queue or another
    """Return one way over a queue."""
    return lambda: items.put(None), items.get


WAYS: dict[str, Callable[[], Way]] = {
    "tasklets": over_channel,
    "scheduled": over_channel,
    "queue.Queue": lambda: over_queue(queue.Queue()),
    "SimpleQueue": lambda: over_queue(queue.SimpleQueue()),
}


def measured(parameters: dict[str, Any]) -> dict[str, Any]:
    """Let the two play for the given time and return rate and latencies of the round trips."""
    way = WAYS[parameters["side"]]
    (give_ping, take_ping), (give_pong, take_pong) = way(), way()
    producer = Producer(give_ping, take_pong)
    threading.Thread(
        target=consume, args=(take_ping, give_pong), name="consumer", daemon=True
    ).start()
    producer.thread.start()
    time.sleep(parameters["warmup_s"])
    start, first = time.perf_counter_ns(), len(producer.latencies_ns)
    time.sleep(parameters["seconds"])
    end, last = time.perf_counter_ns(), len(producer.latencies_ns)
    producer.stopping = True
    producer.thread.join()
    return {
        "rate": (last - first) * 1e9 / (end - start),
        # One more than were complete: it began inside the window, and somebody waited for it.
        "latencies_ns": producer.latencies_ns[first : last + 1].tolist(),
    }


def main() -> None:
    """Measure and end at once: the consumer waits for a value that never comes."""
    parameters = worker.begin()
    worker.finish(parameters, measured(parameters))
    os._exit(0)


if __name__ == "__main__":
    main()
