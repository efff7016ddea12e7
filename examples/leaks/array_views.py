"""Small views that keep large buffers."""

from examples.leaks.service import serve

headers: list[memoryview] = []  # LEAK __main__.headers


def tick(number: int) -> None:
    """Read a message, and keep its first bytes."""
    message = bytes([number & 0xFF]) * 20_000
    headers.append(memoryview(message)[:16])


serve(tick, per_second=100)
