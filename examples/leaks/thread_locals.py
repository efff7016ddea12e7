"""Data of a thread that lives as long as the thread."""

import threading

from examples.leaks.service import SECONDS, serve

local = threading.local()


def tick(number: int) -> None:
    """Note what the thread has done."""
    local.history.append({"job": number, "log": "x" * 300})


def worker() -> None:
    """Work until the end."""
    local.history = []  # LEAK __main__.local.history
    serve(tick)


thread = threading.Thread(target=worker)
thread.start()
thread.join(SECONDS + 10)
