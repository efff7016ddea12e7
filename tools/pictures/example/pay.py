"""The service of `top`'s picture: a report computes, a feed keeps the GIL, a payment a lock."""

import re
import threading
import time
from collections.abc import Callable

ACCOUNTS = threading.Lock()
SECONDS = 300


def report() -> None:
    """Compute in Python code."""
    while True:
        sum(row % 7 for row in range(100_000))


def feed() -> None:
    """Keep the GIL in C code, now and then."""
    while True:
        time.sleep(1.2)
        re.match("(a*)*b", "a" * 21)


def fetch() -> None:
    """Hold a lock while another service answers."""
    while True:
        with ACCOUNTS:
            time.sleep(3)


def charge() -> None:
    """Want the same lock."""
    while True:
        with ACCOUNTS:
            pass
        time.sleep(0.01)


def serve() -> None:
    """Answer many small requests."""
    while True:
        time.sleep(0.004)
        sum(range(2_000))


def start(name: str, function: Callable[[], None]) -> None:
    """Start a thread."""
    threading.Thread(target=function, name=name, daemon=True).start()


start("report", report)
start("feed", feed)
start("payment-1", fetch)
for number in range(2, 4):
    start(f"payment-{number}", charge)
for number in range(1, 5):
    start(f"worker-{number}", serve)
print("ready", flush=True)
time.sleep(SECONDS)
