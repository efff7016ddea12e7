"""Worker: two threads that hand a turn to and fro.

Parameters: kind (lock, condition, queue), cpu_threads, seconds, warmup_s.
"""

import queue
import threading
import time
from array import array
from collections.abc import Callable

from benchmarks.common import cpu, worker

Turn = Callable[[], object]


def lock_pair() -> tuple[Turn, Turn, Turn, Turn]:
    """Return (give ping, take ping, give pong, take pong) over two plain locks."""
    ping, pong = threading.Lock(), threading.Lock()
    ping.acquire()
    pong.acquire()
    return ping.release, ping.acquire, pong.release, pong.acquire


def condition_pair() -> tuple[Turn, Turn, Turn, Turn]:
    """Return the same four over one condition variable and a flag that says whose turn it is."""
    condition = threading.Condition()
    consumers_turn = False

    def give_ping() -> None:
        nonlocal consumers_turn
        with condition:
            consumers_turn = True
            condition.notify()

    def take_ping() -> None:
        with condition:
            while not consumers_turn:
                condition.wait()

    def give_pong() -> None:
        nonlocal consumers_turn
        with condition:
            consumers_turn = False
            condition.notify()

    def take_pong() -> None:
        with condition:
            while consumers_turn:
                condition.wait()

    return give_ping, take_ping, give_pong, take_pong


def queue_pair() -> tuple[Turn, Turn, Turn, Turn]:
    """Return the same four over two queues."""
    ping: queue.Queue[None] = queue.Queue()
    pong: queue.Queue[None] = queue.Queue()
    return lambda: ping.put(None), ping.get, lambda: pong.put(None), pong.get


PAIRS = {"lock": lock_pair, "condition": condition_pair, "queue": queue_pair}


class Producer:
    """Gives a ping, takes a pong, and keeps how long each round trip took."""

    def __init__(self, give: Turn, take: Turn) -> None:
        """Take the producer's half of a pair."""
        self.thread = threading.Thread(target=self._run, name="producer")
        self.stopping = False
        self.latencies_ns = array("q")
        self._give, self._take = give, take

    def _run(self) -> None:
        give, take, keep, now = (
            self._give,
            self._take,
            self.latencies_ns.append,
            time.perf_counter_ns,
        )
        start = now()
        while not self.stopping:
            give()
            take()
            end = now()
            keep(end - start)
            start = end


def consume(take: Turn, give: Turn) -> None:
    """Take a ping, give a pong, round and round; ends with the process."""
    while True:
        take()
        give()


def main() -> None:
    """Let the pair play for the given time, beside CPU threads or not, and report."""
    parameters = worker.begin()
    count = parameters["cpu_threads"]
    solo = cpu.solo_rate(parameters["warmup_s"]) if count else 0.0
    give_ping, take_ping, give_pong, take_pong = PAIRS[parameters["kind"]]()
    producer = Producer(give_ping, take_pong)
    threads = cpu.CpuThreads(count)
    consumer = threading.Thread(
        target=consume, args=(take_ping, give_pong), name="consumer", daemon=True
    )
    consumer.start()
    threads.start()
    producer.thread.start()
    time.sleep(parameters["warmup_s"])
    first, before = len(producer.latencies_ns), threads.snapshot()
    time.sleep(parameters["seconds"])
    last, after = len(producer.latencies_ns), threads.snapshot()
    producer.stopping = True
    producer.thread.join()
    threads.stop()
    # One more than were complete: a round trip that began inside the window and ended after it
    # is a latency that somebody had to wait, and maybe the longest one.
    latencies_ns = producer.latencies_ns[first : last + 1]
    worker.finish(
        parameters,
        {
            "rate": (last - first) * 1e9 / (after["time_ns"] - before["time_ns"]),
            "latencies_ns": latencies_ns.tolist(),
            "shares": cpu.shares(before, after, solo) if count else [],
        },
    )


if __name__ == "__main__":
    main()
