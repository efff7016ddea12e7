"""A queue that is filled faster than it is read."""

import queue

from examples.leaks.service import serve

jobs: queue.Queue[dict[str, str]] = queue.Queue()  # LEAK __main__.jobs.queue


def tick(number: int) -> None:
    """Put three, take one."""
    for i in range(3):
        jobs.put({"job": f"{number}.{i}", "text": "z" * 100})
    jobs.get()


serve(tick)
