"""A service with three routes, one of which leaks, asked by four threads at once.

    python -m examples.which_route [REQUESTS]

It prints which route the growth of the process came with.
"""

import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from cpythonplus import memory

THREADS = 4
AUDIT: list[dict[str, object]] = []
PRICES: dict[str, str] = {}


def search(path: str) -> bytes:
    """Make much, and keep nothing of it."""
    return " ".join(str(number) for number in range(2_000)).encode() + path.encode()


def prices(path: str) -> bytes:
    """Fill a cache with the first request."""
    if not PRICES:
        PRICES.update((f"item{number}", f"{number:>200}") for number in range(5_000))
    return PRICES.get(path.rpartition("/")[2], "").encode()


def orders(path: str) -> bytes:
    """Keep a record of each request: this is the leak."""
    AUDIT.append({"path": path, "answer": "x" * 1_000 + path})
    return b"ordered"


ROUTES = {"search": search, "prices": prices, "orders": orders}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer as the first part of the path says, after a wait as for a database."""
    time.sleep(0.001)
    answer = ROUTES[environ["PATH_INFO"].split("/")[1]](environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer]


attributed = memory.attribute_wsgi(application)


def client(seed: int, requests: int) -> None:
    """Send requests, one after the other."""
    chosen = random.Random(seed)  # noqa: S311
    for number in range(requests):
        path = f"/{chosen.choice(list(ROUTES))}/{number}"
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path}
        b"".join(attributed(environ, lambda *_: None))


def main(requests: int = 6_000) -> None:
    """Serve all of them, and print the table."""
    memory.attribute.configure(share=0.05)
    each = requests // THREADS
    threads = [threading.Thread(target=client, args=(n, each)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(memory.attributed())  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
