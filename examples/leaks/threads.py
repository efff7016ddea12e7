"""Threads that wait for something that never comes."""

import threading

from examples.leaks.service import serve

never = threading.Event()


def worker(number: int) -> None:  # LEAK worker()
    """Wait, with some data."""
    data = [number] * 200
    never.wait()
    data.clear()


def tick(number: int) -> None:
    """Start one more."""
    threading.Thread(target=worker, args=(number,), daemon=True).start()


serve(tick, per_second=20)
