"""A service that works much and leaks nothing."""

from collections import deque

from examples.leaks.service import serve

recent: deque[dict[str, int]] = deque(maxlen=100)


def tick(number: int) -> None:
    """Serve one request."""
    recent.append({"number": number, "size": len("x" * 500)})
    sorted(str(i) for i in range(50))


serve(tick)
